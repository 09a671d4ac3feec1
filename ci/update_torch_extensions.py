"""Writes wheel_checks/data/torch_extensions.toml: the packages whose source archives need torch to be built.

usage: python ci/update_torch_extensions.py [NAME...]     (default: the names that the table has)

Reads the latest source archive of each from the configured index and looks for a build requirement on torch, and for an
import of torch in setup.py. An archive above the limit of size, or without torch is omitted and named.
"""

from __future__ import annotations

import datetime as dt
import io
import os
import re
import sys
import tarfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import parse_sdist_filename
from packaging.version import Version

from wheel_checks.errors import WheelproofError
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import configured_indexes
from wheel_checks.sources.simple_index import SimpleIndex

TABLE = Path(__file__).parent.parent / "wheel_checks" / "data" / "torch_extensions.toml"
LARGEST = 64 << 20  # bytes of an archive
IMPORT = re.compile(r"^\s*(?:import torch\b|from torch\b)", re.MULTILINE)


def main() -> int:
    """Read the archives, write the table, and print omitted packages."""
    names = sys.argv[1:] or [row["name"] for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["extension"]]
    today = dt.datetime.now(dt.UTC).date()
    lines = [
        "# Packages that are compiled against torch: built in isolation they see another torch than the installed one.",
        "#",
        "# [[extension]]: `version` is the latest source archive on the package index, `evidence` what in it needs",
        f"# torch at build time. Read from the archives by ci/update_torch_extensions.py on {today}.",
    ]
    rows = 0
    with HttpClient(None) as client:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))
        for name in sorted(set(names)):
            try:
                version, evidence = look(name, index, client)
            except (WheelproofError, ValueError, tarfile.TarError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            rows += 1
            lines += ["", "[[extension]]", f'name = "{name}"', f'version = "{version}"', f'evidence = "{evidence}"']
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{rows} rows")
    return 0


def look(name: str, index: SimpleIndex, client: HttpClient) -> tuple[Version, str]:
    """The version of the latest source archive, and the part that needs torch. Raises ValueError without one."""
    archives: list[tuple[Version, IndexFile]] = [
        (parse_sdist_filename(file.file_name)[1], file)
        for file in index.files(name).files
        if file.file_name.endswith(".tar.gz")
    ]
    if not archives:
        raise ValueError("no source archive")
    version, newest = max(archives, key=lambda pair: pair[0])
    source = client.open(newest.url)
    try:
        size, _ = source.read_tail(1)
        if size > LARGEST:
            raise ValueError(f"{newest.file_name} has {size} bytes")
        data = source.read(0, size)
    finally:
        source.close()
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for member in archive:
            top, _, inner = member.name.partition("/")
            found = archive.extractfile(member) if inner in ("pyproject.toml", "setup.py") and top else None
            evidence = needs_torch(inner, found.read().decode("utf-8", "replace")) if found else ""
            if evidence:
                return version, evidence
    raise ValueError(f"{newest.file_name} needs no torch at build time")


def needs_torch(name: str, text: str) -> str:
    """The part of a pyproject.toml or setup.py that needs torch at build time; "" without one."""
    if name == "setup.py":
        return "setup.py imports torch" if IMPORT.search(text) else ""
    requires = tomllib.loads(text).get("build-system", {}).get("requires", [])
    if any(Requirement(text).name.lower() == "torch" for text in requires):
        return "build-system.requires names torch"
    return ""


if __name__ == "__main__":
    sys.exit(main())
