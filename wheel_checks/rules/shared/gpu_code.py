"""Shared by the rules about the GPU code of wheels and of installed distributions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from wheel_checks.data import load
from wheel_checks.facts.gpu.answer import CodeAnswer, answers
from wheel_checks.facts.gpu.code import GpuCodeFacts
from wheel_checks.facts.gpu.targets import Product, RunsHow, products, runs_on
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.fixes.commands import Word, option, requirement, run
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.parsing import version_or_none
from wheel_checks.phrases import plural

DECLARED = "torch.cuda.get_arch_list()"

_NUMBER = re.compile(r"^(?:sm|compute)_(\d+)")

K = TypeVar("K", bound=Hashable)

NamedCode = tuple[str, GpuCode]
"""A library and its code; "" for the declared list."""
Place = Callable[[str], Location]
"""The location of a library."""
Remedy = Callable[[Sequence[Product], GpuCode], Fix]
"""The fix for code that lacks these GPUs."""


def wanted_gpus(expectations: Expectations) -> tuple[Product, ...]:
    """What ``--gpu`` names; without it the check is skipped."""
    return expectations.gpus or need(Unavailable("no GPU was named", "--gpu GB200, H100, sm_100, ..."))


def named(gpus: Iterable[Product]) -> str:
    """GPUs for people: "GH200 (9.0), GB200 (10.0)"."""
    return ", ".join(map(str, gpus))


def labels_of(code: GpuCode) -> str:
    """The targets, for people: "sm_80, sm_90, compute_90"."""
    return ", ".join((*code.sass, *code.ptx, *code.gfx)) or "no GPU code"


def without_code(
    facts: GpuCodeFacts, wanted: Sequence[Product], remedy: Remedy, place: Place, *, is_part: bool = False
) -> Iterator[Finding]:
    """The GPUs that the package does not support (errors), and unproven ones (undecided), with the deciding library.

    Copies of other projects' libraries that lack code are warnings, libraries made for other GPUs are notes. Whether
    loose files of GPU code are needed is unknown if they are a part: of a stack, or of a package with libraries.
    """
    found = [_left_open(one) if is_part else one for one in answers(facts, wanted)]
    yield from _does_not_run([one for one in found if one.runs.how == "none"], facts, remedy, place)
    yield from _not_proven([one for one in found if one.runs.how == "unknown"], facts, place)
    yield from _bundled(found, place)
    yield from _by_design([one for one in found if one.runs.how in ("native", "jit")], place)


def _left_open(one: CodeAnswer) -> CodeAnswer:
    if not one.loose or one.runs.how != "none":
        return one
    why = f"its files of GPU code are made for other GPUs ({one.member}); it is unknown whether any are needed"
    return replace(one, runs=RunsHow("unknown", "", why))


def _does_not_run(found: Sequence[CodeAnswer], facts: GpuCodeFacts, remedy: Remedy, place: Place) -> Iterator[Finding]:
    codes = dict(facts.known)
    for member, answered in _grouped(found, lambda one: one.member).items():
        gpus, code = [one.product for one in answered], codes[member]
        if any(library.hardly for one in answered for library in one.lacking if library.member == member):
            message = f"hardly any code for {named(gpus)} in {member}: {answered[0].runs.why}"
        else:
            message = f"no code for {named(gpus)} in {member}, which has {labels_of(code)}"
        evidence = [Evidence(one.product.name, one.runs.why, f"{member} ({code.certainty})") for one in answered]
        yield Finding(message, tuple(evidence), remedy(gpus, code), place(member), cause=f"no code for {named(gpus)}")


def _not_proven(found: Sequence[CodeAnswer], facts: GpuCodeFacts, place: Place) -> Iterator[Finding]:
    def cause(one: CodeAnswer) -> tuple[str, ...]:
        return tuple(library.member for library in (*one.unread, *one.lacking, *one.partial)) or (one.runs.why,)

    for answered in _grouped(found, cause).values():
        gpus, first = named(one.product for one in answered), answered[0]
        evidence = [Evidence(one.product.name, one.runs.why) for one in answered]
        evidence += [Evidence("not read", library.runs.why, library.member) for library in first.unread]
        evidence += [Evidence("without code", labels_in(library.code), library.member) for library in first.lacking]
        evidence += _in_part(first)
        if facts.declared:
            evidence.append(Evidence("declared", labels_of(facts.declared), DECLARED))
        fix = _how_to_decide(first)
        member = next((library.member for library in (*first.unread, *first.lacking, *first.partial)), "")
        yield Finding(
            f"not proven that this runs on {gpus}: {first.runs.why}",
            tuple(evidence),
            fix,
            place(member) if member else None,
            undecided=True,
        )


def _in_part(one: CodeAnswer) -> list[Evidence]:
    return [
        Evidence("in part", f"{library.coverage}, of {labels_in(library.code)}", library.member)
        for library in one.partial
    ]


def _how_to_decide(one: CodeAnswer) -> Fix:
    for library in one.unread:
        if not isinstance(library.code, Unavailable):
            return Fix("Use --depth full, which reads every library completely.")
        if library.code.hint:
            return Fix(library.code.hint)
    return Fix(
        "Run it on the GPU, or ask its publisher whether the libraries without code, or unread ones, are needed."
    )


def _bundled(found: Sequence[CodeAnswer], place: Place) -> Iterator[Finding]:
    """Copies of other projects' libraries without code."""
    lacking: dict[str, list[Product]] = defaultdict(list)
    codes = {}
    for one in found:
        for library in one.bundled:
            lacking[library.member].append(one.product)
            codes[library.member] = library.code
    for member, gpus in lacking.items():
        message = f"no code for {named(gpus)} in {member}, which has {labels_in(codes[member])}"
        why = Evidence(
            "bundled", "a copy of another project's library: calls of the wheel into it fail on that GPU", member
        )
        fix = Fix("Use a release that includes a newer copy, or requires the library instead.")
        yield Finding(message, (why,), fix, place(member), Severity.WARNING)


def _by_design(found: Sequence[CodeAnswer], place: Place) -> Iterator[Finding]:
    """Notes: libraries that run in part, code for other GPUs, and libraries for another CUDA."""
    for shares, answered in _grouped(found, lambda one: tuple((x.member, x.coverage) for x in one.partial)).items():
        if shares:
            member, coverage = shares[0]
            message = f"{coverage} of {member} have code for {named(one.product for one in answered)}"
            fix = Fix("Run on the GPU what you need of it: kernels of the other files do not run there.")
            yield Finding(message, tuple(_in_part(answered[0])), fix, place(member), Severity.NOTE)
    for members, answered in _grouped(found, lambda one: tuple(x.member for x in one.meant_for_others)).items():
        if members:
            gpus = named(one.product for one in answered)
            evidence = tuple(
                Evidence("made for", labels_in(library.code), library.member)
                for library in answered[0].meant_for_others
            )
            message = f"{plural(len(members), 'file')} with GPU code made for GPUs other than {gpus}"
            fix = Fix("No action is needed: the package loads the files made for the GPU that it finds.")
            yield Finding(message, evidence, fix, severity=Severity.NOTE)
    for others, answered in _grouped(found, lambda one: tuple(x.cuda for x in one.other_cuda)).items():
        if others:
            gpus = named(one.product for one in answered)
            message = (
                f"no code for {gpus} in the libraries for CUDA {', '.join(others)}; the libraries for other versions "
                "have it"
            )
            yield Finding(
                message, fix=Fix("Use it with a torch for one of these CUDA versions."), severity=Severity.NOTE
            )


def _grouped(found: Iterable[CodeAnswer], key: Callable[[CodeAnswer], K]) -> dict[K, list[CodeAnswer]]:
    groups: dict[K, list[CodeAnswer]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    return groups


def labels_in(code: GpuCode | Unavailable) -> str:
    """The targets, as far as known."""
    return code.reason if isinstance(code, Unavailable) else labels_of(code)


def without_code_of_parts(
    libraries: Iterable[NamedCode], served: Sequence[Product], remedy: Remedy, place: Place
) -> Iterator[Finding]:
    """Libraries without code for GPUs that the whole as such runs on: kernels that are missing there, or not meant."""
    for member, code in libraries:
        lacking = [gpu for gpu in served if runs_on(code.counts, gpu).how == "none"]
        if lacking:
            message = f"no code for {named(lacking)} in {member}, which has {labels_of(code)}"
            evidence = tuple(
                Evidence(gpu.name, runs_on(code.counts, gpu).why, f"{member} ({code.certainty})") for gpu in lacking
            )
            cause = f"no code for {named(lacking)}"
            yield Finding(message, evidence, remedy(lacking, code), place(member), Severity.WARNING, cause=cause)


def only_compiled(facts: GpuCodeFacts, wanted: Sequence[Product], fix: Fix, place: Place) -> Iterator[Finding]:
    """Libraries that run on a GPU only by compiling PTX, of a package that runs there."""
    by_label: dict[tuple[str, str], list[Product]] = defaultdict(list)
    codes = {}
    found = answers(facts, wanted)
    if unsure := [one for one in found if one.is_perhaps_native]:
        what = f"{unsure[0].member} was read until {unsure[0].runs.label} was found, which runs on {unsure[0].product}"
        need(Unavailable(f"{what}; it is unknown whether there is also machine code for it", "--depth gpu"))
    for one in found:
        for library in one.compiled:
            by_label[library.member, library.runs.label].append(one.product)
            codes[library.member] = library.code
    main = facts.main[0] if facts.main else ""
    for (member, label), gpus in sorted(by_label.items(), key=lambda item: item[0][0] != main):
        message = f"{member} runs on {named(gpus)} only by compiling {label} at first use"
        evidence = (Evidence("code", labels_in(codes[member]), member),)
        yield Finding(message, evidence, fix, place(member), cause=f"compiled at first use on {named(gpus)}")


def next_to_other_cpus(
    wanted: Iterable[Product], machine: str, judged: str, fix: Callable[[Product, str], Fix]
) -> Iterator[Finding]:
    """GPUs that are found next to another CPU than ``machine``, which is that of the ``judged`` object ("the wheel").

    ``fix`` gets the GPU and a twin of it, a GPU of the same capability next to this CPU, "" if there isn't one.
    """
    for gpu in wanted:
        if gpu.machine in ("", machine):
            continue
        twins = [other.name for other in products() if other.sm == gpu.sm and other.machine == machine]
        message = f"{gpu} exists in {gpu.machine} machines, but {judged} is for {machine}"
        evidence = (Evidence(f"{gpu.capability} in {machine} machines", ", ".join(twins) or "none known"),)
        yield Finding(message, evidence, fix(gpu, twins[0] if twins else ""))


def another_release(
    project: str,
    version: str,
    target: Sequence[Word],
    gpus: Sequence[Product],
    code: GpuCode | None = None,
    *,
    on_index: bool = True,
) -> Fix:
    """Releases that may have the code, and how to build it: earlier ones for GPUs older than all code, else later ones.

    ``target`` are the options of ``verify`` for the target, from :func:`target_options`. A project that is not
    ``on_index`` gets no command. The command also shows the release itself, so that it never shows nothing.
    """
    numbers = [int(found[1]) for label in code.counts if (found := _NUMBER.search(label))] if code else []
    later = not numbers or max(gpu.sm for gpu in gpus) >= min(numbers) or any(gpu.gfx for gpu in gpus)
    build = building(project, gpus)
    how = f", or build from source with {build}" if build else ""
    advice = f"Use another release or index{how}."
    if not on_index:
        return Fix(advice)
    names = ",".join(gpu.name for gpu in gpus)
    wanted = requirement(f"{project}>={version}" if later else f"{project}{_some_before(version)}")
    return Fix(
        f"{advice} This lists {'this and later' if later else 'this and earlier'} releases:",
        (run("wheelproof", "verify", wanted, *target, "--all-files", option("--gpu", names)),),
    )


def _some_before(version: str) -> str:
    """A specifier for this release and those of a few minor versions before it: each is read."""
    parsed = version_or_none(version)
    if parsed is None:
        return f"=={version}"
    return f">={parsed.major}.{max(0, parsed.minor - 3)},<={version}"


def building(project: str, gpus: Sequence[Product]) -> str:
    """The setting that compiles this package for these GPUs ("FLASH_ATTN_CUDA_ARCHS='100'"); "" when not known."""
    table = load("build_variables")
    rows = table["build_amd" if all(gpu.gfx for gpu in gpus) else "build"]
    setting: str = next((row["setting"] for row in rows if project in row["projects"]), "")
    return (
        setting.replace("{10.0}", ";".join(dict.fromkeys(gpu.capability for gpu in gpus if gpu.sm)))
        .replace("{100}", ";".join(dict.fromkeys(str(gpu.sm) for gpu in gpus if gpu.sm)))
        .replace("{gfx}", ";".join(dict.fromkeys(gpu.gfx for gpu in gpus if gpu.gfx)))
    )
