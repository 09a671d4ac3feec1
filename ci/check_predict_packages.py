#!/usr/bin/env python3
"""Compares rows of tests/data/predict/packages.json with the METADATA on the package index: ``--count N`` of them."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from packaging.requirements import Requirement  # noqa: E402  # from the folder above
from packaging.utils import canonicalize_name  # noqa: E402

from wheel_checks.facts.wheel.resolution import metadata_reader  # noqa: E402
from wheel_checks.sources.client import HttpClient  # noqa: E402
from wheel_checks.sources.installers.config import configured_indexes  # noqa: E402
from wheel_checks.sources.simple_index import SimpleIndex  # noqa: E402
from wheel_checks.targets.selection import choose  # noqa: E402
from wheel_checks.targets.target import parse_targets  # noqa: E402

DATA = ROOT / "tests" / "data" / "predict" / "packages.json"


def main() -> int:
    """Print the rows that differ; 1 when one does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = [
        row for row in json.loads(DATA.read_text())["packages"] if not row.get("made_up") and not row.get("archive")
    ]
    wrong = 0
    (target,) = parse_targets(["x86_64"], ["3.12"])
    with HttpClient() as client:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))
        for row in random.Random(arguments.seed).sample(rows, arguments.count):  # noqa: S311  # a sample, no secret
            requirement = Requirement(f"{row['name']}=={row['version']}")
            choice = choose(requirement, index.files(row["name"]).files, target, pre=True)
            if choice.chosen is None:
                print(f"{requirement}: {choice.explanation}")
                wrong += 1
                continue
            found = {
                (canonicalize_name(one.name), str(one.specifier))
                for one in metadata_reader(client)(choice.chosen).requirements
            }
            stated = [Requirement(text) for text in row.get("requires", ())]  # uv writes markers in its own way
            missing = [str(one) for one in stated if (canonicalize_name(one.name), str(one.specifier)) not in found]
            print(f"{requirement}: {'differs: ' + '; '.join(missing) if missing else 'the same'}")
            wrong += bool(missing)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
