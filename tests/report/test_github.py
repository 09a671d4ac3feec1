from __future__ import annotations

from dataclasses import replace

from tests.support import reports
from tests.support.rendering import rendered, workflow_commands
from wheel_checks.model import Location, Report


def annotated(report: Report) -> list[tuple[str, dict[str, str], str]]:
    return workflow_commands(rendered(report, "github"))


def test_the_worst_comes_first() -> None:
    assert [(name, properties["title"]) for name, properties, _ in annotated(reports.mixed())] == [
        ("error", "WHL301 Member names are safe"),
        ("error", "WHL101 The wheel is for the expected accelerator"),
        ("error", "not checked: WHL601 Siblings agree"),
        ("warning", "WHL501 The wheel is within its size limit"),
    ]


def test_an_annotation_carries_evidence_and_fix() -> None:
    _, properties, message = annotated(reports.mixed())[1]
    wheel = "torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl"
    assert properties["file"] == wheel
    lines = message.split("\n")
    assert lines[0] == f"{wheel}: expected CUDA, but this is a CPU wheel (2.10.0+cpu)"
    assert lines[2] == "version.py: 2.10.0+cpu (torch/version.py)"
    assert lines[-1] == "    pip install 'torch>=2.11'"


def test_a_finding_in_a_file_has_its_line() -> None:
    at = Location(path="pins, all.toml", line=3, column=5)
    [(_, properties, _)] = annotated(reports.report(reports.wheel(results=(replace(reports.BAD_MEMBER, location=at),))))
    assert (properties["file"], properties["line"], properties["col"]) == ("pins, all.toml", "3", "5")


def test_the_last_line_is_the_verdict() -> None:
    assert rendered(reports.passing(), "github") == (
        "wheelproof verify: PASS, torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl: 1 skipped, 1 passed"
        " (0.41 s, 1.2 MB read in 3 requests)\n"
    )


def test_what_github_would_not_show_is_logged_instead() -> None:
    wheels = [
        reports.wheel(python=f"cp3{number}", results=(replace(reports.EXPECTED_CUDA, message=f"fault {number}"),))
        for number in range(17)
    ]
    text = rendered(reports.report(*wheels), "github")
    assert len(workflow_commands(text)) == 10
    assert "7 more findingsnot shown as annotations because of GitHub's limit:" in text.splitlines()
    assert sum(line.startswith("error WHL101") for line in text.splitlines()) == 7


def test_what_fifteen_wheels_have_in_common_is_one_annotation() -> None:
    found = annotated(reports.forty())
    assert [(name, properties["title"][:6]) for name, properties, _ in found] == [
        ("error", "WHL101"),
        ("error", "not ch"),
    ]
    assert "(in 15 wheels)" in found[0][2]


def test_hostile_strings_issue_no_command_of_their_own() -> None:
    text = rendered(reports.hostile(), "github")
    found = workflow_commands(text)
    assert [name for name, _, _ in found] == ["error", "error"]
    assert all(set(properties) <= {"file", "line", "title"} for _, properties, _ in found)
    assert "%0A,: \\r\\n::warning::z" in found[0][1]["title"]
    assert "%0A,: \\r\\n::warning::z" in found[0][2].split("\n")[0]
    assert not any("##[" in line for line in text.splitlines() if not line.startswith("::"))
