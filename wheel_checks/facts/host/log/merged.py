"""The blocks of a log put together. Those that contradict each other are of two machines, or of two times: not mixed.

What comes last counts: it is what was there when the log ended. After an installer has changed torch, what was said of
the packages before no longer holds.
"""

import re
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache

from wheel_checks.facts.host.log.blocks import MOST_BLOCKS, Block, Shown, blocks_of
from wheel_checks.facts.host.log.facts import Log
from wheel_checks.facts.host.tables import capability_of
from wheel_checks.facts.host.torch.choice import public

CUDA = re.compile(r"\d{1,2}\.\d", re.ASCII)
DRIVER = re.compile(r"\d{3}(?:\.\d{1,3}){1,2}", re.ASCII)
_CHANGES = re.compile(
    r"""^(?:Successfully\ installed\b(?:\ (?!torch-\d)\S+)*\ torch-\d
      | Installing\ collected\ packages:[^\n]{0,1500}\btorch\b
      | \ *[-+~]\ torch==\d
      | The\ following\ (?:NEW\ )?packages\ will\ be\ [A-Z]{5,12}
      | (?:Found\ existing\ installation:|Attempting\ uninstall:)\ torch\b)""",
    re.MULTILINE | re.VERBOSE,
)
_PER_PLACE = frozenset({"torch", "cuda", "hip", "available", "python"})  # of an environment, not of a machine


@dataclass(slots=True)
class Seen:
    """What the blocks so far say together."""

    host: str = ""
    has_env: bool = False
    values: dict[str, Shown] = field(default_factory=dict)
    gpus: tuple[Shown, ...] = ()
    amd: tuple[tuple[Shown, str], ...] = ()
    packages: dict[str, Shown] = field(default_factory=dict)
    conda: dict[str, str] = field(default_factory=dict)


@lru_cache(maxsize=1)  # of one log, several ask
def merged(log: Log) -> Seen:
    """What the last blocks say together that do not contradict each other."""
    seen, changed, changes = Seen(), 0, _changes(log)
    for block in blocks_of(log):
        if any(changed < line < block.line for line in changes):
            changed = block.line
            _forget_packages(seen)
        if _contradicts(seen, block):
            seen = Seen()
        seen.host = block.host or seen.host
        seen.has_env |= block.kind == "collect_env"
        seen.values |= block.values
        seen.gpus = block.gpus if len(block.gpus) > len(seen.gpus) else seen.gpus
        seen.amd = block.amd or seen.amd
        seen.packages |= block.packages
        seen.conda |= block.conda
    if any(line > changed and line > _last_line(seen) for line in changes):
        _forget_packages(seen)
    return seen


def _last_line(seen: Seen) -> int:
    lines = [one.line for one in (*seen.packages.values(), *(seen.values[k] for k in _PER_PLACE & set(seen.values)))]
    return max(lines, default=0)


def _forget_packages(seen: Seen) -> None:
    for key in _PER_PLACE & set(seen.values):
        del seen.values[key]
    seen.packages.clear()
    seen.conda.clear()


def _contradicts(seen: Seen, block: Block) -> bool:
    """Whether a block is of another machine, of another environment, or of another time than those before it."""
    if (block.kind == "collect_env" and seen.has_env) or (block.host and seen.host and block.host != seen.host):
        return True
    for key, shown in block.values.items():
        if key not in {"torch", "gpu"} and key in seen.values and not _agree(key, seen.values[key].value, shown.value):
            return True
    torches = [
        one.value
        for one in (
            *(side.get("torch") for side in (seen.values, block.values)),
            *(side.get(name) for side in (seen.packages, block.packages) for name in ("torch", "pytorch")),
        )
        if one is not None
    ]
    if any(not _same_release(one, two) for one in torches for two in torches):
        return True
    both = seen.packages.keys() & block.packages.keys()
    if not all(_same_release(seen.packages[name].value, block.packages[name].value) for name in both):
        return True
    return not _same_gpus(seen.gpus, block.gpus) or _lacks_gpu(seen, block.gpus) or _lacks_gpu(block, seen.gpus)


def _agree(key: str, one: str, other: str) -> bool:
    """Whether two values may be of one machine. What nvidia-smi could not say (N/A, ERR!) is not a contradiction."""
    return one == other or (key in {"driver", "driver_cuda"} and any(text in {"N/A", "ERR!"} for text in (one, other)))


def _same_release(one: str, other: str) -> bool:
    """Whether two versions may be of one distribution: what METADATA says may lack the build."""
    return public(one) == public(other) and (one == other or "+" not in one or "+" not in other)


def _same_gpus(one: tuple[Shown, ...], other: tuple[Shown, ...]) -> bool:
    """Whether the GPUs may be those of one machine, of which one block lists fewer; names may be cut."""
    first, second = ({capability_of(gpu.value) or gpu.value for gpu in gpus} for gpus in (one, other))
    return first <= second or second <= first


def _lacks_gpu(env: Seen | Block, gpus: tuple[Shown, ...]) -> bool:
    """Whether collect_env found no GPU where another block lists some; with a build for ROCm it looks for none."""
    of_rocm = "hip" in env.values and env.values["hip"].value != "N/A"
    return bool(gpus) and not env.gpus and "gpu" in env.values and not of_rocm


def _changes(log: Log) -> list[int]:
    """The lines in which an installer changes torch; of very many the last ones."""
    found = deque((match.start() for match in _CHANGES.finditer(log.text)), maxlen=MOST_BLOCKS)
    return [log.line_at(position)[0] for position in found]


def torch_of(seen: Seen) -> Shown | None:
    """The torch version, as torch itself says it, else as a list has it; None where neither is shown."""
    return seen.values.get("torch") or seen.packages.get("torch") or seen.packages.get("pytorch")
