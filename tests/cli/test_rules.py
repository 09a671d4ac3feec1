"""``wheelproof rules``: the list, the pages, and the pages in docs/ that must equal them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.patience import PATIENCE
from wheel_checks import registry
from wheel_checks.catalogue import all_rules
from wheel_checks.model import Finding, Severity

ROOT = Path(__file__).parents[2]

PAGE = """\
TST101: a wheel has wheels
error, judges every wheel, for who publishes and who installs it

Why
  Without wheels it does not roll.

  It would have to be carried.

Example
  three members, no wheel

Fix
  Add | wheels.
"""


@pytest.fixture
def two_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that contains two rules and nothing else."""
    all_rules()  # so that the real ones do not register themselves into the copy

    monkeypatch.setattr(registry, "_RULES", {})

    def nothing(facts: Any, expectations: Any) -> Iterable[Finding]:
        return ()

    why = """
        Without wheels
        it does not roll.

        It would have to be carried.
    """
    example = "three members, no wheel"
    register = registry.rule(
        "TST101", "a wheel has wheels", Severity.ERROR, why=why, example=example, fix="Add | wheels."
    )
    register(nothing)
    registry.rule("TST201", "round | not square", Severity.WARNING, why="w", example="e", fix="f")(nothing)


pytestmark = pytest.mark.usefixtures("two_rules")


def test_the_list(wheelproof: Wheelproof) -> None:
    assert wheelproof("rules").out == "TST101  error    a wheel has wheels\nTST201  warning  round | not square\n"


def test_a_prefix_lists_its_group(wheelproof: Wheelproof) -> None:
    assert wheelproof("rules", "tst2").out == "TST201  warning  round | not square\n"


def test_an_id_shows_its_page(wheelproof: Wheelproof) -> None:
    run = wheelproof("rules", "tst101")
    assert (run.status, run.out) == (0, PAGE)


def test_a_page_in_markdown(wheelproof: Wheelproof) -> None:
    out = wheelproof("rules", "TST101", "--format", "markdown").out
    assert out.startswith(
        "# TST101: a wheel has wheels\n\nSeverity: error. "
        "Judges every wheel, for who publishes and who installs it.\n\n## Why\n\n"
    )
    assert out.endswith("## Example\n\nthree members, no wheel\n\n## Fix\n\nAdd | wheels.\n")


def test_the_list_in_markdown_keeps_its_columns(wheelproof: Wheelproof) -> None:
    out = wheelproof("rules", "--format", "markdown").out
    assert "| TST201 | warning | round \\| not square |\n" in out


def test_json_holds_everything(wheelproof: Wheelproof) -> None:
    document = json.loads(wheelproof("rules", "TST2", "--format", "json").out)
    assert document == {
        "schema": "wheelproof.rules/1",
        "rules": [
            {
                "id": "TST201",
                "title": "round | not square",
                "severity": "warning",
                "kind": "wheel",
                "audience": "both",
                "why": "w",
                "example": "e",
                "fix": "f",
            }
        ],
    }


@pytest.mark.parametrize(
    ("requested", "hint"),
    [("TST202", "did you mean TST201?"), ("nonsense", "`wheelproof rules` lists them"), ("", "lists")],
)
def test_an_unknown_id_is_wrong_usage_and_the_nearest_is_named(
    wheelproof: Wheelproof, requested: str, hint: str
) -> None:
    run = wheelproof("rules", requested)
    assert (run.status, run.out) == (2, "")
    assert f"unknown rule id or prefix {requested!r}" in run.err
    assert hint in run.err


def test_the_committed_pages_are_what_the_script_makes() -> None:
    child = subprocess.run(
        [sys.executable, str(ROOT / "ci/update_rule_pages.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (child.returncode, child.stderr) == (0, "")
