"""Qualified names in C++ symbols: as the C++ library of this host writes them, and never a crash for anything else."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.growth import assert_at_most_doubles
from wheel_checks.formats.cxx_names import LONGEST, qualified_name, readable

WHOLE = {
    "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE": "c10::Error::Error",
    "_ZN5torch8autograd4NodeD2Ev": "torch::autograd::Node::~Node",
    "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs": "c10::detail::torchInternalAssertFail",
    "_ZNK3c106SymInt22maybe_as_int_slow_pathEv": "c10::SymInt::maybe_as_int_slow_path",
    "_ZNKR3c105Error4whatEv": "c10::Error::what",
    "_ZN5torch3jit8toPythonB5cxx11ERKN3c106IValueE": "torch::jit::toPython",
    "_ZNSt9exceptionD2Ev": "std::exception::~exception",
    "_ZSt9terminatev": "std::terminate",
    "_Z16THPVariable_WrapN2at10TensorBaseE": "THPVariable_Wrap",
    "_ZTVN3c1013GeneratorImplE": "vtable for c10::GeneratorImpl",
    "_ZTIN3c105ErrorE": "typeinfo for c10::Error",
    "_Z3fooi.cold": "foo",
}
IN_PART = {
    "_ZNK2at10TensorBase8data_ptrIfEEPT_v": "at::TensorBase::data_ptr...",
    "_ZN3c108ArrayRefIlE4sizeEv": "c10::ArrayRef...",
    "_ZN3c10lsERSoRKNS_6DeviceE": "c10...",
    "_ZN3c105Error": "c10::Error...",
}
WITHOUT_NAME = ["", "_Z", "_Zfoo", "printf", "_ZN", "_ZNE", "_ZNSt", "_ZNStC1", "_ZNC1E", "_Z1", "_Z99f", "_ZN3c1099EE"]
WITHOUT_NAME += ["_ZTV", "_ZNSs4sizeEv", "_ZlsRSoRK1A", "__Z1fv", "_ZN03c10E", "_Z1234567f", "_Z\u0661f", "?f@@YAXXZ"]
IDENTIFIER = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True)


@cache
def cxx_library() -> ctypes.CDLL | None:
    """The C++ library of this host, whose abi::__cxa_demangle is the reference."""
    name = ctypes.util.find_library("stdc++")
    return ctypes.CDLL(name) if name else None


def reference(symbol: str) -> str:
    library = cxx_library()
    assert library is not None
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    found = library.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    return ctypes.string_at(found).decode() if found else symbol


@pytest.mark.parametrize("symbol", WHOLE | IN_PART)
def test_the_qualified_name_is_read_up_to_what_is_not_decoded(symbol: str) -> None:
    assert qualified_name(symbol) == (WHOLE | IN_PART)[symbol]


@pytest.mark.skipif(cxx_library() is None, reason="this host has no libstdc++")
@pytest.mark.parametrize("symbol", WHOLE)
def test_the_c_plus_plus_library_writes_the_same(symbol: str) -> None:
    assert reference(symbol).partition("(")[0].removesuffix("[abi:cxx11]") == WHOLE[symbol]


@pytest.mark.parametrize("symbol", WITHOUT_NAME)
def test_a_symbol_without_a_name_is_shown_alone(symbol: str) -> None:
    assert qualified_name(symbol) is None
    assert readable(symbol) == symbol


def test_the_symbol_follows_its_name_and_both_are_shortened() -> None:
    assert readable("_ZN3c105ErrorC1Ev") == "c10::Error::Error (_ZN3c105ErrorC1Ev)"
    long = "a" * 2000
    assert readable(f"_Z2000{long}v") == f"{long[:LONGEST]}... ({f'_Z2000{long}'[:LONGEST]}...)"
    assert readable(long) == f"{long[:LONGEST]}..."


@given(st.lists(IDENTIFIER, min_size=2, max_size=8), st.sampled_from(["v", "RKSs", "NS_1AE"]))
def test_every_nested_name_is_read(names: list[str], parameters: str) -> None:
    symbol = "_ZN" + "".join(f"{len(name)}{name}" for name in names)
    assert qualified_name(f"{symbol}E{parameters}") == "::".join(names)
    assert qualified_name(f"{symbol}C2E{parameters}") == "::".join([*names, names[-1]])
    assert qualified_name(f"{symbol}D0E{parameters}") == "::".join([*names, f"~{names[-1]}"])


@given(st.text() | st.text("NSITJEKRPZLXDCBOGVvictpadms_0123456789", max_size=60).map("_Z{}".format))
def test_any_characters_give_a_name_or_none(symbol: str) -> None:
    name = qualified_name(symbol)
    assert name is None or len(name) <= 2 * len(symbol) + len("typeinfo name for ")
    assert len(readable(symbol)) <= 2 * (LONGEST + 5)


@settings(max_examples=300)
@given(st.sampled_from(sorted(WHOLE | IN_PART)), st.data())
def test_a_damaged_symbol_gives_a_name_or_none(symbol: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(2, len(symbol) - 1))
    letter = data.draw(st.sampled_from("NSITJEKRPZLXDv_19"))
    assert len(readable(symbol[:place] + letter + symbol[place + data.draw(st.integers(0, 2)) :])) < 2 * (LONGEST + 5)


@pytest.mark.parametrize(
    "make",
    [
        lambda size: "_ZN" + "1A" * size + "E",
        lambda size: "_ZN1A" + "B1b" * size + "E",
        lambda size: f"_ZN{size * 10}{'a' * size * 10}" + "C1" * size + "E",
        lambda size: "_ZN" + "9" * size + "E",
        lambda size: "_ZN" + "K" * size + "1AE",
        lambda size: "_ZN" + "St" * size,
    ],
)
def test_the_cost_of_a_hostile_symbol_is_linear_in_its_length(make: Callable[[int], str]) -> None:
    assert_at_most_doubles(make, readable, 10_000)
