"""The rules about installed distributions: the environments in which each fails, and the near misses."""

from __future__ import annotations

import pytest

from tests.rules.case import Case
from tests.rules.installed import installed_cases, startup_cases
from tests.rules.installed.installed_cases import env, nccl, user, wheel
from tests.support.environments import installed_facts
from tests.support.wheel_facts import findings
from wheel_checks.catalogue import all_rules
from wheel_checks.facts.installed.facts import InstalledEnvironment
from wheel_checks.facts.installed.reinstall import reinstall

CASES = [*installed_cases.CASES, *startup_cases.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_given_this_environment_these_findings(case: Case) -> None:
    results = findings(case.rule, case.facts(), undecided=case.undecided, **case.expectations)

    assert [result.message for result in results] == list(case.says)
    assert {result.severity for result in results} <= {case.severity}
    shown = {item.value for result in results[:1] for item in result.evidence}
    assert set(case.evidence) <= shown
    assert all(result.fix for result in results)


def test_every_rule_has_a_failing_case_and_a_near_miss() -> None:
    rules = {rule.id for rule in all_rules() if rule.kind in ("environment", "distribution")}

    assert {case.rule for case in CASES if case.says} == rules
    assert {case.rule for case in CASES if not case.says} == rules


def commands(inside: InstalledEnvironment, name: str) -> list[str]:
    found = inside.named(name)
    assert found is not None
    return list(reinstall(inside, [found]).lines)


def test_the_fix_is_complete_for_an_environment_that_this_machine_cannot_run() -> None:
    inside = installed_facts(lambda e: e.install(nccl()).install(user()))

    assert commands(inside, "nvidia-nccl-cu13") == [
        f"uv pip install --target {inside.environment.path} --python-platform aarch64-manylinux_2_28 "
        "--python-version 3.12 --force-reinstall --no-deps nvidia-nccl-cu13==2.28.9"
    ]


def test_a_refused_version_is_replaced_by_the_required_one_not_installed_again() -> None:
    facts = env(lambda e: e.install(user("nvidia-nccl-cu13==2.28.9")).install(nccl(version="2.27.5")))()

    (result,) = findings("WHL721", facts)
    assert result.fix
    assert result.fix.lines[0].endswith(" nvidia-nccl-cu13==2.28.9")


@pytest.mark.parametrize(
    ("installer", "command"),
    [("debian", "apt-get install --reinstall python3-demo"), ("conda", "conda install --force-reinstall demo=1.0")],
)
def test_what_another_installer_put_there_is_left_to_it(installer: str, command: str) -> None:
    inside = installed_facts(lambda e: e.install(wheel(), INSTALLER=installer))

    assert commands(inside, "demo") == [command]
