"""GPUs that kernels can be compiled for, by the names that people and compilers use."""

from __future__ import annotations

import pytest

from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu.compile_targets import parse_target, products_of
from wheel_checks.facts.gpu.targets import parse_gpu, products


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("GB200", "sm_100"),
        ("gb300", "sm_103"),
        (" GH200 ", "sm_90"),
        ("RTX 5090", "sm_120"),
        ("9.0", "sm_90"),
        ("sm_100", "sm_100"),
        ("SM_110", "sm_110"),
        ("sm_107", "sm_107"),  # not in the table: the compiler is to say whether it knows it
        ("MI300X", "gfx942"),
        ("AMD Instinct MI325X", "gfx942"),
        ("mi250x", "gfx90a"),
        ("MI355X", "gfx950"),
        ("gfx1201", "gfx1201"),
    ],
)
def test_a_name_becomes_a_target(text: str, target: str) -> None:
    assert parse_target(text) == target


@pytest.mark.parametrize(
    ("text", "hint"), [("MI300Y", "did you mean MI300X"), ("GB2000", "did you mean GB200"), ("toaster", ""), ("", "")]
)
def test_an_unknown_name_is_wrong_usage(text: str, hint: str) -> None:
    with pytest.raises(UsageError, match="unknown GPU") as caught:
        parse_target(text)

    assert "GB200 or MI300X" in caught.value.expected
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("target", "names"),
    [("sm_100", ("B200", "GB200")), ("gfx942", ("MI300A", "MI300X", "MI325X")), ("sm_107", ())],
)
def test_the_products_of_a_target(target: str, names: tuple[str, ...]) -> None:
    assert products_of(target) == names


def test_every_product_is_among_those_of_its_target() -> None:
    assert all(product.name in products_of(parse_target(product.name)) for product in products())


def test_amd_products_are_no_products_of_nvidia() -> None:
    assert (parse_gpu("Instinct MI300X").gfx, parse_gpu("MI300X").sm) == ("gfx942", 0)
    assert not [product for product in products() if product.name.startswith("MI")]
