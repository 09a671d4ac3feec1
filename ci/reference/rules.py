"""The pages of the rules and their index, grouped by the subjects of ``rule_subjects.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.reference.log_messages import messages_of
from wheel_checks.model import Rule
from wheel_checks.registry import RETIRED
from wheelproof.cli.rules import markdown_list, markdown_page

MOST_RELATED = 6
INDEX = """\
# Rules

Made by `ci/update_rule_pages.py` from what each rule says about itself. `wheelproof rules` lists the same rules, and
`wheelproof rules WHL2` those of a subject.

<div id="rule-filter"></div>
"""


@dataclass(frozen=True)
class Subject:
    """The subject of rules with one prefix: its heading, its commands and its guide."""

    prefix: str
    title: str
    area: str
    commands: tuple[str, ...]
    guide: str

    @property
    def anchor(self) -> str:
        """The id that the site and GitHub give to the heading of the subject."""
        return re.sub(r"[^\w\s-]", "", self.heading).strip().lower().replace(" ", "-")

    @property
    def heading(self) -> str:
        """The heading in the index; its prefix is for `wheelproof rules` and `--select`."""
        return f"{self.prefix}: {self.title}"


def subjects() -> list[Subject]:
    """All subjects, in the order of the index."""
    areas = tomllib.loads(Path(__file__).with_name("rule_subjects.toml").read_text(encoding="utf-8"))["area"]
    return [
        Subject(prefix, title, area["title"], tuple(area["commands"]), area["guide"])
        for area in areas
        for prefix, title in area["subjects"].items()
    ]


def pages(rules: Sequence[Rule]) -> dict[str, str]:
    """The text of every page by its file name. Raises ValueError for a rule that belongs to no subject, or to two."""
    by_subject = {subject: [rule for rule in rules if rule.id.startswith(subject.prefix)] for subject in subjects()}
    placed = [rule.id for found in by_subject.values() for rule in found]
    if sorted(placed) != [rule.id for rule in rules]:
        raise ValueError(f"rules without one subject: {sorted({rule.id for rule in rules} ^ set(placed))}")
    result = {"README.md": _index(by_subject)}
    for subject, found in by_subject.items():
        result |= {f"{rule.id}.md": _page(rule, found, subject, rules) for rule in found}
    return result


def _page(rule: Rule, subject_rules: Sequence[Rule], subject: Subject, rules: Sequence[Rule]) -> str:
    heading, blank, rest = markdown_page(rule).partition("\n\n")
    path = f"[Rules](README.md) / [{subject.heading}](README.md#{subject.anchor})"
    return f"{heading}{blank}{path}\n\n{rest}\n{_context(rule, subject_rules, subject, rules)}"


def _index(by_subject: dict[Subject, list[Rule]]) -> str:
    parts, area = [INDEX], ""
    for subject, rules in by_subject.items():
        if subject.area != area:
            area = subject.area
            reported = f"Reported by {_commands(subject)}. [Guide](../{subject.guide})."
            parts.append(f"## {area}\n\n{reported}\n")
        parts.append(f"### {subject.heading}\n\n{markdown_list(rules, link='{}.md')}")
    parts.append("## Retired\n\nThe id of a removed rule is never reused.\n")
    return "\n".join([*parts, *(f"- {rule_id}: {reason}" for rule_id, reason in RETIRED.items()), ""])


def _context(rule: Rule, subject_rules: Sequence[Rule], subject: Subject, rules: Sequence[Rule]) -> str:
    """Links of the page of a rule: its subject, related rules, commands."""
    named = set(re.findall(r"\b[A-Z]{3}\d{3}\b", f"{rule.why} {rule.fix}")) - {rule.id}
    # Neighbours are defined in the same module: they judge the same part of the same facts.
    near = sorted(
        (other for other in subject_rules if other.id != rule.id),
        key=lambda other: (other.check.__module__ != rule.check.__module__, _distance(other, rule)),
    )
    chosen = [other for other in rules if other.id in named] + [other for other in near if other.id not in named]
    lines = [f"- [{other.id}]({other.id}.md): {other.title}\n" for other in chosen[:MOST_RELATED]]
    related = f"## Related rules\n\n{''.join(lines)}\n" if lines else ""
    messages = "".join(f"{message}\n" for message in messages_of(rule.id))
    logs = f"## In a log\n\nMessages of which this is a likely cause:\n\n```text\n{messages}```\n\n" if messages else ""
    return f"""{logs}{related}## Commands

`wheelproof rules {rule.id}` shows this page in a terminal, and `wheelproof rules {subject.prefix}` lists its subject.
{_commands(subject)} can report it.
Guide: [{subject.area}](../{subject.guide}).
"""


def _distance(one: Rule, other: Rule) -> int:
    return abs(int(one.id[3:]) - int(other.id[3:]))


def _commands(subject: Subject) -> str:
    """Links to the pages of the commands, as the subject of a sentence or after "by"."""
    links = [f"[`wheelproof {name}`](../reference/commands/{name}.md)" for name in subject.commands]
    return " and ".join([", ".join(links[:-1]), links[-1]] if len(links) > 1 else links)
