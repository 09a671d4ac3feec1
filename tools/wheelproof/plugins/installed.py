"""The plug-ins that are installed next to wheelproof: what their metadata says, of which nothing is imported.

Only the environment of wheelproof itself counts: its site-packages, that of the user where Python searches it, and the
folder that wheelproof is in. PYTHONPATH, the current folder and the environment under judgement do not.
"""

import os
import re
import site
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RULES, FORMATS, PROBES, KERNELS = "rules", "formats", "probes", "kernels"
KINDS = (RULES, FORMATS, PROBES, KERNELS)  # entry points of the group wheelproof.KIND
GROUP = "wheelproof."
_VALUE = re.compile(r"(\w+(?:\.\w+)*(?: *: *\w+(?:\.\w+)*)?) *(?:\[[^\]]*\])?")  # what extras it needs is ignored
_SECTION = f"[{GROUP}".encode()
_LARGEST = 1 << 20  # bytes of one entry_points.txt


@dataclass(frozen=True, slots=True, order=True)
class Plugin:
    """An entry point ``name = value`` of a distribution, in the group ``wheelproof.KIND``.

    ``fault`` says why it cannot be used at all, as the end of a sentence; "" when nothing speaks against it.
    """

    kind: str
    name: str
    value: str
    distribution: str
    version: str = ""
    fault: str = ""

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
    """The plug-ins of one distribution. Our reader never raises where that of the standard library does."""
    from wheel_checks.formats.wheel.entry_points import parse_entry_points  # noqa: PLC0415  # few have a plug-in

    metadata = _start_of(f"{path}/METADATA").decode(errors="replace")
    folder = os.path.basename(path).removesuffix(".dist-info").partition("-")  # noqa: PTH119  # as above
    name, version = (_field(field, metadata) or part for field, part in (("Name", folder[0]), ("Version", folder[2])))
    points = parse_entry_points(_start_of(f"{path}/entry_points.txt"))
    unreadable = [f"line {line}: {sentence}" for line, sentence in points.unreadable]
    if unreadable:
        yield Plugin(RULES, "?", "", name, version, f"cannot be read: entry_points.txt, {unreadable[0]}")
        return
    for point in points.entries:
        kind = point.group.removeprefix(GROUP)
        if point.group.startswith(GROUP) and kind in KINDS:
            match = _VALUE.fullmatch(point.value)
            value = match[1].replace(" ", "") if match else ""
            fault = "" if match else f"names {point.value[:200]!r}; expected module or module:object"
            yield Plugin(kind, point.name, value, name, version, fault)


def _field(name: str, metadata: str) -> str:
    match = re.search(rf"^{name}:[ \t]*(\S+)", metadata, re.MULTILINE | re.IGNORECASE)
    return match[1][:200] if match else ""
