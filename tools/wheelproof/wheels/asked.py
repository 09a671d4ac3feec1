"""What the user asks an installer for: requirements, and files of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from wheel_checks.phrases import summarised
from wheel_checks.sources.http.credentials import redact_text


@dataclass(frozen=True, slots=True)
class Asked:
    """The requirements by themselves, and the files that hold more (requirements.txt, pyproject.toml).

    ``known`` are the requirements with those that could be read from the files, for telling who demands what: the
    installer reads the files itself, with all that they may include.
    """

    requirements: tuple[str, ...]
    files: tuple[Path, ...]
    known: tuple[Requirement, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What was asked for as it was written; of files their names, of URLs nothing secret."""
        return (*map(redact_text, self.requirements), *(path.name for path in self.files))

    @property
    def label(self) -> str:
        """For people: "vllm==0.19.0", "torch, numpy, triton and 3 more"."""
        return summarised(self.names, 3)
