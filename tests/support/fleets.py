"""Reports of the doctor about hosts that are made up, as `wheelproof doctor --host NAME --format json` writes them.

doctor_report("node-1", hgx())                                       # a document: json.dumps it
with_driver(hgx(), "570.86.15")
write_fleet(folder, {"node-1": hgx(), "node-2": with_driver(hgx(), "570.86.15")})    # folder/node-1.json, ...
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.devices import KernelDriver
from wheel_checks.facts.host.probes import NvmlProbe
from wheel_checks.report.json_report import as_dict
from wheelproof.doctor.report import Showing, examine, make_report
from wheelproof.reporting import OpenReport


def doctor_report(host: str, facts: HostFacts, *, started: str = "2026-11-22T09:00:00Z") -> dict[str, Any]:
    """The JSON report of the doctor about ``facts``; without a name ("") it does not say which host it is."""
    report = make_report(examine(facts), Showing(host=host), OpenReport("doctor"))
    return as_dict(replace(report, started=started, seconds=1.5))


def with_driver(facts: HostFacts, version: str) -> HostFacts:
    """The same with another driver, below and above."""
    assert isinstance(facts.driver, KernelDriver)
    assert isinstance(facts.nvml, NvmlProbe)
    driver = replace(facts.driver, version=version)
    return replace(facts, driver=driver, nvml=replace(facts.nvml, driver_version=version))


def with_vbios(facts: HostFacts, version: str) -> HostFacts:
    """The same with another firmware in every GPU."""
    assert isinstance(facts.nvml, NvmlProbe)
    gpus = tuple(replace(gpu, vbios=version) for gpu in facts.nvml.gpus)
    return replace(facts, nvml=replace(facts.nvml, gpus=gpus))


def write_fleet(folder: Path, hosts: Mapping[str, HostFacts]) -> str:
    """One file per host, named after it; the reports name their hosts, too. The folder's name."""
    for name, facts in hosts.items():
        (folder / f"{name}.json").write_text(json.dumps(doctor_report(name, facts)))
    return str(folder)
