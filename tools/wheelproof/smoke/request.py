"""What is asked of the suite, as its own options, and as the command that asks for the same again."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from wheel_checks.commands import Command, NoCommand, option, run
from wheel_checks.facts.kernels.facts import CUDA

# Seconds after which nothing can be expected any more. The suite has its own deadlines for everything that it
# starts, and takes 4 s to minutes; a first import of torch from a slow file system takes a minute or two.
DEADLINES = {"quick": 300.0, "full": 900.0, "deep": 3600.0}
PER_TARGET = 180.0


@dataclass(frozen=True, slots=True)
class SmokeRequest:
    """A run of the suite: on ``device`` at ``level``, or a compilation for ``targets`` (``sm_100``) when there are any.

    ``python`` is the interpreter; ``only`` are names of kernels and families, all when empty. ``seed`` None lets the
    suite choose one. ``gpus`` are numbers or UUIDs, all when empty; ``soak`` are the seconds of sustained load.
    ``kernels`` are files (absolute paths) and modules with kernels from outside, ``plugins`` adds those of installed
    packages, and ``mutants`` runs faulty variants of the kernels instead of these.
    """

    python: str
    device: str = CUDA
    level: str = "quick"
    only: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    seed: int | None = None
    gpus: tuple[str, ...] = ()
    soak: float = 0.0
    kernels: tuple[str, ...] = ()
    plugins: bool = False
    mutants: bool = False

    @property
    def timed(self) -> bool:
        """Whether the suite measures speed in such a run."""
        return self.device == CUDA and self.level != "quick" and not self.targets and not self.mutants

    @property
    def deadline(self) -> float:
        """The seconds after which the whole run is given up."""
        return DEADLINES["deep" if self.mutants else self.level] + PER_TARGET * len(self.targets) + self.soak

    def options(self) -> list[str]:
        """The options of ``python -m kernels_smoke``."""
        return list(self._options(self.only, self.seed, self.gpus))

    def replay(self, seed: int, kernel: str = "", gpu: str = "") -> Command | NoCommand:
        """The command that repeats the run with the inputs of ``seed``, of one ``kernel`` and ``gpu`` where named."""
        only = (kernel,) if kernel else self.only
        elsewhere = [] if self.python == sys.executable else [option("--python", self.python)]
        return run("wheelproof", "smoke", *self._options(only, seed, (gpu,) if gpu else self.gpus), *elsewhere)

    def _options(self, only: tuple[str, ...], seed: int | None, gpus: tuple[str, ...]) -> Iterator[str]:
        if self.targets:
            yield from ("--compile-only", "--target", ",".join(self.targets))
        else:
            yield from ("--device", self.device)
        yield from ("--level", self.level)
        for kernels in self.kernels:
            yield from ("--kernels", kernels)
        if self.plugins:
            yield "--plugins"
        if self.mutants:
            yield "--mutants"
        if only:
            yield from ("--only", ",".join(only))
        if gpus:
            yield from ("--gpus", ",".join(gpus))
        if self.soak:
            yield from ("--soak", f"{self.soak:g}")
        if seed is not None and not self.targets:
            yield from ("--seed", str(seed))
