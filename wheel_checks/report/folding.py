"""Prose that is folded to the width of a terminal, and commands inside it, which are not."""

import re
import shutil
import textwrap
from typing import TextIO

from wheel_checks.report.links import is_screen

# A command is not broken: in backquotes, or behind a colon up to the end.
_COMMAND = re.compile(r"`[^`]+`|(?<=: )(?:wheelproof|pip|uv|python3?) [^`]+$")
_GAP = "\udfff"  # stands for a space that is not broken: no safe text has a surrogate


def unbroken(text: str) -> str:
    """Safe text whose commands have no spaces; :func:`with_spaces` gives them back."""
    return _COMMAND.sub(lambda found: found[0].replace(" ", _GAP), text)


def with_spaces(text: str) -> str:
    """The text with the spaces that :func:`unbroken` has taken."""
    return text.replace(_GAP, " ")


def fold(text: str, width: int) -> list[str]:
    """A safe sentence in lines of at most ``width``, later ones indented; a longer command has a line for itself.

    That line is left to the terminal, which wraps it so that it can be copied in one piece.
    """
    indent = re.match(" *", text)[0] + "  "  # type: ignore[index]  # it always matches
    lines = textwrap.wrap(
        unbroken(text), width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return list(map(with_spaces, lines)) or [""]


def for_stream(text: str, stream: TextIO) -> str:
    """The lines of a text, folded where they are read on a screen."""
    if not is_screen(stream):
        return text
    columns = shutil.get_terminal_size().columns
    return "".join(f"{line}\n" for whole in text.splitlines() for line in fold(whole, columns))
