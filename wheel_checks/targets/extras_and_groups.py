"""The extras and dependency groups that the user names."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExtrasAndGroups:
    """What is chosen of a lock or of projects. ``all_extras`` is every extra."""

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    all_extras: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The extras and groups that were named."""
        return (*self.extras, *self.groups)


NO_EXTRAS = ExtrasAndGroups()
