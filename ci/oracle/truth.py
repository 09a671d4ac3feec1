"""The truth about a wheel: downloaded whole, every native member read by readelf and cuobjdump, then deleted."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ci.oracle import members, wheels

_CUBINS_AT_ONCE = 400
_VERSION_LINE = re.compile(r"^.*(?:cuda|hip|cu1\d\d|\+cpu).*$", re.MULTILINE | re.IGNORECASE)
_NESTED = (".zip", ".tar", ".gz", ".zst", ".xz", ".whl", ".tgz")
_NESTED_SIZE = 100_000


def of_package(package: str, machine: str, scratch: Path, cuobjdump: str) -> dict[str, Any]:
    """One row: the wheel that pip chooses on this machine, and its contents."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        downloaded = wheels.download(package, machine, Path(folder))
        row: dict[str, Any] = {"package": package, "machine": machine, "wheel": None, "reason": downloaded.reason}
        row["newest_source"] = wheels.newest_source(package)
        if downloaded.path is not None:
            row |= of_wheel(downloaded.path, Path(folder), cuobjdump)
    row["seconds"] = round(time.monotonic() - began, 1)
    return row


def of_wheel(path: Path, scratch: Path, cuobjdump: str) -> dict[str, Any]:
    """The facts of a wheel's members, and of the whole."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    row: dict[str, Any] = {"wheel": path.name, "sha256": digest, "size": path.stat().st_size}
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        metadata = next(info for info in infos if re.fullmatch(r"[^/]+\.dist-info/METADATA", info.filename))
        text = archive.read(metadata).decode("utf-8", "replace").split("\n\n")[0]
        row["requires"] = re.findall(r"^Requires-Dist: (.*)$", text, re.MULTILINE)
        row["nested"] = [i.filename for i in infos if i.filename.endswith(_NESTED) and i.file_size > _NESTED_SIZE]
        row["version_py"] = _version_texts(archive, infos)
        found, row["cubins"] = _native(archive, infos, scratch, cuobjdump)
    row["files"] = [_without_empty(asdict(member)) for member in found]
    return row


def _native(
    archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo], scratch: Path, cuobjdump: str
) -> tuple[list[members.Member], dict[str, int]]:
    """Every native member that is no loose cubin, and the loose cubins counted by folder and architecture."""
    found: list[members.Member] = []
    cubins: Counter[str] = Counter()
    waiting: list[tuple[Path, str]] = []
    for number, info in enumerate(infos):
        with archive.open(info) as stream:
            head = stream.read(64)
            if not members.is_native(info.filename, head):
                continue
            path = scratch / f"member{number}"
            with path.open("wb") as out:
                out.write(head)
                shutil.copyfileobj(stream, out, 1 << 20)
        if members.is_cubin(head):
            waiting.append((path, info.filename))
        else:
            found.append(members.read(path, info.filename, cuobjdump))
            path.unlink()
        if len(waiting) >= _CUBINS_AT_ONCE:
            cubins.update(_count_cubins(waiting))
            waiting.clear()
    cubins.update(_count_cubins(waiting))
    return found, dict(cubins)


def _count_cubins(waiting: list[tuple[Path, str]]) -> Iterator[str]:
    for name, arch in members.read_cubins([path for path, _name in waiting], [name for _path, name in waiting]):
        yield f"{name.rsplit('/', 1)[0]} {arch}"
    for path, _name in waiting:
        path.unlink()


def _version_texts(archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo]) -> list[str]:
    """Lines of version modules that name an accelerator, as hints for readers of the truth."""
    lines = []
    for info in infos:
        if re.search(r"(^|/)_?_?version_*(info)?\.py$", info.filename) and info.filename.count("/") <= 2:
            text = archive.read(info)[:20000].decode("utf-8", "replace")
            lines += [line[:120] for line in _VERSION_LINE.findall(text)]
    return lines[:10]


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in ("", [], {})}
