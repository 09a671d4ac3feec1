"""A matrix and its cells: which torch on which platform, what it must be, and how far it is tried there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from wheel_checks.decode import Made
from wheel_checks.errors import UsageError
from wheel_checks.facts.expectations import AcceleratorExpectation, parse_expectation
from wheel_checks.targets.target import Target, parse_platform, parse_python

Accelerator = Annotated[AcceleratorExpectation, Made(parse_expectation)]
CUDA = AcceleratorExpectation("cuda", SpecifierSet())
LATEST, NIGHTLY = "latest", "nightly"  # words for a torch: the latest release, the latest development build
GPU_RUNNER = "gpu"  # the key of [runners] for cells that need a GPU; the others are platforms


class Smoke(StrEnum):
    """What the smoke test of a cell does: run kernels in Triton's interpreter, compile them, run them on a GPU."""

    INTERPRET = "interpret"
    COMPILE = "compile"
    CUDA = "cuda"


@dataclass(frozen=True, slots=True)
class Known:
    """Where the world is known to differ from what a cell wants: what torch is present, and why that is so."""

    accelerator: Accelerator
    reason: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. ``id`` is safe as the name of a folder: ``aarch64-py3.11-torch2.10.0``.

    ``platform`` is the machine ("x86_64" or "aarch64"), ``glibc`` the latest whose wheels are taken ("2.28").
    ``torch`` is a version, a specifier such as ">=2.11", ``LATEST`` or ``NIGHTLY``; ``packages`` are requirements that
    are installed next to it. ``wheel`` is the wheel under test (a path, a glob, a URL or a requirement; a requirement
    once :mod:`wheelproof.matrix.tested` has read it), ``imports`` the modules that must import, ``command`` a command
    of the shell that must end with status 0, ``junit`` the pattern of its JUnit reports. ``index`` and ``find_links``
    are asked before what is configured here, ``torch_index`` is where torch alone is from; ``pre`` allows pre-releases,
    ``constraints`` are requirements that limit versions. ``env`` are variables of what runs in the cell,
    ``system_packages`` are Debian's. ``accelerator`` is what torch must be there, and ``expect`` what it is known to be
    instead (None: nothing is known). ``gpu`` are the products that the kernels are compiled for. ``smoke`` says how
    kernels are tried, ``level`` and ``kernels`` (names or families, all when empty) which. ``image`` is that of the
    Docker executor, "" for its own. ``runner`` are the labels of the GitHub runner, ``deadline`` the seconds that the
    cell may take, ``timeout`` those of each step (None: as the deadline), ``retries`` how often a step that the network
    failed is tried again.
    """

    id: str
    platform: str
    python: str
    torch: str
    accelerator: AcceleratorExpectation = CUDA
    gpu: tuple[str, ...] = ()
    smoke: tuple[Smoke, ...] = ()
    level: str = "quick"
    kernels: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    wheel: str = ""
    imports: tuple[str, ...] = ()
    command: str = ""
    junit: str = ""
    index: tuple[str, ...] = ()
    torch_index: str = ""
    find_links: tuple[str, ...] = ()
    pre: bool = False
    constraints: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    system_packages: tuple[str, ...] = ()
    glibc: str = "2.28"
    image: str = ""
    expect: Known | None = None
    runner: tuple[str, ...] = ()
    deadline: float = 900.0
    timeout: float | None = None
    retries: int = 0

    @property
    def target(self) -> Target:
        """What the cell's requirements are resolved for."""
        ((machine, glibc),) = parse_platform(f"manylinux_{self.glibc.replace('.', '_')}_{self.platform}")
        python, patch, free_threaded = parse_python(self.python)
        return Target(python, machine, glibc, free_threaded, patch)

    @property
    def torch_requirement(self) -> str:
        """What is asked of torch."""
        if self.torch in (LATEST, NIGHTLY):
            return "torch"
        return f"torch{'' if self.torch[0] in '<>=!~' else '=='}{self.torch}"

    @property
    def requirements(self) -> tuple[str, ...]:
        """What is installed: torch, the wheel under test, and the further packages."""
        return (self.torch_requirement, *([self.wheel] if self.wheel else []), *self.packages)

    @property
    def under_test(self) -> tuple[str, ...]:
        """The projects whose own modules must import: the wheel under test, and packages that are named by URL."""
        named = [Requirement(text) for text in self.requirements]
        return tuple(found.name for found in named if found.url or str(found) == self.wheel)

    @property
    def executes(self) -> tuple[str, ...]:
        """The keys that run something of the matrix's own, or say where what is installed is from."""
        given = {
            "wheel": self.wheel,
            "import": self.imports,
            "command": self.command,
            "index": self.index,
            "torch-index": self.torch_index,
            "find-links": self.find_links,
            "constraints": self.constraints,
            "env": self.env,
            "system-packages": self.system_packages,
        }
        return tuple(key for key, value in given.items() if value)

    @property
    def needs_gpu(self) -> bool:
        """Whether a GPU must be there."""
        return Smoke.CUDA in self.smoke

    @property
    def expected(self) -> AcceleratorExpectation:
        """What torch is expected to be: what is known, else what is wanted."""
        return self.expect.accelerator if self.expect else self.accelerator


@dataclass(frozen=True, slots=True)
class Matrix:
    """The cells of a matrix, in the order of its axes; ``source`` names the file."""

    source: str
    cells: tuple[Cell, ...]

    def only(self, patterns: Sequence[str]) -> tuple[Cell, ...]:
        """The cells whose ids match one of the globs, all if none exists. Raises UsageError for one without any."""
        for pattern in patterns:
            if not any(fnmatchcase(cell.id, pattern) for cell in self.cells):
                raise UsageError(
                    f"no cell of {self.source} matches {pattern!r}",
                    expected=f"one of {', '.join(cell.id for cell in self.cells)}, or a pattern such as 'aarch64-*'",
                )
        return tuple(c for c in self.cells if not patterns or any(fnmatchcase(c.id, pattern) for pattern in patterns))
