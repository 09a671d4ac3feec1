"""What the start of Python changes, and what the import of torch takes or lacks."""

import posixpath
import re
import sys
from collections.abc import Iterator
from typing import Any

from packaging.utils import canonicalize_name

from wheel_checks.commands import IMPORT_TORCH, Command, path, run, unset
from wheel_checks.facts.host.commands import install, python_command
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.facts.host.software import Interpreter
from wheel_checks.facts.host.start_up import VariableChange
from wheel_checks.facts.security.known import owners_of
from wheel_checks.goal import Goal
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.parsing import numbers, requirement_or_none
from wheel_checks.rules.host.cause import Layer, cause
from wheel_checks.rules.host.installation.evidence import (
    IMPORT_FAILS,
    again,
    complaints,
    findings,
    import_failed,
    installed,
)
from wheel_checks.rules.host.observed import TORCH_FAILS

_HIDING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
_NO_MODULE = re.compile(r"No module named '([\w.]{1,200})'")
_FRAME = re.compile(r'File "(/[^"\n]{1,4000}\.py)"')
_NO_MEMORY = re.compile(
    r"MemoryError|[Cc]annot allocate memory|failed to map segment|out of memory|std::bad_alloc|mmap.{0,40}failed"
)
_ENOUGH = 64 << 30  # bytes: CUDA maps as many addresses as there is memory of GPU and host


def _torch(facts: HostFacts) -> TorchProbe:
    return need(facts.torch)


@cause(
    "B24",
    "no start-up file of Python hides the GPUs",
    layer=Layer.VISIBILITY,
    explains=TORCH_FAILS,
    why="A sitecustomize, a usercustomize or a .pth file runs before every program. One that sets CUDA_VISIBLE_DEVICES "
    "hides the GPUs from torch, and the shell does not show it.",
    example="sitecustomize.py sets CUDA_VISIBLE_DEVICES to an empty string",
    fix="Remove the line from the file that the finding names.",
    sources="built environments, November 2026",
    tested="environments with such files, and the fix run",
)
def hidden_by_start_up(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A variable that selects GPUs is another after the start of Python."""
    for change in _torch(facts).start.changes:
        if change.name not in _HIDING or change.after is None:
            continue
        hides = change.after in ("", "-1") or not change.after[:1].isalnum()
        where = change.origin or "a start-up file of Python"
        yield Finding(
            f"{where} sets {change.name} to {change.after!r} when Python starts"
            + (", which hides every GPU" if hides else ""),
            (
                Evidence("in the shell", "not set" if change.before is None else repr(change.before), "environment"),
                Evidence("in Python", repr(change.after), change.origin),
                *((Evidence("distribution", change.owner, "its RECORD"),) if change.owner else ()),
            ),
            _without_file(facts, change),
            severity=Severity.ERROR if hides else Severity.WARNING,
        )


def _without_file(facts: HostFacts, change: VariableChange) -> Fix:
    """The file is renamed when it is the environment's own, and no distribution's; else it is the user's to edit.

    A file of a distribution comes back with the next install, and without it the distribution is broken.
    """
    python = facts.interpreter
    if change.owner:
        return Fix(
            f"{change.owner} installed the file: use a release of it that does not set {change.name}, or uninstall it "
            "if no package requires it. Renaming the file would break it, and the next install restores it."
        )
    summary = f"Remove the line that sets {change.name}."
    own = isinstance(python, Interpreter) and python.is_virtual and change.origin.startswith(f"{python.prefix}/")
    if not own or not change.origin.endswith((".py", ".pth")):
        return Fix(summary)
    return Fix(
        f"{summary} The command renames the whole file.",
        (run("mv", path(change.origin), path(f"{change.origin}.disabled")),),
    )


@cause(
    "B25",
    "no file shadows a module of the standard library",
    layer=Layer.PYTHON,
    explains=IMPORT_FAILS,
    why="Python searches the working directory, or the folder of a script, and PYTHONPATH before its own library. A "
    "random.py or types.py there is imported by torch instead of Python's.",
    example="random.py in the working directory: module 'random' has no attribute 'Random'",
    fix="Rename the file, start from another folder, or remove the folder from PYTHONPATH.",
    sources="built environments, November 2026",
    tested="real folders and files, really imported, and the fix run",
)
def shadowed_standard_module(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """One of the working directory that torch would import, and one of another folder that its traceback shows."""
    python, probe = need(facts.interpreter), _torch(facts)
    wanted = set(probe.start.standard)
    for name in python.local_modules:
        if name.partition(".")[0] in wanted:
            option = "-P" if numbers(python.version)[:2] >= (3, 11) else "-I"
            yield Finding(
                f"torch imports {posixpath.join(python.working_directory, name)} instead of Python's own module",
                (Evidence("module", name.partition(".")[0], "of the standard library; imported by torch"),),
                Fix(
                    "Rename it, or start from another folder; the command removes the working directory from the "
                    "search path.",
                    (python_command(facts, option, "-c", IMPORT_TORCH),),
                ),
            )
    yield from _in_traceback(facts, probe)


def _in_traceback(facts: HostFacts, probe: TorchProbe) -> Iterator[Finding]:
    """A file of PYTHONPATH that the import of torch ran, and that has the name of a standard module."""
    entries = {entry.rstrip("/") for entry in facts.variables.get("PYTHONPATH", "").split(":") if entry}
    files = dict.fromkeys(_FRAME.findall(probe.trace)) if not probe.imported else {}
    for file in files:
        folder, name = posixpath.split(file)
        if folder in entries and name.removesuffix(".py") in sys.stdlib_module_names:
            yield Finding(
                f"torch imports {file} instead of Python's own module",
                (Evidence("PYTHONPATH", facts.variables["PYTHONPATH"], "environment"),),
                Fix("Rename it, or remove the folder from PYTHONPATH.", (unset("PYTHONPATH"),)),
            )


@cause(
    "B26",
    "the address space limit (ulimit -v) is large enough for torch and CUDA",
    layer=Layer.KERNEL,
    explains=(*IMPORT_FAILS, "torch:init", "torch:compute", "torch:unavailable", "cuda:2", "kernel:failed"),
    certain=False,
    why="`ulimit -v` limits the address space of a process. torch maps gigabytes of libraries, and CUDA reserves as "
    "many addresses as there is memory: under such a limit both fail as if out of memory.",
    example="libtorch_cuda.so: failed to map segment from shared object, with ulimit -v 2000000",
    fix="Raise the limit: ulimit -v unlimited.",
    sources="built environments, November 2026",
    tested="real limits with a small torch; no CUDA under a limit",
)
def address_space(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """There is a limit, and torch or CUDA complained of memory; a limit alone is a warning."""
    limits = need(facts.limits)
    if limits.address_space_bytes is None or limits.address_space_bytes >= _ENOUGH:
        return
    said = next((line for line in complaints(facts).splitlines() if _NO_MEMORY.search(line)), "")
    probe = facts.torch
    if not said and isinstance(probe, TorchProbe) and probe.available and probe.computes == "":
        return  # it was enough
    failed = import_failed(facts) or bool(said)
    raisable = limits.address_space_hard is None
    summary = "Raise the limit in the shell that starts Python, and in the file that sets it."
    if not raisable:
        summary = "Have an administrator raise the hard limit (limits.conf, item as; or the job's memory limit)."
    yield Finding(
        f"the address space of a process is limited to {limits.address_space_bytes / 1e9:.1f} GB (ulimit -v): too "
        "little for CUDA",
        (Evidence("said", said.strip(), "import torch"),) if said else (),
        Fix(summary, (Command(("ulimit", "-v", "unlimited")),) if raisable else ()),
        severity=Severity.ERROR if failed else Severity.WARNING,
    )


@cause(
    "B27",
    "the modules that torch imports are installed",
    layer=Layer.FILES,
    explains=("torch:import", "kernel:failed"),
    why="An install with --no-deps, or an uninstall, leaves torch without a package that it requires. The error names "
    "the module, whose name may differ from its package.",
    example="No module named 'typing_extensions'",
    fix="Install the missing requirements of its METADATA.",
    sources="built environments, November 2026",
    tested="environments made with --no-deps, and the fix run",
)
def requirement_not_installed(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The import ended with a module that is missing, and a requirement that is not installed brings it."""
    probe = _torch(facts)
    match = _NO_MODULE.search(probe.error) if not probe.imported else None
    if match is None or match[1].startswith(("torch", "triton")):
        return
    module = match[1].partition(".")[0]
    projects = {canonicalize_name(name) for name in (module, *owners_of(module))}
    for finding in findings(facts, "WHL705"):
        wanted = requirement_or_none(dict(finding.evidence).get("Requires-Dist", ""))
        if wanted is None or canonicalize_name(wanted.name) not in projects:
            continue
        pin = f"{canonicalize_name(wanted.name)}{wanted.specifier}"
        yield Finding(
            f"{finding.subject} requires {pin}, which is not installed: torch cannot import {module}",
            (Evidence("said", probe.error, "import torch"), Evidence("Requires-Dist", str(wanted), finding.subject)),
            Fix("Install it.", install(facts, pin), Goal(wanted=(pin,))),
        )
        return


@cause(
    "B28",
    "torch's extension module is built for this Python",
    layer=Layer.WHEEL,
    explains=("torch:import",),
    why="torch/_C.cpython-312-x86_64-linux-gnu.so can be imported only by Python 3.12. In a site-packages that was "
    "copied, or that PYTHONPATH shares with another Python, this Python does not find the module.",
    example="No module named 'torch._C': torch is built for cpython-312, and this is Python 3.11",
    fix="Install torch with the Python that will import it.",
    sources="built environments, November 2026",
    tested="environments with such a module, and the fix run",
)
def built_for_another_python(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The import failed, there are _C modules, and none has a suffix that this Python imports."""
    start, python = _torch(facts).start, need(facts.interpreter)
    if not start.extensions or {f"_C{suffix}" for suffix in start.suffixes}.intersection(start.extensions):
        return
    yield Finding(
        f"torch is built for {', '.join(start.extensions)}, which Python {python.version} cannot import",
        (Evidence("imports", ", ".join(start.suffixes[:4]), python.path),),
        Fix("Reinstall this torch with this Python.", again(facts, "torch"), Goal(intact=("torch",))),
    )


@cause(
    "B29",
    "the files in the traceback are unchanged since the installation",
    layer=Layer.FILES,
    explains=("torch:import",),
    why="A torch file that was edited, or truncated by an interrupted copy, fails at import. RECORD holds its original "
    "hash.",
    example="torch/functional.py is not the file that torch 2.11.0 installed",
    fix="Reinstall exactly that version.",
    sources="built environments, November 2026",
    tested="environments with edited files, and the fix run",
)
def edited_file(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The last such file of the traceback, which is where it failed."""
    probe = _torch(facts)
    if not probe.edited:
        return
    file = probe.edited[-1]
    package = re.split("/(?:site|dist)-packages/", file)[-1].partition("/")[0].removesuffix(".py")
    known = None if isinstance(facts.installed, Unavailable) else installed(facts).named(canonicalize_name(package))
    label = f"{known.name} {known.version}" if known else package
    yield Finding(
        f"{file} is not the file that {label} installed: its hash does not match RECORD",
        tuple(Evidence("edited", one) for one in probe.edited[:5]),
        Fix(
            f"Reinstall {label}, bypassing the cache: uv installs links to its cached files, so the edit is in the "
            "cache too.",
            again(facts, known.name, cache=False),
            Goal(intact=(known.name,)),
        )
        if known
        else Fix(f"Reinstall {label}."),
    )
