from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_ENTRIES = 20
TABLES = ROOT / "wheel_checks" / "data"  # one file for each table, which its name alone finds


def test_no_folder_of_the_product_has_too_many_entries() -> None:
    packages = [ROOT / name for name in ("tools/wheelproof", "wheel_checks", "kernels_smoke")]
    folders = [folder for package in packages for folder in (package, *package.rglob("*")) if folder.is_dir()]
    counts = {
        str(folder.relative_to(ROOT)): sum(
            not entry.name.endswith(("__pycache__", ".typed")) for entry in folder.iterdir()
        )
        for folder in folders
        if folder.name != "__pycache__" and folder != TABLES
    }

    assert {name: count for name, count in counts.items() if count > MOST_ENTRIES} == {}
