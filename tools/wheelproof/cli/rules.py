"""``wheelproof rules``: the manual of the rules."""

from __future__ import annotations

import argparse
import inspect
import json
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from wheel_checks.errors import UsageError
from wheel_checks.model import Audience, Rule
from wheel_checks.phrases import plural
from wheel_checks.references import address_of
from wheel_checks.report.links import is_screen
from wheelproof.cli.options.output import open_output, warn

SCHEMA = "wheelproof.rules/1"
WIDTH = 100  # columns of the text pages at most: prose, so not as wide as a terminal may be

AUDIENCES = {
    Audience.PUBLISHER: "for who publishes it",
    Audience.INSTALLER: "for who installs it",
    Audience.BOTH: "for who publishes and who installs it",
}
GROUPS = {
    "DOC": "hosts and logs: why torch does not see the GPU",
    "KRN": "kernels: correct, fast, compiled for a GPU",
    "MTX": "cells of a matrix, and fleets of hosts",
    "PIN": "requirements and installs that could replace torch",
    "PLG": "plug-ins",
    "REL": "releases, and pairs of wheels",
    "SEC": "what wheels run, and where they write",
    "STK": "stacks: what requirements install on a platform",
    "WHL": "wheels, and what is installed from them",
}
CONFIGURABLE = False  # `format = "junit"` in a project's configuration is about reports, and must not break the manual.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof rules``."""
    parser.add_argument(
        "rules", metavar="RULE", nargs="*", help="the id of a rule, to show its page (WHL201), or a prefix (WHL2)"
    )
    parser.add_argument("--no-plugins", action="store_true", help="omit rules from other installed packages")
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="default: text")


def run(arguments: argparse.Namespace) -> int:
    """Print the list of the rules, or the pages that were requested. Raises UsageError for an unknown id."""
    from wheel_checks.catalogue import all_rules
    from wheelproof.plugins.loading import NO_PLUGINS, load_plugins

    plugins = NO_PLUGINS if arguments.no_plugins else load_plugins()
    warn(f"{fault.what} ({fault.hint})" for fault in plugins.faults)
    wanted, whole_pages = choose(plugins.chosen(all_rules()), arguments.rules)
    if arguments.format == "json":
        text = json.dumps({"schema": SCHEMA, "rules": [as_json(rule) for rule in wanted]}, indent=2) + "\n"
    elif whole_pages:
        page = markdown_page if arguments.format == "markdown" else text_page
        text = "\n".join(page(rule) for rule in wanted)
    elif arguments.format == "markdown":
        text = markdown_list(wanted)
    elif is_screen(sys.stdout) and not arguments.rules:
        text = groups_list(wanted)
    else:
        text = text_list(wanted)
    with open_output("-") as stream:
        stream.write(text)
    return 0


def choose(rules: Sequence[Rule], requested: Sequence[str]) -> tuple[list[Rule], bool]:
    """The rules that ids and prefixes ask for, in order of id, and whether every one of them was named by its id.

    All rules if ``requested`` is empty. Raises UsageError, with the nearest id, if a prefix matches no rule.
    """
    ids = [rule.id for rule in rules]
    for text in requested:
        if not text or not any(rule_id.startswith(text.upper()) for rule_id in ids):
            nearest = get_close_matches(text.upper(), ids, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else "`wheelproof rules` lists them"
            raise UsageError(f"unknown rule id or prefix {text!r}", hint=hint)
    prefixes = tuple(text.upper() for text in requested) or ("",)
    wanted = [rule for rule in rules if rule.id.startswith(prefixes)]
    return wanted, bool(requested) and all(prefix in ids for prefix in prefixes)


def as_json(rule: Rule) -> dict[str, Any]:
    """The documentation of a rule."""
    sources = [{"name": source, "url": address_of(source)} for source in rule.sources]
    return {
        "id": rule.id,
        "title": rule.title,
        "severity": str(rule.severity),
        "kind": rule.kind,
        "audience": str(rule.audience),
        **({} if rule.decides else {"decides": False}),
        **({"plugin": rule.plugin} if rule.plugin else {}),
        **_prose(rule),
        **({"sources": sources} if sources else {}),
        **({"tested": rule.tested} if rule.tested else {}),
    }


def text_list(rules: Sequence[Rule]) -> str:
    """One line per rule: id, severity, title; on a terminal folded."""
    lines = (f"{rule.id:8}{rule.severity:9}{rule.title}" for rule in rules)
    if is_screen(sys.stdout):
        lines = (textwrap.fill(line, shutil.get_terminal_size().columns, subsequent_indent=" " * 17) for line in lines)
    return "".join(f"{line}\n" for line in lines)


def groups_list(rules: Sequence[Rule]) -> str:
    """One line per group of rules, then how to see more."""
    groups = Counter(rule.id.rstrip("0123456789") for rule in rules)
    rows = [f"{name:8}{count:4}  {GROUPS.get(name, 'rules of a plug-in')}\n" for name, count in groups.items()]
    return f"""\
{plural(len(rules), "rule")} in {plural(len(groups), "group")}

{"".join(rows)}
wheelproof rules WHL       lists a group; WHL2 the part of it that begins so
wheelproof rules WHL201    explains a rule
wheelproof rules | less    lists all
"""


def text_page(rule: Rule) -> str:
    """The page of a rule for a terminal, its prose wrapped."""
    sections = [f"{name.capitalize()}\n{_wrapped(prose)}" for name, prose in _prose(rule).items()]
    if rule.sources:
        lines = [f"  {source}{f': {address}' if (address := address_of(source)) else ''}" for source in rule.sources]
        sections.append("\n".join(["Sources", *lines]))
    if rule.tested:
        sections.append(f"Tested with\n{_wrapped(rule.tested)}")
    heading = f"{rule.id}: {rule.title}\n{rule.severity}, judges every {rule.kind}, {_readers(rule)}"
    return "\n\n".join([heading, *sections]) + "\n"


def markdown_list(rules: Sequence[Rule], link: str = "") -> str:
    """A table of the rules. ``link`` is a template of the target of each id, ``{}.md`` for instance."""
    rows = [
        f"| {f'[{rule.id}]({link.format(rule.id)})' if link else rule.id} | {rule.severity} | {_cell(rule.title)} |\n"
        for rule in rules
    ]
    return "| rule | severity | title |\n| --- | --- | --- |\n" + "".join(rows)


def markdown_page(rule: Rule) -> str:
    """The page of a rule in Markdown."""
    sections = [f"## {name.capitalize()}\n\n{prose}" for name, prose in _prose(rule).items()]
    if rule.sources:
        sections.append("## Sources\n\n" + "\n".join(f"- {_linked(source)}" for source in rule.sources))
    if rule.tested:
        sections.append(f"## Tested with\n\n{rule.tested[0].upper()}{rule.tested[1:]}.")
    heading = f"# {rule.id}: {rule.title}\n\nSeverity: {rule.severity}. Judges every {rule.kind}, {_readers(rule)}."
    return "\n\n".join([heading, *sections]) + "\n"


def _prose(rule: Rule) -> dict[str, str]:
    """The sections of a page, in Markdown, without the indentation of the source."""
    return {name: inspect.cleandoc(getattr(rule, name)) for name in ("why", "example", "fix")}


def _linked(source: str) -> str:
    """A source in Markdown, as a link if it has an address."""
    address = address_of(source)
    return f"[{source}]({address})" if address else source


def _readers(rule: Rule) -> str:
    """Who a rule is for, and whose it is when it is not ours."""
    decides = "" if rule.decides else "; at most a warning for who installs it"
    return AUDIENCES[rule.audience] + decides + (f"; a rule of {rule.plugin}" if rule.plugin else "")


def _wrapped(prose: str) -> str:
    paragraphs = [
        textwrap.fill(" ".join(part.split()), _width() - 2, break_on_hyphens=False) for part in prose.split("\n\n")
    ]
    return textwrap.indent("\n\n".join(paragraphs), "  ")


def _width() -> int:
    return min(WIDTH, shutil.get_terminal_size().columns) if is_screen(sys.stdout) else WIDTH


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
