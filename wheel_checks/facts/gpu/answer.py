"""Does a package run on a GPU? Answered from the GPU code of the libraries that decide.

An answer is proven: presence by code that was seen (also in a sample), absence only by libraries that were read whole.
The declarations of a library prove nothing.

* One alternative must have code: the one for that GPU, if names distinguish them.
* If each alternative has code for many architectures, they are the package itself.
* A library that has code for single architectures alone (sm_90a, sm_100f), or is named after some, is missing on other
  GPUs by design, as long as another one runs there.
* A library with a single file for the compiler's default architecture has no kernels worth mentioning.
* Files of GPU code by themselves, all of them for other GPUs, are no code for this one. Whether that matters, only the
  package that loads them knows.
* A library with code for another maker's GPUs alone is no part of the build for this one, if the others run.
* When some of the package's libraries run and some do not, the result depends on usage: unknown. So it is when less
  than half of a library's compiled files run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from wheel_checks.data import load
from wheel_checks.facts.gpu.code import GpuCodeFacts, LibraryGpuCode, runs_how
from wheel_checks.facts.gpu.deciding import Alternative, DecidingGroup, deciding_groups
from wheel_checks.facts.gpu.targets import Coverage, Product, RunsHow, coverage, runs_on
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Unavailable

RARE = 0.02
"""Below this share of its files that run, a library has hardly any code for a GPU."""
SAMPLED = 0.1
"""The same of a sample, which may show a rare file by chance."""
MOST = 0.5
"""From this share on, the files that run are most of a library, and those that the main library lacks of the package.
"""

_PREFERENCE = ("none", "unknown", "jit", "native")


@dataclass(frozen=True, slots=True)
class LibraryAnswer:
    """How one library, or the best of its alternatives, runs. ``files`` are the compiled files that were seen in it.

    ``coverage`` is the share that runs of a library read whole; ``hardly`` is true if that is so small that the code is
    ignored. ``unknown`` are the alternatives that were not read enough.
    """

    member: str
    runs: RunsHow
    code: GpuCode | Unavailable
    group: DecidingGroup
    files: int = 0
    coverage: Coverage | None = None
    hardly: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def is_partial(self) -> bool:
        """True if some of its compiled files run, and not all."""
        return self.coverage is not None and 0 < self.coverage.running < self.coverage.files and not self.hardly


@dataclass(frozen=True, slots=True)
class CodeAnswer:
    """How a package runs on ``product``, and the library that decides it, or "".

    ``lacking`` are libraries without code for it although others have some; ``meant_for_others`` are not made for this
    GPU; ``bundled`` are copies of other projects' libraries without code for it; ``unread`` must be read (whole) to
    decide. ``other_cuda`` are the alternatives of the running library, for another CUDA, without code. ``compiled`` are
    the libraries that run by PTX alone, the main one first; ``perhaps_compiled`` those whose sample shows PTX for this
    GPU, so that machine code is only decided by reading all. ``loose`` is true if the package has only files of GPU
    code for single architectures, which are loaded on matching GPUs.
    """

    product: Product
    runs: RunsHow
    member: str = ""
    lacking: tuple[LibraryAnswer, ...] = ()
    meant_for_others: tuple[LibraryAnswer, ...] = ()
    bundled: tuple[LibraryAnswer, ...] = ()
    unread: tuple[LibraryAnswer, ...] = ()
    other_cuda: tuple[Alternative, ...] = ()
    compiled: tuple[LibraryAnswer, ...] = ()
    perhaps_compiled: tuple[LibraryAnswer, ...] = ()
    partial: tuple[LibraryAnswer, ...] = ()
    coverage: Coverage | None = None
    loose: bool = False

    @property
    def is_perhaps_native(self) -> bool:
        """True if a sample shows PTX, and whether the package's main code has machine code is unknown."""
        return self.runs.how == "jit" and self.member in {library.member for library in self.perhaps_compiled}


def answers(facts: GpuCodeFacts, wanted: Iterable[Product]) -> list[CodeAnswer]:
    """The answer for each product; empty for a package without GPU code."""
    found = (answer(facts, product) for product in wanted)
    return [one for one in found if one is not None]


def still_matters(facts: GpuCodeFacts, wanted: Iterable[Product], *, presence: bool = False) -> frozenset[str]:
    """The members that must be read whole to answer for ``wanted``, when ``facts`` are a sample: none when that will
    do. ``presence``, it is enough to know that there is code that runs, if only PTX.
    """
    members: set[str] = set()
    for one in answers(facts, wanted):
        members.update(member for library in one.unread for member in (library.member, *library.unknown))
        if not presence and one.is_perhaps_native:
            members.add(one.member)  # the answer is another one when there is machine code, too
    return frozenset(members)


def answer(facts: GpuCodeFacts, product: Product) -> CodeAnswer | None:
    """How the package runs on a product; None when it has no GPU code."""
    libraries = {
        library.member: library
        for library in facts.libraries
        if isinstance(library.code, Unavailable) or library.code.counts or library.code.certainty != "exact"
    }
    groups = [
        group
        for group in deciding_groups(libraries, facts.project)
        if group.role != "source" and not _are_files_for_another_maker(group, product)
    ]
    found = [_of_group(group, libraries, product) for group in groups]
    if not found:
        if facts.declared is None:
            return None
        return CodeAnswer(product, RunsHow("unknown", "", "a declaration is no proof, and no library was read"))
    if any(_runs(one) and one.group.decides and not _is_stub(one) for one in found):
        found = [one for one in found if not _is_for_another_maker(one, product)]
    bundled = [one for one in found if one.group.role == "bundled"]
    own = [one for one in found if one not in bundled]
    is_main = [one for one in own if one.group.role == "main"]
    special = [one for one in own if _is_special(one) and (is_main or not _is_dispatched(one.group, libraries))]
    plain = [one for one in own if one not in special and not _is_stub(one)]
    runs, by, unread = _decide(plain, special, [one for one in own if one not in (*special, *plain)], bundled, product)
    running = [one for one in (*plain, *special) if _runs(one)]
    compiled = sorted((one for one in running if one.runs.how == "jit"), key=lambda one: one.group.role != "main")
    partial = tuple(one for one in (*plain, *special) if one.is_partial)
    covered = by or (partial[0] if partial and runs.how == "unknown" and not unread else None)
    return CodeAnswer(
        product,
        runs,
        by.member if by else "",
        tuple(one for one in plain if one.runs.how == "none"),
        tuple(one for one in special if one.runs.how == "none"),
        tuple(one for one in bundled if one.runs.how == "none"),
        tuple(unread),
        tuple(_other_cuda(running, libraries, product)),
        tuple(one for one in compiled if _is_exact(one)),
        tuple(one for one in compiled if not _is_exact(one)),
        partial,
        covered.coverage if covered else None,
        not plain and all(map(_is_loose, found)),
    )


_Decision = tuple[RunsHow, LibraryAnswer | None, list[LibraryAnswer]]


def _decide(
    plain: list[LibraryAnswer],
    special: list[LibraryAnswer],
    stubs: list[LibraryAnswer],
    bundled: list[LibraryAnswer],
    product: Product,
) -> _Decision:
    if not plain:
        return _decide_special(special, stubs, bundled, product)
    unread = [one for one in plain if one.runs.how == "unknown" and not one.is_partial]
    running = [one for one in plain if one.runs.how in ("native", "jit")]
    lacking = [one for one in plain if one.runs.how == "none"]
    partial = [one for one in plain if one.runs.how == "unknown" and one.is_partial]
    if not lacking and not unread and not partial:
        best = _speaker(running)
        return best.runs, best, []
    if lacking and not unread and not partial and _is_most(lacking, running) and not any(_runs(one) for one in special):
        return _outweighed(lacking, running, product)
    if unread:
        return _not_known(unread[0]), None, unread
    if partial:
        return _not_known(_speaker(partial)), None, []
    # If special libraries alone have code, only the package knows for what.
    best = _speaker(running) if running else next(one for one in special if _runs(one))
    why = f"{lacking[0].member} has no code for {product}, but {best.member} has"
    return RunsHow("unknown", "", why), None, []


def _outweighed(lacking: list[LibraryAnswer], running: list[LibraryAnswer], product: Product) -> _Decision:
    """The decision if most of the package lacks code; unknown if the running library was only sampled."""
    if sampled := [one for one in running if not _is_exact(one)]:
        why = f"{lacking[0].member} has no code for {product}, and {sampled[0].member} was not read completely"
        return RunsHow("unknown", "", why), None, sampled
    worst = _speaker(lacking)
    return worst.runs, worst, []


def _decide_special(
    special: list[LibraryAnswer], stubs: list[LibraryAnswer], bundled: list[LibraryAnswer], product: Product
) -> _Decision:
    """The decision without a library for GPUs in general: special ones decide, else copies of others' libraries."""
    running = [one for one in special if _runs(one)]
    if running:
        return running[0].runs, running[0], []
    unread = [one for one in special if one.runs.how == "unknown"]
    if unread:
        return _not_known(unread[0]), None, [one for one in unread if not one.is_partial]
    if special:
        chosen = [one for one in special if one.group.role != "special" and not _is_loose(one)]
        chosen = chosen or [one for one in special if all(map(_is_loose, special))]
        if chosen:
            return chosen[0].runs, chosen[0], []
        why = f"its GPU code is made for other GPUs ({special[0].member}); it is unknown whether the package needs it"
        return RunsHow("unknown", "", why), None, []
    return _decide_rest(stubs or bundled, product)


def _decide_rest(rest: list[LibraryAnswer], product: Product) -> _Decision:
    """The decision for stubs, or copies of others' libraries, alone: the code that these lack may not matter."""
    lacking = [one for one in rest if not _runs(one)]
    if not lacking:
        return rest[0].runs, rest[0], []
    unread = [one for one in lacking if one.runs.how == "unknown"]
    if unread:
        return _not_known(unread[0]), None, [one for one in unread if not one.is_partial]
    why = f"{lacking[0].member} has no code for {product}; it is unknown whether the package needs it"
    return RunsHow("unknown", "", why), None, []


def _of_group(group: DecidingGroup, libraries: dict[str, LibraryGpuCode], product: Product) -> LibraryAnswer:
    """The best alternative: among those named after the GPU when there are any, else among all of its maker."""
    pairs = [
        (_of_library(libraries[alternative.member], group, product), alternative) for alternative in group.alternatives
    ]
    every = [one for one, alternative in pairs if not (alternative.cuda if product.gfx else alternative.is_rocm)]
    if not every:
        why = f"{pairs[0][0].member} is for GPUs of another vendor than {product}"
        return replace(pairs[0][0], runs=RunsHow("none", "", why))
    own = [
        one for one, alternative in pairs if len(pairs) > 1 and one in every and _is_named_after(alternative, product)
    ]
    best = _best(own or every)
    if best.runs.how == "none" and own and any(_runs(one) for one in every):
        why = f"{best.member} has no code for {product}, but another alternative has"
        return replace(best, runs=RunsHow("unknown", "", why))
    return replace(best, unknown=tuple(one.member for one in own or every if one.runs.how == "unknown"))


def _of_library(library: LibraryGpuCode, group: DecidingGroup, product: Product) -> LibraryAnswer:
    code = library.code
    if isinstance(code, Unavailable):
        return LibraryAnswer(library.member, RunsHow("unknown", "", code.reason), code, group)
    how, files = runs_how(code, product), sum(code.containers.values())
    if how.how in ("native", "jit") and code.certainty == "exact" and files:
        return _of_compiled_files(
            LibraryAnswer(library.member, how, code, group, files, coverage(code, product)), product
        )
    if how.how != "none" and code.certainty == "sampled" and _is_rare(code, product):
        how = RunsHow("unknown", "", f"sampling shows {how.label} in only a few files")
    elif code.certainty == "declared" or (how.how == "none" and code.certainty != "exact"):
        how = RunsHow("unknown", "", f"it was not read completely ({code.certainty})")
    return LibraryAnswer(library.member, how, code, group, files)


def _of_compiled_files(one: LibraryAnswer, product: Product) -> LibraryAnswer:
    """The answer of a library read whole, by the share of its compiled files that run."""
    share = one.coverage.share if one.coverage else 1.0
    why = f"{one.coverage} have code for {product}"
    if share < RARE:
        return replace(one, runs=RunsHow("none", "", why), hardly=True)
    if share < MOST:
        return replace(one, runs=RunsHow("unknown", "", f"only {why}"))
    return replace(one, runs=replace(one.runs, why=f"{one.runs.why}; {why}")) if share < 1 else one


def _is_rare(code: GpuCode, product: Product) -> bool:
    """True when a sample shows far less code that runs there than for the target that it shows most."""
    running = sum(count for label, count in code.counts.items() if runs_on([label], product).how != "none")
    return running < SAMPLED * max(code.counts.values(), default=0)


def _best(found: Sequence[LibraryAnswer]) -> LibraryAnswer:
    return max(found, key=lambda one: _PREFERENCE.index(one.runs.how))


def _is_named_after(alternative: Alternative, product: Product) -> bool:
    """True for the alternative of the GPU's own architecture, or, of NVIDIA's, of its own major version."""
    if product.gfx:
        return product.gfx in alternative.architectures
    return any(isinstance(sm, int) and sm // 10 == product.sm // 10 for sm in alternative.architectures)


def _speaker(found: Sequence[LibraryAnswer]) -> LibraryAnswer:
    """The library that is named in the answer: a main one, else the one with the most files."""
    return max(found, key=lambda one: (_is_main(one), one.files))


def _is_most(lacking: Sequence[LibraryAnswer], running: Sequence[LibraryAnswer]) -> bool:
    """True when the libraries without code are all or nearly all of the package, or its main library and most files."""
    if not running:
        return True
    without, having = (sum(one.files for one in found) for found in (lacking, running))
    share = having / max(1, without + having)
    return share < RARE or (share < MOST and any(map(_is_main, lacking)) and not any(map(_is_main, running)))


def _are_files_for_another_maker(group: DecidingGroup, product: Product) -> bool:
    """True for loose files for AMD's GPUs when NVIDIA's are requested, and the other way round: sglang adds some."""
    others = ("*.cubin", "*.ptx") if product.gfx else ("*.co", "*.hsaco")
    return all(member.rpartition("/")[2] in others for member in group.members)


def _is_for_another_maker(one: LibraryAnswer, product: Product) -> bool:
    """True for a library read whole that has code for AMD's GPUs alone when NVIDIA's are requested, and vice versa."""
    if not _is_exact(one) or isinstance(one.code, Unavailable) or not one.code.counts:
        return False
    return all(label.startswith("gfx") is not bool(product.gfx) for label in one.code.counts)


def _is_loose(one: LibraryAnswer) -> bool:
    """True for files of GPU code by themselves, which a package loads one by one when it finds a GPU for them."""
    return one.member.rpartition("/")[2].startswith("*.")


def _is_main(one: LibraryAnswer) -> bool:
    """True for a library that the package imports or dispatches to: its own alternatives are not special."""
    return one.group.role in ("main", "special")


def _is_special(one: LibraryAnswer) -> bool:
    """True for a library for single architectures, by its name or by its code."""
    if one.group.role == "special":
        return True
    code = one.code
    if one.group.role == "main" or isinstance(code, Unavailable) or code.certainty != "exact" or not code.counts:
        return False
    return all(label[-1] in "af?" and label.startswith(("sm_", "compute_")) for label in code.counts)


def _is_dispatched(group: DecidingGroup, libraries: dict[str, LibraryGpuCode]) -> bool:
    """True for alternatives that are the whole package built several times: each has code for more than its own name.

    sgl-kernel's sm90/ and sm100/ are; torchao's kernels for 9.0a and 10.0a are additions that other GPUs do without.
    Libraries that were not read whole are included until they are.
    """
    if len(group.alternatives) < 2:
        return False
    codes = [(alternative, libraries[alternative.member].code) for alternative in group.alternatives]
    is_known = all(not isinstance(code, Unavailable) and code.certainty == "exact" for _, code in codes)
    return not is_known or all(_has_more_than_its_name(alternative, code) for alternative, code in codes)


def _has_more_than_its_name(alternative: Alternative, code: GpuCode | Unavailable) -> bool:
    if isinstance(code, Unavailable) or not alternative.architectures:
        return False
    own = {sm // 10 for sm in alternative.architectures if isinstance(sm, int)}
    majors = {int(label.rpartition("_")[2].rstrip("af?")) // 10 for label in (*code.sass, *code.ptx)}
    return len(majors - own) > 1


def _is_stub(one: LibraryAnswer) -> bool:
    """True for a library with one file for the default architecture of some nvcc, which has no kernels as a rule."""
    if isinstance(one.code, Unavailable) or one.code.certainty != "exact" or sum(one.code.counts.values()) > 2:
        return False
    defaults = load("deciding_files")["default_architectures"]
    return {label.rpartition("_")[2] for label in one.code.counts} <= {str(sm) for sm in defaults}


def _other_cuda(
    running: Iterable[LibraryAnswer], libraries: dict[str, LibraryGpuCode], product: Product
) -> Iterator[Alternative]:
    for one in running:
        for alternative in one.group.alternatives:
            code = libraries[alternative.member].code
            if alternative.cuda and not isinstance(code, Unavailable) and runs_how(code, product).how == "none":
                yield alternative


def _is_exact(one: LibraryAnswer) -> bool:
    return not isinstance(one.code, Unavailable) and one.code.certainty == "exact"


def _runs(one: LibraryAnswer) -> bool:
    return one.runs.how in ("native", "jit")


def _not_known(one: LibraryAnswer) -> RunsHow:
    if one.is_partial:
        return RunsHow("unknown", "", f"in {one.member} {one.runs.why}")
    return RunsHow("unknown", "", f"the GPU code of {one.member} is unknown: {one.runs.why}")
