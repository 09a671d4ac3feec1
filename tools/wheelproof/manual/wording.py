"""Words of the help: short for a list of choices, as sentences for a page, and how arguments are written."""

from __future__ import annotations

import re

from wheelproof.manual.model import Argument, Option


def brief(text: str) -> str:
    """The first clause of a help or a summary, as a shell shows it next to a word: "the index to use"."""
    return re.split(r" \(|; ", text, maxsplit=1)[0].strip()


def sentence(text: str) -> str:
    """A help as a sentence: with a capital, unless it starts with a word that is spelt so ("x86_64", "quick:")."""
    if re.match(r"[a-z]+ ", text):
        text = text[0].upper() + text[1:]
    return f"{text.rstrip('.')}." if text else ""


def place(argument: Argument) -> str:
    """An argument in a synopsis, as argparse writes it: ``[TARGET ...]``."""
    name = argument.metavar
    return {"": name, "?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}[argument.nargs]


def value_name(option: Option) -> str:
    """What stands after an option: its choices (``text|json``), else the name of its value; "" where it takes none."""
    if option.values is None:
        return ""
    return "|".join(option.values.words) if option.values.closed else option.metavar
