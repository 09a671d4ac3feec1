"""Rules that a tree ignores: the report counts them in its first line, in every format, and names them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.rendering import formats_for_people
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.catalogue import all_rules
from wheel_checks.errors import UsageError
from wheel_checks.model import CheckResult, Outcome, Severity, Subject
from wheelproof.reporting import OpenReport, Selection, TreeRules

Judge = Callable[..., Run]


@pytest.fixture
def judge(wheelproof: Wheelproof) -> Judge:
    """Judge one innocent wheel, in a tree that says this about rules."""
    name = WheelBuilder().write(Path.cwd()).name

    def run(says: str, *arguments: str) -> Run:
        Path("pyproject.toml").write_text(f"[tool.wheelproof]\n{says}\n")
        return wheelproof("verify", name, *arguments)

    return run


def document_of(run: Run) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run.out)
    return document


def rules_of(run: Run, *outcomes: str) -> set[str]:
    results = [result for subject in document_of(run)["subjects"] for result in subject["results"]]
    return {result["rule"] for result in results if not outcomes or result["outcome"] in outcomes}


def test_the_verdict_line_counts_them(judge: Judge) -> None:
    assert "silenced" not in judge("").out
    answer, verdict = judge('ignore = ["WHL105", "WHL00"]', "-q").out.splitlines()
    assert answer == "no error was found in demo 1.0 (no accelerator)"
    assert verdict.startswith("PASS  demo-1.0-py3-none-any.whl")
    assert re.search(r" passed, \d+ rules silenced by pyproject.toml \(", verdict)


def test_the_count_is_of_what_would_have_run(judge: Judge) -> None:
    ran = rules_of(judge("", "--format", "json"))
    run = judge('ignore = ["WHL1", "DOC", "KRN", "WHL8"]', "--format", "json")
    silenced = sorted(rule for rule in ran if rule.startswith(("WHL1", "WHL8")))
    document = document_of(run)
    assert document["tree"]["silenced"] == silenced
    assert document["tree"]["file"].endswith("/project/pyproject.toml")
    assert document["summary"]["silenced"] == len(silenced)
    assert rules_of(run) == ran
    assert not rules_of(run, "pass", "fail", "error") & set(silenced)


def test_what_a_selection_leaves_out_counts(judge: Judge) -> None:
    ran = rules_of(judge("", "--format", "json"))
    run = judge('select = ["WHL1"]', "--format", "json")
    silenced = document_of(run)["tree"]["silenced"]
    assert set(silenced) >= {rule for rule in ran if not rule.startswith("WHL1")}
    assert not [rule for rule in silenced if rule.startswith("WHL1")]


@pytest.mark.parametrize(
    "says",
    [
        'select = ["DOC"]',
        'ignore = ["WHL", "SEC"]',
        'select = ["WHL1"]\nignore = ["WHL"]',
        'ignore = ["WHL"]',
        'select = ["SEC"]',
    ],
)
def test_a_tree_that_silences_everything_gets_no_pass(judge: Judge, says: str) -> None:
    run = judge(says)
    assert run.status == 3
    answer, verdict, *_ = run.out.splitlines()
    assert answer == "demo 1.0 is not proven to be in order: nothing was checked"
    assert verdict.startswith("UNDECIDED  ")


def test_who_asks_what_a_wheel_runs_alone_gets_an_answer(judge: Judge) -> None:
    assert judge("", "--select", "SEC").status == 0
    assert judge('ignore = ["WHL"]', "--select", "SEC").status == 0


def test_what_the_user_leaves_out_is_not_the_trees(judge: Judge) -> None:
    run = judge('ignore = ["WHL105"]', "--format", "json", "--ignore", "WHL105")
    assert document_of(run)["tree"]["silenced"] == []
    assert "WHL105" not in rules_of(run)


def test_a_prefix_of_a_tree_that_means_nothing_is_an_error(judge: Judge) -> None:
    run = judge('ignore = ["XYZ"]')
    assert run.status == 2
    assert "no rule starts with 'XYZ'" in run.err


@pytest.mark.parametrize("format", formats_for_people())
def test_every_format_for_people_says_it(judge: Judge, format: str) -> None:  # noqa: A002  # the option's own name
    out = judge('ignore = ["WHL105"]', "--format", format).out
    assert "1 rule silenced by pyproject.toml" in out
    line = next(line for line in out.splitlines() if "1 rule silenced" in line)
    assert "pass" in line.lower()


def test_formats_for_programs_have_it_as_a_property(judge: Judge) -> None:
    says = 'ignore = ["WHL105"]\nquiet = true'
    suite = ET.fromstring(judge(says, "--format", "junit").out)[0]
    assert {p.get("name"): p.get("value") for p in suite.iter("property")}["silenced"] == (
        "1 rule silenced by pyproject.toml"
    )
    for tree in (
        json.loads(judge(says, "--format", "sarif").out)["runs"][0]["properties"]["tree"],
        document_of(judge(says, "--format", "json"))["tree"],
    ):
        assert tree["silenced"] == ["WHL105"]
        assert list(tree["refused"]) == ["quiet"]


# Which rules a tree reaches.


def fates(rule: str, **says: Any) -> str:
    """The fate of a rule: run, ignored by the tree, or not selected by the user."""
    tree = TreeRules("t", says.pop("tree_select", ()), says.pop("tree_ignore", ()))
    selection = Selection(**says, tree=tree)
    found = next((known for known in selection.rules("wheel") if known.id == rule), None)
    if found is None:
        return "left out"
    original = next(known for known in all_rules() if known.id == rule)
    return "run" if found.check is original.check else "silenced"


@pytest.mark.parametrize(
    ("says", "fate"),
    [
        ({}, "run"),
        ({"tree_ignore": ("WHL105",)}, "silenced"),
        ({"tree_ignore": ("whl",)}, "silenced"),
        ({"tree_select": ("WHL2",)}, "silenced"),
        ({"tree_select": ("WHL1",)}, "run"),
        ({"tree_select": ("WHL1",), "tree_ignore": ("WHL105",)}, "silenced"),
        # Rules selected by the user stay, unless the tree has a longer prefix.
        ({"select": ("WHL105",), "tree_ignore": ("WHL105",)}, "run"),
        ({"select": ("WHL1",), "tree_ignore": ("WHL",)}, "run"),
        ({"select": ("WHL",), "tree_ignore": ("WHL105",)}, "silenced"),
        ({"select": ("WHL105",), "tree_select": ("WHL2",)}, "run"),
        ({"select": ("WHL2",), "tree_select": ("WHL105",)}, "run"),
        # Rules omitted by the user stay omitted.
        ({"select": ("WHL2",)}, "left out"),
        ({"ignore": ("WHL105",), "tree_select": ("WHL105",)}, "left out"),
        ({"select": ("WHL2",), "tree_ignore": ("WHL105",)}, "left out"),
    ],
)
def test_what_becomes_of_a_rule(says: dict[str, Any], fate: str) -> None:
    assert fates("WHL105", **says) == fate


@pytest.mark.parametrize(
    ("says", "fate"),
    [
        ({}, "fail"),
        ({"tree_ignore": ("DOC1",)}, "skip"),
        ({"tree_select": ("DOC2",)}, "skip"),
        ({"select": ("DOC101",), "tree_ignore": ("DOC",)}, "fail"),
        ({"select": ("DOC2",), "tree_select": ("DOC101",)}, "fail"),
        ({"ignore": ("DOC",)}, ""),
        ({"select": ("DOC2",)}, ""),
    ],
)
def test_results_that_were_made_before_are_silenced_alike(says: dict[str, Any], fate: str) -> None:
    tree = TreeRules("t", says.pop("tree_select", ()), says.pop("tree_ignore", ()))
    selection = Selection(**says, tree=tree)
    found = CheckResult("DOC101", "title", Outcome.FAIL, Severity.ERROR, "one")
    kept = list(selection.kept([found, found]))
    assert "".join(dict.fromkeys(str(result.outcome) for result in kept)) == fate
    if fate == "skip":
        assert [result.message for result in kept] == ["silenced by t"]
        report = OpenReport("doctor").close((Subject("x", "host", results=tuple(kept)),), selection)
        assert report.tree is not None
        assert report.tree.silenced == ("DOC101",)


def test_a_misspelt_prefix_of_a_tree_is_found_with_no_prefix_of_the_user() -> None:
    with pytest.raises(UsageError):
        Selection(tree=TreeRules("t", ("XYZ",))).rules("wheel")


@pytest.mark.parametrize("says", ['select = ["WHL1"]', 'ignore = ["WHL", "SEC"]'])
def test_a_tree_does_not_silence_the_answer_to_what_is_requested(wheelproof: Wheelproof, says: str) -> None:
    wheel = torch_like("cpu", "2.10.0", machine="aarch64").write(Path.cwd())
    Path("wheelproof.toml").write_text(f"{says}\n")
    run = wheelproof("verify", str(wheel), "--expect", "cuda")
    assert run.status == 1
    assert "WHL201" in run.out
    assert "rules silenced by wheelproof.toml" in run.out
    run = wheelproof("verify", str(wheel))
    assert run.status != 1
    assert "error  WHL201" not in run.out
