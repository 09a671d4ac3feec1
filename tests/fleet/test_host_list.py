"""Sets of hosts: what Slurm and ClusterShell write is read, and names become the same again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.errors import UsageError
from wheel_checks.facts.fleet.host_list import MOST_HOSTS, expand, folded, parts_of

RACKS = [f"rack{rack:03}-tray{tray:02}" for rack in (17, 18) for tray in range(18)]


@pytest.mark.parametrize(
    ("names", "expression"),
    [
        (RACKS, "rack[017-018]-tray[00-17]"),
        (["n9", "n10", "n11"], "n[9-11]"),
        (["n09", "n10", "n11"], "n[09-11]"),
        (["n099", "n100", "n7"], "n[7,099-100]"),
        (["n1", "n2", "n4"], "n[1-2,4]"),
        (["h100-1", "h100-2"], "h100-[1-2]"),
        (["r1t1", "r1t2", "r2t1"], "r1t[1-2],r2t1"),
        (["gpu2b", "gpu1b"], "gpu[1-2]b"),
        (["login", "n1"], "login,n1"),
        ([], ""),
    ],
)
def test_names_become_ranges_and_names_again(names: list[str], expression: str) -> None:
    assert ",".join(parts_of(names)) == expression
    if names:
        assert sorted(expand(expression)) == sorted(names)


@given(st.sets(st.from_regex(r"[a-c]{1,2}[0-9]{1,3}(-t0?[0-9])?", fullmatch=True), min_size=1, max_size=40))
def test_whatever_the_names_are_they_come_back(names: set[str]) -> None:
    assert set(expand(",".join(parts_of(names)))) == names
    assert sum(len(expand(part)) for part in parts_of(names)) == len(names)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("rack[1-2]-node[0,3]", ["rack1-node0", "rack1-node3", "rack2-node0", "rack2-node3"]),
        ("a1, a2\nb[01-02]", ["a1", "a2", "b01", "b02"]),
        ("n[0-6/3]", ["n0", "n3", "n6"]),
        ("n[98-101]", ["n98", "n99", "n100", "n101"]),
        ("n1,n1", ["n1"]),
        ("node-1.example.org", ["node-1.example.org"]),
    ],
)
def test_what_people_write(expression: str, names: list[str]) -> None:
    assert expand(expression) == names


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("n[1-4", "has unbalanced brackets"),
        ("n1-4]", "has unbalanced brackets"),
        ("n[[1]]", "has unbalanced brackets"),
        ("a,,b", "contains an empty value"),
        ("", "contains an empty value"),
        ("n[a-c]", "is not a range"),
        ("n[]", "is not a range"),
        ("n[9-1]", "ends before it begins"),
        ("n[0-99999999]", f"names more than {MOST_HOSTS:,} hosts"),
        ("n[0-999][0-999]", f"names more than {MOST_HOSTS:,} hosts"),
        ("a[0-59999],b[0-59999]", f"names more than {MOST_HOSTS:,} hosts"),
        ("n[1-9]!n3", "a difference of sets is not computed"),
        ("gpu*", "wildcards are not expanded"),
        ("x" * 2_000_000, "has more than 1,000,000 characters"),
    ],
)
def test_what_is_no_expression_is_named(expression: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        expand(expression)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 400


def test_names_that_are_no_names_of_hosts_stay_as_they_are() -> None:
    assert ",".join(parts_of(["a[1-2]", "b c", "9" * 40 + "x1"])) == f"a[1-2],b c,{'9' * 40}x1"


def test_what_is_shown_is_short() -> None:
    assert folded(["a1", "a2"], 6) == "a1, a2"
    assert folded(RACKS, 6) == "rack[017-018]-tray[00-17]"
    assert folded(["x", "y", "z", *RACKS], 2) == "x, y and 37 more"
    scattered = [f"node{number * number}" for number in range(400)]
    assert folded(scattered, 4) == "node0, node1, node4, node9 and 396 more"


def test_what_is_not_shown_is_counted_by_names() -> None:
    assert folded(["node1", "node3", "node4", "node5", "z7", "q8"], 1) == "node[1,3-5] and 2 more"
    assert folded(["a b", "node1", "node2", "z7", "q8"], 2) == "a b, node[1-2] and 2 more"


def test_numbers_are_combined_in_the_order_that_gives_fewer_parts() -> None:
    pairs = {1: (1, 2, 3), 2: (1, 2, 3), 3: (4, 5), 4: (4, 5), 5: (1, 4)}
    names = [f"r{first}n{second}" for first, seconds in pairs.items() for second in seconds]
    assert ",".join(parts_of(names)) == "r[1-2]n[1-3],r[3-4]n[4-5],r5n[1,4]"
