"""The pages about exit codes and about configuration, from the errors and the parsers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from ci.reference.markdown import code, page, table, text
from wheel_checks import errors
from wheelproof.cli.configuration.parsing import FLAGS_ONLY, PREFIX
from wheelproof.manual.man import SHARED
from wheelproof.manual.model import Manual, Option
from wheelproof.manual.wording import value_name

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
3. the file: the nearest upwards that is a `wheelproof.toml`, or a `pyproject.toml` with a table `[tool.wheelproof]`,
4. the default.

`--show-config` shows every option of a command, its value, and where that comes from.

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
and `[pins.check]`. A list replaces a list. In the environment its values are separated by commas; a switch is `true` or
`false`. An unknown key is an error, and so is a variable whose name is nearly that of an option. `WHEELPROOF_CONFIG` is
`--config`, and `WHEELPROOF_DEBUG=1` adds the traceback to the message of a bug; `NO_COLOR` turns colors off."""
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


def configuration(manual: Manual) -> str:
    """The page of the configuration: every key, its variable, and who has it."""
    shared, own = _keys(manual)
    rows = [(code(key), code(_variable(key)), code(value) if value else "true, false", "all") for key, value in shared]
    rows += [
        (code(key), code(_variable(key)), code(value) if value else "true, false", ", ".join(commands))
        for (key, value), commands in sorted(own.items())
    ]
    left_out = ", ".join(code(command.name) for command in manual.commands if not command.configurable)
    keys = table(("key", "variable", "value", "commands"), rows)
    return page("Configuration", ABOUT_CONFIGURATION, "## Every key", keys, NOT_CONFIGURED.format(left_out))


def _keys(manual: Manual) -> tuple[list[tuple[str, str]], dict[tuple[str, str], list[str]]]:
    """The keys of options that all commands share, and the others with the commands that have them."""
    shared: dict[tuple[str, str], None] = {}
    own: dict[tuple[str, str], list[str]] = {}
    for command in filter(lambda command: command.configurable, manual.commands):
        for title, options in command.groups.items():
            for key, option in _named(options):
                if title in SHARED[:2]:
                    shared[key, value_name(option)] = None
                else:
                    own.setdefault((key, value_name(option)), []).append(command.name)
    return list(shared), own


def _named(options: tuple[Option, ...]) -> Iterator[tuple[str, Option]]:
    for option in options:
        long = next((flag[2:] for flag in option.flags if flag.startswith("--")), "")
        if long and long not in FLAGS_ONLY | {"help"}:
            yield long, option


def _variable(key: str) -> str:
    return PREFIX + key.replace("-", "_").upper()
