"""Reads this host, or the file system below a folder, into :class:`HostFacts`: all sections side by side.

The module of a probe is imported in the thread that uses it, while children of others are waited for.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wheel_checks.facts.host.facts import HostFacts, ProbedFacts
from wheel_checks.facts.host.software import Interpreter
from wheel_checks.interrupts import TERMINATED, terminated_as
from wheel_checks.model import Unavailable
from wheel_checks.process import end_all
from wheelproof.doctor.children import Budget
from wheelproof.doctor.probes.variables import read_variables
from wheelproof.doctor.sections import Sections, Several

_SIGNS = ("system", "pci", "driver", "nodes", "interpreter")  # what the dangerous steps go by
_ANSWERS = ("nvml", "cuda", "torch", "kernel")  # what they give, besides the experiments

# A child that is ended at the last moment still has something to show: readers get less time than there is.
_RESERVE, _LEAST = 2.0, 0.7  # seconds; and this part of the time in any case


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be inspected, and for how long, in seconds.

    ``probes`` asks those of plug-ins, which look only at this host, and not below another root.
    """

    python: str = ""
    root: str = "/"
    timeout: float = 60.0
    probes: Callable[[], Mapping[str, ProbedFacts | Unavailable]] | None = None


def read_host(request: Request, environ: Mapping[str, str], on_read: Callable[[], object] = lambda: None) -> HostFacts:
    """Everything that can be known within ``request.timeout`` seconds; ``on_read`` is called for each section of it.

    ``environ`` are the variables of the user; below another root they mean nothing.
    """
    sections = Sections(Budget(request.timeout), on_read)
    budget = Budget(max(request.timeout - _RESERVE, _LEAST * request.timeout))
    variables = environ if request.root == "/" else {}
    with terminated_as(SystemExit(TERMINATED)):
        try:
            _start(sections, request, variables, budget)
            values, seconds, unread = sections.all()
        except BaseException:
            budget.end()  # interrupted: the threads wait for children, and would start others
            end_all()
            raise
    interpreter = values["interpreter"]
    if request.python and isinstance(interpreter, Unavailable):
        unread["interpreter"] = interpreter.reason  # it was requested: not to know it is not to have checked
    return HostFacts(
        taken=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        variables=read_variables(variables),
        seconds=seconds,
        unread=unread,
        **values,
    )


def _start(sections: Sections, request: Request, environ: Mapping[str, str], budget: Budget) -> None:
    """Begin to read everything; a section that needs another one waits for it."""
    root, get = request.root, sections.get

    def interpreter() -> Interpreter | Unavailable:
        found: Interpreter | Unavailable = get("interpreter")
        return found

    def dangerous() -> Several:
        known = HostFacts(**{name: get(name) for name in _SIGNS})
        steps = _probe("dangerous").read_dangerous
        answers = steps(known, environment=environ, budget=budget, root=root)
        return Several(answers._asdict())

    def triton() -> Any:
        python = interpreter()
        if isinstance(python, Unavailable):
            return python
        read = _probe("triton").read_triton
        return read(root, search_path=python.search_path, environ=environ, budget=budget)

    def origins() -> Several:
        python, names = interpreter(), read_variables(environ)
        prefix = "" if isinstance(python, Unavailable) else python.prefix
        read = _probe("installation.origins").read_origins
        return Several(variables_origin=read(names, environ, root=root, prefix=prefix, folder=str(Path.cwd())))

    def indexes() -> Any:
        """What is configured for the environment that is inspected, be it another than the active one."""
        python = interpreter()
        active = {} if isinstance(python, Unavailable) else {"VIRTUAL_ENV": python.prefix}
        return _probe("indexes").read_indexes({**environ, **active}, Path.cwd())

    def simple(name: str) -> None:
        """A probe that needs nothing but the root."""
        sections.start(name, lambda: getattr(_probe(name), f"read_{name}")(root))

    sections.start("interpreter", lambda: _probe("python").read_interpreter(root, request.python, environ, budget))
    sections.start(
        "installed",
        lambda: _probe("installation.installed").read_installed_facts(interpreter(), root, request.python, environ),
    )
    sections.start(
        "loader", lambda: _probe("loader").read_loader(interpreter(), get("installed"), root, environ, budget)
    )
    sections.start("container", lambda: _probe("container").read_container(root, environ, budget))
    sections.start("indexes", indexes)
    for name in ("system", "pci", "driver", "other_drivers", "nodes", "services", "limits", "infiniband"):
        simple(name)
    sections.start("dangerous", dangerous, _ANSWERS)
    sections.start("triton", triton)
    sections.start("variables_origin", origins, ())
    ask = request.probes
    if ask is not None and root == "/":
        sections.start("probes", ask)


def _probe(name: str) -> Any:
    """The module of a probe."""
    return importlib.import_module(f"wheelproof.doctor.probes.{name}")
