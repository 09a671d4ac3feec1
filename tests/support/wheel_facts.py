"""Reads built wheels into facts, and judges them by single rules.

facts_of(torch_like("cpu", "2.10.0"))
findings("WHL004", facts_of(wheel, depth=Depth.FULL))
source = MemorySource(data, remote=True); read_wheel(source, Request(name)); source.ranges
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.wheels import WheelBuilder
from wheel_checks.catalogue import get_rule
from wheel_checks.errors import SourceError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.reading import Request, read_wheel
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.model import CheckResult, Outcome
from wheel_checks.runner import run_rules
from wheel_checks.sources.byte_source import Cost
from wheel_checks.targets.target import DEFAULT_GLIBC, Target

X86_64 = Target((3, 12), "x86_64", DEFAULT_GLIBC)
AARCH64 = Target((3, 12), "aarch64", DEFAULT_GLIBC)
INDEX = "https://index.example.org/simple/demo/"
CHUNK = 1 << 16  # bytes per piece of a stream


class MemorySource:
    """A :class:`ByteSource` over bytes. ``ranges`` are the ``(offset, length)`` of every request."""

    def __init__(self, data: bytes, *, remote: bool = False, location: str = "memory") -> None:
        self.data, self.remote, self.location = data, remote, location
        self.ranges: list[tuple[int, int]] = []

    @property
    def cost(self) -> Cost:
        return Cost(sum(length for _, length in self.ranges), len(self.ranges))

    def read_tail(self, length: int) -> tuple[int, bytes]:
        length = min(length, len(self.data))
        return len(self.data), self.read(len(self.data) - length, length)

    def read(self, offset: int, length: int) -> bytes:
        if not 0 <= offset <= offset + length <= len(self.data):
            raise SourceError(f"no bytes {offset} to {offset + length} in {self.location}")
        self.ranges.append((offset, length))
        return self.data[offset : offset + length]

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """As any source; ranges that touch make one request, which is the least that a remote source does."""
        runs: list[tuple[int, int]] = []
        for offset, length in sorted(ranges):
            if runs and sum(runs[-1]) == offset:
                runs[-1] = (runs[-1][0], runs[-1][1] + length)
            else:
                runs.append((offset, length))
        for offset, length in runs:
            self.read(offset, length)
        return [self.data[offset : offset + length] for offset, length in ranges]

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        data = self.read(offset, length)
        return (data[start : start + CHUNK] for start in range(0, length, CHUNK))

    def close(self) -> None:
        """Nothing to give back."""


def facts_of(wheel: WheelBuilder | bytes, file_name: str = "", *, remote: bool = False, **request: Any) -> WheelFacts:
    """The facts of a wheel; ``request`` are the other fields of :class:`Request`."""
    if isinstance(wheel, WheelBuilder):
        file_name, wheel = file_name or wheel.file_name, wheel.build()
    name = file_name or "demo-1.0-py3-none-any.whl"
    return read_wheel(MemorySource(wheel, remote=remote, location=name), Request(name, **request))


def archive_of(facts: WheelFacts) -> Archive:
    """The archive of a wheel that must have a readable one."""
    assert isinstance(facts.archive, Archive), facts.archive
    return facts.archive


def listed(file_name: str = "demo-1.0-py3-none-any.whl", **fields: Any) -> IndexFile:
    """What an index says of a file."""
    return IndexFile(file_name, f"https://files.example.org/{file_name}", index=INDEX, **fields)


def judged(rule_id: str, facts: Any, **expectations: Any) -> tuple[CheckResult, ...]:
    """The results of one rule, whatever their outcome, on facts or on a wheel that is read first."""
    facts = facts_of(facts) if isinstance(facts, WheelBuilder) else facts
    return run_rules([get_rule(rule_id)], facts, Expectations(**expectations))


def findings(rule_id: str, facts: Any, *, undecided: bool = False, **expectations: Any) -> list[CheckResult]:
    """The failures of one rule, or what it leaves ``undecided``; a rule that ends in any other way fails the test."""
    results = judged(rule_id, facts, **expectations)
    wanted = Outcome.ERROR if undecided else Outcome.FAIL
    others = [result for result in results if result.outcome not in (wanted, Outcome.PASS)]
    assert not others, others
    return [result for result in results if result.outcome is wanted]
