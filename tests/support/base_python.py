"""A Python installation of a few links: for environments that include the site-packages of their base."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def copy_python(base: Path) -> Path:
    """Make a base installation whose standard library is links to the real one, and whose site-packages is empty.

    It is not managed by a distribution, whatever the real one is. Returns its interpreter.
    """
    real = Path(os.path.realpath(sys.executable))
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    (base / "bin").mkdir(parents=True)
    shutil.copy(real, base / "bin" / version)
    (base / "bin" / "python3").symlink_to(version)
    library = base / "lib" / version
    library.mkdir(parents=True)
    for entry in Path(os.__file__).parent.iterdir():
        if entry.name not in ("site-packages", "EXTERNALLY-MANAGED"):
            (library / entry.name).symlink_to(entry)
    (library / "site-packages").mkdir()
    return base / "bin" / "python3"
