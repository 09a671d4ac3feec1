"""DOC224 to DOC229: changes at the start of Python, and files that the import of torch finds or lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.rules.case import WARNING, Case
from tests.support.hosts import SITE_PACKAGES, healthy, replaced, torch_import_fails, with_variables
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.machine import Limits
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.facts.host.software import FileFinding
from wheel_checks.facts.host.start_up import StartUp, VariableChange
from wheel_checks.model import Unavailable

CUSTOM = f"{SITE_PACKAGES}/sitecustomize.py"
EDITED = f"{SITE_PACKAGES}/torch/functional.py"
SUFFIXES = (".cpython-312-x86_64-linux-gnu.so", ".abi3.so", ".so")
NO_MODULE = "ModuleNotFoundError: No module named 'typing_extensions'"
TOO_FEW = "the address space of a process is limited to 2.0 GB (ulimit -v): too little for CUDA"


def started(facts: HostFacts, **fields: Any) -> HostFacts:
    assert isinstance(facts.torch, TorchProbe)
    return replace(facts, torch=replace(facts.torch, start=StartUp(**fields)))


def changed(after: str, name: str = "CUDA_VISIBLE_DEVICES", owner: str = "") -> HostFacts:
    return started(healthy(), changes=(VariableChange(name, None, after, CUSTOM, owner),))


def here(*names: str, standard: tuple[str, ...] = ("random", "types")) -> HostFacts:
    facts = replaced(healthy(), "interpreter", local_modules=names, working_directory="/work")
    return started(facts, standard=standard)


def of_pythonpath(file: str) -> HostFacts:
    trace = f'Traceback:\n  File "{SITE_PACKAGES}/torch/__init__.py", line 3\n  File "{file}", line 1'
    return with_variables(torch_import_fails(healthy(), "ImportError: mine", trace), PYTHONPATH="/mine:/other")


def bounded(size: int | None, error: str = "", hard: int | None = None) -> HostFacts:
    facts = torch_import_fails(healthy(), error) if error else healthy()
    return replace(facts, limits=Limits(1 << 30, None, size, hard))


def untried() -> HostFacts:
    return replace(bounded(2 * 10**9), torch=Unavailable("it was not tried"))


def unmet(requirement: str, error: str = NO_MODULE) -> HostFacts:
    finding = FileFinding("WHL705", "torch", "error", "unmet", (("Requires-Dist", requirement),))
    return replaced(torch_import_fails(healthy(), error), "installed", findings=(finding,))


def extensions(*names: str) -> HostFacts:
    facts = torch_import_fails(healthy(), "ModuleNotFoundError: No module named 'torch._C'")
    return started(facts, extensions=names, suffixes=SUFFIXES)


def edited(*files: str) -> HostFacts:
    facts = torch_import_fails(healthy(), "NameError: name 'x' is not defined")
    assert isinstance(facts.torch, TorchProbe)
    return replace(facts, torch=replace(facts.torch, edited=files))


CASES = [
    # B24
    Case(
        "DOC224",
        "sitecustomize hides every GPU",
        lambda: changed(""),
        (f"{CUSTOM} sets CUDA_VISIBLE_DEVICES to '' when Python starts, which hides every GPU",),
    ),
    Case(
        "DOC224",
        "it selects one",
        lambda: changed("2"),
        (f"{CUSTOM} sets CUDA_VISIBLE_DEVICES to '2' when Python starts",),
        WARNING,
    ),
    Case(
        "DOC224",
        "a file of a distribution hides every GPU",
        lambda: changed("", owner="gpu-guard"),
        (f"{CUSTOM} sets CUDA_VISIBLE_DEVICES to '' when Python starts, which hides every GPU",),
    ),
    Case("DOC224", "it sets another variable", lambda: changed("", "TRITON_CACHE_DIR")),
    Case("DOC224", "nothing is changed", healthy),
    # B25
    Case(
        "DOC225",
        "random.py in the working directory",
        lambda: here("random.py"),
        ("torch imports /work/random.py instead of Python's own module",),
    ),
    Case(
        "DOC225",
        "types.py in a folder of PYTHONPATH",
        lambda: of_pythonpath("/mine/types.py"),
        ("torch imports /mine/types.py instead of Python's own module",),
    ),
    Case("DOC225", "a file of a name that torch does not import", lambda: here("sunau.py")),
    Case("DOC225", "a file of PYTHONPATH with another name", lambda: of_pythonpath("/mine/mytypes.py")),
    Case("DOC225", "a standard module in its place", lambda: of_pythonpath("/usr/lib/python3.12/types.py")),
    # B26
    Case(
        "DOC226",
        "a limit, and a library that could not be mapped",
        lambda: bounded(2 * 10**9, "ImportError: libtorch_cuda.so: failed to map segment from shared object"),
        (TOO_FEW,),
    ),
    Case("DOC226", "a limit, and nothing was tried", untried, (TOO_FEW,), WARNING),
    Case("DOC226", "a limit that was enough", lambda: bounded(2 * 10**9)),
    Case("DOC226", "no limit", lambda: bounded(None, "MemoryError")),
    Case("DOC226", "a limit above what a GPU has", lambda: bounded(1 << 40, "MemoryError")),
    # B27
    Case(
        "DOC227",
        "typing_extensions was left out",
        lambda: unmet("typing-extensions>=4.10.0"),
        ("torch requires typing-extensions>=4.10.0, which is not installed: torch cannot import typing_extensions",),
        evidence=(NO_MODULE,),
    ),
    Case(
        "DOC227",
        "the module has another name than its package",
        lambda: unmet("pyyaml>=6", "ModuleNotFoundError: No module named 'yaml'"),
        ("torch requires pyyaml>=6, which is not installed: torch cannot import yaml",),
    ),
    Case("DOC227", "another requirement is not met", lambda: unmet("sympy>=1.13.3")),
    Case("DOC227", "torch has its requirements", healthy),
    # B28
    Case(
        "DOC228",
        "the module of another Python",
        lambda: extensions("_C.cpython-311-x86_64-linux-gnu.so"),
        ("torch is built for _C.cpython-311-x86_64-linux-gnu.so, which Python 3.12.3 cannot import",),
    ),
    Case("DOC228", "the module of this Python", lambda: extensions("_C.cpython-312-x86_64-linux-gnu.so")),
    Case("DOC228", "no extension module was found", extensions),
    # B29
    Case(
        "DOC229",
        "a file of torch was edited",
        lambda: edited(EDITED),
        (f"{EDITED} is not the file that torch 2.11.0 installed: its hash does not match RECORD",),
    ),
    Case("DOC229", "none was", edited),
]
