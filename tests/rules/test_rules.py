"""Every rule: the wheels in which it fails, and the near misses in which it must stay silent."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import pytest

from tests.rules import choice_cases, fleet_cases, matrix_cases, stack_cases, stack_hashes_cases, stack_lock_cases
from tests.rules.case import Case
from tests.rules.host import container_cases as doctor_container_cases
from tests.rules.host import driver_cases as doctor_driver_cases
from tests.rules.host import fabric_cases as doctor_fabric_cases
from tests.rules.host import host_gpu_code_cases as doctor_gpu_code_cases
from tests.rules.host import installation_cases as doctor_installation_cases
from tests.rules.host import log_cases as doctor_log_cases
from tests.rules.host import other_makers_cases as doctor_other_makers_cases
from tests.rules.host import start_up_cases as doctor_start_up_cases
from tests.rules.host import triton_cases as doctor_triton_cases
from tests.rules.host import undecided_cases as doctor_undecided_cases
from tests.rules.host import visibility_cases as doctor_visibility_cases
from tests.rules.host import wheels_cases as doctor_wheels_cases
from tests.rules.installed import installed_cases, startup_cases
from tests.rules.kernels import kernel_cases
from tests.rules.pins import change_cases as pin_change_cases
from tests.rules.pins import environment_cases as pin_environment_cases
from tests.rules.pins import guard_cases as pin_guard_cases
from tests.rules.pins import requirement_cases as pin_cases
from tests.rules.provenance import attestation_cases, file_record_cases, indexes_cases
from tests.rules.release import parity_cases, release_cases, upload_cases
from tests.rules.security import security_cases, security_change_cases
from tests.rules.variants import coverage_cases as variant_coverage_cases
from tests.rules.variants import variant_cases
from tests.rules.wheel import (
    accelerator_cases,
    archive_bytes_cases,
    archive_cases,
    driver_cases,
    elf_cases,
    foreign_names_cases,
    gpu_code_cases,
    identity_cases,
    importing_cases,
    linking_cases,
    metadata_cases,
    record_cases,
    symbols_cases,
    systems_cases,
    without_driver_cases,
)
from tests.support.wheel_facts import findings, judged
from wheel_checks.catalogue import all_rules
from wheel_checks.errors import NotFoundError
from wheel_checks.facts.plugin import PluginFault
from wheel_checks.model import Fix, Location, Outcome
from wheelproof.plugins.calling import pickled
from wheelproof.plugins.child import CHECK, Task
from wheelproof.plugins.installed import Plugin

MODULES = (
    archive_bytes_cases,
    archive_cases,
    identity_cases,
    metadata_cases,
    parity_cases,
    record_cases,
    accelerator_cases,
    choice_cases,
    driver_cases,
    elf_cases,
    foreign_names_cases,
    importing_cases,
    linking_cases,
    symbols_cases,
    systems_cases,
    without_driver_cases,
    gpu_code_cases,
    security_cases,
    security_change_cases,
    stack_cases,
    stack_hashes_cases,
    stack_lock_cases,
    installed_cases,
    startup_cases,
    release_cases,
    upload_cases,
    pin_cases,
    pin_change_cases,
    pin_environment_cases,
    pin_guard_cases,
    kernel_cases,
    matrix_cases,
    doctor_container_cases,
    doctor_driver_cases,
    doctor_fabric_cases,
    doctor_gpu_code_cases,
    doctor_installation_cases,
    doctor_start_up_cases,
    doctor_log_cases,
    doctor_other_makers_cases,
    doctor_triton_cases,
    doctor_undecided_cases,
    doctor_visibility_cases,
    doctor_wheels_cases,
    fleet_cases,
    attestation_cases,
    file_record_cases,
    indexes_cases,
    variant_cases,
    variant_coverage_cases,
)
# A placeholder for an error never fails and never passes: a wheel that could not be read, an unexplained symptom, an
# unreadable section of the facts, an input that is not a report, an unusable plug-in.
UNREAD = "WHL000"
NEVER_FAIL = {UNREAD, "DOC000", "DOC001", "MTX001", "MTX204", "PLG001"}
CASES: list[Case] = list(chain.from_iterable(module.CASES for module in MODULES))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_given_these_facts_these_findings(case: Case) -> None:
    results = findings(case.rule, case.facts(), undecided=case.undecided, **case.expectations)

    assert [result.message for result in results] == list(case.says)
    assert {result.severity for result in results} <= {case.severity}
    if results and (case.member or case.line):
        assert results[0].location == Location(member=case.member, line=case.line)
    shown = {item.value for result in results[:1] for item in result.evidence}
    assert set(case.evidence) <= shown


def test_the_facts_of_every_rule_can_be_given_to_a_plugin() -> None:
    """Each kind of facts survives the way into the child of a plug-in, so that its rules can judge that kind."""
    given = {case.rule: case for case in CASES}
    plugin = Plugin("rules", "acme", "acme", "acme")

    for case in given.values():
        facts = case.facts()
        (copy,) = pickle.loads(pickled(plugin, Task(CHECK, "acme", given=(facts,)))).given
        judge: Callable[[Any], Any] = partial(findings, case.rule, undecided=case.undecided, **case.expectations)
        said = [[result.message for result in judge(each)] for each in (facts, copy)]
        assert said[0] == said[1], case.rule


def test_every_rule_has_a_failing_case_and_a_near_miss() -> None:
    rules = {rule.id for rule in all_rules() if rule.id not in NEVER_FAIL}

    failing, silent = ({case.rule for case in CASES if bool(case.says) is fails} for fails in (True, False))
    assert not doctor_log_cases.FAULTS, "\n".join(doctor_log_cases.FAULTS)
    assert failing == rules, f"add a Case with `says` to tests/rules for {sorted(rules - failing)}"
    where = "a Case without `says` to tests/rules (of logs: a line to INNOCENT of tests/rules/host/log_cases.py)"
    assert silent == rules, f"add {where} for {sorted(rules - silent)}"


def test_a_wheel_that_could_not_be_read_is_undecided() -> None:
    (result,) = judged(UNREAD, NotFoundError("there is no file demo.whl", hint="see --find-links"))

    assert (result.outcome, result.message) == (Outcome.ERROR, "there is no file demo.whl")
    assert result.fix == Fix("see --find-links")


def test_a_plugin_that_cannot_be_used_is_undecided() -> None:
    (result,) = judged("PLG001", PluginFault("acme", "the plug-in acme cannot be imported", "repair it"))

    assert (result.outcome, result.message) == (Outcome.ERROR, "the plug-in acme cannot be imported")
    assert result.fix == Fix("repair it")


def test_every_page_is_complete() -> None:
    for rule in all_rules():
        assert all((rule.title, rule.why, rule.example, rule.fix)), rule.id
        assert rule.why.endswith("."), rule.id
        assert rule.check.__doc__, rule.id
