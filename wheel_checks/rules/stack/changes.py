"""Did a stack get worse against another one?"""

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.stack.changes import PackageChange, StackChanges
from wheel_checks.model import Audience, Evidence, Finding, Severity
from wheel_checks.registry import rules_of

change_rule = rules_of("stack-change", Audience.INSTALLER)


@change_rule(
    "STK123",
    "no package of the stack becomes worse",
    Severity.WARNING,
    why="A changed lock or requirements file is reviewed on one architecture, while on the other torch becomes a CPU "
    "build or has no file. With --fail-on-change it is an error.",
    example="a lock in which torch on aarch64 changes from 2.11.0 for CUDA 13.0 to 2.9.1, which is CPU-only there",
    fix="Keep the release or the index with the build, or change this platform's requirement with a marker.",
)
def no_worse(changes: StackChanges, _: Expectations) -> Iterable[Finding]:
    """Nothing loses its accelerator or its file, and nothing fails that did not fail before."""
    severity = Severity.ERROR if changes.fails else None
    for sentence in changes.worse:
        yield Finding(f"{changes.where}: {sentence}", location=changes.place, severity=severity)
    for sentence in changes.unknown:
        yield Finding(f"{changes.where}: {sentence}", location=changes.place, undecided=True)
    for change in changes.changes:
        evidence = _evidence(change, changes.against)
        if change.worse:
            message = f"{change.name} on {changes.where}: {change.worse}"
            yield Finding(message, evidence, location=change.place, severity=severity)
        elif change.open:
            yield Finding(
                f"{change.name} on {changes.where}: {change.open}", evidence, None, change.place, undecided=True
            )


def _evidence(change: PackageChange, against: str) -> tuple[Evidence, ...]:
    sides = ((against, change.before), ("now", change.after))
    return tuple(
        Evidence(label, f"{side.version} ({side.built_for})" if side else "not installed") for label, side in sides
    )
