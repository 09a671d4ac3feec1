"""``wheelproof report merge`` as a user runs it: folders, files, standard input; whole, broken and hostile reports."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from tests.conftest import Run, Wheelproof
from tests.support.fleets import doctor_report, with_driver, with_vbios, write_fleet
from tests.support.hosts import cuda_fails, healthy, hgx, with_torch, with_variables, without_gpu
from tests.support.reports import HOSTILE
from wheel_checks.facts.host.codec import to_json
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.report import FORMATS, schema
from wheelproof.fleet.reading import MOST_FACTS, MOST_RESULTS


def hidden(facts: HostFacts) -> HostFacts:
    """CUDA_VISIBLE_DEVICES is empty, and CUDA sees nothing."""
    return with_variables(cuda_fails(facts, 100), CUDA_VISIBLE_DEVICES="")


def merged(run: Run) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run.out)
    jsonschema.validate(report, schema())
    return report


# --- Differences


def test_the_one_of_six_that_differs_is_named_first(wheelproof: Wheelproof, tmp_path: Path) -> None:
    fleet = {f"node-{n}": hgx() for n in range(1, 6)} | {"node-17": with_driver(hgx(), "570.86.15")}
    run = wheelproof("report", "merge", write_fleet(tmp_path, fleet))

    assert run.status == 0
    lines = run.out.splitlines()
    assert lines[0].startswith("PASS  6 hosts: node-17 differs in driver (")
    assert lines[4].strip().startswith("warning  MTX201  node-17 differs from the others: driver")
    assert lines[5].split() == ["driver:", "node-17:", "570.86.15;", "5", "hosts", "580.159.04"]


def test_a_difference_fails_when_warnings_do(wheelproof: Wheelproof, tmp_path: Path) -> None:
    fleet = {"a": hgx(), "b": hgx(), "c": with_vbios(hgx(), "97.00.18.00.02")}
    run = wheelproof("report", "merge", write_fleet(tmp_path, fleet), "--fail-on", "warning")

    assert run.status == 1
    assert run.out.startswith("FAIL  3 hosts: c differs in VBIOS (")


def test_hosts_that_are_alike(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = wheelproof("report", "merge", write_fleet(tmp_path, {"a": hgx(), "b": hgx()}))

    assert run.status == 0
    assert run.out.startswith("PASS  2 hosts: all alike, and none fails (")
    assert "GPUs                8 x NVIDIA H200" in run.out.splitlines()


def test_two_hosts_that_differ_are_two_kinds(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = wheelproof("report", "merge", write_fleet(tmp_path, {"a": hgx(), "b": with_driver(hgx(), "570.86.15")}))

    assert run.status == 0
    assert run.out.startswith("PASS  2 hosts: 2 kinds of hosts, by driver (")


def test_causes_are_grouped_by_rule(wheelproof: Wheelproof, tmp_path: Path) -> None:
    fleet = {f"n{n}": hgx() for n in range(9)} | {"bad-10": hidden(hgx()), "bad-9": hidden(hgx())}
    run = wheelproof("report", "merge", write_fleet(tmp_path, fleet))

    assert run.status == 1
    assert "2 hosts fail (bad-9, bad-10)" in run.out.splitlines()[0]
    (row,) = [line for line in run.out.splitlines() if line.startswith("DOC601")]
    assert "error, root cause" in row
    assert "bad-9, bad-10" in row
    assert row.endswith("Unset the variable: unset CUDA_VISIBLE_DEVICES")
    assert (
        "without CUDA_VISIBLE_DEVICES" not in run.out
    )  # the hosts' own findings are summed up, until -v asks for them
    assert "DOC601" in wheelproof("report", "merge", str(tmp_path), "-v").out.partition("Causes, by rule")[0]


def test_a_host_without_gpu_among_others(wheelproof: Wheelproof, tmp_path: Path) -> None:
    fleet = {f"n{n}": healthy() for n in range(4)} | {"login": without_gpu(healthy())}
    run = wheelproof("report", "merge", write_fleet(tmp_path, fleet), "--format", "json")

    host = next(s for s in merged(run)["subjects"] if s["id"] == "login")
    assert host["facts"]["deviates"]["GPUs"] == "none"
    assert host["facts"]["deviates"]["GPU memory"] == "unknown"


def test_the_report_for_programs(wheelproof: Wheelproof, tmp_path: Path) -> None:
    fleet = {"a": hgx(), "b": hgx(), "c": with_torch(hgx(), "2.10.0+cu128", cuda="12.8")}
    report = merged(wheelproof("report", "merge", write_fleet(tmp_path, fleet), "--format", "json"))

    fleet_subject, *hosts = report["subjects"]
    assert (fleet_subject["id"], fleet_subject["kind"]) == ("fleet", "fleet")
    assert [(host["id"], host["kind"]) for host in hosts] == [("a", "host"), ("b", "host"), ("c", "host")]
    (torch,) = [d for d in fleet_subject["facts"]["differences"] if d["fact"] == "torch"]
    assert torch["common"] == [{"value": "2.11.0+cu130", "hosts": 2}]
    assert torch["rare"] == [{"value": "2.10.0+cu128", "hosts": ["c"]}]
    assert hosts[0]["facts"]["compared"]["doctor"]["driver"] == "580.159.04"


def test_a_merge_of_merges_says_the_same(wheelproof: Wheelproof, tmp_path: Path) -> None:
    fleet = {f"n{n}": hgx() for n in range(4)} | {"x": hidden(hgx())}
    for rack, names in enumerate((("n0", "n1"), ("n2", "n3", "x"))):
        folder = tmp_path / f"rack{rack}"
        folder.mkdir()
        write_fleet(folder, {name: fleet[name] for name in names})
        wheelproof("report", "merge", str(folder), "--format", "json", "--output", str(tmp_path / f"rack{rack}.json"))

    at_once = merged(
        wheelproof("report", "merge", str(tmp_path / "rack0"), str(tmp_path / "rack1"), "--format", "json")
    )
    again = merged(
        wheelproof("report", "merge", str(tmp_path / "rack0.json"), str(tmp_path / "rack1.json"), "--format", "json")
    )

    assert without_times(again) == without_times(at_once)


def test_a_merge_of_merges_says_what_they_could_not_tell(wheelproof: Wheelproof, tmp_path: Path) -> None:
    racks = [tmp_path / name for name in ("rack0", "rack1")]
    for rack, hosts in zip(racks, ({"a": hgx(), "x": hgx()}, {"c": hgx()}), strict=True):
        rack.mkdir()
        write_fleet(rack, hosts)
    (racks[0] / "broken.json").write_text("{")
    (racks[0] / "old.json").write_text(json.dumps(doctor_report("a", hgx(), started="2026-11-01T10:00:00Z")))

    def merge_to(file: str, *arguments: str) -> list[tuple[str, str, str]]:
        run = wheelproof("report", "merge", *arguments, "--format", "json")
        (tmp_path / file).write_text(run.out)
        results = merged(run)["subjects"][0]["results"]
        return sorted((r["rule"], r["outcome"], r["message"]) for r in results if r["outcome"] in {"fail", "error"})

    merge_to("0.json", str(racks[0]), "--expect-hosts", "a,b,c")
    assert merge_to("1.json", str(racks[1])) == []
    both = merge_to("both.json", str(tmp_path / "0.json"), str(tmp_path / "1.json"))
    assert both == [
        ("MTX203", "error", "1 of 3 expected hosts gave no report: b"),
        ("MTX203", "fail", "1 host gave a report but was not expected: x"),
        ("MTX204", "error", f"{racks[0]}/broken.json: it ends in the middle of a document"),
        ("MTX205", "fail", "a has several reports of `wheelproof doctor`; only the newest is used"),
    ]
    assert merge_to("again.json", str(tmp_path / "both.json"), "--ignore", "MTX203,MTX204") == both


def test_a_host_that_one_merge_missed_and_another_one_has(wheelproof: Wheelproof, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"of-{name}").mkdir()
        folder = write_fleet(tmp_path / f"of-{name}", {name: hgx()})
        run = wheelproof("report", "merge", folder, "--expect-hosts", "a,b", "--format", "json")
        assert run.status == 3
        (tmp_path / f"{name}.json").write_text(run.out)

    run = wheelproof("report", "merge", str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    assert run.out.startswith("PASS  2 hosts: all alike, and none fails (")


def test_a_merged_report_without_its_fleet_is_none(wheelproof: Wheelproof, tmp_path: Path) -> None:
    report = merged(wheelproof("report", "merge", write_fleet(tmp_path, {"a": hgx()}), "--format", "json"))
    (tmp_path / "a.json").write_text(json.dumps({**report, "subjects": report["subjects"][1:]}))
    run = wheelproof("report", "merge", str(tmp_path))

    assert run.status == 3
    assert "a.json: the merged report has no fleet" in run.out


def without_times(report: dict[str, Any]) -> Any:
    return json.loads(
        json.dumps(report["subjects"]), object_hook=lambda o: {k: v for k, v in o.items() if k != "seconds"}
    )


# --- Where reports come from, and whose they are


def test_standard_input_holds_many(wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(json.dumps(doctor_report(name, hgx()), indent=2) for name in ("a", "b", "c"))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    assert wheelproof("report", "merge", "-").out.startswith("PASS  3 hosts: all alike")


def test_a_report_that_names_no_host_is_named_after_its_file(wheelproof: Wheelproof, tmp_path: Path) -> None:
    for name in ("node-1", "node-2", "node-10"):
        (tmp_path / f"{name}.json").write_text(json.dumps(doctor_report("", hgx())))
    report = merged(wheelproof("report", "merge", str(tmp_path), "--format", "json"))

    assert [subject["id"] for subject in report["subjects"]] == ["fleet", "node-1", "node-2", "node-10"]


def test_reports_of_several_commands_about_one_host(wheelproof: Wheelproof, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("doctor", "verify")]
    for folder in folders:
        folder.mkdir()
    for name, version in (("a", "2.11.0"), ("b", "2.11.0"), ("c", "2.10.0")):
        write_fleet(folders[0], {name: hgx()})
        (folders[1] / f"{name}.json").write_text(json.dumps(installed_report(version)))
    run = wheelproof("report", "merge", *map(str, folders))

    assert run.out.splitlines()[0].startswith("PASS  3 hosts: c differs in verify: torch (")


def installed_report(torch: str) -> dict[str, Any]:
    """Of `wheelproof verify --installed`, with one distribution."""
    report = doctor_report("", healthy())
    facts = {"name": "torch", "version": torch}
    subject = {"id": f"torch {torch}", "kind": "distribution", "headline": "", "verdict": "pass", "facts": facts}
    return {**report, "command": "verify", "subjects": [{**subject, "results": []}]}


def test_of_two_reports_the_newer_counts(wheelproof: Wheelproof, tmp_path: Path) -> None:
    new = doctor_report("a", with_driver(hgx(), "590.1"), started="2026-11-22T10:00:00Z")
    (tmp_path / "1.json").write_text(json.dumps(new))
    (tmp_path / "2.json").write_text(json.dumps(doctor_report("a", hgx(), started="2026-11-21T10:00:00Z")))
    report = merged(wheelproof("report", "merge", str(tmp_path), "--format", "json"))

    fleet, host = report["subjects"]
    assert host["facts"]["compared"]["doctor"]["driver"] == "590.1"
    assert [r["rule"] for r in fleet["results"] if r["outcome"] == "fail"] == ["MTX205"]


def smoke_report(started: str = "2026-11-20T10:00:00Z") -> dict[str, Any]:
    """A report of `wheelproof smoke`: its installation, and a wrong kernel."""
    report = doctor_report("", healthy(), started=started)
    wrong = {"rule": "KRN101", "title": "t", "outcome": "fail", "severity": "error", "message": "off by 0.1"}
    installation = {"id": "python", "kind": "installation", "facts": {"torch": "2.11.0", "device": "cuda"}}
    kernel = {"id": "norm", "kind": "kernel", "verdict": "fail", "results": [wrong]}
    return {**report, "command": "smoke", "subjects": [installation, kernel]}


def test_a_newer_report_of_one_command_leaves_those_of_others(wheelproof: Wheelproof, tmp_path: Path) -> None:
    for name, report in (("doctor", doctor_report("", hidden(hgx()))), ("smoke", smoke_report())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.json").write_text(json.dumps(report))
    first = ("report", "merge", str(tmp_path / "doctor"), str(tmp_path / "smoke"), "--format", "json")
    (tmp_path / "merged.json").write_text(wheelproof(*first).out)
    (tmp_path / "a.json").write_text(json.dumps(doctor_report("", hgx(), started="2026-11-30T10:00:00Z")))

    again = ("report", "merge", str(tmp_path / "merged.json"), str(tmp_path / "a.json"), "--format", "json")
    fleet, host = merged(wheelproof(*again))["subjects"]
    assert host["facts"]["compared"]["smoke"]["torch"] == "2.11.0"
    assert [result["rule"] for result in host["results"]] == ["KRN101"]
    (shown,) = [result for result in fleet["results"] if result["rule"] == "MTX205"]
    assert shown["message"] == "a has several reports of `wheelproof doctor`; only the newest is used"


def test_a_merged_host_without_facts(wheelproof: Wheelproof, tmp_path: Path) -> None:
    report = merged(wheelproof("report", "merge", write_fleet(tmp_path, {"a": hgx()}), "--format", "json"))
    report["subjects"][1]["facts"]["compared"] = {"doctor": {}}
    (tmp_path / "b.json").write_text(json.dumps(report).replace('"a"', '"b"'))

    assert wheelproof("report", "merge", str(tmp_path)).out.startswith("PASS  2 hosts: 2 kinds of hosts, by GPUs")


_NOT_SAID = "it does not state the reports that the findings of b come from"
_TOO_MANY = "subjects[1].facts.reports[0].findings is a number with many digits; expected a whole number"


@pytest.mark.parametrize(("more", "shown"), [(-1, _NOT_SAID), (1, _NOT_SAID), (10**30, _TOO_MANY)])
def test_findings_of_a_merged_host_that_are_of_none_of_its_reports(
    wheelproof: Wheelproof, tmp_path: Path, more: int, shown: str
) -> None:
    fleet = write_fleet(tmp_path, {"a": hidden(hgx())})
    report = merged(wheelproof("report", "merge", fleet, "--format", "json"))
    report["subjects"][1]["facts"]["reports"][0]["findings"] += more
    (tmp_path / "b.json").write_text(json.dumps(report).replace('"a"', '"b"'))

    assert f"b.json: {shown}" in wheelproof("report", "merge", str(tmp_path)).out


def test_a_subject_whose_name_has_a_colon_is_compared(wheelproof: Wheelproof, tmp_path: Path) -> None:
    for name, verdict in (("a", "pass"), ("b", "pass"), ("c", "fail")):
        subject = {"id": "demo: 1.0", "kind": "wheel", "verdict": verdict}
        report = {**doctor_report("", healthy()), "command": "verify", "subjects": [subject]}
        (tmp_path / f"{name}.json").write_text(json.dumps(report))
    out = wheelproof("report", "merge", str(tmp_path)).out

    row = next(line for line in out.splitlines() if line.startswith("c  "))
    assert row.split()[-2:] == ["!", "fail"]


# --- Undecided cases


def test_an_expected_host_without_a_report_leaves_the_merge_undecided(wheelproof: Wheelproof, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    write_fleet(folder, {"a": hgx(), "b": hgx()})
    (tmp_path / "hosts").write_text("a\n# the new one\nb\nnode-9  # since March\n")
    run = wheelproof("report", "merge", str(folder), "--expect-hosts", str(tmp_path / "hosts"))

    assert run.status == 3
    assert run.out.startswith("UNDECIDED  2 hosts: no report from node-9 (")
    assert wheelproof("report", "merge", str(folder), "--expect-hosts", "a,b").status == 0


def test_expected_hosts_are_ranges_names_and_files(wheelproof: Wheelproof, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("rack1-tray[00-17]\nlogin1  # not a tray\n")
    many = ",".join(f"node-of-a-large-cluster-{number}" for number in range(100))  # longer than a path may be
    arguments = ("--expect-hosts", "a,n[1-3]", "--expect-hosts", str(tmp_path / "hosts"), "--expect-hosts", many)
    run = wheelproof("report", "merge", write_fleet(tmp_path, {"a": hgx()}), *arguments)

    assert run.status == 3
    assert (
        "122 of 123 expected hosts gave no report: n[1-3], rack1-tray[00-17], login1, node-of-a-large-cluster-[0-99]"
        in run.out
    )


def test_no_report_at_all_from_the_expected_hosts(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = wheelproof("report", "merge", str(tmp_path), "--expect-hosts", "a,b", "--ignore", "MTX203")

    assert run.status == 3
    assert run.out.startswith("UNDECIDED  0 hosts: no report from a, b (")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it is empty"),
        ('{"schema": "wheelproof.report/1", "command": "doc', "it ends in the middle of a document"),
        ("Traceback (most recent call last)", "it is not JSON"),
        ("[1, 2]", "the document is a list; expected an object"),
        ("{}", "it is not a report: it names no schema"),
        (json.dumps(to_json(healthy())), "wheelproof doctor --facts FILE --format json makes a report of saved facts"),
        ('{"schema": "wheelproof.report/1", "command": "doctor", "subjects": []}', "the report has no subjects"),
        (
            '{"schema": "wheelproof.report/1", "command": "doctor", "subjects": [7]}',
            "subjects[0] is 7; expected an object",
        ),
        (
            json.dumps({**doctor_report("a", healthy()), "subjects": [{"results": [{"outcome": "maybe"}]}]}),
            "subjects[0].results[0].outcome is 'maybe'; expected one of pass, fail, skip, error",
        ),
    ],
)
def test_what_is_no_report_is_named_and_the_others_count(
    wheelproof: Wheelproof, tmp_path: Path, content: str, reason: str
) -> None:
    write_fleet(tmp_path, {"a": hgx(), "b": hgx()})
    (tmp_path / "broken.json").write_text(content)
    run = wheelproof("report", "merge", str(tmp_path))

    assert run.status == 3
    assert run.out.splitlines()[0].startswith("UNDECIDED  2 hosts: 1 input cannot be read (")
    (line,) = [line for line in run.out.splitlines() if "MTX204" in line]
    assert "broken.json" in line
    assert reason in line


def test_a_file_that_may_not_be_read(wheelproof: Wheelproof, tmp_path: Path) -> None:
    write_fleet(tmp_path, {"a": hgx(), "b": hgx()})
    run = wheelproof("report", "merge", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "/proc/self/mem")

    assert run.status == 3
    assert "/proc/self/mem: it cannot be read" in run.out


def test_pipes_in_a_folder_are_not_waited_for(wheelproof: Wheelproof, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    write_fleet(tmp_path, {"a": hgx()})

    assert wheelproof("report", "merge", str(tmp_path)).out.startswith("PASS  1 host: ")


def with_warnings(host: str, count: int) -> dict[str, Any]:
    """A report with so many warnings, each another one, and an error after them."""
    report = doctor_report(host, hgx())
    warning = {"rule": "WHL525", "title": "t", "outcome": "fail", "severity": "warning"}
    results = [{**warning, "message": f"file {number}"} for number in range(count)]
    results.append({**warning, "rule": "WHL401", "severity": "error", "message": "the last of all"})
    report["subjects"][0]["results"] = results
    return report


def test_the_gravest_of_too_many_findings_are_kept(wheelproof: Wheelproof, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(with_warnings("a", MOST_RESULTS + 5)))
    run = wheelproof("report", "merge", str(tmp_path), "--format", "json")

    assert run.status == 1
    fleet, host = merged(run)["subjects"]
    assert (len(host["results"]), host["results"][0]["message"]) == (MOST_RESULTS, "the last of all")
    (shown,) = [result for result in fleet["results"] if result["rule"] == "MTX206"]
    assert (shown["outcome"], shown["severity"]) == ("fail", "warning")
    assert shown["message"].endswith("has 1,006 findings, of which the 1,000 most severe are kept")
    kept = (tmp_path / "merged.json", "--select", "DOC")
    kept[0].write_text(run.out)
    assert "MTX206" in wheelproof("report", "merge", *map(str, kept)).out


def with_facts(host: str, count: int) -> dict[str, Any]:
    report = doctor_report(host, hgx())
    report["subjects"][0]["facts"]["machine"] = {f"variable {number}": "1" for number in range(count)}
    return report


def test_a_host_with_more_facts_than_are_compared_is_undecided(wheelproof: Wheelproof, tmp_path: Path) -> None:
    for name, count in (("a", 2000), ("b", 2000), ("c", MOST_FACTS)):  # and one: the release of wheelproof
        (tmp_path / f"{name}.json").write_text(json.dumps(with_facts(name, count)))
    run = wheelproof("report", "merge", str(tmp_path), "--format", "json")

    assert run.status == 3
    assert merged(run)["subjects"][0]["facts"]["differences"] == []
    (tmp_path / "merged.json").write_text(run.out)
    again = wheelproof("report", "merge", str(tmp_path / "merged.json"))
    assert again.out.startswith("UNDECIDED  3 hosts: 1 report read only in part (")
    assert "c: the report of `wheelproof doctor` has 5,001 facts, and is not compared: 5,000 are the most" in again.out


def test_facts_in_another_order_are_no_difference(wheelproof: Wheelproof, tmp_path: Path) -> None:
    for name in ("a", "b"):
        report = with_facts(name, 2000)
        machine = report["subjects"][0]["facts"]["machine"]
        report["subjects"][0]["facts"]["machine"] = dict(sorted(machine.items(), reverse=name == "b"))
        (tmp_path / f"{name}.json").write_text(json.dumps(report))

    assert wheelproof("report", "merge", str(tmp_path)).out.startswith("PASS  2 hosts: all alike, and none fails (")


# --- Hostile reports, and every format


def test_hostile_names_and_values_in_every_format(wheelproof: Wheelproof, tmp_path: Path) -> None:
    report = doctor_report("a", hidden(hgx()))
    subject = report["subjects"][0]
    subject["facts"]["host"] = subject["headline"] = HOSTILE
    subject["facts"]["machine"] = {HOSTILE: HOSTILE, "driver": HOSTILE, "x" * 100_000: "y" * 100_000}
    for result in subject["results"]:
        result["message"] = HOSTILE
    (tmp_path / "hostile.json").write_text(json.dumps(report))
    for name in ("b", "c"):
        (tmp_path / f"{name}.json").write_text(json.dumps(doctor_report(name, hgx())))

    for form in FORMATS:
        run = wheelproof("report", "merge", str(tmp_path), "--format", form)
        assert run.status == 1, (form, run.err)
        assert "\x1b" not in run.out
        assert len(run.out) < 500_000


def test_the_heat_map_marks_what_few_have(wheelproof: Wheelproof, tmp_path: Path) -> None:
    fleet = {f"n{n}": hgx() for n in range(5)} | {"x": with_driver(hgx(), "570.86.15")}
    page = wheelproof("report", "merge", write_fleet(tmp_path, fleet), "--format", "html").out

    assert page.count('class="warning marked"') == 1
    assert '<td class="warning marked">! 570.86.15</td>' in page
    assert "<td>n[0-4]</td>" in page


def test_a_page_does_not_tell_of_thousands_of_hosts(wheelproof: Wheelproof, tmp_path: Path) -> None:
    usual, broken = doctor_report("NAME", healthy()), doctor_report("broken", hidden(healthy()))
    lines = [json.dumps(usual).replace("NAME", f"n{number}") for number in range(700)]
    (tmp_path / "all.jsonl").write_text("\n".join([*lines, json.dumps(broken)]))
    page = wheelproof("report", "merge", str(tmp_path / "all.jsonl"), "--format", "html").out

    assert page.count('<details class="subject ') == 501
    assert '<span class="file">broken</span>' in page
    assert "201 more are omitted; the json format has everything." in page


# --- Wrong usage


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (("merge",), "the following arguments are required: PATH", 2),
        (("merge", "no-such-file.json"), "there is no no-such-file.json", 3),
        (("merge", "."), "no report in the folder .", 3),
        (("merge", "-", "-"), "standard input can be read only once", 2),
        (("merge", ".", "--expect-hosts", "node[4-1]"), "the range 4-1 in 'node[4-1]' ends before it begins", 2),
        (("merge", ".", "--expect-hosts", "@gpus"), "groups are not expanded; `nodeset -e @GROUP` does so", 2),
        (
            ("merge", ".", "--expect-hosts", "a", "--topology", "rack.*"),
            "has no named group, and no such file exists",
            2,
        ),
        (("merge", ".", "--expect-hosts", "no/such/file"), "no such file", 2),
        (("merge", ".", "--expect-hosts", "a", "--select", "MTX9"), "no rule starts with 'MTX9'", 2),
        ((), "`wheelproof report` needs a command", 2),
    ],
)
def test_wrong_usage(wheelproof: Wheelproof, arguments: tuple[str, ...], message: str, status: int) -> None:
    run = wheelproof("report", *arguments)

    assert run.status == status
    assert message in run.err
    assert run.out == ""


def test_the_help_names_the_command(wheelproof: Wheelproof) -> None:
    assert "  merge  merge the reports of many hosts" in wheelproof("report", "--help").out


def test_one_host_alone(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = wheelproof("report", "merge", write_fleet(tmp_path, {"a": hgx()}))

    assert run.status == 0
    assert "There is only one host, so nothing was compared." in run.out
