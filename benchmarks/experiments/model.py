"""The model of an experiment: one headline of the documents that the kernels come from, measured again in several
variants.

``benchmarks/seeds.py`` times the variants side by side in one run. This module imports neither torch nor triton.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Noted:
    """A function to time, and its notes in the table: errors, bytes, generated kernels."""

    run: Run
    note: str

    def __call__(self) -> object:
        """One call."""
        return self.run()


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment: the figures of the document, and the variants that are timed here.

    A value of ``variants`` is a factory: it makes the inputs once, on the GPU, and returns the function to time. It may
    raise ImportError or RuntimeError when the variant cannot run here; the table then shows why. Ratios are taken
    against ``baseline``, a key of ``variants``: how many times as fast a variant is. Variants are captured in a CUDA
    graph; those named in ``without_graph`` are timed as launched. ``work`` describes one call in words.
    """

    name: str
    reported: str
    baseline: str
    variants: Mapping[str, Callable[[], Run]]
    work: str = ""
    without_graph: frozenset[str] = frozenset()
