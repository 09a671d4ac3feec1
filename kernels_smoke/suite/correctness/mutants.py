"""Deliberately broken variants of the kernels, made from their own source by one textual change each.

Triton reads a kernel's source from its file, so a mutant is a module in its own file.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from triton.runtime.jit import JITFunction, KernelInterface

from kernels_smoke.suite.model import Kernel, Mutant


def broken(kernel: Kernel, mutant: Mutant, folder: Path) -> ModuleType:
    """The module of ``kernel`` with the fault of ``mutant``, from a file written into ``folder``.

    When the fault is in another module (``mutant.module``), that one is made too, and the kernel's module imports it.
    Raises ValueError when the text to replace is not there exactly once: such a mutant proves nothing.
    """
    faulty = mutant.module or kernel.module
    source = _source(faulty)
    if (count := source.count(mutant.old)) != 1:
        raise ValueError(f"mutant {mutant.name!r} of {kernel.name}: {mutant.old!r} stands {count} times in {faulty}")
    stem = f"mutant_{abs(hash((kernel.name, mutant.name))):x}"
    made = _load(f"{stem}_{faulty.rpartition('.')[2]}", source.replace(mutant.old, mutant.new), folder)
    if faulty == kernel.module:
        return made
    own = _source(kernel.module)
    if f"from {faulty} import" not in own:
        raise ValueError(f"mutant {mutant.name!r} of {kernel.name}: {kernel.module} imports nothing from {faulty}")
    return _load(stem, own.replace(f"from {faulty} import", f"from {made.__name__} import"), folder)


def launched(made: ModuleType) -> bool:
    """Whether a kernel of ``made``, from :func:`broken`, or of the module with the fault was compiled and launched.

    Where a GPU has a kernel of its kind (Hopper those in Gluon), the one for the others is not. True when this Triton
    does not say.
    """
    stem = "_".join(made.__name__.split("_")[:2])
    modules = {name: module for name, module in list(sys.modules.items()) if name.startswith(stem)}
    values = [_jitted(value) for module in modules.values() for value in vars(module).values()]
    kernels = [value for value in values if isinstance(value, JITFunction) and value.__module__ in modules]
    caches = [getattr(kernel, "device_caches", None) for kernel in kernels]
    return not caches or any(cache is None or any(entry[0] for entry in cache.values()) for cache in caches)


def _jitted(value: object) -> object:
    """What is behind autotuning and heuristics, which have no cache."""
    while isinstance(value, KernelInterface) and not isinstance(value, JITFunction):
        value = getattr(value, "fn", None)
    return value


def _source(module: str) -> str:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(f"there is no module {module}")
    return Path(spec.origin).read_text(encoding="utf-8")


def _load(name: str, source: str, folder: Path) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
