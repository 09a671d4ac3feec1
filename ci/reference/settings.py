"""The pages about exit codes and about configuration, from the errors and the parsers."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable, Iterator

from ci.command_line import SHARED, Command, value_name
from ci.reference.markdown import code, page, table, text
from wheel_checks import errors
from wheelproof.cli.configuration.parsing import FLAGS_ONLY, PREFIX
from wheelproof.cli.options.rights import Effect, right_of

EXIT_CODES = {
    0: "nothing at or above `--fail-on`, which is an error unless you say `warning` or `never`",
    1: "findings",
    2: "wrong usage: of the command line, of the configuration, or of a file that says what is expected",
    3: "could not check: a network that does not answer, unreadable input, a check that crashed",
    130: "interrupted",
}
ABOUT_EXIT_CODES = """\
Every command ends with one of these. A network that does not answer is no finding, and a tool that broke has not
checked anything: 3 is neither 0 nor 1. Standard output carries the report alone; progress, messages and logs go to
standard error."""
ABOUT_ERRORS = """\
## Messages that end a command

Each says what happened, what was expected, and what to do. About a wheel, some of them become a finding instead."""

ABOUT_CONFIGURATION = """\
Every option of a command can also be set in the environment and in a file. What counts is, in this order:

1. the command line,
2. the environment: `WHEELPROOF_FAIL_ON=warning` is `--fail-on warning`,
3. your own file: `$XDG_CONFIG_HOME/wheelproof/wheelproof.toml`, by default `~/.config/wheelproof/wheelproof.toml`,
4. the file of the tree: the nearest upwards that is a `wheelproof.toml`, or a `pyproject.toml` with a table
   `[tool.wheelproof]`,
5. the default.

`--config FILE` and `WHEELPROOF_CONFIG` name a file that is used as your own, in place of 3 and 4; `--config
/dev/null` goes without any. `--show-config` shows every option of a command, its value, where that comes from, and
what is ignored, and why.

```toml title="pyproject.toml"
[tool.wheelproof]          # options that all commands share
fail-on = "warning"
ignore = ["WHL105"]

[tool.wheelproof.verify]   # options of one command, which win
platform = ["all"]
expect = "cuda>=13"

[tool.wheelproof.pins.check]
set = "wide"
```

In a `wheelproof.toml` the same tables stand without `tool.wheelproof`: the shared options at the top, then `[verify]`
and `[pins.check]`. A list replaces a list. In the environment its values are separated by commas; a switch is `true`
or `false`. An unknown key is an error, and so is a variable whose name is nearly that of an option.
`WHEELPROOF_DEBUG=1` adds the traceback to the message of a bug; `NO_COLOR` turns colors off.

On a terminal a report is cut to its height, at least 24 lines: the worst finding with its fix stays, the last line
counts what `-v` adds. In a pipe, and where `CI` is set, nothing is cut. Ids of rules are links to their pages where the
terminal is known to open them; `FORCE_HYPERLINK=1` makes them links in any colored report, `FORCE_HYPERLINK=0` in none.

## What a tree may decide

A checkout may be anybody's. Its file decides what is judged and what is expected, and nothing else: not what is run,
written or contacted, nothing outside the tree, no fact about the machine, and not how a report looks. The column "in
a tree" below says what a key does there; without a word it is ignored, which one line on standard error says. The
run continues.

- `fail-on` and `set` hold where they are stricter than what holds without the tree.
- `ignore` adds to yours, but does not reach a rule that you select by a prefix at least as long. `select` leaves
  rules out where you select none, and adds to yours where you do. A flag or variable takes the place of both.
- The report counts the rules that a tree silences in its first line ("3 rules silenced by pyproject.toml"), and the
  JSON format names them. Where a tree silences all that would have judged something, the verdict is UNDECIDED.
- Files that a tree names are relative to the folder of its configuration, and must lie in the tree.
- `installed` of `pins check` stands for a torch that is not there: where the environment has one, that one counts.

The tree is the repository around the current folder (`.git`, `.hg`, `.svn`, `.jj`). Without one the search goes up to
your home folder, to a folder where all users make files (`/tmp`), to one of another user, and to another file system,
all of them excluded.

## Files of other users

A file in a tree is used when it, the link that leads to it, and its folder belong to you or to root; under sudo
also when they belong to whoever called it. Else the run ends with exit code 2 and git's words, "detected dubious
ownership", if something in the file would hold: a verdict without that would say less than the tree asks. In a folder
such as `/tmp` the file is only named.

To use it, name the tree in `safe-directory` of your own file, in `WHEELPROOF_SAFE_DIRECTORY`, or by
`--safe-directory`: its root or the folder of the file; `FOLDER/*` for all below; `*` for everything. A process that
is root in a container, with a checkout that belongs to another user, needs that; the GitHub Action and our images
have set it."""
NOT_CONFIGURED = "Not configured: {}."


def exit_codes() -> str:
    """The page of the exit codes."""
    kinds = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.WheelproofError)
    ]
    rows = [
        (text(kind.__name__), str(kind.exit_code), text(inspect.getdoc(kind) or ""))
        for kind in sorted(kinds, key=lambda kind: (kind.exit_code, kind.__name__))
        if kind is not errors.WheelproofError
    ]
    return page(
        "Exit codes",
        ABOUT_EXIT_CODES,
        table(("exit code", "means"), [(str(number), meaning) for number, meaning in EXIT_CODES.items()]),
        ABOUT_ERRORS,
        table(("error", "exit code", "means"), rows),
    )


def configuration(commands: list[Command]) -> str:
    """The page of the configuration: every key, its variable, and who has it."""
    shared, own = _keys(commands)
    rows = [(*_cells(key, value), "all", tree) for key, value, tree in shared]
    rows += [(*_cells(key, value), ", ".join(commands), tree) for (key, value, tree), commands in sorted(own.items())]
    left_out = ", ".join(code(command.name) for command in commands if not command.parser.configurable)
    keys = table(("key", "variable", "value", "commands", "in a tree"), rows)
    return page("Configuration", ABOUT_CONFIGURATION, "## Every key", keys, NOT_CONFIGURED.format(left_out))


def _cells(key: str, value: str) -> tuple[str, str, str]:
    return code(key), code(_variable(key)), code(value) if value else "true, false"


_Key = tuple[str, str, str]


def _keys(commands: list[Command]) -> tuple[list[_Key], dict[_Key, list[str]]]:
    """The keys of options that all commands share, and the others with the commands that have them."""
    shared: dict[_Key, None] = {}
    own: dict[_Key, list[str]] = {}
    for command in filter(lambda command: command.parser.configurable, commands):
        for title, options in command.groups.items():
            for key, option in _named(options):
                if title in SHARED[:2]:
                    shared[key, value_name(option), _tree(option)] = None
                else:
                    own.setdefault((key, value_name(option), _tree(option)), []).append(command.name)
    return list(shared), own


def _named(options: Iterable[argparse.Action]) -> Iterator[tuple[str, argparse.Action]]:
    for option in options:
        long = next((flag[2:] for flag in option.option_strings if flag.startswith("--")), "")
        if long and long not in FLAGS_ONLY | {"help"}:
            yield long, option


def _tree(option: argparse.Action) -> str:
    """The effect that the configuration file of a tree may have on an option; "" for none."""
    effect = right_of(option).effect
    return "" if effect is Effect.REFUSED else str(effect)


def _variable(key: str) -> str:
    return PREFIX + key.replace("-", "_").upper()
