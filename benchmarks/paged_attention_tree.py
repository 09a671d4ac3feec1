"""Measure the choices of paged attention on this GPU, and write the decision tree that follows.

usage: python benchmarks/paged_attention_tree.py [--output kernels_smoke/attention/decision.py] [--depth 3]
                                                 [--measured FILE.json] [--device cuda|cpu]

Prints each batch with the time of every choice, then the tree: nested conditions on a batch's sizes known on the host,
and how much slower than the best choice of each batch it is on average. ``--output`` writes it as the module that
``paged_attention`` uses. ``--measured`` keeps the times; an existing file is read instead of measuring. ``--device
cpu`` goes through the same steps in Triton's interpreter, where times mean nothing.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kernels_smoke.attention.batch import Batch, Choice  # found by the line above

CHOICES = (
    Choice("query_blocks"),
    Choice("segments", fill=2),
    *(Choice(stage, fill=fill) for stage in ("tiles", "static") for fill in (0, 2, 4)),
)
FEATURES = ("longest_query", "mean_query", "pairs", "longest_sequence")
HEADS = ((32, 8), (8, 2))  # of Llama 3 8B, on one GPU and on each of four
WORTH_A_CONDITION = 0.01  # of the time, on average over all batches
SEED = 20261122
LINE = 120  # characters, as the formatter has it

Lengths = tuple[tuple[int, int], ...]

BATCHES: tuple[Lengths, ...] = (
    *(  # decoding: as many positions as 4.3 GB of keys and values have, at most
        ((1, length),) * count
        for count in (1, 4, 16, 64, 128)
        for length in (512, 2048, 8192, 32768)
        if count * length <= 2**20
    ),
    ((4, 4096),) * 16,  # a few tokens at once: guessed ones are checked
    ((512, 512),),
    ((4096, 4096),),
    ((16384, 16384),),
    ((512, 512),) * 16,
    ((2048, 2048),) * 4,
    ((512, 8192),),  # a part of a prompt
    ((2048, 32768),),
    ((512, 2048), *((1, 2048),) * 31),  # prompts and decoding
    ((2048, 2048), *((1, 4096),) * 63),
    *(((256, 1024),) * 8 + ((1, length),) * 24 for length in (1024, 16384)),
    ((512, 512), (1, 131072)),
    (*((1024, 1024),) * 2, *((1, 32768),) * 4),
)
UNBOUNDED: tuple[Lengths, ...] = (  # of which the call does not say how long the longest is
    *(((1, length),) * count for count, length in ((1, 32768), (64, 2048), (128, 8192), (400, 2048))),
    ((4, 4096),) * 16,
    ((4096, 4096),),
    ((512, 512),) * 16,
    ((2048, 2048), *((1, 4096),) * 63),
)
TINY: tuple[Lengths, ...] = (((1, 40),), ((9, 9), (1, 33)))


@dataclass(frozen=True)
class Measured:
    """One batch, and the microseconds that each choice took."""

    batch: Batch
    times: Mapping[Choice, float]

    def regret(self, choice: Choice) -> float:
        """The logarithm of how many times as long as the best choice this one takes."""
        return math.log(self.times.get(choice, math.inf) / min(self.times.values()))


@dataclass(frozen=True)
class Node:
    """A condition, ``feature <= threshold``, or a leaf, which has a choice."""

    choice: Choice
    feature: str = ""
    threshold: int = 0
    below: Node | None = None
    above: Node | None = None


def main() -> None:
    """Measure or read, grow, print, write."""
    parser = argparse.ArgumentParser(description="Measure the choices of paged attention and write the tree.")
    parser.add_argument("--output", type=Path, metavar="FILE.py")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--measured", type=Path, metavar="FILE.json")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    if options.measured and options.measured.exists():
        document = json.loads(options.measured.read_text(encoding="utf-8"))
    else:
        document = {"source": source(options.device), "batches": measure_all(options.device)}
        if options.measured:
            options.measured.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    measured = read(document)
    tree = grow(measured, options.depth)
    print(render(tree, f"{document['source']}; {summary(tree, measured)}"))
    if options.output:
        options.output.write_text(render(tree, f"{document['source']}; {summary(tree, measured)}"), encoding="utf-8")


# Measuring


def source(device: str) -> str:
    """The source of the measurements: the date, the device, the versions."""
    import torch  # after TRITON_INTERPRET is set

    name = torch.cuda.get_device_name() if device == "cuda" else "no GPU: times without a meaning"
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in ("torch", "triton"))
    return f"{time.strftime('%Y-%m-%d', time.gmtime())}, {name}, {versions}"


def measure_all(device: str) -> list[dict[str, Any]]:
    """For each batch its sizes known on the host, and (stage, fill, microseconds) for each choice that ran."""
    records = []
    batches = [(lengths, True) for lengths in BATCHES] + [(lengths, False) for lengths in UNBOUNDED]
    for lengths, longest in batches if device == "cuda" else itertools.product(TINY, (True, False)):
        for heads in HEADS:
            records.append(record := _measure(lengths, heads, device, longest=longest))
            best = min(record["times"], key=lambda each: each[2])
            cells = "  ".join(f"{stage}/{fill} {micro:.1f}" for stage, fill, micro in record["times"])
            print(f"{_brief(lengths)}, heads {heads}: {best[0]}/{best[1]} of {cells}", file=sys.stderr, flush=True)
    return records


def _measure(lengths: Lengths, heads: tuple[int, int], device: str, *, longest: bool) -> dict[str, Any]:
    import torch  # as above
    from triton import OutOfResources  # as above

    from kernels_smoke.attention.cases import KERNELS, launch  # as above
    from kernels_smoke.suite.speed.timing import input_sets, measure  # as above

    shape: dict[str, Any] = {"batch": lengths, "heads": heads, "longest": longest, "spare": 0}
    if device == "cpu":
        shape |= {"heads": (2, 1), "head_dim": 16, "dtype": torch.float32}
    module: Any = importlib.import_module("kernels_smoke.attention.paged_attention")
    most = 64 if device == "cuda" else 1
    sets = input_sets(KERNELS["paged_attention"], shape, device=device, seed=SEED, most=most)
    measured_batches: list[Batch] = []
    times = []
    before = module.configure
    for choice in CHOICES:

        def configure(batch: Batch, _: Choice, architecture: str, choice: Choice = choice) -> Any:
            measured_batches.append(batch)
            return before(batch, choice, architecture)

        module.configure = configure  # that plain calls look for: they keep the layouts of others
        try:
            calls = [lambda each=each: launch(module, each.inputs, each.outputs) for each in sets]
            times.append((choice.stage, choice.fill, measure(calls, device=device).microseconds))
        except OutOfResources as error:  # more shared memory than there is: no choice for this batch
            print(f"{_brief(lengths)}, {choice}: {error}", file=sys.stderr, flush=True)
        finally:
            module.configure = before
    return {"batch": asdict(measured_batches[0]), "times": times}


def _brief(lengths: Lengths) -> str:
    """``1 x (2048 of 2048), 63 x (1 of 4096)``."""
    return ", ".join(f"{lengths.count(each)} x ({each[0]} of {each[1]})" for each in dict.fromkeys(lengths))


def read(document: Mapping[str, Any]) -> list[Measured]:
    """The results of ``measure_all``, read from a file."""
    return [
        Measured(Batch(**record["batch"]), {Choice(stage, fill): micro for stage, fill, micro in record["times"]})
        for record in document["batches"]
    ]


# The tree


def best(measured: Sequence[Measured]) -> Choice:
    """The choice with the least regret over ``measured``; the first of several."""
    return min(CHOICES, key=lambda choice: _regret(measured, choice))


def _regret(measured: Sequence[Measured], choice: Choice) -> float:
    return sum(each.regret(choice) for each in measured)


def grow(measured: Sequence[Measured], depth: int, everything: int = 0) -> Node:
    """The tree of at most ``depth`` conditions in a row, each of which was the best one where it is.

    A condition stays only when it takes ``WORTH_A_CONDITION`` off the average regret of all (``everything``) batches.
    """
    choice = best(measured)
    everything = everything or len(measured)
    if not depth:
        return Node(choice)
    found: tuple[float, str, int] | None = None
    for feature in FEATURES:
        for threshold in thresholds([getattr(each.batch, feature) for each in measured]):
            parts = _parted(measured, feature, threshold)
            regret = sum(_regret(part, best(part)) for part in parts)
            if found is None or regret < found[0]:
                found = (regret, feature, threshold)
    if found is None or found[0] == math.inf:
        return Node(choice)
    _, feature, threshold = found
    below, above = (grow(part, depth - 1, everything) for part in _parted(measured, feature, threshold))
    node = Node(choice, feature, threshold, below, above)
    gain = _regret(measured, choice) - sum(each.regret(decide(node, each.batch)) for each in measured)
    return node if gain > WORTH_A_CONDITION * everything else Node(choice)


def thresholds(values: Sequence[float]) -> list[int]:
    """A whole number between each two neighbours of ``values``, in the middle by ratio; not below the lower one."""
    ordered = sorted(set(values))
    middles = ((low, math.floor(math.sqrt(low * high)), high) for low, high in itertools.pairwise(ordered))
    return [middle if middle >= low else math.ceil(low) for low, middle, high in middles if math.ceil(low) < high]


def _parted(measured: Sequence[Measured], feature: str, threshold: int) -> tuple[list[Measured], list[Measured]]:
    below = [each for each in measured if getattr(each.batch, feature) <= threshold]
    return below, [each for each in measured if getattr(each.batch, feature) > threshold]


def decide(node: Node, batch: Batch) -> Choice:
    """The choice of the tree for ``batch``."""
    while node.below and node.above:
        node = node.below if getattr(batch, node.feature) <= node.threshold else node.above
    return node.choice


def summary(tree: Node, measured: Sequence[Measured]) -> str:
    """How much slower than the best choice of each batch the tree is: on average (geometric) and at worst."""
    ratios = [math.exp(each.regret(decide(tree, each.batch))) for each in measured]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{mean:.3f} times the best choice of {len(ratios)} batches, at worst {max(ratios):.2f}"


# The module

HEAD = '''"""Which stage a batch gets: nested conditions, as ``benchmarks/paged_attention_tree.py`` writes them.

That script measures the choices on a GPU and replaces this file: change the script, not what it wrote.
"""

from __future__ import annotations

from kernels_smoke.attention.batch import Batch, Choice

'''


def render(tree: Node, source: str) -> str:
    """The module ``decision.py`` for ``tree``."""
    unused = "" if tree.feature else "  # noqa: ARG001  # one choice was the best for all"
    function = [
        f"def choose(batch: Batch) -> Choice:{unused}",
        '    """The choice for ``batch``."""',
        *_lines(tree, "    "),
    ]
    return "\n".join([f"{HEAD}{_wrapped(source)}", "", "", *function, ""])


def _wrapped(source: str) -> str:
    """``SOURCE = ...``, on one line or on a line for each part between semicolons."""
    if len(source) <= LINE - len('SOURCE = ""'):
        return f'SOURCE = "{source}"'
    first, *rest = source.split("; ")
    return "\n".join(["SOURCE = (", f'    "{first}"', *(f'    "; {part}"' for part in rest), ")"])


def _lines(node: Node, indent: str) -> list[str]:
    if not (node.below and node.above):
        fill = f", fill={node.choice.fill}" if node.choice.fill else ""
        return [f'{indent}return Choice("{node.choice.stage}"{fill})']
    condition = f"{indent}if batch.{node.feature} <= {node.threshold}:"
    return [condition, *_lines(node.below, indent + "    "), *_lines(node.above, indent)]


if __name__ == "__main__":
    main()
