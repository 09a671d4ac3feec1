"""The pages of the commands, from their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from ci.command_line import SHARED, Command, below, help_of, place, sentence, value_name
from ci.reference.markdown import code, page, table, text
from ci.reference.screens import as_html, screens

# Pages that explain commands.
READ_MORE = {
    "stack": "stack.md",
    "new": "how-to/own-rule.md",
    "schema": "machine-readers.md",
    "mcp": "machine-readers.md",
    "release": "release.md",
    "diff": "diff.md",
    "pins": "pins.md",
    "use-existing-torch": "pins.md",
    "pins guard": "pins-guard.md",
    "pins predict": "pins-guard.md",
    "pins explain": "pins-guard.md",
    "doctor": "doctor.md",
    "explain": "doctor.md#only-a-log",
    "smoke": "smoke.md",
    "matrix": "matrix.md",
    "report": "fleet.md",
    "completion": "adopting.md#shell-completion",
}


def pages(commands: list[Command]) -> dict[str, str]:
    """One page for each command with those below it, one for the options that they share, and the index."""
    result = {f"commands/{command.name}.md": _page(commands, command) for command in below(commands)}
    rows = [(f"[`{c.name}`]({c.name.partition(' ')[0]}.md{_anchor(c)})", text(c.summary)) for c in commands]
    more = "Most take the [common options](common_options.md). How a command ends: [exit codes](../exit-codes.md)."
    result["commands/index.md"] = page("Commands", table(("command", "does"), rows), more)
    shared = [next(c.groups[title] for c in commands if title in c.groups) for title in SHARED]
    parts = [f"## {title.capitalize()}\n\n{_options(options)}" for title, options in zip(SHARED, shared, strict=True)]
    result["commands/common_options.md"] = page(
        "Common options", "The page of a command names those that it takes.", *parts
    )
    return result


def _anchor(command: Command) -> str:
    return f"#wheelproof-{command.name.replace(' ', '-')}" if " " in command.name else ""


def _page(commands: list[Command], command: Command) -> str:
    parts_below = [f"## wheelproof {c.name}\n\n" + "\n\n".join(_parts(c)) for c in below(commands, command.name)]
    summary, *parts = _parts(command)
    return page(f"wheelproof {command.name}", summary, as_html(screens()[command.name]), *parts, *parts_below)


def _parts(command: Command) -> list[str]:
    words = ["wheelproof", command.name, *(["[OPTIONS]"] if command.groups else []), *map(place, command.arguments)]
    parts = [text(sentence(command.summary)), f"```text\n{' '.join(words)}\n```"]
    if arguments := [(code(value_name(a)), text(sentence(help_of(a)))) for a in command.arguments]:
        parts.append(table(("argument", "is"), arguments))
    if own := [o for title, group in command.groups.items() if title not in SHARED for o in group if o.help]:
        parts.append(_options(option for option in own if "-h" not in option.option_strings))
    if shared := [f"[{title}](common_options.md#{title})" for title in SHARED if title in command.groups]:
        parts.append(f"Common options: {', '.join(shared)}.")
    if more := READ_MORE.get(command.name):
        parts.append(f"More: [{more.partition('#')[0]}](../../{more}).")
    return parts


def _options(options: Iterable[argparse.Action]) -> str:
    rows = []
    for option in options:
        flags = ", ".join(map(code, option.option_strings))
        name = value_name(option)
        rows.append((f"{flags} {code(name)}" if name else flags, text(sentence(help_of(option)))))
    return table(("option", "does"), rows) if rows else ""
