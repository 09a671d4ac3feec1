"""Print how many files of the corpora of pins each way of taking torch out gets right, byte for byte.

It is compared with two methods of scripts in the wild, re-implemented from their behaviour: dropping every line with
"torch" (``substring``), and every line that starts with a common pin (``prefix``). Exits 1 when ours gets a file wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from wheel_checks.errors import WheelproofError
from wheelproof.pins import NameSet, Policy, plan

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
CORPORA = (DATA / "pins", DATA / "pins-by-effect")
PREFIXES = ("torch=", "torchvision=", "torchaudio=", '"torch =', '"torchvision =', '"torchaudio =')


Files = dict[Path, bytes]


def ours(path: Path, names: NameSet) -> Files:
    """The result of ``wheelproof pins rewrite --conda`` for a file, or the files of a folder."""
    files = plan([path], Policy(names=names, conda=True)).files
    return _contents(path) | {file.target: file.rewritten for file in files}


def substring(path: Path, _: NameSet) -> Files:
    """Without the lines with "torch" in any case; line ends become Unix ones, as in text mode."""
    return {file: _without(file, lambda line: "torch" in line.lower()) for file in _contents(path)}


def prefix(path: Path, _: NameSet) -> Files:
    """Without the lines that start with the most common spelling of a pin."""
    return {file: _without(file, lambda line: line.strip().startswith(PREFIXES)) for file in _contents(path)}


def _contents(path: Path) -> Files:
    """The files at a path, by their real paths."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return {file.resolve(): file.read_bytes() for file in files}


def _without(path: Path, goes: Callable[[str], bool]) -> bytes:
    with path.open(encoding="utf-8") as file:
        return "".join(line for line in file if not goes(line)).encode()


METHODS: dict[str, Callable[[Path, NameSet], Files]] = {"wheelproof": ours, "substring": substring, "prefix": prefix}


def is_right(method: Callable[[Path, NameSet], Files], corpus: Path, name: str, names: NameSet) -> bool:
    """Whether a method gives the expected result for every file of a case."""
    root, expected = (corpus / "input" / name).resolve(), (corpus / f"expected-{names}" / name).resolve()
    try:
        made = {path for path in method(root, names).items() if path[0].is_relative_to(root)}
        return {(str(path.relative_to(root)), data) for path, data in made} == {
            (str(path.relative_to(expected)), data) for path, data in _contents(expected).items()
        }
    except (WheelproofError, UnicodeError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False


def main() -> int:
    """Print a line per file, and the sums; 1 when ours is not perfect."""
    cases = [
        (corpus, case["name"])
        for corpus in CORPORA
        for case in json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))
    ]
    perfect = True
    for names in NameSet:
        right = {method: [case for case in cases if is_right(call, *case, names)] for method, call in METHODS.items()}
        print(f"{f'set {names}':45}{''.join(f'{method:>12}' for method in METHODS)}")
        for case in cases:
            print(
                f"{case[1]:45}" + "".join(f"{'right' if case in right[method] else 'wrong':>12}" for method in METHODS)
            )
        print(f"{'':45}" + "".join(f"{f'{len(right[method])} of {len(cases)}':>12}" for method in METHODS) + "\n")
        perfect = perfect and len(right["wheelproof"]) == len(cases)
    return 0 if perfect else 1


if __name__ == "__main__":
    sys.exit(main())
