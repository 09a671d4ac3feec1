"""Requirements of nodes: a node that violates one fails, and a fact missing in its report is undecided."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Wheelproof
from tests.rules.fleet_cases import host
from tests.support.fleets import doctor_report, with_driver, write_fleet
from tests.support.hosts import hgx, without_gpu
from tests.support.synthetic_fleet import documents, make_fleet, seed_faults
from wheel_checks.errors import FormatError
from wheel_checks.facts.fleet.nodes import Unmet, read_nodes, unmet
from wheel_checks.facts.fleet.report import Host

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "tools/wheelproof/fleet/nodes.schema.json").read_text())
GB200 = {
    "GPUs": "4 x NVIDIA GB200",
    "driver": "580.159.04",
    "CUDA of the driver": "13.0",
    "torch": "2.11.0+cu130",
    "machine": "aarch64",
    "page size": "64 KiB",
    "memory": "952 GiB",
    "power limit": "1200 W",
    "NVLinks": "18 of 18 up at 50 GB/s",
    "PCIe": "generation 5 x 16",
    "InfiniBand": "4 x 400 Gb/s (4X NDR), 1 x down",
    "ECC": "on",
}


def _host(name: str, facts: Mapping[str, str | None]) -> Host:
    return Host(name, (replace(host(name).reports[0], facts=facts),))


def unmet_of(line: str, facts: Mapping[str, str | None]) -> list[Unmet]:
    tables = read_nodes(f"[[nodes]]\n{line}\n".encode(), "nodes.toml")
    return list(unmet(_host("rack1-tray00", facts), tables))


@pytest.mark.parametrize(
    ("line", "facts", "has"),
    [
        ('gpus = "4 x GB200"', {"GPUs": "3 x NVIDIA GB200"}, "3 x NVIDIA GB200"),
        ('gpus = "4 x GB200"', {"GPUs": "3 x NVIDIA GB200, 1 x lost"}, "3 x NVIDIA GB200, 1 x lost"),
        ('gpus = "4 x GB200"', {"GPUs": "4 x NVIDIA H200"}, "4 x NVIDIA H200"),
        ('gpus = "gpu"', {"GPUs": "none"}, "none"),
        ('gpus = "cpu"', {}, "4 x NVIDIA GB200"),
        ('driver = ">=580"', {"driver": "570.86.15"}, "570.86.15"),
        ('driver = ">=580"', {"driver": "none"}, "none"),
        ('driver = "580.159.04"', {"driver": "580.95.05"}, "580.95.05"),
        ('cuda = ">=13.0"', {"CUDA of the driver": "12.8"}, "12.8"),
        ('torch = "==2.11.0"', {"torch": "2.10.0+cu130"}, "2.10.0+cu130"),
        ('torch = ">=2"', {"torch": "none"}, "none"),
        ('machine = "aarch64"', {"machine": "x86_64"}, "x86_64"),
        ('page-size = "64K"', {"page size": "4 KiB"}, "4 KiB"),
        ('memory = "900 GiB"', {"memory": "476 GiB"}, "476 GiB"),
        ("power-limit = 1200", {"power limit": "3 x 1200 W, 1 x 900 W"}, "3 x 1200 W, 1 x 900 W"),
        ("nvlinks = 18", {"NVLinks": "3 x 18 of 18 up, 1 x 17 of 18 up"}, "3 x 18 of 18 up, 1 x 17 of 18 up"),
        ("nvlinks = 18", {"NVLinks": "1 x 17 of 18 up, 1 x unknown"}, "1 x 17 of 18 up, 1 x unknown"),
        ("nvlink-speed = 50", {"NVLinks": "18 of 18 up at 26.562 GB/s"}, "18 of 18 up at 26.562 GB/s"),
        ('pcie = "5 x 16"', {"PCIe": "generation 5 x 8 of 16"}, "generation 5 x 8 of 16"),
        ('pcie = "gen5 x 16"', {"PCIe": "generation 4 x 16"}, "generation 4 x 16"),
        ('infiniband = "4 x 400"', {"InfiniBand": "3 x 400 Gb/s (4X NDR)"}, "3 x 400 Gb/s (4X NDR)"),
        ('infiniband = "400"', {"InfiniBand": "4 x 200 Gb/s (4X HDR)"}, "4 x 200 Gb/s (4X HDR)"),
        ('infiniband = "400"', {"InfiniBand": "none"}, "none"),
        ('facts = { ECC = "on" }', {"ECC": "off"}, "off"),
        ('facts = { "variable NCCL_DEBUG" = "INFO" }', {}, "none"),
    ],
)
def test_a_node_that_is_not_what_was_expected(line: str, facts: dict[str, str | None], has: str) -> None:
    (found,) = unmet_of(line, {**GB200, **facts})
    assert found.has == has
    if "facts" not in line:
        assert unmet_of(line, GB200) == [] or line == 'gpus = "cpu"'


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        *(
            (line, dict.fromkeys(GB200, None))
            for line in (
                *('gpus = "4 x GB200"', 'gpus = "cpu"', 'driver = ">=580"', 'cuda = ">=13"', 'torch = ">=2"'),
                *('machine = "aarch64"', 'page-size = "64K"', 'memory = "1G"', "power-limit = 1", "nvlinks = 18"),
                *("nvlink-speed = 50", 'pcie = "5 x 16"', 'infiniband = "400"', 'facts = { ECC = "on" }'),
            )
        ),
        ('gpus = "8 x MI300X"', {"GPUs": "none"}),  # the report of a host names NVIDIA's GPUs alone
        ("nvlinks = 18", {"NVLinks": "3 x 18 of 18 up, 1 x unknown"}),
        ("nvlink-speed = 50", {"NVLinks": "18 of 18 up"}),
        ("rates = { copy = 7e12 }", {}),
        ('facts = { "no such fact" = "*" }', {}),
    ],
)
def test_what_no_report_tells_is_unknown(line: str, facts: dict[str, str | None]) -> None:
    (found,) = unmet_of(line, {**GB200, **facts})
    assert found.has is None


def test_a_host_without_the_doctors_report_is_unknown() -> None:
    tables = read_nodes(b'[[nodes]]\ndriver = ">=580"\n', "nodes.toml")
    assert [one.has for one in unmet(host("a", "smoke", torch="2.11.0"), tables)] == [None]


def smoke(copies: list[float]) -> Host:
    rates = {f"rate of GPU {n} copy": str(rate) for n, rate in enumerate(copies)}
    doctor, measured = _host("a", GB200), host("a", "smoke", GPUs=", ".join(["NVIDIA GB200"] * 4), **rates)
    return Host("a", (*doctor.reports, *measured.reports))


@pytest.mark.parametrize(
    ("copies", "has"), [([7.2e12] * 4, []), ([7.2e12, 6.9e12, 7.1e12, 7.2e12], ["6.9e+12"]), ([7.2e12] * 3, [None])]
)
def test_the_rates_of_every_gpu(copies: list[float], has: list[str | None]) -> None:
    tables = read_nodes(b"[[nodes]]\nrates = { copy = 7.0e12 }\n", "nodes.toml")
    assert [one.has for one in unmet(smoke(copies), tables)] == has


@pytest.mark.parametrize(
    ("table", "concerned"),
    [
        ("", True),
        ('hosts = "rack[1-2]-tray[00-17]"', True),
        ('hosts = "rack[3-4]-tray[00-17]"', False),
        ('pattern = "rack1-.*"', True),
        ('pattern = "rack1"', False),
        ('hosts = "rack1-tray00"\npattern = "login.*"', False),
    ],
)
def test_whom_a_table_is_about(table: str, concerned: bool) -> None:
    assert bool(unmet_of(f'{table}\ndriver = ">=590"', GB200)) is concerned


WRONG = [
    ("", "nodes is missing"),
    ("[nodes]\n", "expected a list of tables"),
    ("[[nodes]]\nhots = 'a'\n", "hots (line 2) is not a known key"),
    ("[[nodes]]\nhosts = 'a[1-'\n", "unbalanced brackets"),
    ("[[nodes]]\npattern = '('\n", "is not a regular expression"),
    ("[[nodes]]\ngpus = '4 x GB2000'\n", "gpus (line 2) is wrong: unknown GPU 'GB2000'"),
    ("[[nodes]]\ndriver = 'new'\n", "'new' is not a version condition"),
    ("[[nodes]]\npage-size = '64 pages'\n", "is not a size"),
    ("[[nodes]]\nnvlinks = 0\n", "expected a number of links"),
    ("[[nodes]]\nnvlink-speed = -1\n", "expected a number above 0"),
    ("[[nodes]]\npcie = '5'\n", "is not a PCIe link"),
    ("[[nodes]]\ninfiniband = 'fast'\n", "is not a list of ports"),
    ("[[nodes]]\nrates = { copy = 'fast' }\n", "expected a number"),
]


@pytest.mark.parametrize(("text", "reason"), WRONG)
def test_a_file_that_cannot_be_used(text: str, reason: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_nodes(text.encode(), "nodes.toml")
    assert reason in str(caught.value)


def is_valid(text: str) -> bool:
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(tomllib.loads(text))


def test_the_schema_says_the_same() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    by_names = ("brackets", "regular expression", "unknown GPU", "not a version condition")  # not checked by a schema
    for text, reason in WRONG:
        assert is_valid(text) is any(name in reason for name in by_names), text


EXAMPLE = """
[[nodes]]
driver = ">=580"
page-size = "64K"
[[nodes]]
hosts = "leaf00-rack[000-005]-tray[00-17],leaf01-rack[006-011]-tray[00-17]"
gpus = "4 x GB200"
nvlinks = 18
nvlink-speed = 50
pcie = "5 x 16"
infiniband = "4 x 400"
facts = { VBIOS = "97.00.*", XIDs = "none" }
rates = { copy = 6.9e12 }
"""


def test_a_fleet_that_is_what_was_expected_and_one_that_is_not(wheelproof: Wheelproof, tmp_path: Path) -> None:
    assert is_valid(EXAMPLE)
    (tmp_path / "nodes.toml").write_text(EXAMPLE)
    trays = make_fleet(18 * 12)

    def merge(faults: Any) -> tuple[int, list[str]]:
        (tmp_path / "all.jsonl").write_text("\n".join(text for _, _, text in documents(trays, faults, 5)))
        arguments = ("--expect", str(tmp_path / "nodes.toml"), "--format", "json", "--select", "MTX201")
        run = wheelproof("report", "merge", str(tmp_path / "all.jsonl"), *arguments)
        results = json.loads(run.out)["subjects"][0]["results"]
        found = [r for r in results if r["rule"] in {"MTX203", "MTX209"} and r["outcome"] in {"fail", "error"}]
        return run.status, sorted(result["message"] for result in found)

    assert merge([]) == (0, [])
    faults = [fault for fault in seed_faults(trays, 20, 5) if fault.facts.keys() & {"driver", "NVLinks"}]
    faults.append(next(fault for fault in seed_faults(trays, 20, 5) if fault.no_report))
    status, messages = merge(faults)
    assert status == 1
    assert len(messages) == 3
    assert messages[0].startswith("1 of 216 expected hosts gave no report: ")
    assert {message.partition(": ")[2] for message in messages[1:]} == {
        "NVLinks 3 x 18 of 18 up at 50 GB/s, 1 x 17 of 18 up at 50 GB/s; expected 18 up",
        "driver 570.86.15; expected >=580",
    }


def test_what_is_unknown_leaves_the_merge_undecided(wheelproof: Wheelproof, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    write_fleet(reports, {"a": hgx(), "b": with_driver(hgx(), "590.1")})
    nodes = tmp_path / "nodes.toml"
    nodes.write_text('[[nodes]]\ngpus = "8 x H200"\nnvlinks = 18\n')
    run = wheelproof("report", "merge", str(reports), "--expect", str(nodes), "--ignore", "MTX209")

    assert run.status == 3
    assert "not checked  MTX209  a, b: NVLinks unknown; expected 18 up" in run.out
    assert "`wheelproof doctor`" in run.out


def test_hosts_without_a_table_and_tables_without_a_host(wheelproof: Wheelproof, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    write_fleet(reports, {"gpu1": hgx(), "login1": without_gpu(hgx())})
    nodes = tmp_path / "nodes.toml"
    nodes.write_text('[[nodes]]\npattern = "gpu.*"\ngpus = "8 x H200"\n[[nodes]]\npattern = "gpus.*"\ngpus = "cpu"\n')
    run = wheelproof("report", "merge", str(reports), "--expect", str(nodes))

    assert run.status == 3
    assert "no host with a report matches table 2 of the file (pattern 'gpus.*')" in run.out
    assert "no table of the file applies to 1 host with a report: login1" in run.out


def test_the_first_line_names_the_nodes_that_are_not_as_expected(wheelproof: Wheelproof, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    write_fleet(reports, {f"n{n}": with_driver(hgx(), "570.86.15") for n in range(3)})
    nodes = tmp_path / "nodes.toml"
    nodes.write_text('[[nodes]]\ndriver = ">=580"\n')
    run = wheelproof("report", "merge", str(reports), "--expect", str(nodes))

    assert run.status == 1
    assert run.out.startswith("FAIL  3 hosts: n[0-2] are not as expected (")


def test_a_file_that_is_not_there(wheelproof: Wheelproof, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(doctor_report("a", hgx())))
    run = wheelproof("report", "merge", str(tmp_path / "a.json"), "--expect", str(tmp_path / "none.toml"))

    assert run.status == 2
    assert "none.toml cannot be read: No such file or directory" in run.err
