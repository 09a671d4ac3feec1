"""Is an environment one consistent whole: one of each distribution, no file twice, every library found?"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from packaging.utils import canonicalize_name

from wheel_checks.commands import option, path, run
from wheel_checks.facts.accelerator.meaning import runtime_match
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.installed.facts import Distribution, InstalledEnvironment, RecordedFiles
from wheel_checks.facts.installed.reinstall import install, reinstall, uninstall
from wheel_checks.facts.links.closure import Need, Status
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, need
from wheel_checks.phrases import and_more, plural, summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.shared.accelerator import unmet
from wheel_checks.rules.shared.symbols import unresolved_symbols

_SHOWN = 5
_KIND = "environment"
rule = rules_of(_KIND, Audience.INSTALLER)


def _listed(inside: InstalledEnvironment, paths: Sequence[str]) -> str:
    return summarised([inside.relative(path) for path in paths], _SHOWN)


@rule(
    "WHL710",
    "each distribution has one dist-info folder in each folder on sys.path",
    why="After an interrupted upgrade two folders claim the same files. Which version a tool reports is then "
    "undefined, and an uninstall removes the files of both or of neither.",
    example="torch-2.10.0.dist-info next to torch-2.11.0.dist-info",
    fix="Remove the folder of the other version, then reinstall the intended one.",
)
def one_dist_info(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """No second one."""
    together: defaultdict[tuple[str, str], list[Distribution]] = defaultdict(list)
    for distribution in inside.distributions:
        together[distribution.entry, distribution.name].append(distribution)
    for (_entry, name), several in together.items():
        if len(several) > 1:
            folders = sorted(d.dist_info for d in several)
            newest = max(several, key=lambda d: d.folder)
            others = [d.folder for d in several if d is not newest]
            fix = reinstall(inside, [newest], f"Remove {_listed(inside, others)}, then reinstall {name}.")
            fix = Fix(fix.summary, (*(run("rm", "-r", path(folder)) for folder in others), *fix.commands))
            yield Finding(
                f"{name} has {len(several)} dist-info folders",
                (Evidence("folders", ", ".join(folders), several[0].entry),),
                fix,
                Location(path=newest.folder),
            )


@rule(
    "WHL711",
    "no distribution shadows another one with the same name",
    Severity.WARNING,
    why="Imports use the first folder on sys.path. A torch in the user's site-packages shadows the system's one, and "
    "libraries are searched for next to the torch that was found.",
    example="torch 2.10.0 in ~/.local precedes torch 2.11.0 in /usr/local",
    fix="Remove the distribution that is not intended.",
)
def shadowing(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """Nothing is installed in two folders of imports."""
    for distribution in inside.distributions:
        first = inside.named(distribution.name) if distribution.shadowed_by else None
        if first is not None:
            evidence = (
                Evidence("imported", f"{first.name} {first.version}", first.folder),
                Evidence("hidden", f"{distribution.name} {distribution.version}", distribution.folder),
            )
            summary = f"Remove one of the two; the command removes the one that is imported now, in {first.entry}."
            yield Finding(
                f"{first.name} {first.version} shadows {distribution.name} {distribution.version} in another folder",
                evidence,
                Fix(summary, (uninstall(inside, first),)),
                Location(path=distribution.folder),
            )


@rule(
    "WHL712",
    "no interrupted installation has left folders behind",
    Severity.WARNING,
    why="pip renames what it replaces (torch becomes ~orch) and removes it at the end. Folders left by an interruption "
    "take gigabytes of disk space, and make pip warn at every start.",
    example="~orch and ~orch-2.10.0.dist-info",
    fix="Remove the folders whose names start with ~.",
)
def leftovers(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """No name begins with a tilde."""
    if inside.leftovers:
        fix = Fix("Remove these folders.", tuple(run("rm", "-r", "--", path(name)) for name in inside.leftovers))
        evidence = (Evidence("entries", _listed(inside, inside.leftovers), "site-packages"),)
        yield Finding(
            f"an interrupted installation left {len(inside.leftovers)} folders or files behind",
            evidence,
            fix,
            Location(path=inside.leftovers[0]),
        )


@rule(
    "WHL713",
    "no file belongs to two distributions with different contents",
    why="The distribution installed last has overwritten the file of the other, and removing either one deletes it for "
    "both. NVIDIA's packages for CUDA 12 and 13 share paths (`nvidia/nccl/lib/libnccl.so.2`): with both installed, one "
    "library serves both.",
    example="nvidia-nccl-cu12 and nvidia-nccl-cu13 both installed",
    fix="Remove the distribution that nothing requires, then reinstall the other.",
)
def shared_files(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """Paths that several RECORDs list have the same hash in all of them."""
    together: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for shared in inside.shared:
        together[shared.owners].append(shared.path)
    for names, paths in together.items():
        owners = [d for name in names if (d := inside.named(name)) is not None]
        native = [path for path in paths if ".so" in path.rpartition("/")[2]]
        again = reinstall(inside, owners[:1])
        commands = (*(uninstall(inside, d) for d in owners[1:]), *again.commands)
        fix = Fix(f"Keep one of them; the command keeps {names[0]}.", commands)
        yield Finding(
            f"{' and '.join(names)} install {plural(len(paths), 'file')} with the same path and different contents",
            (Evidence("files", _listed(inside, native or paths), "RECORD of each"),),
            fix,
            Location(path=(native or paths)[0]),
            None if native else Severity.WARNING,
        )


@rule(
    "WHL714",
    "every file in the accelerator packages' folders belongs to a distribution",
    Severity.WARNING,
    why="A library that no RECORD lists was copied there by hand or left by an uninstall. The loader still uses it, "
    "and no upgrade replaces it.",
    example="a libnccl.so.2.bak, or libcudnn of a release that was uninstalled, under nvidia/",
    fix="Remove the files, or reinstall the distribution that they belong to.",
)
def unowned(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """nvidia/, torch/ and triton/ hold nothing that no RECORD lists, but for byte code."""
    if inside.unowned:
        yield Finding(
            f"no distribution owns {plural(len(inside.unowned), 'file')} in the folders of nvidia, torch or triton",
            (Evidence("files", _listed(inside, inside.unowned), "site-packages against every RECORD"),),
            Fix("Remove the files that should not be there."),
            Location(path=inside.unowned[0]),
        )


@rule(
    "WHL715",
    "the installed torch is built for the expected accelerator, and its parts agree",
    why="A CPU build installs, imports and computes without a warning; only `torch.cuda.is_available()` returns False.",
    example="torch 2.10.0+cpu on a GH200, as selected from the index",
    fix="Install a build for the accelerator: torch 2.11 or later, or one from PyTorch's own index.",
)
def accelerator(inside: InstalledEnvironment, expectations: Expectations) -> Iterable[Finding]:
    """The signals of the installed files do not contradict each other, nor `--expect`."""
    facts = need(inside.accelerator)
    evidence = tuple(Evidence(signal.name, signal.detail, signal.source) for signal in facts.signals)
    torch = inside.named("torch")
    fix = reinstall(inside, [torch]) if torch else None
    for conflict in facts.conflicts:
        yield Finding(f"the parts of the installed torch disagree: {conflict}", evidence, fix)
    wanted = expectations.accelerator
    if wanted is None:
        return
    platform = [option("--platform", inside.environment.machine)] * bool(inside.environment.machine)
    command = run("wheelproof", "verify", "torch>=2.11", *platform, option("--expect", str(wanted)))
    advice = Fix("Install a matching build; this lists what the index has:", (command,))
    yield from unmet(facts, wanted, advice, what="the installed torch")


def _by_library(needs: Iterable[Need]) -> dict[tuple[str, str], list[Need]]:
    together: defaultdict[tuple[str, str], list[Need]] = defaultdict(list)
    for found in needs:
        together[found.soname, found.by].append(found)
    return together


def _needed_by(inside: InstalledEnvironment, needs: Sequence[Need]) -> Evidence:
    return Evidence("needed by", _listed(inside, [found.elf for found in needs]), "DT_NEEDED")


@rule(
    "WHL720",
    "the loader finds every library that the environment's libraries need",
    why="If one library is missing, everything that depends on it fails to import; NVIDIA's libraries come in separate "
    "packages that the RPATH of torch must reach.",
    example="libcusparse.so.12 was deleted: libtorch_cuda.so cannot be loaded",
    fix="Install the distribution that contains the library; install a system library with the system's package "
    "manager.",
)
def found_by_loader(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """Each DT_NEEDED of what imports load is found as ld.so would find it, or comes with the driver or the system."""
    missing = [found for found in need(inside.closure).needs if found.status is Status.MISSING]
    open_ones = [found for found in missing if found.elf in inside.undecided]
    if open_ones:
        sonames = summarised(sorted({found.soname for found in open_ones}), _SHOWN)
        fix = Fix("Import the package to find out: its source does not show whether it loads these files.")
        message = f"libraries not found: {sonames}; it is unknown whether an import loads the files that need them"
        yield Finding(message, (_needed_by(inside, open_ones),), fix, undecided=True)
    missing = [found for found in missing if found.elf not in inside.undecided]
    for (soname, _by), needs in _by_library(missing).items():
        searched = needs[0].searched or ("no folder: the file has no RPATH, and the system's libraries are unknown",)
        evidence = (_needed_by(inside, needs), Evidence("searched", ", ".join(searched), "as ld.so does"))
        owner = _missing_owner(inside, soname)
        user = inside.owner_of(needs[0].elf)
        if owner is not None:
            fix = reinstall(inside, [owner])
        elif user is not None:
            fix = reinstall(
                inside,
                [user],
                f"No installed distribution contains {soname}. Install one that does, or reinstall {user.name}.",
            )
        else:
            fix = Fix(f"Install the package that contains {soname}.")
        yield Finding(
            f"{inside.relative(needs[0].elf)} needs {soname}, which is not found"
            + and_more(len(needs) - 1, before=", "),
            evidence,
            fix,
            Location(path=needs[0].elf),
        )


def _missing_owner(inside: InstalledEnvironment, soname: str) -> Distribution | None:
    """The distribution whose RECORD lists a file of this name that is gone, or is there and cannot be used."""
    for distribution in inside.distributions:
        files = distribution.files
        if isinstance(files, RecordedFiles) and any(path.endswith(f"/{soname}") for path in files.owned):
            return distribution
    return None


@rule(
    "WHL721",
    "the loader finds the libraries of the required versions",
    why="A library with the right name but another version is loaded without an error: an older NCCL hangs, another "
    "cuBLAS lacks a symbol or computes different results.",
    example="libnccl.so.2 of 2.27 instead of the 2.28.9 that torch requires, or one from LD_LIBRARY_PATH",
    fix="Reinstall the distribution that contains the library; remove other folders from LD_LIBRARY_PATH.",
)
def right_library(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """What is found was installed by the required release and is unchanged.

    A warning where only libraries of CUDA get it that nothing in the environment needs (libcusolverMg.so.12).
    """
    every = need(inside.closure).needs
    wrong = [found for found in every if found.status is Status.WRONG_VERSION]
    used = {found.by for found in every}
    for (soname, found), needs in _by_library(wrong).items():
        owner = inside.owner_of(found)
        how, _separator, fault = needs[0].how.partition("; ")
        evidence = (_needed_by(inside, needs), Evidence("found", found, how))
        fix = (
            _right_one(inside, owner, needs[0]) if owner else Fix(f"Remove the folder of {found} from the search path.")
        )
        matters = any(one.elf in used or not _is_of_cuda(inside, one.elf) for one in needs)
        message = f"the {soname} loaded by {inside.relative(needs[0].elf)} is {fault}"
        yield Finding(message, evidence, fix, Location(path=found), None if matters else Severity.WARNING)


def _is_of_cuda(inside: InstalledEnvironment, path: str) -> bool:
    """Whether the file is of a package that only brings libraries of CUDA to others."""
    owner = inside.owner_of(path)
    return owner is not None and runtime_match(owner.name) is not None


def _right_one(inside: InstalledEnvironment, owner: Distribution, wrong: Need) -> Fix:
    """Install the version that the needing distribution requires, else the installed one again."""
    user = inside.owner_of(wrong.elf)
    if user is not None:
        for unmet in need(inside.unmet).get(user.name, ()):
            if canonicalize_name(unmet.requirement.name) == owner.name:
                wanted = f"{unmet.requirement.name}{unmet.requirement.specifier}"
                return install(inside, wanted, user, f"Install {wanted}.")
    return reinstall(inside, [owner])


@rule(
    "WHL722",
    "every library of the environment is built for its machine and can be read",
    why="The loader skips a library for another machine and reports it as missing; Python does not find such a module "
    "at all. A truncated file fails with a message about its ELF header.",
    example="x86_64 wheels copied into the image for aarch64",
    fix="Reinstall the distribution for this machine.",
)
def right_machine(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """No extension module or needed library for another machine, no broken one."""
    for wrong in inside.wrong_elfs:
        owner = inside.owner_of(wrong.path)
        fix = reinstall(inside, [owner]) if owner else Fix("Remove the file.")
        yield Finding(f"{inside.relative(wrong.path)}: {wrong.reason}", fix=fix, location=Location(path=wrong.path))


@rule(
    "WHL723",
    "libraries define the symbol versions that others need from them",
    why="The loader finds a library with the right name but an older version, and rejects it: `version "
    "'GLIBCXX_3.4.32' not found`.",
    example="an older libstdc++.so.6, from conda or the system, found before the one that torch was built with",
    fix="Install a release of the library that defines them, or one of its users that does not need newer ones.",
)
def symbol_versions(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """Each version that a library needs is defined by the file that the loader gives it."""
    need(inside.closure)
    for lacking in inside.lacking_versions:
        found = lacking.need
        if found.status is Status.WRONG_VERSION:
            continue  # WHL721 has said that it is the wrong file, and what to do
        evidence = (
            Evidence("needs", ", ".join(lacking.lacking[:_SHOWN]), found.elf),
            Evidence("defines", ", ".join(lacking.defined[:_SHOWN]), found.by),
            Evidence("found", found.by, found.how),
        )
        owner, user = inside.owner_of(found.by), inside.owner_of(found.elf)
        both = [d for d in (owner, user) if d is not None]
        why = (
            f"Install a release whose {found.soname} defines them; the command reinstalls both in the required "
            "versions."
        )
        fix = (
            reinstall(inside, both, why)
            if owner
            else Fix(f"Update the system library {found.by}, or install older wheels.")
        )
        user_name, library_name = inside.relative(found.elf), inside.relative(found.by)
        yield Finding(
            f"{library_name} lacks symbol versions that {user_name} needs", evidence, fix, Location(path=found.by)
        )


@rule(
    "WHL724",
    "every symbol that a package's libraries need is defined by an installed package or the system",
    why="The loader finds an extension that was built for another torch, or installed before torch was upgraded, and "
    "rejects it at import: `undefined symbol: _ZN3c105ErrorC2...`. Its libraries and torch's are on this disk, so this "
    "can be checked without importing them.",
    example="libtorchtext.so needs torch::detail::class_base::class_base (_ZN5...), which torch 2.13.0 does not export",
    fix="Install the release built for this torch, or the torch that it was built for.",
)
def symbols(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """No strong undefined symbol of an installed library is without a definition. As WHL526, for each package."""

    def place(path: str) -> tuple[str, Location]:
        return inside.relative(path), Location(path=path)

    for package in need(inside.symbols):
        unread = Fix(f"Reinstall {package.name}: the file is damaged, or its format is unknown.")
        yield from unresolved_symbols(package.name, package.facts, place, unread)
