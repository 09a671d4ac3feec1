"""The level of x86-64 that an ELF file is marked to need, as linkers write it and as it can be wrong."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.support.elf import AARCH64, X86_64, Elf
from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import WholeFile
from wheel_checks.formats.elf.file import Missing, Part, read_elf


def level_of(data: bytes) -> int | Missing | None:
    return read_elf(WholeFile(data), {Part.ISA_LEVEL}).isa_level


@pytest.mark.parametrize(
    ("bits", "level"), [(0b1, 1), (0b10, 2), (0b111, 3), (0b1000, 4), (0, None), (0b1 << 16, None)]
)
def test_the_highest_bit_is_the_level(bits: int, level: int | None) -> None:
    assert level_of(Elf(isa_needed=bits, build_id=b"\1" * 20).build().data) == level


def test_other_machines_have_none() -> None:
    assert level_of(Elf(machine=AARCH64, isa_needed=0b100).build().data) is None
    assert level_of(Elf(machine=X86_64).build().data) is None


def test_a_property_that_leaves_its_note_is_corrupt() -> None:
    built = Elf(isa_needed=0b100).build()
    offset, _ = built.regions[".note.gnu.property"]
    size = offset + 12 + 4 + 4  # n_namesz, n_descsz, n_type, "GNU\\0", pr_type
    data = built.data[:size] + (1 << 30).to_bytes(4, "little") + built.data[size + 4 :]

    with pytest.raises(FormatError, match="pr_datasz of the property at byte 0 of its note is 1073741824"):
        level_of(data)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"p_offset[NOTE]": 2**60}, "PT_NOTE is at bytes"),
        ({"p_offset[NOTE]": 0, "p_filesz[NOTE]": 40}, "n_namesz and n_descsz of the note at byte 0 of PT_NOTE are"),
    ],
)
def test_notes_that_leave_their_place_are_corrupt(fields: dict[str, int], message: str) -> None:
    built = Elf(machine=X86_64, build_id=b"\1" * 20).build()
    with pytest.raises(FormatError, match=message):
        level_of(built.with_fields(fields))


@pytest.mark.parametrize(("before", "level"), [(3, 3), (100_000, None)])
def test_a_level_is_looked_for_at_the_beginning_of_the_notes_only(before: int, level: int | None) -> None:
    """Else notes of any length would be read to find none."""
    other = struct.pack("<3I", 4, before, 3) + b"LOG\0" + bytes(before + -before % 4)
    note = struct.pack("<3I", 4, 16, 5) + b"GNU\0" + struct.pack("<4I", 0xC0008002, 4, 0b100, 0)
    built = Elf(machine=X86_64, build_id=b"\1" * 20, contents={"notes": other + note}).build()
    start, size = built.regions["notes"]
    assert level_of(built.with_fields({"p_offset[NOTE]": start, "p_filesz[NOTE]": size})) == level


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize(("option", "level"), [("-Wl,-z,x86-64-v3", 3), ("-Wl,-z,x86-64-v2", 2), ("-shared", None)])
def test_what_the_linker_of_this_machine_writes(tmp_path: Path, option: str, level: int | None) -> None:
    source, library = tmp_path / "a.c", tmp_path / "a.so"
    source.write_text("int f(void) { return 1; }\n")
    made = subprocess.run(["gcc", "-shared", "-fPIC", option, "-o", library, source], capture_output=True, check=False)
    if made.returncode or library.read_bytes()[18] != X86_64:
        pytest.skip("this compiler makes no files for x86_64, or its linker knows no levels")

    assert level_of(library.read_bytes()) == level
