"""The imports and exports of a library: compared with its whole symbol table, for gcc's libraries and built ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.compiling import compile_once
from tests.support.elf import Elf, Symbol
from tests.support.installation import compile_library
from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import WholeFile
from wheel_checks.formats.elf.file import LINKAGE_PARTS, ElfFacts, Part, read_elf
from wheel_checks.formats.elf.front import find_exports, read_front
from wheel_checks.formats.elf.linkage import Exports, Imports, hashes_of, symbol_hash
from wheel_checks.formats.elf.symbols import DynamicSymbols

SOURCE = "".join(f"int function_{number}(void) {{ return {number}; }}\n" for number in range(300))
SOURCE += "#include <stdlib.h>\nextern int elsewhere(void); extern int maybe(void) __attribute__((weak));\n"
SOURCE += "void *use(void) { return maybe && elsewhere() ? malloc(9) : 0; }\n"


def linkage(data: bytes) -> ElfFacts:
    return read_elf(WholeFile(data), LINKAGE_PARTS | {Part.SYMBOLS})


@pytest.fixture
def compiled(tmp_path: Path) -> bytes:
    return compile_library(tmp_path / "libdemo.so", SOURCE).read_bytes()


def test_what_a_library_of_gcc_needs_and_offers(compiled: bytes) -> None:
    facts = linkage(compiled)
    assert isinstance(facts.imports, Imports)
    assert isinstance(facts.exports, Exports)
    assert isinstance(facts.symbols, DynamicSymbols)

    names = {name.partition("@")[0] for name in facts.imports.names}
    assert names == {s.name for s in facts.symbols.undefined if s.name and s.binding != "WEAK"}
    assert "elsewhere" in facts.imports.names
    assert any(name.startswith("malloc@GLIBC_2") for name in facts.imports.names)
    assert "maybe" not in names
    assert hashes_of(facts.exports) == {symbol_hash(s.name) for s in facts.symbols.defined}
    assert symbol_hash("function_300") not in hashes_of(facts.exports)


def test_the_first_bytes_of_it_say_the_same(compiled: bytes) -> None:
    facts = linkage(compiled)
    front, more = read_front(compiled)

    assert more == 0
    assert front is not None
    assert (front.imports, front.exports) == (facts.imports, facts.exports)
    assert find_exports(compiled) == (facts.exports, 0)
    assert any(need.library == "libc.so.6" for need in front.versions.needs)


def test_fewer_bytes_say_how_many_would_do(compiled: bytes) -> None:
    reach, rounds = 2048, 0
    while (found := read_front(compiled[:reach]))[0] is None:
        assert found[1] > reach, "a table that continues must ask for more"
        reach, rounds = found[1], rounds + 1

    assert rounds < 6
    assert found[0] == read_front(compiled)[0]


@pytest.mark.parametrize("style", ["gnu", "both"])
def test_tables_of_hashes_that_end_far_behind_the_first_bytes(style: str, tmp_path: Path) -> None:
    source = "".join(f"int function_{number}(void) {{ return 1; }}\n" for number in range(9000))
    source += "#include <stdlib.h>\nvoid *use(void) { return malloc(9); }\n"
    options = ["-x", "c", f"-Wl,--hash-style={style}"]
    data = compile_once(tmp_path / "libmany.so", options, source, ()).read_bytes()
    reach, rounds = 8192, 0
    while (found := read_front(data[:reach]))[0] is None:
        assert found[1] > reach, "a table that continues must ask for more"
        reach, rounds = found[1], rounds + 1

    assert rounds < 6
    assert found[0].exports == linkage(data).exports


def test_strings_that_patchelf_moved_are_not_taken_for_those_behind_the_symbols(compiled: bytes) -> None:
    data = bytearray(compiled)
    place = compiled.index(b"\0function_1\0")
    data[place + 1 : place + 11] = b"function_X"

    assert read_front(bytes(data)) == (None, 0)


def test_a_library_without_the_table_is_told_by_its_symbols() -> None:
    facts = linkage(Elf(symbols=[Symbol("one"), Symbol("two", defined=False)], hash="sysv").build().data)

    assert facts.exports == Exports.of([symbol_hash("one")])
    assert facts.imports == Imports(("two",))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["little", "big"])
def test_every_class_and_byte_order(bits: int, order: str) -> None:
    symbols = [Symbol("given"), Symbol("wanted", defined=False), Symbol("weak", defined=False, binding=2)]
    facts = linkage(Elf(bits=bits, order=order, symbols=symbols).build().data)  # type: ignore[arg-type]  # parameters are plain

    assert facts.imports == Imports(("wanted",))
    assert facts.exports == Exports.of([symbol_hash("given")])


def test_a_file_without_symbols_has_neither() -> None:
    facts = linkage(Elf(needed=["libc.so.6"]).build().data)

    assert facts.imports is None
    assert facts.exports is None


def test_a_name_outside_of_the_strings_is_a_fault() -> None:
    built = Elf(symbols=[Symbol("wanted", defined=False), Symbol("given")]).build()
    data = built.with_fields({"st_name[1]": 1 << 20})

    with pytest.raises(FormatError, match="st_name is 1048576"):
        read_elf(WholeFile(data), {Part.IMPORTS})


@settings(max_examples=150)
@given(st.data())
def test_damaged_bytes_end_in_an_answer_or_a_format_error(data: st.DataObject) -> None:
    built = Elf(symbols=[Symbol("one"), Symbol("two"), Symbol("three", defined=False)]).build().data
    whole = bytearray(built)
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))

    read_front(bytes(whole))
    try:
        found = read_elf(WholeFile(bytes(whole)), LINKAGE_PARTS)
    except FormatError:
        return
    assert found.imports is None or isinstance(found.imports, Imports)
