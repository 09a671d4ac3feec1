"""What the user asks an installer for: requirements, and files of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from wheel_checks.errors import UsageError
from wheel_checks.phrases import summarised
from wheel_checks.sources.http.credentials import redact_text
from wheel_checks.sources.requirement_files import check_included


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


def parse_asked(
    requirements: Sequence[str],
    files: Sequence[Path],
    known_of: Callable[[Sequence[Path]], Iterable[Requirement]],
    *,
    example: str,
    expected: str,
) -> Asked:
    """What the requirements and the files ask for; ``known_of`` reads the requirements of files.

    Raises UsageError for what is no requirement (of which ``example`` is one), when nothing is asked for (``expected``
    says what could be), and what ``known_of`` raises.
    """
    try:
        parsed = [Requirement(text) for text in requirements]
    except InvalidRequirement as error:
        what = f"a requirement does not parse: {' '.join(str(error).split())}"
        raise UsageError(what, expected=f"for example {example}") from None
    if not parsed and not files:
        raise UsageError("nothing was asked for", expected=expected)
    check_included(files)
    return Asked(tuple(requirements), tuple(files), (*parsed, *known_of(files)))
