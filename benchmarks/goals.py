"""Which goals of ``goals.toml`` the measurements meet: a table. Needs no torch.

A goal is about the ``shapes`` of a ``kernel`` (in any table), and gives conditions for each of them:

- ``most``: at most so many times as long as ``peer``. ``stretch``: the same, wished for.
- ``microseconds``: at most so long.
- ``call``, ``plan``: a plain call and a plan take at most so many microseconds, as called.
- ``faster_than``: a plain call takes less than a plain call of each of these.
- ``means``, instead of all that: for each kernel its geometric mean against torch.compile, at least.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.comparison_report import OURS, Measurements, Shape, markdown_table, means

GOALS = Path(__file__).with_name("goals.toml")
HEADS = ("kernel, shape", "before, us", "now, us", "peers, us", "goal", "met")
KINDS = {"plain": "call", "plan": "plan", "graph": "graph"}  # how a call is made, and its name in the goals
UNKNOWN = "not measured"


@dataclass(frozen=True)
class Goal:
    """One row; see above."""

    row: str
    before: str
    kernel: str = ""
    shapes: Sequence[str] = ()
    peer: str = ""
    most: float = 0.0
    stretch: float = 0.0
    microseconds: float = 0.0
    call: float = 0.0
    plan: float = 0.0
    faster_than: Sequence[str] = ()
    means: Mapping[str, float] = field(default_factory=dict)

    @property
    def as_called(self) -> bool:
        """Whether calls are compared, and not the times on the GPU."""
        return bool(self.call or self.plan or self.faster_than)

    def words(self) -> str:
        """The goal in words."""
        return ", ".join(
            words
            for number, words in (
                (self.most, f"{self.most:.2f} of {self.peer}"),
                (self.stretch, f"stretch {self.stretch:.2f}"),
                (self.microseconds, f"{self.microseconds:g}"),
                (self.plan, f"plan {self.plan:g}"),
                (self.call, f"call {self.call:g}"),
                (self.faster_than, f"faster than {' and '.join(self.faster_than)}"),
                (self.means, ", ".join(f"{mean:.2f}" for mean in self.means.values())),
            )
            if number
        )


def goals_table(results: Measurements, path: Path = GOALS) -> str:
    """The table of all goals."""
    goals = [Goal(**each) for each in tomllib.loads(path.read_text(encoding="utf-8"))["goal"]]
    return markdown_table(HEADS, [_row(goal, results) for goal in goals])


def _row(goal: Goal, results: Measurements) -> tuple[str, ...]:
    if goal.means:
        found = {mean.kernel: mean.ours for mean in means(results)}
        parts = [(found.get(kernel), wanted) for kernel, wanted in goal.means.items()]
        now = ", ".join("-" if mean is None else f"{mean:.2f}" for mean, _ in parts)
        met = [UNKNOWN if mean is None else _word(mean >= wanted) for mean, wanted in parts]
        return goal.row, goal.before, now, "-", goal.words(), _joined(met)
    shapes = [_shape(goal, name, results) for name in goal.shapes]
    now = " / ".join(_time(each, OURS, goal) for each in shapes)
    peers = [name for name in (goal.peer, *goal.faster_than) if name]
    others = ", ".join(f"{name} {' / '.join(_time(each, name, goal) for each in shapes)}" for name in peers) or "-"
    return goal.row, goal.before, now, others, goal.words(), _joined([_met(goal, each) for each in shapes])


def _shape(goal: Goal, name: str, results: Measurements) -> Shape:
    found = (shape for (_, kernel, each), shape in results.shapes.items() if (kernel, each) == (goal.kernel, name))
    return next(found, Shape())


def _time(shape: Shape, name: str, goal: Goal) -> str:
    if goal.as_called:
        times = shape.called.get(name, {})
        return ", ".join(f"{label} {times[kind]:.1f}" for kind, label in KINDS.items() if kind in times) or "-"
    return f"{shape.microseconds[name]:,.1f}" if name in shape.microseconds else "-"


def _met(goal: Goal, shape: Shape) -> str:
    """Whether all conditions are met, followed by the ratio to the slowest limit given by a peer's time."""
    limits = list(_limits(goal, shape))
    if any(ours is None or most is None for ours, most, _ in limits):
        return UNKNOWN
    parts = [(ours / most, of_peer) for ours, most, of_peer in limits if ours is not None and most]
    word = _word(all(part <= 1 for part, _ in parts))
    ratios = [part * (goal.most or 1) for part, of_peer in parts if of_peer]
    if not ratios:
        return word
    missed = goal.stretch and word == "yes" and max(ratios) > goal.stretch
    return f"{word}: {max(ratios):.2f}{', not the stretch' if missed else ''}"


def _limits(goal: Goal, shape: Shape) -> Iterator[tuple[float | None, float | None, bool]]:
    """(ours, its limit, whether that is a peer's) for each condition; None: not measured."""
    ours, called = shape.microseconds.get(OURS), shape.called.get(OURS, {})
    if goal.most:
        peer = shape.microseconds.get(goal.peer)
        yield ours, peer and goal.most * peer, True
    if goal.microseconds:
        yield ours, goal.microseconds, False
    for kind, most in (("plain", goal.call), ("plan", goal.plan)):
        if most:
            yield called.get(kind), most, False
    for name in goal.faster_than:
        yield called.get("plain"), shape.called.get(name, {}).get("plain"), True


def _word(met: bool) -> str:
    return "yes" if met else "no"


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(set(words)) == 1 else " / ".join(words)
