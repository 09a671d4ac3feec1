"""The plug-ins of a run: their rules, formats and probes, and their faults."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelproof.plugins.installed import FORMATS, KINDS, PROBES, RULES, Plugin, find_plugins

if TYPE_CHECKING:  # a run without plug-ins needs none of these
    from wheel_checks.facts.plugin import PluginFault
    from wheel_checks.model import Rule, Subject
    from wheelproof.plugins.calling import PluginFaultError


@dataclass(slots=True, eq=False)
class Plugins:
    """Installed plug-ins, their rules, and their faults so far; thread-safe."""

    installed: tuple[Plugin, ...] = ()
    rules: tuple[Rule, ...] = ()
    faults: list[PluginFault] = field(default_factory=list)

    def of(self, kind: str) -> tuple[Plugin, ...]:
        """Those of one kind."""
        return tuple(plugin for plugin in self.installed if plugin.kind == kind)

    def named(self, kind: str, name: str) -> Plugin | None:
        """The one of this name."""
        return next((plugin for plugin in self.of(kind) if plugin.name == name), None)

    def chosen(self, rules: Sequence[Rule]) -> list[Rule]:
        """Our own rules and those of this run's plug-ins, each plug-in prepared to run in one child."""
        if not any(rule.plugin for rule in rules):
            return list(rules)
        from wheelproof.plugins.rules import together

        ours = {rule.id for rule in self.rules}
        return together([rule for rule in rules if not rule.plugin or rule.id in ours])

    def blame(self, plugin: Plugin, error: PluginFaultError) -> None:
        """Have the report show that a plug-in cannot be used."""
        from wheel_checks.facts.plugin import PluginFault

        fault = PluginFault(plugin.label, error.what, error.hint)
        if fault not in self.faults:
            self.faults.append(fault)

    def subjects(self) -> list[Subject]:
        """A subject with an error for each plug-in that is at fault."""
        if not self.faults:
            return []
        from wheel_checks.catalogue import select_rules
        from wheel_checks.model import Subject
        from wheel_checks.runner import run_rules

        rules = select_rules("plug-in")
        return [Subject(fault.label, "plug-in", "", {}, run_rules(rules, fault, None)) for fault in self.faults]


NO_PLUGINS = Plugins()


def load_plugins(reserved: Iterable[str] = ()) -> Plugins:
    """The plug-ins of wheelproof's environment; their rules are registered. ``reserved`` are names of our formats.

    Rules are described by a child for each plug-in that has some; formats and probes are imported when they are used.
    """
    found = find_plugins()
    if not found:
        return NO_PLUGINS
    plugins = Plugins(tuple(plugin for plugin in found if not plugin.fault))
    _blame_unreadable(plugins, found)
    _refuse_collisions(plugins, {FORMATS: frozenset(reserved)})
    _describe_rules(plugins)
    return plugins


def _blame_unreadable(plugins: Plugins, found: Iterable[Plugin]) -> None:
    for plugin in found:
        if plugin.fault:
            from wheelproof.plugins.calling import fault_of

            plugins.blame(plugin, fault_of(plugin, plugin.fault))


def _refuse_collisions(plugins: Plugins, reserved: dict[str, frozenset[str]]) -> None:
    """Omit formats and probes with a name that is taken: by ours, or by a plug-in that comes before."""
    from wheelproof.plugins.calling import fault_of

    seen: dict[tuple[str, str], Plugin] = {}
    for plugin in plugins.installed:
        if plugin.kind not in (FORMATS, PROBES):
            continue
        other = seen.setdefault((plugin.kind, plugin.name), plugin)
        whose = "wheelproof itself" if plugin.name in reserved.get(plugin.kind, ()) else other.distribution
        if other is plugin and whose == plugin.distribution:
            continue
        what = f"is not used: {whose} has {plugin.kind} of that name"
        plugins.blame(plugin, fault_of(plugin, what))
        plugins.installed = tuple(each for each in plugins.installed if each is not plugin)


def _describe_rules(plugins: Plugins) -> None:
    of_rules = plugins.of(RULES)
    if not of_rules:
        return
    from concurrent.futures import ThreadPoolExecutor

    from wheel_checks.registry import set_foreign
    from wheelproof.plugins.calling import fault_of

    with ThreadPoolExecutor(len(of_rules), "plug-in") as pool:
        described = list(pool.map(_described, of_rules))
    accepted: dict[str, Rule] = {}
    for plugin, (rules, error) in zip(of_rules, described, strict=True):
        if error is not None:
            plugins.blame(plugin, error)
        taken = next((rule for rule in rules if rule.id in accepted), None)
        if taken is None:
            accepted.update((rule.id, rule) for rule in rules)
        else:
            what = f"is not used: {accepted[taken.id].plugin} has a rule {taken.id}, too"
            plugins.blame(plugin, fault_of(plugin, what))
    plugins.rules = tuple(accepted.values())
    set_foreign(plugins.rules)


@functools.cache  # a program may judge often, and the installed plug-ins do not change
def _described(plugin: Plugin) -> tuple[tuple[Rule, ...], PluginFaultError | None]:
    """The rules of a plug-in, or why it has none."""
    from wheelproof.plugins.calling import PluginFaultError
    from wheelproof.plugins.rules import read_rules

    try:
        return read_rules(plugin), None
    except PluginFaultError as error:
        return (), error


def listing() -> str:
    """The plug-ins for ``--version -v``: a line each, by kind; nothing of them is imported."""
    found = find_plugins()
    width = max((len(kind) for kind in KINDS), default=0)
    lines = [f"  {p.kind:{width}}  {p.name} = {p.fault or p.value}  ({p.distribution} {p.version})\n" for p in found]
    return "plug-ins:\n" + "".join(lines) if lines else "no plug-in is installed\n"
