"""Names of C++ symbols: as the C++ library of this host writes them, and never a crash for anything else."""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheel_checks.formats.cxx.names import MAX_NAME, demangle

NAMES = {
    "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE": "c10::Error::Error("
    "c10::SourceLocation, std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >)",
    "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs": "c10::detail::torchInternalAssertFail(char const*, "
    "char const*, unsigned int, char const*, std::string const&)",
    "_ZN3c104impl22getGlobalPyInterpreterEv": "c10::impl::getGlobalPyInterpreter()",
    "_ZNK2at10TensorBase8data_ptrIfEEPT_v": "float* at::TensorBase::data_ptr<float>() const",
    "_ZN5torch3jit8toPythonB5cxx11ERKN3c106IValueE": "torch::jit::toPython[abi:cxx11](c10::IValue const&)",
    "_ZSt4sortIPiEvT_S1_": "void std::sort<int*>(int*, int*)",
    "_ZN1AcvT_IiEEv": "A::operator int<int>()",
    "_ZN1AplERKS_": "A::operator+(A const&)",
    "_ZlsRSoRK1A": "operator<<(std::ostream&, A const&)",
    "_Z1fIJidEEvDpT_": "void f<int, double>(int, double)",
    "_Z1fIJEEvDpT_": "void f<>()",
    "_Z1fIJidEEvDpRKT_": "void f<int, double>(int const&, double const&)",
    "_Z1gPFiPFcdEE": "g(int (*)(char (*)(double)))",
    "_Z1gM1AKFvvE": "g(void (A::*)() const)",
    "_Z1gRA3_A4_i": "g(int (&) [3][4])",
    "_ZZ4mainENKUlvE_clEv": "main::{lambda()#1}::operator()() const",
    "_ZZ4mainENKUlT_E0_clIiEEDaS_": "auto main::{lambda(auto:1)#2}::operator()<int>(int) const",
    "_ZN12_GLOBAL__N_11fEv": "(anonymous namespace)::f()",
    "_ZTVN3c1013GeneratorImplE": "vtable for c10::GeneratorImpl",
    "_ZThn16_N1A1fEv": "non-virtual thunk to A::f()",
    "_Z1fILb1ELi3ELln4EEvv": "void f<true, 3, -4l>()",
    "_Z1fIiEDTplcvT__ELi1EES0_": "decltype (((int)())+(1)) f<int>(int)",
    "_ZNSsC1ERKSs": "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string("
    "std::string const&)",
    "_ZNOSt8optionalIiE5valueEv": "std::optional<int>::value() &&",
    "_Z3fooi.cold": "foo(int) [clone .cold]",
}
NO_NAMES = [
    "",
    "_Z",
    "_Zfoo",
    "printf",
    "_ZN",
    "_ZNE",
    "_ZNSt",
    "_Z1",
    "_Z99f",
    "_ZTV",
    "_Z1fS5_",
    "_Z1fIT_E",
    "__Z1fv",
]


@cache
def demangler() -> ctypes.CDLL | None:
    """The C++ library of this host, whose abi::__cxa_demangle is the reference."""
    name = ctypes.util.find_library("stdc++")
    return ctypes.CDLL(name) if name else None


def reference(name: str) -> str:
    library = demangler()
    assert library is not None
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    found = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    return ctypes.string_at(found).decode() if found else name


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_written_as_programmers_write_it(name: str) -> None:
    assert demangle(name) == NAMES[name]


@pytest.mark.skipif(demangler() is None, reason="this host has no libstdc++")
@pytest.mark.parametrize("name", NAMES)
def test_the_c_plus_plus_library_writes_the_same(name: str) -> None:
    if demangle(name) != name:
        assert reference(name) == demangle(name)


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_name_stays_as_it_is(name: str) -> None:
    assert demangle(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "_Z1f" + "P" * 5_000 + "i",
        "_Z" + "N1A" * 2_000 + "E" * 2_000,
        "_Z1f" + "I" * 4_000,
        "_Z1f1AIiiE" + "".join(f"S_I{2 * 'S'}{n}_{2 * 'S'}{n}_E" for n in range(200)),
        "_Z1f1AIiiE" + "".join(f"S_IS{n}_S{n}_E" for n in range(9)),
        "_Z1f" + "1AI" * 500 + "i" + "E" * 500,
        "_Z1fIJ" + "i" * 2_000 + "EEvDpT_",
        "_Z" + "1" * 20 + "f",
        "_Z" + "a" * MAX_NAME,
    ],
)  # fmt: skip
def test_a_hostile_name_ends_soon(name: str) -> None:
    assert len(demangle(name)) <= max(len(name), 40_000)


@settings(max_examples=400)
@given(st.text("NSITJEKRPZLXDCvictpadms_0123456789", max_size=60))
def test_any_characters_give_a_name_or_themselves(characters: str) -> None:
    assert isinstance(demangle(f"_Z{characters}"), str)


@settings(max_examples=300)
@given(st.sampled_from(sorted(NAMES)), st.data())
def test_a_damaged_name_gives_a_name_or_itself(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(2, len(name) - 1))
    damaged = (
        name[:place] + data.draw(st.sampled_from("NSITJEKRPZLXDv_19")) + name[place + data.draw(st.integers(0, 2)) :]
    )
    assert isinstance(demangle(damaged), str)
