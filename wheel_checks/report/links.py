"""Whether a terminal is read as a screen, and whether it opens hyperlinks (OSC 8)."""

import os
from collections.abc import Mapping
from typing import TextIO

FORCE = "FORCE_HYPERLINK"
"""The environment variable that decides, as for other tools: 0 never links, any other value always does."""

_VTE = 5000  # version 0.50, the first that opens links
_PROGRAMS = {"ghostty", "Hyper", "iTerm.app", "rio", "Tabby", "terminology", "vscode", "WezTerm", "zed"}
_TERMINALS = ("alacritty", "contour", "foot", "xterm-ghostty", "xterm-kitty")
_VARIABLES = ("DOMTERM", "KONSOLE_VERSION", "WT_SESSION")


def is_screen(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """True for a terminal with somebody before it: CI services keep what a terminal shows as a log."""
    return stream.isatty() and not environment.get("CI") and environment.get("TERM") != "dumb"


def shows_links(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """True for a screen whose terminal is known to open hyperlinks, and where ``FORCE_HYPERLINK`` asks for them."""
    if forced := environment.get(FORCE, ""):
        return forced != "0"
    if not is_screen(stream, environment):
        return False
    version = environment.get("VTE_VERSION", "")
    return (
        any(environment.get(name) for name in _VARIABLES)
        or environment.get("TERM_PROGRAM") in _PROGRAMS
        or environment.get("TERM", "").startswith(_TERMINALS)
        or (version.isdecimal() and int(version) >= _VTE)
    )
