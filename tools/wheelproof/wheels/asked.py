"""What the user asks an installer for: requirements, and files of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from wheel_checks.errors import UsageError
from wheel_checks.formats.secrets import redact_text
from wheel_checks.phrases import summarised
from wheel_checks.targets.extras_and_groups import NO_EXTRAS, ExtrasAndGroups
from wheelproof.wheels.declared import read_declared
from wheelproof.wheels.declared_model import Declared, Typed, TypedKind


@dataclass(frozen=True, slots=True)
class Asked:
    """The requirements by themselves, and the files that hold more (requirements.txt, pyproject.toml).

    ``declared`` is what the files ask for, with all that they include: no installer reads a file of a tree itself.
    ``chosen`` are the names of the extras and groups that were chosen, ``typed`` what else was named.
    """

    requirements: tuple[str, ...]
    files: tuple[Path, ...]
    parsed: tuple[Requirement, ...]
    declared: Declared
    chosen: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[Requirement, ...]:
        """The requirements with those of the files, to say which package requires what; constraints demand nothing."""
        return (*self.parsed, *(line.requirement for line in self.declared.lines if not line.constraint))

    @property
    def names(self) -> tuple[str, ...]:
        """What was requested as it was written; of files their names, of URLs nothing secret."""
        return (*map(redact_text, self.requirements), *(path.name for path in self.files), *self.typed)

    @property
    def label(self) -> str:
        """For people: "vllm==0.19.0", "torch, numpy, triton and 3 more"."""
        return summarised(self.names, 3)


def parse_asked(
    requirements: Sequence[str],
    files: Sequence[Path],
    *,
    chosen: ExtrasAndGroups = NO_EXTRAS,
    typed: Sequence[Typed] = (),
    folder: Path = Path(),
    example: str = "vllm==0.20.0 or -r requirements.txt",
    expected: str = "a requirement, or -r requirements.txt",
) -> Asked:
    """What the requirements and the files ask for, with the extras and groups that were ``chosen`` of projects.

    ``typed`` is what else was named on the command line of an installer that runs in ``folder``.

    Raises UsageError for what is not a requirement (of which ``example`` is one), when nothing is requested
    (``expected`` says what could be), and for a file that cannot be read.
    """
    try:
        parsed = [Requirement(text) for text in requirements]
    except InvalidRequirement as error:
        what = f"a requirement does not parse: {' '.join(str(error).split())}"
        raise UsageError(what, expected=f"for example {example}") from None
    if not parsed and not files and not typed:
        raise UsageError("nothing was requested", expected=expected)
    declared = read_declared(files, chosen, typed, folder)
    names = tuple(one.text if one.kind is TypedKind.PROJECT else f"{one.kind.value} {one.text}" for one in typed)
    return Asked(tuple(requirements), tuple(files), tuple(parsed), declared, chosen.names, names)
