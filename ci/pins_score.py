"""Print how many files of the corpus of pins each way of taking torch out gets right, byte for byte.

Beside ``wheelproof pins rewrite`` stand two ways that scripts in the wild have, re-implemented from their behaviour:
dropping every line that holds "torch" (``substring``), and every line that begins with a pin as one writes it most
often (``prefix``). Exits 1 when ours gets a file wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from wheel_checks.errors import WheelproofError
from wheelproof.pins import NameSet, Policy, plan

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "data" / "pins"
PREFIXES = ("torch=", "torchvision=", "torchaudio=", '"torch =', '"torchvision =', '"torchaudio =')


def ours(path: Path, names: NameSet) -> bytes:
    """What ``wheelproof pins rewrite --conda`` makes of a file."""
    files = plan([path], Policy(names=names, conda=True)).files
    return next(file.rewritten for file in files if file.target == path.resolve())


def substring(path: Path, _: NameSet) -> bytes:
    """Without the lines that hold "torch" in any case; line ends become those of Unix, as text mode has it."""
    return _without(path, lambda line: "torch" in line.lower())


def prefix(path: Path, _: NameSet) -> bytes:
    """Without the lines that begin with the most common spelling of a pin."""
    return _without(path, lambda line: line.strip().startswith(PREFIXES))


def _without(path: Path, goes: Callable[[str], bool]) -> bytes:
    with path.open(encoding="utf-8") as file:
        return "".join(line for line in file if not goes(line)).encode()


WAYS: dict[str, Callable[[Path, NameSet], bytes]] = {"wheelproof": ours, "substring": substring, "prefix": prefix}


def is_right(way: Callable[[Path, NameSet], bytes], name: str, names: NameSet) -> bool:
    """Whether a way gives what the corpus expects."""
    try:
        return way(CORPUS / "input" / name, names) == (CORPUS / f"expected-{names}" / name).read_bytes()
    except (WheelproofError, UnicodeError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False


def main() -> int:
    """Print a line per file, and the sums; 1 when ours is not perfect."""
    cases = [case["name"] for case in json.loads((CORPUS / "manifest.json").read_text(encoding="utf-8"))]
    perfect = True
    for names in NameSet:
        right = {way: [name for name in cases if is_right(call, name, names)] for way, call in WAYS.items()}
        print(f"{f'set {names}':40}{''.join(f'{way:>12}' for way in WAYS)}")
        for name in cases:
            print(f"{name:40}" + "".join(f"{'right' if name in right[way] else 'wrong':>12}" for way in WAYS))
        print(f"{'':40}" + "".join(f"{f'{len(right[way])} of {len(cases)}':>12}" for way in WAYS) + "\n")
        perfect = perfect and len(right["wheelproof"]) == len(cases)
    return 0 if perfect else 1


if __name__ == "__main__":
    sys.exit(main())
