"""Builders of small environments on disk, as an installer leaves them.

env = Installed(tmp_path).install(WheelBuilder("torch", "2.11.0").add("torch/lib/libx.so", library(...)))
env.facts()
installed_facts(lambda env: env.install(...))      # the same in a folder that is gone afterwards: rules read no files
"""

from __future__ import annotations

import io
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.elf import AARCH64, X86_64, Elf
from tests.support.wheels import WheelBuilder, record_row
from wheel_checks.facts.installed.facts import InstalledDistribution, InstalledEnvironment
from wheel_checks.facts.installed.reading import Reading, read_installed
from wheel_checks.sources.environment import Environment, find_environment

MACHINES = {"x86_64": X86_64, "aarch64": AARCH64}
MODULE = "demo/_C.cpython-312-aarch64-linux-gnu.so"


def library(soname: str = "", needed: Sequence[str] = (), machine: str = "aarch64", **options: Any) -> bytes:
    """A small shared library; ``options`` are passed to :class:`Elf` (rpath, runpath, ...)."""
    return Elf(machine=MACHINES[machine], soname=soname, needed=needed, **options).build().data


class Installed:
    """A flat folder, as ``--target`` makes it; ``site_packages`` may lie deeper for other layouts."""

    def __init__(self, folder: Path, site_packages: str = "", installer: str = "uv") -> None:
        self.folder = folder
        self.site_packages = folder / site_packages
        self.installer = installer
        self.site_packages.mkdir(parents=True, exist_ok=True)

    def install(self, wheel: WheelBuilder, **extra: str) -> Self:
        """Unpack a wheel, with INSTALLER and REQUESTED; ``extra`` are more files of the dist-info folder by name."""
        with zipfile.ZipFile(io.BytesIO(wheel.build())) as archive:
            archive.extractall(self.site_packages)
        for name, text in {"INSTALLER": self.installer, "REQUESTED": "", **extra}.items():
            self.write(f"{wheel.dist_info}/{name}", text)
            with (self.site_packages / wheel.dist_info / "RECORD").open("a") as record:
                record.write(record_row(f"{wheel.dist_info}/{name}", text.encode()) + "\n")
        return self

    def write(self, path: str, content: str | bytes) -> Self:
        """Write a file, without changing RECORD."""
        file = self.site_packages / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return self

    def remove(self, path: str) -> Self:
        """Remove a file or folder."""
        target = self.site_packages / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        return self

    def find(self, **variables: str) -> Environment:
        """The environment in the folder."""
        return find_environment(str(self.folder), variables=variables)

    def facts(self, **reading: Any) -> InstalledEnvironment:
        """The facts; ``reading`` are the fields of :class:`Reading` (full, library_path, host_machine)."""
        return read_installed(self.find(), Reading(**reading))


def installed_facts(build: Callable[[Installed], object], **reading: Any) -> InstalledEnvironment:
    """The facts of an environment that ``build`` fills."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Installed(Path(folder))
        build(environment)
        return environment.facts(**reading)


def distribution_facts(name: str, build: Callable[[Installed], object], **reading: Any) -> InstalledDistribution:
    """The facts of one distribution of an environment that ``build`` fills."""
    inside = installed_facts(build, **reading)
    (found,) = (d for d in inside.distributions if d.name == name)
    return InstalledDistribution(found, inside)


def ld_cache(*entries: tuple[str, str, int], old: int | None = None, hwcap: int = 0) -> bytes:
    """An ld.so.cache of (soname, path, flags); ``old`` puts the old format with so many entries in front."""
    strings, places = b"", []
    start = 48 + 24 * len(entries)
    for soname, path, flags in entries:
        places.append((flags, start + len(strings), start + len(strings) + len(soname) + 1))
        strings += f"{soname}\0{path}\0".encode()
    body = b"glibc-ld.so.cache1.1" + struct.pack("<II4sIIII", len(entries), len(strings), b"\2\0\0\0", 0, 0, 0, 0)
    body += b"".join(struct.pack("<iIIIQ", flags, key, value, 0, hwcap) for flags, key, value in places) + strings
    if old is None:
        return body
    front = b"ld.so-1.7.0\0" + struct.pack("<I", old) + bytes(12 * old)
    return front + bytes(-len(front) % 8) + body
