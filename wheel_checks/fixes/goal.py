"""The state of an environment in which a cause is gone, as data: a rule states it, and the repair planner plans it.

The commands of a fix can be run blind. A goal states their purpose, so that a planner, which knows all requirements of
the environment and the index, may find another and smaller repair.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """The state of the distributions of one environment.

    ``fitting_torch`` is a torch that the driver and the GPUs of the host can run, with its companions. ``wanted`` are
    requirements that are met (PEP 508). ``intact`` are distributions whose files are those of their very wheel, fetched
    again and not taken from a cache if ``fresh``; ``gone`` are distributions that are not installed. ``companions`` are
    those of torch that are of its release and its build. ``remains`` are absolute paths of leftovers in site-packages.
    """

    fitting_torch: bool = False
    wanted: tuple[str, ...] = ()
    intact: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    remains: tuple[str, ...] = ()
    fresh: bool = False

    def __or__(self, other: Goal) -> Goal:
        """Both goals at once."""
        return Goal(
            self.fitting_torch or other.fitting_torch,
            _together(self.wanted, other.wanted),
            _together(self.intact, other.intact),
            _together(self.gone, other.gone),
            _together(self.companions, other.companions),
            _together(self.remains, other.remains),
            self.fresh or other.fresh,
        )


def _together(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
