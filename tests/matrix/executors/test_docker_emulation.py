"""Whether programs of another architecture run here, by binfmt_misc."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheelproof.matrix.executors.docker.emulation import blocker, quick_cpu

# As the kernel writes it (Documentation/admin-guide/binfmt-misc.rst); the magic is from Debian's qemu-user-static.
ENTRY = """\
{state}
interpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P
flags: {flags}
offset 0
magic 7f454c460201010000000000000000000200{machine}
mask ffffffffffffff00fffffffffffffffffeffffff
"""


def register(folder: Path, name: str, *, state: str = "enabled", flags: str = "PF", machine: str = "b700") -> None:
    folder.mkdir(exist_ok=True)
    (folder / "status").write_text("enabled\n")
    (folder / "register").write_text("")
    (folder / name).write_text(ENTRY.format(state=state, flags=flags, machine=machine))


def test_a_machine_runs_its_own_programs(tmp_path: Path) -> None:
    assert blocker("aarch64", "aarch64", tmp_path / "binfmt_misc") is None


def test_an_emulator_that_is_registered_whatever_its_name(tmp_path: Path) -> None:
    register(tmp_path / "binfmt_misc", "our-qemu")
    assert blocker("aarch64", "x86_64", tmp_path / "binfmt_misc") is None


def test_an_arm_machine_emulates_the_other(tmp_path: Path) -> None:
    register(tmp_path / "binfmt_misc", "qemu-x86_64", machine="3e00")
    assert blocker("x86_64", "aarch64", tmp_path / "binfmt_misc") is None


@pytest.mark.parametrize("mounted", [True, False])
def test_no_emulator_and_the_command_that_installs_one(tmp_path: Path, mounted: bool) -> None:
    folder = tmp_path / "binfmt_misc"
    if mounted:
        register(folder, "qemu-s390x", machine="0016")
    found = blocker("aarch64", "x86_64", folder)
    assert found is not None
    assert found.reason == "programs of aarch64 do not run on this x86_64 machine: no emulator is registered"
    assert "apt-get install qemu-user-static binfmt-support && update-binfmts --enable qemu-aarch64" in found.hint


def test_an_emulator_that_is_switched_off(tmp_path: Path) -> None:
    register(tmp_path / "binfmt_misc", "qemu-aarch64", state="disabled")
    found = blocker("aarch64", "x86_64", tmp_path / "binfmt_misc")
    assert found is not None
    assert found.reason == "the emulation of aarch64 is switched off (binfmt_misc: qemu-aarch64)"


def test_an_emulator_that_each_container_would_have_to_hold(tmp_path: Path) -> None:
    register(tmp_path / "binfmt_misc", "qemu-aarch64", flags="OC")
    found = blocker("aarch64", "x86_64", tmp_path / "binfmt_misc")
    assert found is not None
    assert "without flag F" in found.reason


def test_entries_that_are_no_elf_emulators_do_not_matter(tmp_path: Path) -> None:
    register(tmp_path / "binfmt_misc", "qemu-aarch64")
    (tmp_path / "binfmt_misc" / "python3.11").write_text("enabled\ninterpreter /usr/bin/python3\nextension .pyc\n")
    (tmp_path / "binfmt_misc" / "odd").write_bytes(b"\xff\xfe")
    assert blocker("aarch64", "x86_64", tmp_path / "binfmt_misc") is None


@pytest.mark.parametrize(
    ("machine", "host", "says", "variables"),
    [
        ("aarch64", "x86_64", "qemu-aarch64 version 7.2.22 (Debian 1:7.2)", {"QEMU_CPU": "max,pauth=off"}),
        ("aarch64", "x86_64", "qemu-aarch64 version 5.2.0 (Debian 1:5.2)", {}),  # refuses a property that it lacks
        ("aarch64", "x86_64", "something else", {}),
        ("aarch64", "aarch64", "qemu-aarch64 version 7.2.22", {}),
        ("x86_64", "aarch64", "qemu-aarch64 version 7.2.22", {}),
    ],
)
def test_pointer_authentication_is_not_emulated(
    tmp_path: Path, machine: str, host: str, says: str, variables: dict[str, str]
) -> None:
    program = tmp_path / "qemu-aarch64-static"
    program.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="utf-8")
    program.chmod(0o755)
    assert quick_cpu(machine, host, {"PATH": str(tmp_path)}) == variables
    assert quick_cpu(machine, host, {"PATH": "/nowhere"}) == {}
