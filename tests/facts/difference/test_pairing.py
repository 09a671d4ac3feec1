"""Which wheel of one set is held against which of another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.facts.difference.pairing import Pairing, pair_files


def names(*rest: str) -> list[str]:
    return [f"demo-{part}.whl" for part in rest]


def test_across_architectures_each_python_has_its_own() -> None:
    a = names("1.0-cp312-cp312-manylinux_2_28_aarch64", "1.0-cp313-cp313t-manylinux_2_28_aarch64")
    b = names("1.0-cp313-cp313t-manylinux_2_17_x86_64.manylinux2014_x86_64", "1.0-cp312-cp312-manylinux_2_28_x86_64")

    assert pair_files(a, b) == Pairing(((a[0], b[1]), (a[1], b[0])))


def test_across_pythons_each_architecture_has_its_own() -> None:
    a = names("1.0-cp312-cp312-manylinux_2_28_aarch64", "1.0-cp312-cp312-manylinux_2_28_x86_64")
    b = names("1.0-cp313-cp313-manylinux_2_28_x86_64", "1.0-cp313-cp313-manylinux_2_28_aarch64")

    assert pair_files(a, b) == Pairing(((a[0], b[1]), (a[1], b[0])))


def test_across_releases_python_and_architecture_count() -> None:
    a = names("1.0-cp312-cp312-manylinux_2_28_aarch64", "1.0-cp312-cp312-manylinux_2_28_x86_64")
    b = names("2.0-cp312-cp312-manylinux_2_28_x86_64", "2.0-cp314-cp314-manylinux_2_28_x86_64")

    assert pair_files(a, b) == Pairing(((a[1], b[0]),), (a[0],), (b[1],))


def test_the_last_build_counts_and_the_others_are_not_missed() -> None:
    a = names("1.0-cp312-cp312-manylinux_2_28_x86_64", "1.0-3-cp312-cp312-manylinux_2_28_x86_64")
    b = names("1.0-cp312-cp312-manylinux_2_28_x86_64")

    assert pair_files(a, b) == Pairing(((a[1], b[0]),))


def test_other_projects_and_what_is_no_wheel_stand_alone() -> None:
    assert pair_files(["a-1-py3-none-any.whl", "odd.whl", "x.whl"], ["b-1-py3-none-any.whl", "odd.whl"]) == Pairing(
        (("odd.whl", "odd.whl"),), ("a-1-py3-none-any.whl", "x.whl"), ("b-1-py3-none-any.whl",)
    )


parts = st.tuples(
    st.sampled_from(["1.0", "1.0-2", "2.0"]),
    st.sampled_from(["cp312-cp312", "cp38-abi3", "py3-none"]),
    st.sampled_from(["manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "any", "win_amd64"]),
)
sets = st.lists(parts.map(lambda part: f"demo-{'-'.join(part)}.whl") | st.text(max_size=5), unique=True, max_size=8)


@given(sets, sets)
def test_a_file_stands_in_one_place_and_the_sides_are_alike(a: list[str], b: list[str]) -> None:
    pairing = pair_files(a, b)

    paired_a = [one for one, _ in pairing.pairs]
    assert len(set(paired_a)) == len(paired_a)
    assert set(paired_a).isdisjoint(pairing.only_a)
    assert {*paired_a, *pairing.only_a} <= set(a)
    mirrored = pair_files(b, a)
    assert {(one, other) for other, one in mirrored.pairs} == set(pairing.pairs)
    assert (mirrored.only_a, mirrored.only_b) == (pairing.only_b, pairing.only_a)
