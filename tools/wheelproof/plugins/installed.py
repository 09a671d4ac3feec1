"""The plug-ins that are installed next to wheelproof: what their metadata says, of which nothing is imported.

Only the environment of wheelproof itself counts: its site-packages, that of the user where Python searches it, and the
folder that wheelproof lies in. PYTHONPATH, the current folder and the environment under judgement do not.
"""

from __future__ import annotations

import os
import site
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RULES, FORMATS, PROBES, KERNELS = "rules", "formats", "probes", "kernels"
KINDS = (RULES, FORMATS, PROBES, KERNELS)  # entry points of the group wheelproof.KIND
GROUP = "wheelproof."
_SECTION = f"[{GROUP}".encode()
_LARGEST = 1 << 20  # bytes of one entry_points.txt


@dataclass(frozen=True, slots=True, order=True)
class Plugin:
    """An entry point ``name = value`` of a distribution, in the group ``wheelproof.KIND``."""

    kind: str
    name: str
    value: str
    distribution: str
    version: str = ""

    @property
    def label(self) -> str:
        """For people: "acme (rules of acme-rules 1.0)"."""
        return f"{self.name} ({self.kind} of {' '.join(filter(None, (self.distribution, self.version)))})"


def find_plugins(folders: list[str] | None = None) -> tuple[Plugin, ...]:
    """The plug-ins of wheelproof's own environment, or of these ``folders``, by kind and name.

    Without plug-ins this costs the listing of each folder, and a look at each entry_points.txt.
    """
    found = {plugin: None for folder in (own_folders() if folders is None else folders) for plugin in _in(folder)}
    return tuple(sorted(found))


def own_folders() -> list[str]:
    """The folders whose distributions count."""
    paths = sysconfig.get_paths()
    folders = [paths["purelib"], paths["platlib"], str(Path(__file__).parents[2])]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return list(dict.fromkeys(map(os.path.realpath, folders)))


def _in(folder: str) -> Iterator[Plugin]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.path for entry in entries if entry.name.endswith(".dist-info")]
    except OSError:  # an installation may lack the folder
        return
    for path in names:
        if _SECTION in _start_of(f"{path}/entry_points.txt").replace(b" ", b""):
            yield from _of(path)


def _start_of(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # a Path for each of a hundred packages would take half the time
            return file.read(_LARGEST)
    except OSError:  # most distributions have none
        return b""


def _of(path: str) -> Iterator[Plugin]:
    from importlib.metadata import PathDistribution  # noqa: PLC0415  # only where a plug-in is installed

    distribution = PathDistribution(Path(path))
    for point in distribution.entry_points:
        kind = point.group.removeprefix(GROUP)
        if point.group.startswith(GROUP) and kind in KINDS:
            value = point.value.replace(" ", "")
            yield Plugin(kind, point.name, value, distribution.metadata["Name"] or path, distribution.version or "")
