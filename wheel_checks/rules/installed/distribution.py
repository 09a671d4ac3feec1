"""Is each distribution what its RECORD says, and are its requirements met?"""

from collections.abc import Iterable, Sequence

from packaging.utils import canonicalize_name

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.installed.facts import Distribution, InstalledDistribution, WrongFile
from wheel_checks.facts.installed.reinstall import install, reinstall
from wheel_checks.model import Audience, Evidence, Finding, Location, Unavailable, need
from wheel_checks.phrases import plural, summarised
from wheel_checks.registry import rules_of

rule = rules_of("distribution", Audience.INSTALLER)

_SHOWN = 5
_REINSTALL = "Reinstall the distribution, in the same version and without its dependencies."


def _label(distribution: Distribution) -> str:
    return f"{distribution.name} {distribution.version}"


@rule(
    "WHL701",
    "METADATA and RECORD of each installed distribution exist and can be read",
    why="Without METADATA an installer cannot tell what is installed, and without RECORD it cannot remove it: the "
    "remaining files are imported by the next version.",
    example="a dist-info folder with only METADATA, left by an interrupted installation",
    fix=_REINSTALL,
)
def readable(subject: InstalledDistribution, _: Expectations) -> Iterable[Finding]:
    """Both parse; what the operating system's packages leave out by design is not asked for."""
    distribution = subject.distribution
    for file in (distribution.metadata, distribution.record):
        if isinstance(file, Unavailable) and not file.hint:
            fix = reinstall(subject.inside, [distribution])
            yield Finding(file.reason, fix=fix, location=Location(path=distribution.folder))


@rule(
    "WHL702",
    "every file listed in RECORD exists",
    why="A file deleted by hand, by another package's uninstall or by an image build that trims layers is missed only "
    "when it is loaded, often by a library whose error message names another cause.",
    example="`nvidia/cu13/lib/libcusparse.so.12` is missing: `import torch` fails with a message about "
    "libtorch_cuda.so",
    fix=_REINSTALL,
)
def present(subject: InstalledDistribution, _: Expectations) -> Iterable[Finding]:
    """Nothing is missing; byte code does not count."""
    distribution = subject.distribution
    missing = need(distribution.files).missing
    if missing:
        names = summarised([subject.inside.relative(path) for path in missing], _SHOWN)
        evidence = (Evidence("missing", names, f"{distribution.dist_info}/RECORD"),)
        verb = "is" if len(missing) == 1 else "are"
        message = f"{plural(len(missing), 'file')} of {_label(distribution)} {verb} missing"
        yield Finding(message, evidence, reinstall(subject.inside, [distribution]), Location(path=missing[0]))


def _changed(subject: InstalledDistribution, wrong: Sequence[WrongFile], what: str) -> Iterable[Finding]:
    distribution = subject.distribution
    shown = [Evidence(subject.inside.relative(f.path), f"{f.actual}, RECORD says {f.recorded}") for f in wrong[:_SHOWN]]
    if len(wrong) > _SHOWN:
        shown.append(Evidence("more", plural(len(wrong) - _SHOWN, "file")))
    if wrong:
        yield Finding(
            f"{plural(len(wrong), 'file')} of {_label(distribution)} changed after the installation: {what}",
            tuple(shown),
            reinstall(subject.inside, [distribution]),
            Location(path=wrong[0].path),
        )


@rule(
    "WHL703",
    "installed files have the sizes stated in RECORD",
    why="A file of another size was replaced, truncated by a full disk, or overwritten by a package with the same "
    "path: the reported version is then not the code that runs.",
    example="libnccl.so.2 of another release copied over the one of nvidia-nccl-cu13 2.28.9",
    fix=_REINSTALL,
)
def sizes(subject: InstalledDistribution, _: Expectations) -> Iterable[Finding]:
    """Each size is the recorded one."""
    yield from _changed(subject, need(subject.distribution.files).sizes, "the size differs")


@rule(
    "WHL704",
    "installed files have the hashes stated in RECORD",
    why="Only the hash shows that a file was edited in place, or damaged on disk, after it was installed.",
    example="a line edited in site-packages while debugging, and not reverted",
    fix=_REINSTALL,
)
def digests(subject: InstalledDistribution, _: Expectations) -> Iterable[Finding]:
    """Each digest is the recorded one (at depth full)."""
    yield from _changed(subject, need(need(subject.distribution.files).digests), "the content differs")


@rule(
    "WHL705",
    "the requirements of every installed distribution are met",
    why="torch is built against exact versions of NVIDIA's libraries and of Triton. Another version installed later "
    "for another package is loaded without an error, and crashes or computes wrong results.",
    example="torch 2.11.0 requires nvidia-nccl-cu13==2.28.9, but 2.27.5 is installed",
    fix="Install the required version, or a release of the other package that accepts torch's requirement.",
)
def requirements(subject: InstalledDistribution, _: Expectations) -> Iterable[Finding]:
    """Each requirement that is active in this environment is there in an accepted version; extras as others ask."""
    distribution, inside = subject.distribution, subject.inside
    if distribution.shadowed_by:
        return
    for unmet in need(inside.unmet).get(distribution.name, ()):
        required = unmet.requirement
        wanted = f"{required.name}{required.specifier}"
        state = f"{unmet.found} is installed" if unmet.found else "it is not installed"
        evidence = [Evidence("Requires-Dist", str(required), f"{distribution.dist_info}/METADATA")]
        present = inside.named(canonicalize_name(required.name))
        if present is not None:
            evidence.append(Evidence("installed", _label(present), present.folder))
        fix = install(inside, wanted, distribution, f"Install {wanted}.")
        yield Finding(f"{_label(distribution)} requires {wanted}, but {state}", tuple(evidence), fix)
