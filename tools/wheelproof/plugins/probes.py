"""Probes of plug-ins: a function ``probe()`` that returns facts of this host, by name."""

from concurrent.futures import ThreadPoolExecutor

from wheel_checks.facts.host.facts import ProbedFacts
from wheel_checks.model import Unavailable
from wheelproof.plugins.calling import PluginFaultError, call, fault_of
from wheelproof.plugins.child import PROBE, Task
from wheelproof.plugins.installed import PROBES, Plugin
from wheelproof.plugins.loading import Plugins


def read_probes(plugins: Plugins) -> dict[str, ProbedFacts | Unavailable]:
    """What each probe says, by its name; one that is at fault is blamed in the report, too."""
    probes = plugins.of(PROBES)
    if not probes:
        return {}

    def read(plugin: Plugin) -> ProbedFacts | Unavailable:
        try:
            answers, fault = call(plugin, Task(PROBE, plugin.value))
            if fault or not answers:
                raise fault_of(plugin, fault or "gave nothing")
        except PluginFaultError as error:
            plugins.blame(plugin, error)
            return Unavailable(error.what, error.hint)
        return ProbedFacts(dict(answers[0]["values"]))

    with ThreadPoolExecutor(len(probes), "probe") as pool:
        return dict(zip((plugin.name for plugin in probes), pool.map(read, probes), strict=True))
