"""Whether a library defines a symbol, by DT_GNU_HASH: against the whole table, in libraries of gcc's."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.elf import Elf, Symbol
from tests.support.installation import compile_library
from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import WholeFile
from wheel_checks.formats.elf.file import Part, read_elf
from wheel_checks.formats.elf.gnu_hash import ExportedSymbols, gnu_hash
from wheel_checks.formats.elf.symbols import DynamicSymbols

SOURCE = "".join(f"int function_{number}(void) {{ return {number}; }}\n" for number in range(500))
SOURCE += "extern int elsewhere(void); int use(void) { return elsewhere(); }\n"


def test_what_a_library_defines_and_nothing_else(tmp_path: Path) -> None:
    view = WholeFile(compile_library(tmp_path / "libdemo.so", SOURCE).read_bytes())
    exported, symbols = ExportedSymbols(view), read_elf(view, {Part.SYMBOLS}).symbols
    assert isinstance(symbols, DynamicSymbols)

    assert all(symbol.name in exported for symbol in symbols.defined if symbol.binding != "LOCAL")
    assert not [symbol.name for symbol in symbols.undefined if symbol.name in exported]
    assert "function_499" in exported
    assert "function_500" not in exported
    assert "" not in exported


def test_the_hash_is_that_of_glibc() -> None:
    assert gnu_hash("printf") == 0x156B2BB8
    assert gnu_hash("") == 5381


def test_a_library_without_the_table_is_refused() -> None:
    for data in (Elf().build().data, Elf(symbols=[Symbol("one")], hash="sysv").build().data):
        with pytest.raises(FormatError, match="no DT_GNU_HASH"):
            ExportedSymbols(WholeFile(data))


@settings(max_examples=200)
@given(st.data())
def test_damaged_bytes_end_in_an_answer_or_a_format_error(data: st.DataObject) -> None:
    whole = bytearray(Elf(symbols=[Symbol("one"), Symbol("two")]).build().data)
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(FormatError):
        assert ("three" in ExportedSymbols(WholeFile(bytes(whole)))) in {True, False}
