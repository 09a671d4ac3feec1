"""No folder of the product shows more than twenty entries: a newcomer finds the right file at first sight."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_ENTRIES = 20
TABLES = ROOT / "wheel_checks" / "data"  # one file for each table, which its name alone finds


def is_shown(entry: Path) -> bool:
    """Whether an entry is of the project: not byte code, nor a folder that a move left with nothing else."""
    if entry.is_dir():
        return any(path.is_file() and path.suffix != ".pyc" for path in entry.rglob("*"))
    return entry.suffix != ".typed"


def test_no_folder_of_the_product_has_too_many_entries() -> None:
    packages = [ROOT / name for name in ("tools/wheelproof", "wheel_checks", "kernels_smoke")]
    folders = [folder for package in packages for folder in (package, *package.rglob("*")) if folder.is_dir()]
    counts = {folder: sum(map(is_shown, folder.iterdir())) for folder in folders if folder.name != "__pycache__"}

    assert {folder: count for folder, count in counts.items() if count > MOST_ENTRIES and folder != TABLES} == {}
