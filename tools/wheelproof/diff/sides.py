"""Parse the arguments into the two sides of a comparison, and find their wheels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from packaging.tags import Tag

from wheel_checks.errors import NotFoundError, UsageError
from wheel_checks.formats.index.file_names import WHEEL_SUFFIX
from wheel_checks.formats.wheel.variant_label import split_label
from wheel_checks.formats.wheel.wheel_name import wheel_name_or_none
from wheel_checks.targets.of_wheel import target_of_tags
from wheel_checks.targets.target import OLDEST_GLIBC, parse_targets
from wheelproof.wheels.model import PlannedWheel

_EXAMPLES = "for example torch==2.11.0 --platform aarch64,x86_64, or two wheels"


@dataclass(frozen=True, slots=True)
class Side:
    """One side as it was requested: a file, folder, URL or requirement; platform, Python and variant, "" for any."""

    text: str
    platform: str = ""
    python: str = ""
    variant: str = ""

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platform as ``--platform`` takes it."""
        return (self.platform,) if self.platform else ()

    @property
    def pythons(self) -> tuple[str, ...]:
        """The Python as ``--python`` takes it."""
        return (self.python,) if self.python else ()


Planner = Callable[[Side], Sequence[PlannedWheel]]
"""The wheels of a side, before those are dropped that are for other platforms. Raises SourceError and UsageError."""


def split_sides(
    texts: Sequence[str], platforms: Sequence[str], pythons: Sequence[str], variants: Sequence[str] = ()
) -> tuple[Side, Side]:
    """The two sides. One value of an option applies to both sides; two apply to one side each, in order.

    Raises UsageError when there are more than two, when a name is unknown, or when the sides are the same.
    """
    if not 1 <= len(texts) <= 2:
        raise UsageError(f"{len(texts)} wheels or sets given", expected="one or two", hint=_EXAMPLES)
    named = [name for text in platforms for name in (OLDEST_GLIBC if text == "all" else (text,))]
    a, b = map(
        Side,
        _two("what to compare", texts),
        _two("--platform", named or [""]),
        _two("--python", pythons or [""]),
        _two("--variant", variants or [""]),
    )
    for side in (a, b):
        parse_targets(side.platforms, side.pythons)
    if a == b:
        raise UsageError("both sides are identical", expected="two wheels, platforms or Pythons", hint=_EXAMPLES)
    return a, b


def _two(option: str, values: Sequence[str]) -> tuple[str, str]:
    if len(values) > 2:
        raise UsageError(f"{option} has {len(values)} values", expected="one value for both sides, or one for each")
    return values[0], values[-1]


def wheels_of(side: Side, planner: Planner) -> list[PlannedWheel]:
    """The wheels of a side that are for its platform and Python, and of its variant.

    Raises NotFoundError if none exists, and the planner's errors.
    """
    labelled = ((wheel, split_label(wheel.file_name.removesuffix(WHEEL_SUFFIX))[1]) for wheel in planner(side))
    planned = [wheel for wheel, label in labelled if side.variant in ("", label)]
    wheels = [_placed(wheel, side) for wheel in planned if wheel.target or _serves(wheel.file_name, side)]
    if not wheels:
        parts = (side.platform, side.python and f"Python {side.python}", side.variant and f"variant {side.variant}")
        wanted = " and ".join(filter(None, parts))
        raise NotFoundError(f"{side.text} has no wheel" + (f" for {wanted}" if wanted else ""))
    return wheels


def _placed(wheel: PlannedWheel, side: Side) -> PlannedWheel:
    """The wheel with the target that was requested, when its own tags name no platform: its markers need one."""
    if wheel.target or not (side.platform or side.python) or target_of_tags(_tags(wheel.file_name)):
        return wheel
    return replace(wheel, target=parse_targets(side.platforms, side.pythons)[0])


def _tags(file_name: str) -> frozenset[Tag]:
    """The tags in the name; none when it cannot be read."""
    name = wheel_name_or_none(file_name)
    return name.tags if name else frozenset()


def _serves(file_name: str, side: Side) -> bool:
    """Whether a file is for the platform and Python of a side, as far as these were requested."""
    tags = _tags(file_name)
    if not tags:
        return True  # a wheel with an unreadable name was requested, too
    targets = parse_targets(side.platforms, side.pythons)
    if side.python and side.platform:
        return any(not tags.isdisjoint(target.supported_tags()) for target in targets)
    if side.python:
        accepted = {(tag.interpreter, tag.abi) for target in targets for tag in target.supported_tags()}
        return any((tag.interpreter, tag.abi) in accepted for tag in tags)
    of_file = target_of_tags(tags)
    pure = all(tag.platform == "any" for tag in tags)
    return not side.platform or pure or (of_file is not None and of_file.machine == targets[0].machine)
