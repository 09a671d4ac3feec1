"""A fleet of GB200 trays that is made up: healthy rates with the noise that was measured, and seeded faults.

trays = make_fleet(2000, seed=1)                      # names and places: rack000-tray00 to rack111-tray01
faults = seed_faults(trays, 50, seed=1)               # what is wrong where, each on other hosts
for document in documents(trays, faults, seed=1): ... # the doctor's and smoke's report of each tray that has one
named, false = found_by(report, faults)               # what `wheelproof report merge --format json` says of them

Rates are normal around what such a GPU reaches, with the standard deviations of the table ``rate_noise``: these were
measured on few H200, and of GB200 nothing was measured. What a fleet shows here holds under that model.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.fleets import doctor_report
from tests.support.hosts import grace
from wheel_checks.facts.fleet.host_list import expand
from wheel_checks.facts.fleet.rates import noise_of

RACK, LEAF = 18, 6  # trays of a rack; racks after a leaf switch
GPUS = 4
USUAL = {"copy": 7.2e12, "bf16": 1.9e15, "fp8": 3.7e15, "host to device": 180e9, "device to host": 180e9}
ALL_REDUCE = 650e9
_STARTED = "2026-11-26T09:00:00Z"
_OTHER = {  # facts of the doctor that a faulty tray has another value of
    "driver": "570.86.15",
    "kernel": "6.8.0-1019-nvidia-64k",
    "page size": "4 KiB",
    "GPUs": "3 x NVIDIA GB200",
    "ECC": "3 x on, 1 x off",
    "power limit": "3 x 1200 W, 1 x 900 W",
    "torch": "2.10.0+cu130",
    "variable NCCL_MNNVL_ENABLE": "0",
    "NVLinks": "3 x 18 of 18 up at 50 GB/s, 1 x 17 of 18 up at 50 GB/s",
    "PCIe": "3 x generation 5 x 16, 1 x generation 5 x 8 of 16",
    "rows remapped": "3 x none, 1 x after uncorrectable errors",
    "XIDs": "63, 94",
    "throttled by": "3 x nothing, 1 x heat (hardware)",
    "InfiniBand": "3 x 400 Gb/s (4X NDR), 1 x down",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with ``hosts``: they have other ``facts``, their rates are ``slowed`` (by kind, to this part), or
    they have ``no_report``. ``gpu`` is the only GPU that is slow; None for all.
    """

    what: str
    hosts: tuple[str, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    slowed: Mapping[str, float] = field(default_factory=dict)
    gpu: int | None = None
    no_report: bool = False


def make_fleet(trays: int) -> list[str]:
    """The names of so many trays."""
    return [f"leaf{n // RACK // LEAF:02}-rack{n // RACK:03}-tray{n % RACK:02}" for n in range(trays)]


def seed_faults(trays: Sequence[str], count: int, seed: int) -> list[Fault]:
    """So many faults, of every kind: one leaf switch, two racks with one other firmware, and single trays.

    No two are on one host.
    """
    chance = random.Random(seed)
    racks = [name[:14] for name in trays[::RACK]]
    leaves = sorted({rack[:6] for rack in racks})
    leaf = chance.choice(leaves[:-1])  # the last may have few racks
    pair = tuple(chance.sample([rack for rack in racks[:-1] if not rack.startswith(leaf)], 2))
    faults = [
        Fault("one switch is slow", tuple(n for n in trays if n.startswith(leaf)), slowed={"all-reduce": 0.92}),
        Fault("two racks have another firmware", tuple(n for n in trays if n.startswith(pair)), {"VBIOS": "97.00.82"}),
    ]
    free = [name for name in trays if not name.startswith((leaf, *pair))]
    singles = iter(chance.sample(free, count - len(faults)))
    kinds = [
        Fault("no report", (), no_report=True),
        Fault("in another NVLink domain", (), {"NVLink domain": "0badc0de.1"}),
        *(Fault(f"another {fact}", (), {fact: value}) for fact, value in _OTHER.items()),
    ]
    for number, host in enumerate(singles):
        slow = Fault("a GPU copies 8 % slower", (), slowed={"copy": 0.92}, gpu=chance.randrange(GPUS))
        faults.append(replace(kinds[number * 3 // 4 % len(kinds)] if number % 4 else slow, hosts=(host,)))
    return faults


def documents(trays: Sequence[str], faults: Sequence[Fault], seed: int) -> Iterator[tuple[str, str, str]]:
    """(host, command, text of the JSON report) for each report of each tray."""
    chance = random.Random(seed)
    by_host = {host: fault for fault in faults for host in fault.hosts}
    doctor = doctor_report("NAME", grace(), started=_STARTED)
    usual = {**doctor["subjects"][0]["facts"]["machine"], **_healthy()}
    smoke = {**doctor, "command": "smoke"}
    for name in trays:
        fault = by_host.get(name, Fault("", ()))
        if fault.no_report:
            continue
        doctor["subjects"][0]["facts"] |= {
            "host": name,
            "machine": {**usual, "NVLink domain": f"{name[7:14]}.1", **fault.facts},
        }
        yield name, "doctor", json.dumps(doctor)
        yield name, "smoke", json.dumps({**smoke, "subjects": _smoke(name, fault, chance)})


def found_by(report: Mapping[str, Any], faults: Sequence[Fault]) -> tuple[list[Fault], list[str]]:
    """The faults that the merged report names, by their hosts and by what is wrong; and its other findings.

    A finding may name several faults at once when they are the same, such as a driver that two trays have.
    """
    results = report["subjects"][0]["results"]
    messages = [r["message"] for r in results if r["rule"].startswith("MTX2") and r["outcome"] in {"fail", "error"}]
    left, named = set(messages), []
    for fault in faults:
        alike = {host for other in faults if other.what == fault.what for host in other.hosts}
        sentences = {message for message in messages if _names(message, fault, alike)}
        if sentences:
            named.append(fault)
        left -= sentences
    return named, sorted(left)


def _names(message: str, fault: Fault, alike: set[str]) -> bool:
    """Whether a finding is about this fault; ``alike`` are the hosts with the same one."""
    match = (
        re.search(r"gave no report: (.*)$", message)
        or re.search(r"hosts of [^(]*\(([^)]*)\) (?:differ|are slower)", message)
        or re.search(r"^(.*?) (?:differs?|is slower|(?:is|are) not in)", message)
    )
    if not match:
        return False
    hosts = set(expand(match[1]))
    if fault.no_report:
        return "gave no report" in message and hosts >= set(fault.hosts)
    if "gave no report" in message or not set(fault.hosts) <= hosts <= alike:
        return False
    return all(f" {what}" in message for what in (*fault.facts, *fault.slowed))


def _healthy() -> dict[str, str]:
    return {
        "GPUs": "4 x NVIDIA GB200",
        "VBIOS": "97.00.B9.00.76",
        "ECC": "on",
        "power limit": "1200 W",
        "NVLinks": "18 of 18 up at 50 GB/s",
        "PCIe": "generation 5 x 16",
        "rows remapped": "none",
        "XIDs": "none",
        "throttled by": "nothing",
        "InfiniBand": "4 x 400 Gb/s (4X NDR)",
    }


def _smoke(name: str, fault: Fault, chance: random.Random) -> list[dict[str, Any]]:
    def rate(kind: str, usual: float, gpu: int | None = None) -> float:
        slowed = fault.slowed.get(kind, 1.0) if fault.gpu in {None, gpu} else 1.0
        return usual * slowed * chance.gauss(1.0, noise_of(kind)[0])

    gpus = [
        {
            "id": f"GPU {n}",
            "kind": "gpu",
            "verdict": "pass",
            "facts": {"index": n, "rates_compared": {kind: rate(kind, usual, n) for kind, usual in USUAL.items()}},
        }
        for n in range(GPUS)
    ]
    facts = {
        "host": name,
        "torch": "2.11.0+cu130",
        "level": "full",
        "gpus": [{"name": "NVIDIA GB200"}] * GPUS,
        "rates": {"all-reduce": rate("all-reduce", ALL_REDUCE)},
    }
    return [{"id": "python", "kind": "installation", "verdict": "pass", "facts": facts}, *gpus]
