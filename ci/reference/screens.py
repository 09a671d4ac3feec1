"""Screens of commands: the output on a terminal of 80 columns, recorded with colours, and drawn as HTML."""

from __future__ import annotations

import html
import itertools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from rich.style import Style
from rich.text import Text

HERE = Path(__file__).parent
COLUMNS, LINES = 80, 24
# Styles of the terminal by their meaning, which docs/site.css draws; the words say the same without a colour.
MEANING = {1: "bad", 2: "good", 3: "warn", 4: "note", 5: "note", 6: "note"}  # by the colours of a terminal, 0 to 7


@dataclass(frozen=True)
class Screen:
    """The command of a screen and its requirements, from ``screens.toml``."""

    command: str
    typed: str
    lane: str = ""
    page: str = ""
    before: str = ""

    @property
    def kept(self) -> Path:
        """The file with the terminal's output, with escape sequences."""
        return HERE / "screens" / f"{self.command}.txt"


def screens() -> dict[str, Screen]:
    """Every screen by its command."""
    table = tomllib.loads((HERE / "screens.toml").read_text(encoding="utf-8"))
    return {name: Screen(name, **keys) for name, keys in table.items()}


def as_html(screen: Screen) -> str:
    """A block of HTML, which Markdown leaves as it is and GitHub shows without colours."""
    shown = _spans(Text.from_ansi(screen.kept.read_text(encoding="utf-8")))
    typed = html.escape(screen.typed, quote=False)
    return f'<pre class="screen"><samp><span class="prompt">$ </span><b>{typed}</b>\n{shown}</samp></pre>'


def _spans(text: Text) -> str:
    """The text with a span for each run of one style."""
    result, plain = [], text.plain
    bounds = sorted({0, len(plain), *(edge for span in text.spans for edge in (span.start, span.end))})
    for start, end in itertools.pairwise(bounds):
        styles = [span.style for span in text.spans if span.start <= start and end <= span.end]
        names = _meanings(sum((Style.parse(s) if isinstance(s, str) else s for s in styles), Style.null()))
        part = html.escape(plain[start:end], quote=False)
        result.append(f'<span class="{names}">{part}</span>' if names and part.strip() else part)
    return "".join(result)


def _meanings(style: Style) -> str:
    color = MEANING.get((style.color.number or 0) % 8, "") if style.color else ""
    return " ".join(filter(None, (color, "strong" if style.bold else "", "dim" if style.dim else "")))
