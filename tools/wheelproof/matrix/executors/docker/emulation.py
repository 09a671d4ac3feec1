"""Whether this host runs programs of another architecture: the kernel's registrations of binfmt_misc."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.model import Unavailable
from wheel_checks.process.child import StartError, find_program, run
from wheel_checks.sources.regular_file import read_start

BINFMT = Path("/proc/sys/fs/binfmt_misc")
DOCKER_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}  # the engine's name of a machine
_ELF_MACHINES = {"x86_64": 0x3E, "aarch64": 0xB7}  # e_machine, ELF specification
_LONGEST_ENTRY = 1 << 16  # bytes; a name, a path, a magic and a mask
_VERSION = re.compile(rb"version (\d{1,4})\.")
_WITH_PAUTH = 6
_TIMEOUT = 10.0  # seconds for qemu to say its version
_MACHINE_OFFSET = 18  # of e_machine in an ELF file, 2 bytes, here little endian


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One entry of binfmt_misc: its name, the flags, the e_machine that it takes, and whether it is switched on."""

    name: str
    enabled: bool
    flags: str
    machine: int

    @property
    def works_in_containers(self) -> bool:
        """Flag F: the interpreter was opened when it was registered, so that a container does not need it."""
        return "F" in self.flags


def read_interpreters(folder: Path = BINFMT) -> tuple[Interpreter, ...]:
    """The interpreters of ELF files that are registered; none when binfmt_misc is not mounted."""
    found = []
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if path.name in {"register", "status"}:
            continue
        try:
            lines = read_start(path, _LONGEST_ENTRY).decode("ascii").splitlines()
            entry = dict(line.split(" ", 1) for line in lines if " " in line)
            magic = bytes.fromhex(entry["magic"])
        except (OSError, KeyError, ValueError):  # an entry by file extension, or one just removed
            continue
        if magic.startswith(b"\x7fELF") and len(magic) >= _MACHINE_OFFSET + 2 and entry.get("offset", "0") == "0":
            machine = int.from_bytes(magic[_MACHINE_OFFSET : _MACHINE_OFFSET + 2], "little")
            found.append(Interpreter(path.name, "enabled" in lines, entry.get("flags:", ""), machine))
    return tuple(found)


def quick_cpu(machine: str, host: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The variable with which qemu emulates ``machine`` fast enough; none if it is not emulated, or qemu is older.

    Debian's programs for arm64 have signed return addresses since trixie, and computing the signatures as the processor
    does takes most of the time: a start of Python 3.13 with 300 modules 221 s, 23 s without (qemu 7.2, 2026-11).
    Without pointer authentication the instructions do nothing, as on older processors. qemu has the property since 6.0.
    """
    if machine != "aarch64" or machine == host:
        return {}
    found = (find_program(name, variables) for name in ("qemu-aarch64-static", "qemu-aarch64"))
    program = next(filter(None, found), None)
    try:
        output = run([program, "--version"], deadline=_TIMEOUT).output if program else b""
    except StartError:
        return {}
    version = _VERSION.search(output)
    return {"QEMU_CPU": "max,pauth=off"} if version and int(version[1]) >= _WITH_PAUTH else {}


def blocker(machine: str, host: str, folder: Path = BINFMT) -> Unavailable | None:
    """Why programs of ``machine`` do not run on a ``host``, both such as "aarch64", with the command that helps."""
    if machine == host:
        return None
    hint = (
        "on Debian and Ubuntu, as root: apt-get install qemu-user-static binfmt-support && "
        f"update-binfmts --enable qemu-{machine}"
    )
    fitting = [entry for entry in read_interpreters(folder) if entry.machine == _ELF_MACHINES[machine]]
    enabled = [entry for entry in fitting if entry.enabled]
    if any(entry.works_in_containers for entry in enabled):
        return None
    if enabled:
        return Unavailable(f"{enabled[0].name} is registered without flag F, so that containers lack it", hint)
    if fitting:
        return Unavailable(f"the emulation of {machine} is switched off (binfmt_misc: {fitting[0].name})", hint)
    return Unavailable(f"programs of {machine} do not run on this {host} machine: no emulator is registered", hint)
