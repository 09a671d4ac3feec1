"""Files of the installation that are gone, cut off, overwritten or left over."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from packaging.utils import canonicalize_name

from wheel_checks.commands import NoCommand, Step, in_words, path, run
from wheel_checks.facts.host.advice import reinstall_torch
from wheel_checks.facts.host.commands import install, remove, repair, uninstall
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.software import FileFinding, Package
from wheel_checks.facts.host.torch.demands import family_of, shares_paths, users_of
from wheel_checks.goal import Goal
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable
from wheel_checks.parsing import requirement_or_none
from wheel_checks.phrases import and_more, plural
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.installation.evidence import (
    again,
    complaints,
    file_name,
    findings,
    import_failed,
    installed,
    is_library,
    listed,
    mend,
    missing_of,
    missing_of_torch,
    was_imported,
    weight,
)

_TORCH_LEFT = re.compile(r"~orch-([^-]+)\.dist-info")
_OPENED_BY_NAME = re.compile(r"libcudnn_|libnvrtc-builtins|libtorch_|\.cpython-|\.abi3\.")
_BREAKS_IMPORT = re.compile(r"undefined symbol|cannot open shared object|version `?'?\S+'? not found")

cause = causes_in(Layer.FILES)


def _lost_to_sibling(finding: FileFinding) -> bool:
    """Whether files are gone as an uninstall takes them: libraries, and headers or modules next to them."""
    return (
        shares_paths(finding.subject)
        and any(map(is_library, finding.paths))
        and not all(map(is_library, finding.paths))
    )


@cause(
    "B01",
    "no uninstall has deleted files that two packages share",
    explains=("torch:import",),
    why="NVIDIA's packages of cuDNN, NCCL, NVSHMEM and cuSPARSELt for CUDA 12 and for CUDA 13 install the same paths. "
    "Uninstalling one deletes them for both, and installers still treat the other one as installed.",
    example="ImportError: libnvshmem_host.so.3: cannot open shared object file, after nvidia-nvshmem-cu12 was removed",
    fix="Reinstall the package that torch requires, without its dependencies.",
    sources="sglang PR31035",
    tested="a real uninstall by pip of one of two packages that share paths, and the fix run",
)
def shared_path_uninstalled(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Libraries of such a package are gone together with what is next to them."""
    required = _required_by_torch(facts)
    for finding in findings(facts, "WHL702"):
        package = installed(facts).named(finding.subject)
        if package is None or not _lost_to_sibling(finding):
            continue
        family = family_of(package.name)
        siblings = [one for one in installed(facts).packages if family_of(one.name) == family and one != package]
        if package.name not in required and any(one.name in required for one in siblings):
            continue  # the one that is needed reports it
        evidence = [Evidence("missing", listed(finding.paths, finding.count), finding.paths[0])]
        evidence += [Evidence("shares its paths", f"{one.name} {one.version}", one.folder) for one in siblings]
        evidence += _needed_by(facts, finding)
        other = siblings[0].name if siblings else f"{family} of another CUDA"
        fix = mend(facts, finding, f"Install {package.name} {package.version} again.")
        if siblings and not users_of(facts, other):
            fix = Fix(
                f"Remove {other}, then {fix.summary[0].lower()}{fix.summary[1:]}",
                (uninstall(facts, other), *fix.commands),
                Goal(intact=(package.name,), gone=(other,)),
            )
        yield Finding(
            f"{plural(finding.count, 'file')} of {package.name} {package.version} {_are(finding.count)} missing, in "
            f"paths shared with {other}: uninstalling either package deletes them for both",
            tuple(evidence),
            fix,
            severity=weight(facts, broken=not was_imported(facts)),
        )


@cause(
    "B02",
    "every installed file exists",
    explains=("torch:import",),
    why="An interrupted installation, a full disk, or an image build that trims files leaves the metadata in place, "
    "and installers rely on it: they report the requirement as satisfied.",
    example="libcudnn.so.9: cannot open shared object file, although nvidia-cudnn-cu13 is installed",
    fix="Reinstall the distribution, without its dependencies.",
    sources="sglang PR22719",
    tested="environments with deleted libraries, whose import really fails, and the fix run",
)
def payload_missing(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Files of RECORD that are gone: an error when a library is needed or the import fails, else a note."""
    found = [one for one in findings(facts, "WHL702") if not _lost_to_sibling(one)]
    for finding in sorted(found, key=lambda one: not _is_named(facts, one)):
        libraries = [path for path in finding.paths if is_library(path)]
        needed = missing_of(facts, finding.subject)
        opened = any(_OPENED_BY_NAME.search(file_name(path)) for path in libraries) and not was_imported(facts)
        guilty = bool(needed) or opened or (import_failed(facts) and (bool(libraries) or _is_named(facts, finding)))
        if not guilty and not libraries:
            continue  # headers, tests, documents: what torch does not run
        package = installed(facts).named(finding.subject)
        label = f"{finding.subject} {package.version}" if package else finding.subject
        yield Finding(
            f"{plural(finding.count, 'file')} of {label} {_are(finding.count)} missing, although its metadata lists "
            f"{'it' if finding.count == 1 else 'them'} as installed",
            (Evidence("missing", listed(finding.paths, finding.count), finding.paths[0]), *_needed_by(facts, finding)),
            mend(facts, finding, f"Install {label} again."),
            severity=weight(facts, broken=guilty),
        )


def _is_named(facts: HostFacts, finding: FileFinding) -> bool:
    """Whether a complaint names one of the files, or the module that it is."""
    told = complaints(facts)
    names = {file_name(path) for path in finding.paths}
    modules = {name.removesuffix(".py") for name in names if name.endswith(".py")}
    modules |= {path.split("/")[-2] for path in finding.paths if path.endswith("/__init__.py")}
    return any(name in told for name in names) or any(f"'{name}'" in told or f".{name}'" in told for name in modules)


def _needed_by(facts: HostFacts, finding: FileFinding) -> Iterator[Evidence]:
    for library in missing_of(facts, finding.subject)[:3]:
        yield Evidence(f"needs {library.soname}", listed(library.needed_by, len(library.needed_by)), "DT_NEEDED")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


@cause(
    "B03",
    "NVIDIA's libraries have the versions that torch requires",
    explains=("torch:import", "torch:compute"),
    why="torch is built against exact versions of NVIDIA's libraries. Installing another package may replace one of "
    "them, and the loader uses whatever has the right file name.",
    example="undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
    fix="Reinstall the pinned versions, without their dependencies.",
    sources="pytorch#134929, pytorch#144244, pytorch#111469, cuvs PR1794",
    tested="environments with another release than the pinned one, and with none, and the fix run; no crash of a GPU",
)
def pin_drift(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """What torch requires of NVIDIA's and has not: an error when it is missing or the import fails, else a note."""
    torch = installed(facts).named("torch")
    drifted = list(_drifted(facts))
    if torch is None or not drifted:
        return
    absent = [name for name, _, have in drifted if not have]
    unfound = [library for library in missing_of_torch(facts) if not library.owner]
    broken = bool(absent and unfound) or bool(was_imported(facts) and "torch:compute" in symptoms(facts))
    told = complaints(facts)
    broken = broken or (import_failed(facts) and _BREAKS_IMPORT.search(told) is not None)
    evidence = [
        Evidence(name, f"wanted {wanted}, {have or 'not installed'}", "METADATA") for name, wanted, have in drifted
    ]
    if unfound:
        evidence.append(Evidence("not found", ", ".join(library.soname for library in unfound[:5]), "needed by torch"))
    pins = [f"{name}{wanted}" for name, wanted, _ in drifted]
    have = drifted[0][2]
    yield Finding(
        f"torch {torch.version} requires {pins[0]}, but {have or 'no version'} is installed"
        + (f"; {len(drifted) - 1} more do not match either" if len(drifted) > 1 else ""),
        tuple(evidence),
        Fix(
            "Install what torch requires.",
            install(facts, *pins, force=True, no_deps=True),
            Goal(wanted=tuple(pins)),
        ),
        severity=Severity.ERROR if broken else Severity.NOTE,
    )


def _drifted(facts: HostFacts) -> Iterator[tuple[str, str, str]]:
    """(name, specifier, installed version) of each unmet requirement of torch and of cuda-toolkit."""
    for finding in findings(facts, "WHL705"):
        requirement = requirement_or_none(dict(finding.evidence).get("Requires-Dist", ""))
        if requirement is None or finding.subject not in {"torch", "cuda-toolkit"}:
            continue
        name = canonicalize_name(requirement.name)
        if name.startswith(("nvidia-", "cuda-")):
            present = installed(facts).named(name)
            yield name, str(requirement.specifier), present.version if present else ""


@cause(
    "B04",
    "no two packages have overwritten each other's libraries",
    explains=("torch:import", "torch:signal", "torch:init"),
    why="Packages of one library for two CUDA versions install to the same paths. Both count as installed, but only "
    "the files of the last one exist, which may lack what the other package's users need.",
    example="undefined symbol: ncclCommRegister, with nvidia-nccl-cu11 and nvidia-nccl-cu12 installed",
    fix="Uninstall the package that torch does not require, then reinstall the other one.",
    sources="returnn#1802, pytorch#119932, pytorch#119072, nccl#1180, nccl#1784",
    tested="environments with two such packages, and the fix run; no import of a CUDA torch",
)
def two_owners(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Native files with two owners and different content; Triton's are H16's."""
    required = _required_by_torch(facts)
    for finding in findings(facts, "WHL713"):
        owners = [one for name in finding.distributions if (one := installed(facts).named(name))]
        libraries = [path for path in finding.paths if is_library(path)]
        if len(owners) < 2 or not libraries or any("triton" in one.name for one in owners):
            continue
        kept = next((one for one in owners if one.name in required), owners[0])
        others = [one.name for one in owners if one is not kept]
        overwritten = any(
            path in finding.paths for one in findings(facts, "WHL703") if one.subject == kept.name for path in one.paths
        )
        yield Finding(
            f"{' and '.join(f'{one.name} {one.version}' for one in owners)} both contain "
            f"{listed(libraries, finding.count)}"
            + (f": the files of {kept.name} are overwritten" if overwritten else ""),
            (
                Evidence("files", listed(libraries, finding.count), libraries[0]),
                Evidence("owners", ", ".join(one.name for one in owners), "RECORD of each"),
                *(Evidence("required by torch", kept.name, "METADATA") for _ in (1,) if kept.name in required),
            ),
            _keep_one(facts, kept, others),
            severity=_weight_of_overwriting(facts, overwritten=overwritten),
        )


def _keep_one(facts: HostFacts, kept: Package, others: list[str]) -> Fix:
    """The others go, unless something requires them: then only another build of torch can end the conflict."""
    needed = [(user.name, name) for name in others for user in users_of(facts, name)]
    if not needed:
        commands = (uninstall(facts, *others), *again(facts, kept.name))
        return Fix(f"Keep {kept.name}.", commands, Goal(intact=(kept.name,), gone=tuple(others)))
    return Fix(
        f"{needed[0][0]} requires {needed[0][1]}, so neither can be removed; a torch that requires the same package "
        "would resolve this. The command searches for such a build, and changes nothing if there isn't one.",
        (repair(facts),),
        Goal(fitting_torch=True),
    )


def _weight_of_overwriting(facts: HostFacts, *, overwritten: bool) -> Severity:
    """A torch that was imported with it lives with it, until one of the two is uninstalled."""
    if was_imported(facts):
        return Severity.ERROR if "torch:init" in symptoms(facts) and overwritten else Severity.NOTE
    return weight(facts, broken=overwritten)


def _required_by_torch(facts: HostFacts) -> set[str]:
    torch = installed(facts).named("torch")
    names = (re.match(r"[\w.-]+", text) for text in (torch.requires if torch else ()))
    return {canonicalize_name(name[0]) for name in names if name}


@cause(
    "B06",
    "the libraries are complete, and built for this machine",
    explains=("torch:import", "torch:signal"),
    why="An interrupted download, a full disk or a quota leaves a truncated file. The fault shows only when the file "
    "is loaded, as an error of the loader or a crash (SIGBUS). With uv, the file in its cache is truncated too and "
    "must also be removed.",
    example="ImportError: libcublasLt.so.13: file too short; invalid ELF header",
    fix="Check whether the disk is full; then reinstall the distribution, bypassing the cache.",
    sources="SPICE#4, mlverse/torch#677",
    tested="libraries that were really cut off, seen by the real loader, and the fix run",
)
def cut_off(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Libraries that end before their segments do, that are no ELF files, or that are for another machine."""
    damaged: dict[str, list[tuple[str, str]]] = {}
    for owner, file, reason in _damaged(facts):
        damaged.setdefault(owner, []).append((file, reason))
    sizes = {label: value for finding in findings(facts, "WHL703") for label, value in finding.evidence}
    for owner, broken in damaged.items():
        file, reason = broken[0]
        package = installed(facts).named(owner)
        fix = Fix(f"Remove {file}: it does not belong to any distribution.", (remove(file),), Goal(remains=(file,)))
        if package:
            look = in_words(run("df", "-h", path(package.folder)))
            fix = Fix(
                f"Check whether the disk is full ({look}); then reinstall it.",
                again(facts, owner, cache=False),
                Goal(intact=(owner,), fresh=True),
            )
        told = [Evidence("size", value, label) for label, value in sizes.items() if file.endswith(f"/{label}")]
        more = and_more(len(broken) - 1, before=", ")
        yield Finding(
            f"{file_name(file)}{f' of {owner} {package.version}' if package else ''} cannot be loaded: {reason}{more}",
            (*(Evidence("file", one) for one, _ in broken[:3]), *told, *_said_by_loader(facts)),
            fix,
        )


def _damaged(facts: HostFacts) -> Iterator[tuple[str, str, str]]:
    """(distribution, path, reason) of each damaged library once; what was compared with RECORD goes first."""
    seen = set()
    for finding in findings(facts, "WHL703"):  # files of another size that are whole were stripped or patched
        for file, _, reason in (value.partition(": ") for label, value in finding.evidence if label == "cut off"):
            seen.add(file)
            yield finding.subject, file, reason
    for finding in findings(facts, "WHL722"):
        if finding.paths and finding.paths[0] not in seen:
            yield next(iter(finding.distributions), ""), finding.paths[0], finding.message.partition(": ")[2]


def damaged_files(facts: HostFacts) -> set[str]:
    """The names of the damaged libraries."""
    return {file_name(file) for _, file, _ in _damaged(facts)}


def _said_by_loader(facts: HostFacts) -> Iterator[Evidence]:
    if not isinstance(facts.loader, Unavailable) and facts.loader.error:
        yield Evidence("loader", facts.loader.error.splitlines()[0], "ld.so")


@cause(
    "B09",
    "no interrupted uninstall has left folders behind",
    explains=("torch:missing", "torch:import"),
    why="pip renames what it removes (torch becomes ~orch) and deletes it at the end. After an interruption these "
    "folders remain, and the package being installed in their place may be missing.",
    example="WARNING: Ignoring invalid distribution ~orch",
    fix="Delete the folders whose names start with ~, and reinstall the packages that were being replaced.",
    sources="pip's own behaviour",
    tested="folders in a real environment, pip's real warning, and the fix run",
)
def leftovers(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Names that begin with ~: an error when torch is the one and is gone or broken, else a note."""
    for finding in findings(facts, "WHL712"):
        of_torch = any(file_name(path).startswith("~orch") for path in finding.paths)
        guilty = of_torch and (import_failed(facts) or "torch:missing" in symptoms(facts))
        commands: list[Step] = [_remove_leftover(path) for path in finding.paths]
        goal = Goal(remains=finding.paths if finding.count == len(finding.paths) else ())
        if guilty and installed(facts).named("torch"):
            commands += again(facts, "torch")
            goal |= Goal(intact=("torch",))
        elif guilty:
            step, anew = _install_what_was_there(facts, finding.paths)
            commands += step
            goal |= anew
        yield Finding(
            f"an interrupted uninstall left {listed(finding.paths, finding.count)}",
            (Evidence("entries", listed(finding.paths, finding.count), finding.paths[0].rpartition("/")[0]),),
            Fix("Delete them" + (", and install torch again." if guilty else "."), tuple(commands), goal),
            severity=Severity.ERROR if guilty else Severity.NOTE,
        )


def _install_what_was_there(facts: HostFacts, leftovers: Iterable[str]) -> tuple[tuple[Step, ...], Goal]:
    """The torch whose metadata lie among the leftovers, in its version; without them the one that fits."""
    advised = reinstall_torch(facts)
    versions = [found[1] for path in leftovers if (found := _TORCH_LEFT.fullmatch(file_name(path)))]
    if not versions:
        return (advised.commands, advised.goal) if advised.goal else ((), Goal())
    build = versions[0].partition("+")[2]
    pin, index = f"torch=={versions[0]}", build if re.fullmatch(r"cu\d{3}", build) else ""
    return install(facts, pin, index=index), Goal(advised.goal is not None, wanted=(pin,))


def _remove_leftover(file: str) -> Step:
    if not file_name(file).startswith("~"):
        return NoCommand(f"{file!a} does not have a name that pip gives to files it removes")
    return remove(file, folder=True)


@cause(
    "B10",
    "each distribution has one dist-info folder",
    explains=("torch:import",),
    why="Two dist-info folders claim the same files. Which version a tool reports is undefined, and the installed "
    "files may be a mixture of both.",
    example="torch-2.10.0.dist-info next to torch-2.11.0.dist-info",
    fix="Remove the dist-info folder of the version that is not installed, and reinstall the other version.",
    sources="cutlass#3132",
    tested="environments with two folders, and the fix run",
)
def two_dist_infos(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A second folder of torch, a companion or a library of NVIDIA's."""
    torch = installed(facts).torch
    for finding in findings(facts, "WHL710"):
        names = [file_name(folder).partition("-")[0] for folder in finding.paths]
        name = canonicalize_name(names[0]) if names else ""
        if not any(package.name == name for package in installed(facts).packages):
            continue
        version = torch.version.partition("+")[0] if torch and name == "torch" else ""
        kept = next((p for p in finding.paths if version and f"-{version}" in file_name(p)), max(finding.paths))
        pin = file_name(kept).removesuffix(".dist-info").partition("-")[2]
        others = [path for path in finding.paths if path != kept]
        evidence = [Evidence("folders", listed(finding.paths, finding.count), kept.rpartition("/")[0])]
        evidence += [Evidence("version.py", torch.version, torch.folder)] if torch and version else []
        seen = symptoms(facts)
        yield Finding(
            f"{name} has {len(finding.paths)} dist-info folders: {listed(finding.paths, finding.count)}",
            tuple(evidence),
            Fix(
                f"Keep {file_name(kept)}, and reinstall that version.",
                (
                    *(remove(path, folder=True) for path in others),
                    *install(facts, f"{name}=={pin}", force=True, no_deps=True),
                ),
                Goal(intact=(name,), remains=tuple(others)),
            ),
            severity=Severity.ERROR if import_failed(facts) else Severity.NOTE if seen else Severity.WARNING,
        )
