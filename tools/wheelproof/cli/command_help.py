"""How the help of a command begins."""

import argparse
import shutil
from collections.abc import Iterable
from typing import Any


class CommandHelp(argparse.RawDescriptionHelpFormatter):
    """Help whose first lines have the arguments, not every option: those stand below, each with its help."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=shutil.get_terminal_size().columns - 2)

    def _format_usage(self, usage: str | None, actions: Iterable[argparse.Action], groups: Any, prefix: Any) -> str:
        required = [action for action in actions if action.required and action.option_strings]
        named = "".join(f" {action.option_strings[-1]} {action.metavar or action.dest.upper()}" for action in required)
        before, self._prog = self._prog, f"{self._prog}{named} [OPTIONS]"
        text = super()._format_usage(usage, [a for a in actions if not a.option_strings], groups[:0], prefix)
        self._prog = before
        return text
