"""Writes a package from a template: files that end in .txt, with the names of the package in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from wheel_checks.errors import UsageError, WheelproofError
from wheelproof.plugins.rules import OURS

RULES, KERNELS = "rules", "kernels"
TEMPLATES = (RULES, KERNELS)
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,60}[a-z0-9])?")
_PREFIX = re.compile(r"[A-Z][A-Z0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Package:
    """What is written: the ``template``, the ``name`` of the distribution, the ``prefix`` of the ids of its rules."""

    template: str
    name: str
    prefix: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            expected = "lower-case letters, digits and dashes, such as acme-rules"
            raise UsageError(f"{self.name!r} is not a valid package name", expected=expected)
        if not _PREFIX.fullmatch(self.ids) or self.ids.startswith(OURS):
            expected = f"2 to 10 capital letters and digits, other than {', '.join(OURS)}"
            raise UsageError(f"{self.ids!r} is not a valid rule prefix", expected=expected)

    @property
    def module(self) -> str:
        """The name of its module."""
        return self.name.replace("-", "_")

    @property
    def ids(self) -> str:
        """The prefix of its rules: the one that was requested, else the first word of the name."""
        return self.prefix or self.name.partition("-")[0].upper()[:10]

    def files(self) -> dict[str, str]:
        """The text of each file, by its path in the package."""
        values = {"@NAME@": self.name, "@MODULE@": self.module, "@PREFIX@": self.ids}
        found = {}
        for path, text in _texts(files("wheelproof.new").joinpath(self.template)):
            for key, value in values.items():
                text = text.replace(key, value)  # noqa: PLW2901  # each replaces in what the one before made
            found[path.replace("src/", f"src/{self.module}/")] = text
        return found

    def write(self, folder: Path) -> list[Path]:
        """Write the files. Raises UsageError where something is there already, and WheelproofError."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            what = f"{folder} already exists, and is not an empty folder"
            raise UsageError(what, expected="another NAME or --folder")
        written = []
        try:
            for name, text in sorted(self.files().items()):
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                written.append(path)
        except OSError as error:
            raise WheelproofError(f"{folder} could not be written: {error.strerror or error}") from error
        return written


def _texts(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _texts(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(".txt"):
            yield f"{above}{entry.name.removesuffix('.txt')}", entry.read_text(encoding="utf-8")
