from __future__ import annotations

import pytest

from wheel_checks.catalogue import all_rules
from wheel_checks.references import address_of


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("pytorch#168065", "https://github.com/pytorch/pytorch/issues/168065"),
        ("sglang PR31035", "https://github.com/sgl-project/sglang/issues/31035"),
        ("NVIDIA/NV-Kernels PR591", "https://github.com/NVIDIA/NV-Kernels/issues/591"),
        ("not-in-the-table#1", ""),
        ("ld.so(8)", ""),
        ("bitsandbytes PR1941 and #1930", ""),
    ],
)
def test_an_issue_of_a_known_repository_has_an_address(source: str, address: str) -> None:
    assert address_of(source) == address


def test_rules_of_the_doctor_say_where_their_failure_was_described() -> None:
    rules = [rule for rule in all_rules() if rule.sources]
    assert len(rules) > 100
    assert all(rule.tested for rule in rules)
    assert sum(any(map(address_of, rule.sources)) for rule in rules) > len(rules) / 2
    assert not [rule.id for rule in rules if "Catalogue" in rule.why]
