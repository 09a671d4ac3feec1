"""Sources of external kernels: a file, a module or an entry point of the interpreter that is judged.

Imports neither torch nor triton: the user's files do. Runs in a child with a deadline.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import stat
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from kernels_smoke.suite.model import Function

if TYPE_CHECKING:
    from kernels_smoke.suite.model import Kernel

GROUP = "wheelproof.kernels"  # of entry points
LIST = "KERNELS"  # the name of a file's list of functions
MOST_BYTES, MOST_KERNELS = 1 << 20, 1000  # a file is a page, and each kernel takes a second


class OwnKernelsError(Exception):
    """A fault of a file of kernels, as a sentence that begins with its name. ``details`` is a traceback, or ""."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


def plugins() -> Iterator[tuple[str, str]]:
    """The source and the label of each entry point; nothing is imported."""
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        package = f" of {point.dist.name}" if point.dist is not None else ""
        yield point.value.replace(" ", ""), f"entry point {point.name}{package}"


def family_of(source: str) -> str:
    """The family name of a source's kernels: the name of the file, or the last part of the module's."""
    return Path(source).stem if is_path(source) else source.partition(":")[0].rpartition(".")[2]


def is_path(source: str) -> bool:
    """Whether a source is a file, and not a module of the interpreter."""
    return source.endswith(".py") or "/" in source


@functools.cache
def load(source: str) -> dict[str, Kernel]:
    """Import a source and return its kernels, by name. Raises OwnKernelsError."""
    from kernels_smoke.suite.own.description import described  # it imports torch, which listing kernels does without

    module_name, _, attribute = (source, "", "") if is_path(source) else source.partition(":")
    module = _imported(source, module_name)
    found: object = module
    for part in (attribute or LIST).split("."):
        found = getattr(found, part, None)
    named = f"{source} has no list {attribute or LIST}"
    if isinstance(found, Mapping):
        found = tuple(found.values())
    if not isinstance(found, Sequence) or not found:
        raise OwnKernelsError(f"{named} of kernels_smoke.suite.model.Function")
    if len(found) > MOST_KERNELS:
        raise OwnKernelsError(f"{source} has {len(found)} kernels; the limit is {MOST_KERNELS}")
    kernels: dict[str, Kernel] = {}
    for number, function in enumerate(found):
        if not isinstance(function, Function):
            raise OwnKernelsError(f"{source}: {LIST}[{number}] is a {type(function).__name__}; expected a Function")
        try:
            kernel = described(function, module.__name__)
        except Exception as error:  # a description may fail in any way
            raise OwnKernelsError(f"{source}: {LIST}[{number}]: {error}") from error
        if kernel.name in kernels:
            raise OwnKernelsError(f"{source} has two kernels called {kernel.name}; give one of them another name=")
        kernels[kernel.name] = kernel
    return kernels


def _imported(source: str, name: str) -> ModuleType:
    path = Path(source) if is_path(source) else None
    try:
        if path is None:
            return importlib.import_module(name)
        return _from_file(path)
    except OwnKernelsError:
        raise
    except BaseException as error:  # a file may raise anything, also SystemExit; its kernels then do not run
        trace = "".join(traceback.format_exception(error)).strip()
        raise OwnKernelsError(f"{source} cannot be imported: {_sentence(error, path)}", trace) from error


def _from_file(path: Path) -> ModuleType:
    try:
        found = path.stat()
    except OSError as error:
        raise OwnKernelsError(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise OwnKernelsError(f"{path} is not a regular file; expected a Python file")
    if found.st_size > MOST_BYTES:
        raise OwnKernelsError(f"{path} has {found.st_size} bytes; the limit is {MOST_BYTES}")
    name = f"kernels_of_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise OwnKernelsError(f"{path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # at the end, so that no neighbour of the file hides an installed package
    spec.loader.exec_module(module)
    return module


def _sentence(error: BaseException, path: Path | None) -> str:
    """The error with the line of the user's file in which it was raised."""
    text = str(error).strip().splitlines()
    message = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if path and frame.filename == str(path)
    ]
    if isinstance(error, SyntaxError) or not lines:  # which says the line itself
        return message
    return f"{message} (line {lines[-1]})"
