"""Does the index have something for the target at all? Judges the choice that an installer would make."""

from collections import Counter
from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.model import Audience, Evidence, Finding, Fix, Severity
from wheel_checks.registry import rules_of
from wheel_checks.rules.shared.commands import other_files
from wheel_checks.targets.selection import Choice, Reason

rule = rules_of("requirement", Audience.INSTALLER)

_SHOWN = 8


@rule(
    "WHL401",
    "the index has a wheel that an installer would select for the target",
    why="Without a wheel for the platform an installer compiles the source archive for hours, selects an older "
    "release, or fails.",
    example="`torch==2.4.0` for Python 3.13 on aarch64",
    fix="Choose a release or a Python with a wheel.",
)
def available(choice: Choice, _: Expectations) -> Iterable[Finding]:
    """A wheel was chosen."""
    if choice.chosen is not None or not choice.applies:
        return
    near = [r for r in choice.rejected if r.reason in (Reason.TAGS, Reason.REQUIRES_PYTHON, Reason.YANKED)]
    shown = near[-_SHOWN:]
    evidence = tuple(Evidence(r.file.file_name, r.sentence, r.file.index) for r in shown)
    if len(near) > _SHOWN:
        counts = Counter(str(r.reason) for r in near[:-_SHOWN])
        more = ", ".join(f"{count} for {reason}" for reason, count in counts.items())
        evidence += (Evidence("passed over as well", more),)
    yield Finding(choice.explanation or f"no wheel for {choice.target.label}", evidence, other_files(choice))


@rule(
    "WHL402",
    "the selected file belongs to the newest release that the requirement allows",
    Severity.WARNING,
    why="When the newest release has no wheel for a platform, its users silently get an older one, with different "
    "dependencies.",
    example="`torch>=2.9` that selects 2.15.0 on Python 3.12 and 2.12.1 on Python 3.10",
    fix="Pin one release for all platforms, or use a Python that the newest release supports.",
)
def newest(choice: Choice, _: Expectations) -> Iterable[Finding]:
    """No newer version lacks a wheel for the target."""
    if choice.version is None or choice.newest_release is None or choice.version == choice.newest_release:
        return
    message = f"{choice.target.label} gets {choice.version}, although {choice.newest_release} exists"
    evidence = tuple(Evidence("note", note) for note in choice.notes)
    yield Finding(
        message,
        evidence,
        Fix(f"Pin {choice.requirement.name}=={choice.version} if all platforms must use the same release."),
    )
