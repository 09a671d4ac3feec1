"""A plugin of pytest for ``ci/develop.py check``: the tests nearest to a change first, and none begun after a while.

``--nearest FILE`` names a JSON file: ``tests`` maps ``path::function`` to its distance, ``names`` lists parts of case
ids that belong to the change, ``seconds`` is the time in which tests are started (null: no limit), in processor time of
this process and its children, so that a busy machine runs the same tests; at most four times as much wall time. Changed
tests, and cases named after the change, always run. A test of a slow lane runs when the change is next to it.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

NEXT_TO = 1.0  # the distance of a test that uses the change directly
LANES = ("online", "browser", "kernels", "slurm", "docker", "emulation", "shells")
CERTAIN = 0.4
WAITING = 4  # seconds of wall time for one of the processor, on a busy machine


class Nearest:
    """The order of a run, and its end."""

    def __init__(self, plan: dict[str, Any], root: Path) -> None:
        self.tests, self.names, self.seconds = plan["tests"], tuple(plan["names"]), plan["seconds"]
        self.root, self.late = root, list[str]()
        self.start: tuple[float, float] | None = None  # of the first test: processor, clock
        self.ranks: dict[pytest.Item, float] = {}

    def rank(self, item: pytest.Item) -> float | None:
        """How far a test is from the change; None when the change cannot reach it."""
        path = item.path.relative_to(self.root).as_posix()
        own = item.nodeid.split("::")[1].partition("[")[0]
        rank: float | None = self.tests.get(f"{path}::{own}")
        case = item.name.partition("[")[2]
        if rank is not None and any(name in case for name in self.names):
            return 0.0
        if rank is not None and rank > NEXT_TO and any(item.get_closest_marker(lane) for lane in LANES):
            return None
        return rank

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests that the change reaches, the nearest first."""
        ranks = {item: rank for item in items if (rank := self.rank(item)) is not None}
        config.hook.pytest_deselected(items=[item for item in items if item not in ranks])
        items[:] = sorted(ranks, key=lambda item: ranks[item])
        self.ranks = ranks

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Begin no test when the time is over."""
        now = sum(os.times()[:4]), time.monotonic()
        self.start = self.start or now
        processor, clock = (one - first for one, first in zip(now, self.start, strict=True))
        if self.seconds is None or self.ranks[item] < CERTAIN:
            return None
        if processor < self.seconds and clock < WAITING * self.seconds:
            return None
        self.late.append(item.nodeid)
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A worker of pytest-xdist hands on which tests it did not begin."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["late"] = self.late

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add up the tests that workers did not start."""
        self.late += getattr(node, "workeroutput", {}).get("late", ())

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """List omitted tests, since a limited run proves less."""
        if self.late:
            line = f"NOT RUN within {self.seconds:g} s, --all runs them: {len(self.late)} tests that are further away"
            terminalreporter.write_line(f"{line}: {by_file(self.late)}", yellow=True)


def by_file(tests: Iterable[str]) -> str:
    """``tests/a/test_b.py (3), tests/c.py``: the files of these tests, and of how many if of several."""
    counts = Counter(test.partition("::")[0] for test in tests)
    return ", ".join(f"{path} ({count})" if count > 1 else path for path, count in counts.items())


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that says which tests are how near."""
    parser.addoption("--nearest", metavar="FILE", help="a JSON file of ci/develop.py check")


def pytest_configure(config: pytest.Config) -> None:
    """Take part only when the option is given."""
    if plan := config.getoption("--nearest"):
        config.pluginmanager.register(Nearest(json.loads(Path(plan).read_text()), config.rootpath))
