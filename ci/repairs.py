"""Break environments of stand-in wheels as users do, and fix each with ``wheelproof doctor --fix --yes``.

    python ci/repairs.py                 # all of them: a table, and exit code 1 if one was not fixed
    python ci/repairs.py --only vllm     # those whose name has this word
    python ci/repairs.py --keep FOLDER   # keep the environments in FOLDER

Each is fixed offline from a local index: the rule that fired passes, torch is imported, ``uv pip check`` finds nothing
that it did not find before, every requirement is met, and ``--undo`` gives the tree of before, byte for byte. The tests
run a sample (``tests/doctor/repair``).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.repairs import BROKEN, Broken, World, conflicts, findings, tree, versions


def mended(broken: Broken, root: Path) -> list[str]:
    """The faults of the repair of one environment; empty if all is well."""
    world, wrong = World(root), []
    environment = broken.make(world)
    before, complaints = tree(environment.folder), conflicts(environment)
    first = world.doctor(environment, "--format", "json", **broken.variables)
    if broken.rule not in findings(first):
        return [f"{broken.rule} is not found: {sorted(findings(first))}"]
    done = world.doctor(environment, "--fix", "--yes", "--format", "json", **broken.variables)
    left = findings(done)
    wrong += [f"{broken.rule} is still found: {done.stderr}"] * (broken.rule in left)
    imported = environment.run(f"{environment.python} -c 'import torch' 2>&1 || true").strip()
    wrong += [f"import torch: {imported[-200:]}"] * bool(imported)
    wrong += [f"uv pip check: {line}" for line in conflicts(environment)]
    installed = versions(environment)
    wrong += [f"{n} is {installed.get(n)}, not {v}" for n, v in broken.installed.items() if installed.get(n) != v]
    wrong += [f"{name} is still there" for name in broken.gone if name in installed]
    undone = world.doctor(environment, "--undo")
    after = tree(environment.folder)
    differing = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    wrong += [f"--undo: {undone.stderr or undone.stdout} {differing[:3]}"] * bool(differing)
    wrong += [f"uv pip check after --undo: {line}" for line in conflicts(environment) - complaints]
    return wrong


def main() -> int:
    """The table, and the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a word of the name")
    parser.add_argument("--keep", type=Path, help="keep the environments there")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        chosen = {name: broken for name, broken in BROKEN.items() if arguments.only in name}
        for number, (name, broken) in enumerate(chosen.items()):
            root = (arguments.keep or Path(folder)) / str(number)
            root.mkdir(parents=True)
            started = time.perf_counter()
            wrong = mended(broken, root)
            failed += bool(wrong)
            print(f"{'FAILED' if wrong else 'mended'}  {time.perf_counter() - started:5.1f} s  {broken.rule}  {name}")
            for sentence in wrong:
                print(f"        {sentence}")
    print(f"{len(chosen) - failed} of {len(chosen)} fixed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
