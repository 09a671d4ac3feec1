"""A hook of mkdocs: commands in consoles are bold, and verdicts and severities have the colour of their meaning.

The word says it already: the colour only makes it quicker to find. ``docs/site.css`` has the colours, and draws the
screens of commands (``ci/reference/screens.py``) with the same classes.
"""

from __future__ import annotations

import re
from typing import Any

MEANING = {
    **dict.fromkeys(("FAIL", "STOP", "error"), "bad"),
    **dict.fromkeys(("PASS", "SHIP"), "good"),
    **dict.fromkeys(("UNDECIDED", "warning", "not checked"), "warn"),
    "note": "note",
}
CONSOLE = re.compile(r'<div class="language-console [^"]*">.*?</div>', re.DOTALL)
COMMAND = re.compile(r'(?<=<span class="gp">\$ </span>)(.+)')
OUTPUT = re.compile(r'(?P<start><span class="go">)(?P<line>[^<]*)')
# A verdict is in capitals wherever it is; a severity begins its line.
WORD = re.compile(r"\b(?:FAIL|STOP|PASS|SHIP|UNDECIDED)\b|(?<![^ ])(?<=^  )(?:error|warning|not checked|note)(?=  )")


def on_page_content(content: str, **_: Any) -> str:
    """The page with its consoles coloured."""
    return CONSOLE.sub(lambda console: OUTPUT.sub(_coloured, COMMAND.sub(r"<b>\1</b>", console[0])), content)


def _coloured(output: re.Match[str]) -> str:
    return output["start"] + WORD.sub(_marked, output["line"])


def _marked(word: re.Match[str]) -> str:
    return f'<span class="{MEANING[word[0]]}">{word[0]}</span>'
