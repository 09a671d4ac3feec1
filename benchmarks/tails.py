"""The probability that a run misses its tolerance, by the tail of the measurements. Needs neither torch nor triton.

``shares`` are errors as parts of their tolerances, of which 1 is a miss. Of many runs only the largest shares are kept.

The tail is a generalised Pareto distribution over the largest shares (peaks over threshold), fitted by L-moments: J. R.
M. Hosking and J. F. Wallis, "Parameter and Quantile Estimation for the Generalized Pareto Distribution", Technometrics
29 (1987). It has a finite end where errors have one, as the rounding of a single element does; an exponential has none.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from heapq import nlargest
from typing import Any

KEPT = 200  # largest shares of a case
LEAST = 20  # from which a tail is fitted
RESAMPLED = 100  # for an upper bound
CONFIDENCE = 0.95
SAMPLED = 0.05  # of the runs are the tail, at most


@dataclass
class Tail:
    """Of one case: how often it ran, its largest shares, and the runs that missed (the first few, by seed)."""

    runs: int = 0
    misses: int = 0
    largest: list[float] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def greatest(self) -> float:
        """The largest share; 0 without runs."""
        return self.largest[0] if self.largest else 0.0

    def add(self, shares: Sequence[float], misses: Sequence[str], seconds: float = 0.0) -> None:
        """Add runs: a share of each, and the messages of misses."""
        self.runs += len(shares)
        self.misses += len(misses)
        self.seconds += seconds
        self.largest = nlargest(KEPT, [*self.largest, *shares])
        self.examples = [*self.examples, *misses][:3]

    def probability(self) -> float:
        """The probability of a miss: by the tail, or the share of misses, if that is larger."""
        missed = self.misses / self.runs if self.runs else 0.0
        return max(missed, beyond(self._tail(), self.runs))

    def upper_bound(self) -> float:
        """The same with a confidence of 95 %: over resampled tails, and over the number of misses."""
        if not self.runs:
            return 1.0
        tail, chance = self._tail(), random.Random(self.runs)  # noqa: S311  # resampling: the same each time
        found = sorted(
            beyond(sorted(chance.choices(tail, k=len(tail)), reverse=True), self.runs)
            for _ in range(RESAMPLED if tail else 0)
        )
        resampled = found[math.ceil(CONFIDENCE * len(found)) - 1] if found else 0.0
        missed = self.misses / self.runs + 2 * math.sqrt(self.misses) / self.runs if self.misses else 0.0
        return min(1.0, max(resampled, missed, self.probability()))

    @property
    def is_fitted(self) -> bool:
        """Whether there are enough runs for a tail, or every one was exact."""
        return bool(self._tail()) or (self.runs >= LEAST and not self.greatest)

    def _tail(self) -> list[float]:
        count = min(KEPT, max(LEAST, int(SAMPLED * self.runs)))
        return self.largest[:count] if self.runs >= 2 * LEAST and len(self.largest) >= count and self.greatest else []

    def as_json(self) -> dict[str, Any]:
        """The input of :func:`from_json`."""
        return asdict(self)


def from_json(values: dict[str, Any]) -> Tail:
    """A tail that was kept."""
    return Tail(**values)


def beyond(tail: Sequence[float], runs: int) -> float:
    """The probability that one of ``runs`` has a share above 1, of which ``tail`` are the largest, in falling order."""
    if len(tail) < LEAST:
        return 0.0
    threshold = tail[-1]
    excesses = [share - threshold for share in tail[:-1]]
    rate, mean = len(excesses) / runs, statistics.mean(excesses)
    if threshold >= 1.0:
        return rate
    if mean <= 0.0:
        return 0.0
    count = len(excesses)
    weighted = sum(place * excess for place, excess in enumerate(excesses)) / (count * (count - 1))  # E[Y (1 - F)]
    distance = 1.0 - threshold
    if mean <= 2 * weighted:
        return rate * math.exp(-distance / mean)
    shape = 2.0 - mean / (mean - 2 * weighted)
    scale = 2 * mean * weighted / (mean - 2 * weighted)
    if scale <= 0.0 or abs(shape) < 1e-9:  # 0.0: a single outlying run says nothing about a tail of many
        return rate * math.exp(-distance / (scale or mean))
    base = 1.0 + shape * distance / scale
    return rate * base ** (-1.0 / shape) if base > 0.0 else 0.0


def together(probabilities: Sequence[float]) -> float:
    """That at least one of independent events happens."""
    return -math.expm1(sum(math.log1p(-min(each, 1 - 1e-12)) for each in probabilities))
