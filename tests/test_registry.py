"""The registry: registering, finding and selecting rules."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from wheel_checks import registry
from wheel_checks.catalogue import all_rules, get_rule, select_rules
from wheel_checks.errors import UsageError
from wheel_checks.model import Finding, Severity
from wheel_checks.registry import rule
from wheel_checks.rules import MODULES


def silent(_facts: object, _expectations: object) -> Iterable[Finding]:
    """Finds nothing."""
    return ()


def register(rule_id: str, kind: str = "wheel") -> None:
    rule(rule_id, f"title of {rule_id}", Severity.NOTE, why="Why.", example="-", fix="-", kind=kind)(silent)


@pytest.fixture
def _three_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    all_rules()  # the real ones are registered now, and not later into the empty registry
    monkeypatch.setattr(registry, "_RULES", {})
    register("TST102")
    register("TST101")
    register("OTH101", kind="other")


@pytest.mark.usefixtures("_three_rules")
class TestSelection:
    def test_rules_are_ordered_by_id(self) -> None:
        assert [rule.id for rule in all_rules()] == ["OTH101", "TST101", "TST102"]

    @pytest.mark.parametrize(
        ("select", "ignore", "chosen"),
        [
            ([], [], ["TST101", "TST102"]),
            (["TST"], [], ["TST101", "TST102"]),
            (["tst101"], [], ["TST101"]),
            (["TST101", "TST102"], ["TST102"], ["TST101"]),
            ([], ["TST"], []),
            (["OTH"], [], []),
        ],
    )
    def test_prefixes_select_and_ignore(self, select: list[str], ignore: list[str], chosen: list[str]) -> None:
        assert [rule.id for rule in select_rules("wheel", select, ignore)] == chosen

    @pytest.mark.parametrize(("select", "ignore"), [(["TTS"], []), ([], ["TST1011"])])
    def test_a_prefix_of_no_rule_is_a_mistake(self, select: list[str], ignore: list[str]) -> None:
        with pytest.raises(UsageError, match=f"no rule starts with '{(select + ignore)[0]}'"):
            select_rules("wheel", select, ignore)

    def test_a_rule_is_found_by_its_id_in_any_case(self) -> None:
        assert get_rule("tst101").title == "title of TST101"

    def test_an_unknown_id(self) -> None:
        with pytest.raises(UsageError, match="no rule has the id 'TST10'"):
            get_rule("TST10")

    def test_an_id_is_taken_once(self) -> None:
        with pytest.raises(ValueError, match="rule id TST101 is already used by 'title of TST101'"):
            register("TST101")

    def test_the_id_of_a_rule_that_is_gone_is_not_used_again(self) -> None:
        with pytest.raises(ValueError, match="rule id REL313 is retired: SBOM documents"):
            register("REL313")


def test_every_rule_that_ships_has_an_id_of_its_family() -> None:
    assert all(re.fullmatch(r"(WHL|STK|REL|PIN|PLG|DOC|KRN|MTX|SEC)\d{3}", rule.id) for rule in all_rules())


def test_the_table_of_modules_says_which_kinds_their_rules_judge() -> None:
    found: dict[str, set[str]] = {}
    for found_rule in all_rules():
        found.setdefault(found_rule.check.__module__.removeprefix("wheel_checks.rules."), set()).add(found_rule.kind)

    assert found == {name: set(kinds) for name, kinds in MODULES.items()}
