"""The examples of the help are command lines that the commands understand."""

from __future__ import annotations

import importlib
import shlex

import pytest

from wheelproof.cli.help.listing import EXAMPLES
from wheelproof.cli.main import COMMANDS
from wheelproof.cli.options.output import make_parser


@pytest.mark.parametrize("example", sorted({example for examples in EXAMPLES.values() for example in examples}))
def test_an_example_parses(example: str) -> None:
    name, *words = shlex.split(example)
    module_name, summary = COMMANDS[name]
    below = getattr(importlib.import_module(module_name), "SUBCOMMANDS", {})
    if words and words[0] in below:
        module_name, summary = below[words[0]]
        name = f"{name} {words.pop(0)}"
    make_parser(name, summary, importlib.import_module(module_name)).parse(words)
