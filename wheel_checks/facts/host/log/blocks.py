"""What a log quotes of a machine: blocks of collect_env, of nvidia-smi, and of lists of packages, line by line.

A block is read as its program writes it, and a value of another form is omitted. Sources: ``collect_env.py``
of torch 2.4 to 2.11, ``collect_env.py`` of vLLM (the same names, in columns), nvidia-smi of the drivers 470 to 595 (the
table, ``-L`` and ``-q``), rocminfo of ROCm 6, pip 25, uv 0.9, conda 25.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from packaging.utils import canonicalize_name

from wheel_checks.facts.host.log.facts import Log
from wheel_checks.facts.host.log.lists import PackageList, package_lists

MOST_BLOCKS = 200  # of each kind; of more the last ones count
MOST_VALUES = 20_000  # lines of blocks; likewise
MOST_GPUS = 64
_NEAR = 120  # lines between two names of one block of collect_env; vLLM's has the CPU and the packages between them

_NAMES = {
    "PyTorch version": "torch",
    "CUDA used to build PyTorch": "cuda",
    "ROCM used to build PyTorch": "hip",
    "OS": "os",
    "Libc version": "libc",
    "Python version": "python",
    "Python platform": "platform",
    "Is CUDA available": "available",
    "Nvidia driver version": "driver",
    "GPU models and configuration": "gpu",
}
_LINES = re.compile(
    rf"""^(?:
        (?P<name>{"|".join(name.replace(" ", "[ ]") for name in _NAMES)})[ ]*:(?P<value>[^\n]{{0,300}})$
      | \|?[ ]*(?:NVIDIA-SMI[ ]+\S{{1,20}}[ ]+)?(?:Driver|KMD)[ ]Version:[ ]*(?P<driver>\S{{1,20}})
        [ ]+CUDA[ ](?:UMD[ ])?Version:[ ]*(?P<driver_cuda>[\w./!]{{1,10}})
      | =+(?P<log>NVSMI[ ]LOG)=+$
      | (?:Driver|KMD)[ ]Version[ ]+:[ ](?P<log_driver>\S{{1,20}})$
      | CUDA[ ](?:UMD[ ])?Version[ ]+:[ ](?P<log_cuda>\S{{1,10}})$
      | Product[ ]Name[ ]+:[ ](?P<log_gpu>[^\n]{{2,80}})$
      | GPU[ ]\d{{1,3}}:[ ](?P<gpu>[^\n(]{{2,80}}(?:\([^\n)U][^\n)]{{0,20}}\))?)(?:[ ]\(UUID:[^\n]{{0,80}})?$
      | \|[ ]+\d{{1,3}}[ ]+(?P<row>[A-Z][\w. -]{{2,60}}?)(?:[ ]?\.\.\.)?[ ]+(?:On|Off|N/A|WDDM|TCC|MCDM)[ ]+\|
      | Name:[ ]+(?P<target>gfx[0-9a-f]{{3,5}})$
      | Chip[ ]ID:[ ]+\d{{1,6}}\(0x(?P<chip>[0-9a-f]{{4}})\)$
      | (?P<none>No[ ]devices[ ]were[ ]found)
    )""",
    re.MULTILINE | re.VERBOSE,
)
_BEGIN = {"driver_cuda": "nvidia-smi", "log": "nvidia-smi", "none": "nvidia-smi", "target": "rocminfo"}
_PROMPT = re.compile(r"[\w.-]{1,40}@(?P<host>[\w.-]{1,60})[:~ ]")


@dataclass(frozen=True, slots=True)
class Shown:
    """A value, the number of its line, and that line."""

    value: str
    line: int
    quote: str


@dataclass(frozen=True, slots=True)
class Block:
    """What one block shows. ``kind`` is collect_env, nvidia-smi, rocminfo or packages; ``line`` is its first line.

    ``values`` are by the keys torch, cuda, hip, os, libc, python, platform, available, driver and driver_cuda; ``host``
    is the name of the machine in the prompt before it, "" where none exists. ``amd`` are the targets of AMD's GPUs
    ("gfx942"), each with its number on the PCI bus ("74a1").
    """

    kind: str
    line: int
    host: str = ""
    values: Mapping[str, Shown] = field(default_factory=dict)
    gpus: tuple[Shown, ...] = ()
    amd: tuple[tuple[Shown, str], ...] = ()
    packages: Mapping[str, Shown] = field(default_factory=dict)
    conda: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Open:
    """A block that is being read; ``last`` is the line of its last value, ``key`` the name of that value."""

    kind: str
    line: int
    position: int
    last: int = 0
    key: str = ""
    values: dict[str, Shown] = field(default_factory=dict)
    gpus: list[Shown] = field(default_factory=list)
    amd: list[tuple[Shown, str]] = field(default_factory=list)


@lru_cache(maxsize=1)  # of one log, several ask
def blocks_of(log: Log) -> tuple[Block, ...]:
    """The blocks in the order of the log, the last ``MOST_BLOCKS`` of each kind."""
    found: deque[_Open] = deque(maxlen=MOST_BLOCKS)
    for match in deque(_LINES.finditer(log.text), maxlen=MOST_VALUES):
        _take(found, match, log)
    machines = [_closed(one, log) for one in found if _is_whole(one)]
    lists = [_of_packages(one, log) for one in package_lists(log)]
    return tuple(sorted((*machines, *lists), key=lambda block: block.line))


def _take(found: deque[_Open], match: re.Match[str], log: Log) -> None:
    """Put the value of a line where it belongs: into the block before it, or into a new one."""
    key, (line, quote) = str(match.lastgroup), log.line_at(match.start())
    shown, position = Shown(match[key].strip(), line, quote), match.start()
    current = found[-1] if found else None
    if key == "value":
        _take_of_env(found, _NAMES[match["name"]], shown, position)
    elif key == "gpu":
        of_env = current is not None and current.kind == "collect_env" and current.key == "gpu"
        if current is None or not (of_env or current.kind == "list") or line - current.last > 2:
            current = _begin(found, "list", line, position)
        current.last = line
        _add(current.gpus, shown)
    elif key in _BEGIN:
        current = _begin(found, _BEGIN[key], line, position)
        current.values |= {key: shown} if key in {"driver_cuda", "target"} else {}
        current.values |= {"driver": Shown(match["driver"], line, quote)} if key == "driver_cuda" else {}
    elif current is not None:
        _take_of_block(current, key, shown)


def _take_of_env(found: deque[_Open], name: str, shown: Shown, position: int) -> None:
    current = found[-1] if found else None
    near = current is not None and current.kind == "collect_env" and shown.line - current.last <= _NEAR
    if current is None or not near or name in current.values:
        current = _begin(found, "collect_env", shown.line, position)
    current.last, current.key = shown.line, name
    current.values[name] = shown
    if name == "gpu" and (one := re.fullmatch(r"GPU \d{1,3}: ([^\n(]{2,80}?)", shown.value)):
        current.gpus.append(Shown(one[1].strip(), shown.line, shown.quote))


def _take_of_block(current: _Open, key: str, shown: Shown) -> None:
    """A value that means something in a block of its program alone."""
    if current.kind == "rocminfo" and key == "chip" and not current.amd:
        current.amd.append((current.values["target"], shown.value))
    elif current.kind == "nvidia-smi" and key in {"row", "log_gpu"}:
        _add(current.gpus, shown)
    elif current.kind == "nvidia-smi" and key in {"log_driver", "log_cuda"}:
        current.values.setdefault("driver" if key == "log_driver" else "driver_cuda", shown)


def _add(gpus: list[Shown], gpu: Shown) -> None:
    if len(gpus) < MOST_GPUS:
        gpus.append(gpu)


def _begin(found: deque[_Open], kind: str, line: int, position: int) -> _Open:
    found.append(_Open(kind, line, position, line))
    return found[-1]


def _is_whole(block: _Open) -> bool:
    """Whether a block is one: of collect_env there must be more than a name that other programs write, too."""
    if block.kind == "collect_env":
        return "torch" in block.values and len(block.values) > 1
    if block.kind == "rocminfo":
        return bool(block.amd)
    return bool(block.gpus or block.values)


def _closed(block: _Open, log: Log) -> Block:
    kind = "nvidia-smi" if block.kind == "list" else block.kind
    values = {} if kind == "rocminfo" else block.values
    return Block(kind, block.line, _host(log, block.position), values, tuple(block.gpus), tuple(block.amd))


def _of_packages(found: PackageList, log: Log) -> Block:
    packages: dict[str, Shown] = {
        canonicalize_name(name): Shown(version, *log.line_at(position))
        for name, (version, position) in found.packages.items()
    }
    line, _ = log.line_at(found.start)
    return Block("packages", line, _host(log, found.start), packages=packages, conda=found.conda)


def _host(log: Log, position: int) -> str:
    """The machine of the last prompt in the five lines before a block."""
    start = position
    for _ in range(5):
        start = log.text.rfind("\n", 0, max(start - 1, 0)) + 1
    prompts = list(_prompts(log.text[start:position]))
    return prompts[-1] if prompts else ""


def _prompts(text: str) -> Iterator[str]:
    return (match["host"] for match in _PROMPT.finditer(text))
