"""Every option of every command, and the effect that the configuration file of a tree may have on it.

A new option is refused from a tree, and fails here until it is in the table, on one side or the other. Only options
that change subjects and expectations are allowed. Programs, writes, network, reads outside the tree, facts about the
machine, and the look of a report are the user's choice.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from wheelproof.cli.main import COMMANDS
from wheelproof.cli.options.output import CommandParser, add_output_options, make_parser
from wheelproof.cli.options.rights import Effect, allow_tree, right_of

SHARED = "all"
SETS, ADDS, RAISES, NAMES_FILES = Effect.SETS, Effect.ADDS, Effect.RAISES, Effect.NAMES_FILES
INDEXES = (
    "index-url extra-index-url find-links no-index allow-download max-download cache-dir no-cache refresh deadline"
)
MACHINES = dict.fromkeys(("platform", "python", "gpu", "driver", "cpu"), SETS)

# command: (keys that a tree may set, and how; keys that it may not)
REVIEWED: dict[str, tuple[dict[str, Effect], str]] = {
    SHARED: (
        {"fail-on": RAISES, "select": ADDS, "ignore": ADDS},
        "format output also color quiet verbose offline trust-index config safe-directory no-plugins show-config",
    ),
    "verify": (
        {**MACHINES, **dict.fromkeys(("all-files", "pre", "expect", "max-size", "depth", "max-read"), SETS)},
        f"installed root ld-library-path explain record same-as with provenance {INDEXES}",
    ),
    "stack": (
        {
            **MACHINES,
            **dict.fromkeys(("pre", "expect", "depth", "max-read", "extra", "group", "all-extras"), SETS),
            "requirement": NAMES_FILES,
        },
        f"against fail-on-change {INDEXES}",
    ),
    "release": (
        {"expect": NAMES_FILES, **dict.fromkeys(("pre", "depth", "max-read"), SETS)},
        f"platform require-attestations {INDEXES}",
    ),
    "diff": (dict.fromkeys(("platform", "python", "variant", "all-files", "pre", "depth"), SETS), INDEXES),
    "pins check": ({"installed": SETS, "set": RAISES}, "python package skip-vendored platform family"),
    "pins explain": ({}, "installed python"),
    "pins guard": (
        {},
        "directory python installed on-conflict extension check installer project install uninstall yes user family "
        "package",
    ),
    "pins predict": (
        {"pre": SETS},
        f"requirement python installer platform installed upgrade build editable group with package {INDEXES}",
    ),
    "doctor": ({}, "python expect root host timeout full fix yes dry-run undo save-facts facts"),
    "explain": ({}, ""),
    "smoke": (
        {},
        "device level only gpus soak kernels plugins mutants compile-only target seed python deadline",
    ),
    "matrix run": ({}, "matrix only cell executor jobs deadline work records fresh"),
    "matrix merge": ({}, "matrix only"),
    "report": ({}, ""),
    "report merge": ({}, "expect expect-hosts topology"),
}


def parsers(table: dict[str, tuple[str, str]], above: str = "") -> Iterator[tuple[str, CommandParser]]:
    for name, (module_name, summary) in table.items():
        module = importlib.import_module(module_name)
        yield f"{above}{name}", make_parser(f"{above}{name}", summary, module)
        yield from parsers(getattr(module, "SUBCOMMANDS", {}), f"{above}{name} ")


def shared_parser() -> CommandParser:
    parser = CommandParser(prog="", description="")
    add_output_options(parser)
    return parser


def test_every_option_of_every_command_was_reviewed() -> None:
    shared = shared_parser()
    found = {SHARED: rights(shared)}
    for name, parser in parsers(COMMANDS):
        if parser.configurable:
            own = rights(parser)
            assert {key: own.pop(key) for key in shared.options} == found[SHARED], name
            found[name] = own
    assert found == {
        name: {**dict.fromkeys(refused.split(), Effect.REFUSED), **allowed}
        for name, (allowed, refused) in REVIEWED.items()
    }


def rights(parser: CommandParser) -> dict[str, Effect]:
    return {key: right_of(action).effect for key, action in parser.options.items()}


def test_an_option_that_declares_nothing_is_refused() -> None:
    parser = CommandParser(prog="", description="")
    assert right_of(parser.add_argument("--new")).effect is Effect.REFUSED


@pytest.mark.parametrize("name", [name for name, parser in parsers(COMMANDS) if parser.configurable])
def test_an_order_names_every_choice_and_no_other(name: str) -> None:
    options = next(parser for found, parser in parsers(COMMANDS) if found == name).options
    for key, action in options.items():
        if right_of(action).effect is Effect.RAISES:
            assert action.choices is not None
            assert sorted(right_of(action).order) == sorted(action.choices), key
            assert action.default in action.choices


def test_a_right_over_an_option_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        allow_tree(shared_parser(), right_of(shared_parser().options["select"]), "slect")
