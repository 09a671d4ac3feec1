"""Places of hosts: by name, by pattern, by a file of Slurm or TOML; and their effect on differences."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.fleets import doctor_report, with_driver
from tests.support.hosts import hgx
from wheel_checks.errors import UsageError
from wheel_checks.facts.fleet.topology import Topology, by_pattern, from_slurm, from_table, guessed

RACKS = [f"rack{rack}-tray{tray:02}" for rack in range(1, 7) for tray in range(4)]


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("rack017-tray05", {"rack": "017", "tray": "05"}),
        ("r17t05", {"rack": "17", "tray": "05"}),
        ("pod2-leaf3-gpu7", {"pod": "2", "switch": "3"}),
        ("dgx-su01-node4", {"scalable unit": "01"}),
        ("GPU-Rack3-07", {"rack": "3"}),
        ("x1000c0s13b1n0", {"cabinet": "1000", "chassis": "0", "slot": "13", "blade": "1"}),
        ("node17", {}),
        ("t4", {}),
        ("ip-10-0-3-7", {}),
    ],
)
def test_what_a_name_says(name: str, places: dict[str, str]) -> None:
    assert guessed([name]).of(name) == places


def test_a_pattern_of_the_user() -> None:
    found = by_pattern(r"^x(?P<cabinet>\d+)c(?P<chassis>\d+)s(?P<slot>\d+)", ["x1000c0s3b0n0", "login1"])
    assert found.of("x1000c0s3b0n0") == {"cabinet": "1000", "chassis": "0", "slot": "3"}
    assert found.of("login1") == {}


@pytest.mark.parametrize(
    ("pattern", "reason"), [("rack(?P<rack", "is not a regular expression"), (r"rack(\d+)", "has no named group")]
)
def test_a_pattern_that_cannot_be_used(pattern: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        by_pattern(pattern, [])


SLURM = """\
# topology.conf
SwitchName=leaf1 Nodes=node[01-02] LinkSpeed=400
SwitchName=leaf2 Nodes=node[03-04]
switchname=leaf3 nodes=node05,\\
node06
SwitchName=spine1 Switches=leaf[1-2]
SwitchName=spine2 Switches=leaf3
BlockName=b1 Nodes=node[01-06]
"""


def test_the_topology_of_slurm() -> None:
    found = from_slurm(SLURM, "topology.conf")
    assert found.of("node01") == {"switch": "leaf1", "block": "b1", "switch of level 2": "spine1"}
    assert found.of("node06") == {"switch": "leaf3", "block": "b1", "switch of level 2": "spine2"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NodeName=a CPUs=4", "does not say where hosts are"),
        ("SwitchName=a Nodes=n[1-", "topology.conf:1: .* brackets"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1", "topology.conf:2: n1 is in a already"),
        (
            "SwitchName=a Nodes=n[0-59999]\nSwitchName=b Nodes=m[0-59999]",
            "topology.conf:2: more than 100,000",
        ),
    ],
)
def test_a_file_that_cannot_be_used(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        from_slurm(text, "topology.conf")


def test_switches_in_a_circle_end() -> None:
    found = from_slurm("SwitchName=a Nodes=n1\nSwitchName=b Switches=a\nSwitchName=a Switches=b\n", "topology.conf")
    assert found.of("n1")["switch"] == "a"


def test_a_table() -> None:
    found = from_table({"switch": {"3": "node[048-063]"}, "row": {"A": "node[048-050]"}}, "places.toml")
    assert found.of("node049") == {"switch": "3", "row": "A"}


@pytest.mark.parametrize(
    ("hosts", "phrase"),
    [
        (RACKS[:4], "all 4 hosts of rack 1 (rack1-tray[00-03])"),
        (RACKS[:8], "all 8 hosts of rack 1 and 2 (rack[1-2]-tray[00-03])"),
        ([name for name in RACKS if "tray02" in name], "all 6 hosts of tray 02 (rack[1-6]-tray02)"),
        (RACKS[:3], "rack1-tray[00-02]"),
        (RACKS[1:2], "rack1-tray01"),
        (RACKS, "rack[1-6]-tray[00-03]"),
    ],
)
def test_the_place_of_several_hosts(hosts: list[str], phrase: str) -> None:
    assert guessed(RACKS).phrase(hosts, RACKS) == phrase


def test_a_place_by_two_dimensions() -> None:
    names = [f"rack{rack}-sw{switch}-n{node}" for rack in range(3) for switch in range(3) for node in range(4)]
    hosts = [name for name in names if name.startswith("rack1-sw2-")]
    assert guessed(names).phrase(hosts, names) == "all 4 hosts of rack 1, switch 2 (rack1-sw2-n[0-3])"


def test_few_whole_groups_are_rare_and_many_are_not() -> None:
    def is_rare(racks: int) -> bool:
        return guessed(RACKS).is_rare(RACKS[: 4 * racks], RACKS[4 * racks :], RACKS)

    assert [is_rare(racks) for racks in (1, 2, 3)] == [True, True, False]
    assert not Topology().is_rare(RACKS[:4], RACKS[4:], RACKS)


# --- As a user sees it


def fleet(folder: Path, other: str = "rack1-", names: list[str] = RACKS) -> str:
    usual = json.dumps(doctor_report("NAME", hgx()))
    deviating = json.dumps(doctor_report("NAME", with_driver(hgx(), "570.86.15")))
    texts = [(deviating if name.startswith(other) else usual).replace("NAME", name) for name in names]
    (folder / "all.jsonl").write_text("\n".join(texts))
    return str(folder / "all.jsonl")


def first_line(run: Run) -> str:
    return run.out.partition(" (0.")[0]


def test_a_rack_with_another_driver_is_named_as_a_rack(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = wheelproof("report", "merge", fleet(tmp_path))

    assert "24 hosts: all 4 hosts of rack 1 (rack1-tray[00-03]) differ in driver" in run.out.splitlines()[0]
    assert "warning  MTX201  all 4 hosts of rack 1 (rack1-tray[00-03]) differ from the others: driver" in run.out


def test_a_switch_that_a_file_names(wheelproof: Wheelproof, tmp_path: Path) -> None:
    names = [f"node{number:02}" for number in range(24)]
    reports = fleet(tmp_path, "node0", names)  # 00 to 09: too many to be rare by themselves
    places = tmp_path / "topology.conf"
    places.write_text("".join(f"SwitchName=s{n} Nodes=node[{5 * n:02}-{5 * n + 4:02}]\n" for n in range(5)))

    assert "2 kinds of hosts, by driver" in wheelproof("report", "merge", reports).out.splitlines()[0]
    places.write_text(
        "SwitchName=s0 Nodes=node[00-09]\nSwitchName=s1 Nodes=node[10-16]\nSwitchName=s2 Nodes=node[17-23]\n"
    )
    run = wheelproof("report", "merge", reports, "--topology", str(places), "--expect-hosts", "node[00-24]")
    assert "all 10 hosts of switch s0 (node[00-09]) differ in driver; no report from node24" in run.out.splitlines()[0]


def test_a_topology_of_toml_and_one_that_is_wrong(wheelproof: Wheelproof, tmp_path: Path) -> None:
    reports, places = fleet(tmp_path), tmp_path / "places.toml"
    places.write_text('[pdu]\nA = "rack[1-3]-tray[00-03]"\nB = "rack[4-6]-tray[00-03]"\n')
    run = wheelproof("report", "merge", reports, "--topology", str(places), "--format", "json")
    hosts = [subject for subject in json.loads(run.out)["subjects"] if subject["kind"] == "host"]
    assert hosts[0]["facts"]["places"] == {"pdu": "A"}

    places.write_text("[pdu]\nA = 3\n")
    run = wheelproof("report", "merge", reports, "--topology", str(places))
    assert run.status == 3
    assert "places.toml: [pdu] is not a table of hosts" in run.err


def test_racks_and_trays_are_a_map(wheelproof: Wheelproof, tmp_path: Path) -> None:
    text = wheelproof("report", "merge", fleet(tmp_path)).out
    assert "Hosts by rack and tray (x fails, ? undecided, ! few have this, s slow, . neither)" in text
    (rack1, rack2) = (line for line in text.splitlines() if line.startswith(("1  ", "2  ")))
    assert rack1.split() == ["1", "!", "!", "!", "!"]
    assert rack2.split() == ["2", ".", ".", ".", "."]
    page = wheelproof("report", "merge", fleet(tmp_path), "--format", "html").out
    assert len(re.findall(r'<a class="warning" href="#s\d" title="rack1-tray0\d: few have this">!</a>', page)) == 4
    assert len(re.findall(r'<a class="pass" href="#s\d+" title="[^"]+: neither">\.</a>', page)) == 20


def test_many_hosts_of_unknown_places_are_a_map_by_name_in_the_page_alone(
    wheelproof: Wheelproof, tmp_path: Path
) -> None:
    usual = doctor_report("NAME", hgx())
    for n in range(120):
        facts = doctor_report("NAME", with_driver(hgx(), "570.86.15")) if n == 77 else usual
        (tmp_path / f"{n}.json").write_text(json.dumps(facts).replace("NAME", f"node-{n:03}"))
    page = wheelproof("report", "merge", str(tmp_path), "--format", "html").out
    [table] = re.findall(r'<table class="heat map">.*?</table>', page, re.DOTALL)

    assert re.findall(r'<th scope="row">([^<]*)</th>', table) == ["node-000", "node-040", "node-080"]
    assert table.count('class="cell"') == 120
    assert re.findall(r'class="warning" href="[^"]*" title="([^"]*)">!', table) == ["node-077: few have this"]
    assert "Hosts in the order of their names" not in wheelproof("report", "merge", str(tmp_path)).out
