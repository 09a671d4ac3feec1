"""MTX201 to MTX209: whether the hosts of a fleet are alike. Undecided merges are in tests/fleet."""

from __future__ import annotations

from collections.abc import Mapping

from tests.rules.case import NOTE, WARNING, Case
from wheel_checks.facts.fleet.hosts import FleetFacts
from wheel_checks.facts.fleet.nodes import read_nodes
from wheel_checks.facts.fleet.report import Host, HostReport, LeftOut, ReportSource
from wheel_checks.facts.fleet.topology import guessed
from wheel_checks.model import Severity

DRIVER = "580.159.04"
NINE_RACKS = [f"rack{rack}-t{tray}" for rack in range(9) for tray in range(4)]


def host(name: str, command: str = "doctor", **facts: str | None) -> Host:
    """A host of whose facts the command reported these."""
    return Host(name, (HostReport(report(name, command=command), "", facts),))


def report(name: str, started: str = "2026-11-22T09:00:00Z", command: str = "doctor") -> ReportSource:
    return ReportSource(command, f"{name}.json", started, "0.1.0")


def hosts(**drivers: int) -> tuple[Host, ...]:
    """So many hosts with each driver: ``hosts(a=70, b=2)``; they are n0, n1, ... in this order."""
    values = [driver for driver, count in drivers.items() for _ in range(count)]
    return tuple(host(f"n{number}", driver=value) for number, value in enumerate(values))


def copying(rates: Mapping[str, float]) -> FleetFacts:
    """A fleet in which each of these hosts copies at its rate, in TB/s; places are in the names."""
    every = tuple(
        host(name, "smoke", GPUs="NVIDIA H200", **{"rate of GPU 0 copy": f"{r}e12"}) for name, r in rates.items()
    )
    return FleetFacts(every, named_places=guessed(rates))


def racks(**moved: str | None) -> FleetFacts:
    """Three racks of four trays, each rack an NVLink domain, but for the trays that are named."""
    names = [f"rack{rack}_tray{tray}" for rack in range(3) for tray in range(4)]
    every = tuple(host(n, "doctor", **{"NVLink domain": moved.get(n, f"uuid{n[4]}.1")}) for n in names)
    return FleetFacts(every, named_places=guessed(names))


def cut_short(left_out: LeftOut) -> Host:
    return Host("n0", (HostReport(report("n0"), "", {}, left_out=(left_out,)),))


def timed(*rates: object) -> FleetFacts:
    """A fleet in which each host has measured one of these rates of a copy and of products."""
    names = ("rate of GPU 0 copy", "rate of GPU 0 bf16")
    return FleetFacts(
        tuple(host(f"n{n}", "smoke", **dict.fromkeys(names, f"{rate}e12")) for n, rate in enumerate(rates))
    )


CASES = [
    Case(
        "MTX207",
        "a GPU that copies 8 % slower",
        lambda: copying({f"n{n}": 3.92 if n == 7 else 4.25 + 0.005 * (n % 5) for n in range(18)}),
        ("n7 is slower than the others: smoke: GPU 0 copy at 92 % of the median of 18 hosts",),
        severity=WARNING,
    ),
    Case(
        "MTX207",
        "a rack that is slow as a whole, by too little for each of its hosts",
        lambda: copying({f"rack{r}-t{t}": 4.21 if r == 3 else 4.26 for r in range(6) for t in range(6)}),
        (
            "all 6 hosts of rack 3 (rack3-t[0-5]) are slower than the others: "
            "copy at 99 % of the median of 30 other hosts",
        ),
        severity=WARNING,
    ),
    Case(
        "MTX208",
        "a tray in another domain",
        lambda: racks(rack1_tray2="uuid9.1"),
        ("rack1_tray2 is not in the NVLink domain of the other 3 hosts of rack 1",),
        severity=WARNING,
        evidence=("uuid9.1",),
    ),
    Case(
        "MTX208",
        "a tray without a domain",
        lambda: racks(rack1_tray2="none"),
        ("rack1_tray2 is not in the NVLink domain of the other 3 hosts of rack 1",),
        severity=WARNING,
        evidence=("none",),
    ),
    Case("MTX208", "a tray whose domain is unknown", lambda: racks(rack1_tray2=None)),
    Case("MTX208", "each rack is a domain", racks),
    Case(
        "MTX208",
        "a fleet that is one domain",
        lambda: racks(**{f"rack{r}_tray{t}": "uuid.1" for r in range(3) for t in range(4)}),
    ),
    Case(
        "MTX209",
        "two nodes without the driver that was expected",
        lambda: FleetFacts(hosts(a=3, b=2), tables=read_nodes(b'[[nodes]]\nfacts = { driver = "a" }\n', "nodes.toml")),
        ("n3, n4: driver b; expected a",),
    ),
    Case(
        "MTX209",
        "a fact that no report has",
        lambda: FleetFacts(hosts(a=3), tables=read_nodes(b"[[nodes]]\nnvlinks = 18\n", "nodes.toml")),
        ("n[0-2]: NVLinks unknown; expected 18 up",),
        undecided=True,
    ),
    Case(
        "MTX209",
        "every node is as expected",
        lambda: FleetFacts(hosts(a=3), tables=read_nodes(b'[[nodes]]\nfacts = { driver = "*" }\n', "nodes.toml")),
    ),
    Case("MTX201", "NVLink domains, which differ between racks", racks),
    Case("MTX202", "NVLink domains, which differ between racks", racks),
    Case(
        "MTX201",
        "two whole racks of nine with another firmware",
        lambda: FleetFacts(
            tuple(host(n, vbios="b" if n[4] in "34" else "a") for n in NINE_RACKS), named_places=guessed(NINE_RACKS)
        ),
        ("all 8 hosts of rack 3 and 4 (rack[3-4]-t[0-3]) differ from the others: vbios",),
        severity=WARNING,
    ),
    Case(
        "MTX201",
        "every rack has another value, and one rack is not full",
        lambda: FleetFacts(
            tuple(host(n, manager=n[4]) for n in NINE_RACKS[:-1]), named_places=guessed(NINE_RACKS[:-1])
        ),
    ),
    Case(
        "MTX201",
        "two whole racks of nine with other GPUs are another kind",
        lambda: FleetFacts(
            tuple(
                host(n, GPUs="8 x B" if n[4] in "34" else "8 x A", vbios="b" if n[4] in "34" else "a")
                for n in NINE_RACKS
            ),
            named_places=guessed(NINE_RACKS),
        ),
    ),
    Case(
        "MTX202",
        "a value that no other host has says nothing",
        lambda: FleetFacts(tuple(host(f"n{n}", folder=f"/scratch/{n}") for n in range(30))),
    ),
    Case(
        "MTX207",
        "one of four nodes copies at half the rate of the others",
        lambda: timed(4.25, 4.27, 1.88, 4.21),
        ("n2 is slower than the others: smoke: GPU 0 copy at 44 % of the median of 4 hosts (and 1 more)",),
        severity=WARNING,
        evidence=("1.88e+12, the median is 4.23e+12, 78 standard deviations away",),
    ),
    Case("MTX207", "rates that differ as those of healthy nodes do", lambda: timed(4.25, 4.27, 4.22, 4.26)),
    Case("MTX207", "what is not a number", lambda: timed(4, 4, 4, "nan")),
    Case("MTX201", "rates, which differ everywhere", lambda: timed(4.25, 4.27, 1.88, 4.21)),
    Case(
        "MTX201",
        "one of 72 hosts has another driver",
        lambda: FleetFacts(hosts(a=71, b=1)),
        ("n71 differs from the others: driver",),
        severity=WARNING,
        evidence=("n71: b; 71 hosts a",),
    ),
    Case(
        "MTX201",
        "one host deviates in two facts: one finding",
        lambda: FleetFacts(
            (*(host(f"n{n}", driver="a", vbios="x") for n in range(4)), host("n9", driver="b", vbios="y"))
        ),
        ("n9 differs from the others: driver, vbios",),
        severity=WARNING,
    ),
    Case(
        "MTX201",
        "the fewest hosts come first",
        lambda: FleetFacts(
            (
                *(host(f"n{n}", driver="a", kernel="k") for n in range(9)),
                *(host(f"o{n}", driver="b", kernel="k") for n in range(2)),
                host("p", driver="a", kernel="l"),
            )
        ),
        ("p differs from the others: kernel", "o0, o1 differ from the others: driver"),
        severity=WARNING,
    ),
    Case(
        "MTX201",
        "what one host could not read is unknown there",
        lambda: FleetFacts((*(host(f"n{n}", vbios="x") for n in range(3)), host("n9", vbios=None))),
        ("n9 differs from the others: vbios",),
        severity=WARNING,
        evidence=("n9: unknown; 3 hosts x",),
    ),
    Case(
        "MTX201",
        "a variable that only one host has",
        lambda: FleetFacts((*(host(f"n{n}") for n in range(3)), host("n9", LD_PRELOAD="/x.so"))),
        ("n9 differs from the others: LD_PRELOAD",),
        severity=WARNING,
        evidence=("n9: /x.so; 3 hosts none",),
    ),
    Case(
        "MTX201",
        "its own third host next to two large kinds",
        lambda: FleetFacts(hosts(a=40, b=31, c=1)),
        ("n71 differs from the others: driver",),
        severity=WARNING,
        evidence=("n71: c; 40 hosts a; 31 hosts b",),
    ),
    Case("MTX201", "two kinds of hosts, both many", lambda: FleetFacts(hosts(a=40, b=32))),
    Case("MTX201", "two hosts: no one knows which of them is right", lambda: FleetFacts(hosts(a=1, b=1))),
    Case(
        "MTX201",
        "a host without the doctor's report is not compared with those that have one",
        lambda: FleetFacts((*hosts(a=5), host("s", "smoke", torch="2.11.0"))),
    ),
    Case(
        "MTX202",
        "two generations in one pool",
        lambda: FleetFacts(hosts(a=40, b=32)),
        ("the hosts are of 2 kinds, which differ in driver",),
        severity=NOTE,
        evidence=("40 hosts a; 32 hosts b",),
    ),
    Case("MTX202", "one host that deviates is not a kind", lambda: FleetFacts(hosts(a=71, b=1))),
    Case(
        "MTX203",
        "a host that no one expected",
        lambda: FleetFacts(hosts(a=2), expected=("n0",), unexpected=("n1",)),
        ("1 host gave a report but was not expected: n1",),
        severity=WARNING,
    ),
    Case("MTX203", "all that were expected, and no other", lambda: FleetFacts(hosts(a=2), expected=("n1", "n0"))),
    Case(
        "MTX205",
        "an old report lies next to the new one",
        lambda: FleetFacts(hosts(a=2), repeated=(("n1", report("old", "2026-11-01T09:00:00Z")),)),
        ("n1 has several reports of `wheelproof doctor`; only the newest is used",),
        severity=WARNING,
        evidence=("2026-11-22T09:00:00Z", "2026-11-01T09:00:00Z"),
    ),
    Case(
        "MTX205",
        "an old report of which an earlier merge knew, and no new one",
        lambda: FleetFacts((), repeated=(("n1", report("old", "2026-11-01T09:00:00Z")),)),
        ("n1 has several reports of `wheelproof doctor`; only the newest is used",),
        severity=WARNING,
        evidence=("2026-11-01T09:00:00Z",),
    ),
    Case("MTX205", "two commands about one host", lambda: FleetFacts(hosts(a=2))),
    Case(
        "MTX206",
        "a report with too many findings, all that is omitted being notes",
        lambda: FleetFacts(
            (cut_short(LeftOut("2,000 findings, of which the 1,000 most severe are kept", Severity.NOTE)),)
        ),
        ("n0: the report of `wheelproof doctor` has 2,000 findings, of which the 1,000 most severe are kept",),
        severity=NOTE,
    ),
    Case("MTX206", "reports that were taken in whole", lambda: FleetFacts(hosts(a=2))),
]
