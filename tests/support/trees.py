"""A tree with torch in it, and the runs of ``pins rewrite`` and ``pins restore`` that change it."""

from __future__ import annotations

import os
from pathlib import Path

from wheelproof.pins import Policy, plan
from wheelproof.pins.model import Plan
from wheelproof.pins.rewrite.held import hold
from wheelproof.pins.rewrite.replace import write
from wheelproof.pins.rewrite.restoring import Restored, restore

BEFORE = {
    "requirements.txt": b"six\ntorch==2.8.0\n",
    "pyproject.toml": b'[project]\ndependencies = ["torch", "six"]\n',
    "sub/constraints.txt": b"\xef\xbb\xbftorchvision\r\nnumpy\r\n",
}
AFTER = {
    "requirements.txt": b"six\n",
    "pyproject.toml": b'[project]\ndependencies = ["six"]\n',
    "sub/constraints.txt": b"\xef\xbb\xbfnumpy\r\n",
}


def make(folder: Path) -> Path:
    """The files of BEFORE, in a folder that is made."""
    for name, data in BEFORE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file below a folder, by its path in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rewrite(folder: Path, planned: Plan | None = None, journal: Path | None = None) -> None:
    """Take torch out of a tree, or carry out another plan."""
    with hold(folder.resolve(), journal) as tree:
        write(planned or plan([folder], Policy()), tree)


def give_back(folder: Path, *, journal: Path | None = None, force: bool = False) -> Restored:
    """Restore a tree."""
    with hold(folder.resolve(), journal) as tree:
        return restore(tree, force=force)


def journals() -> list[Path]:
    """What the state folder holds, but for the lock."""
    return [path for path in Path(os.environ["XDG_STATE_HOME"]).glob("wheelproof/pins/*") if path.name != "lock"]
