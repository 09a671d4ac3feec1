"""Names of sections by their headers, when some bytes are unknown."""

from __future__ import annotations

import pytest

from wheel_checks.formats.elf.section_names import complete_names, find_names
from wheel_checks.formats.elf.sections import SHT_DYNSYM, HeaderRow

NAMES = b"\0.dynsym\0.text\0.nv_fatbin\0.data.rel.ro\0my_section\0.rela.plt\0.shstrtab\0"


def rows() -> list[HeaderRow]:
    """Header rows that refer to NAMES; ".plt" shares the end of ".rela.plt"."""
    names = [
        b"",
        b".dynsym",
        b".text",
        b".nv_fatbin",
        b".data.rel.ro",
        b"my_section",
        b".rela.plt",
        b".plt",
        b".shstrtab",
    ]
    kinds = {b".dynsym": SHT_DYNSYM, b".shstrtab": 3}
    starts = [0 if not name else NAMES.index(name + b"\0") for name in names]
    return [
        HeaderRow(start, kinds.get(name, 1), 0, 0, 0, len(NAMES), 0, 0, 1, 0)
        for name, start in zip(names, starts, strict=True)
    ]


def hidden(*parts: bytes) -> list[int | None]:
    """NAMES, with these parts of it unknown."""
    known: list[int | None] = list(NAMES)
    for part in parts:
        at = NAMES.index(part)
        known[at : at + len(part)] = [None] * len(part)
    return known


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((), NAMES),
        ((b"fatb",), NAMES),
        ((b"in\0",), NAMES),
        ((b".rel.ro", b"ynsy"), NAMES),
        ((b"_sec",), NAMES.replace(b"_sec", b"????")),
    ],
    ids=["all known", "GPU code", "a hidden end", "customary names", "a name of its owner"],
)
def test_a_name_is_the_only_customary_one_that_fits(parts: tuple[bytes, ...], expected: bytes) -> None:
    assert complete_names(rows(), hidden(*parts)) == expected


@pytest.mark.parametrize("parts", [(b"my_section\0",), (b".nv_fatbin\0.data.rel.ro\0",)], ids=["its end", "two names"])
def test_what_may_be_something_else_stays_unknown(parts: tuple[bytes, ...]) -> None:
    known = hidden(*parts)
    assert complete_names(rows(), known) in (None, NAMES)
    if parts == (b"my_section\0",):
        assert complete_names(rows(), known) is None


def test_unknown_bytes_are_no_name_of_gpu_code() -> None:
    completed = complete_names(rows(), hidden(b"y_section"))
    assert completed is not None
    assert b"m?????????\0" in completed


@pytest.mark.parametrize(
    ("name", "hidden_part", "expected"),
    [
        (b".hip_fatbin", b"hip", b".hip_fatbin"),
        (b"__CLANG_OFFLOAD_BUNDLE__sycl-spir64", b"CLANG", None),
        (b"__ALIEN_OFFLOAD_BUNDLE__sycl-spir64", b"BUNDLE", b"__ALIEN_OFFLOAD_??????__sycl-spir64"),
    ],
    ids=["AMD's", "SYCL's", "a near miss"],
)
def test_code_for_other_makers_is_recognised_or_stays_unknown(
    name: bytes, hidden_part: bytes, expected: bytes | None
) -> None:
    text = b"\0.dynsym\0" + name + b"\0.shstrtab\0"
    starts = [0, 1, 9, text.index(b".shstrtab")]
    headers = [HeaderRow(start, 1, 0, 0, 0, len(text), 0, 0, 1, 0) for start in starts]
    known: list[int | None] = list(text)
    at = text.index(hidden_part)
    known[at : at + len(hidden_part)] = [None] * len(hidden_part)
    assert complete_names(headers, known) == (text.replace(name, expected) if expected else None)


def test_names_are_found_where_all_fit() -> None:
    data = b"_ZN3foo\0.shstrtab\0" + NAMES + b"_ZN"
    assert list(find_names(rows(), 8, data)) == [18]
    assert not list(find_names(rows(), 8, data.replace(b".dynsym", b".dynsim")))
    assert not list(find_names(rows(), 8, data[:-20]))
