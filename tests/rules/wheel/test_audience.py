"""Findings that only a publisher can fix, since the wheel loads on its targets anyway."""

from __future__ import annotations

import pytest

from tests.rules.wheel.elf_cases import on_glibc
from wheel_checks.catalogue import get_rule
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Audience


@pytest.mark.parametrize(("glibc", "audience"), [(39, Audience.PUBLISHER), (31, None)])
def test_a_broken_promise_of_the_tag_concerns_who_installs_where_the_target_lacks_the_version(
    glibc: int, audience: Audience | None
) -> None:
    findings = list(get_rule("WHL503").check(on_glibc(glibc, "GLIBCXX_3.4.29"), Expectations()))
    assert [finding.audience for finding in findings] == [audience]
