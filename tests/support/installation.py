"""Looks at real environments as the doctor does, compiles small libraries for them, and runs the fixes that it prints.

facts = look(environment.python, LD_LIBRARY_PATH="/opt/lib")       # the interpreter, what is installed, the loader
found(facts) == {"DOC202": "1 file of nvidia-cudnn-cu13 9.19.0.56 is gone, ..."}
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.support.compiling import compile_once
from wheel_checks.catalogue import select_rules
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Installed, Interpreter, Loader
from wheel_checks.model import CheckResult, Outcome, Severity
from wheel_checks.runner import run_rules
from wheelproof.doctor.probes.installation.installed import read_installed_facts
from wheelproof.doctor.probes.loader import read_loader
from wheelproof.doctor.probes.python import read_interpreter
from wheelproof.doctor.probes.variables import read_variables

SECTION_B = "DOC2"


def look(python: str, **variables: str) -> HostFacts:
    """What the probes of the Python side show of this interpreter, or of the environment in this folder."""
    environ = {**os.environ, **variables}
    interpreter = read_interpreter(python=python, environ=environ)
    installed = read_installed_facts(interpreter, environ=environ)
    loader = read_loader(interpreter, installed, environ=environ)
    return HostFacts(interpreter=interpreter, installed=installed, loader=loader, variables=read_variables(environ))


def results(facts: HostFacts) -> list[CheckResult]:
    """What the rules of section B find, but for notes."""
    rules = [rule for rule in select_rules("host") if rule.id.startswith(SECTION_B)]
    judged = run_rules(rules, facts, Expectations())
    assert not [result for result in judged if result.outcome is Outcome.ERROR]
    return [one for one in judged if one.outcome is Outcome.FAIL and one.severity is not Severity.NOTE]


def found(facts: HostFacts) -> dict[str, str]:
    """The messages of :func:`results`, by rule."""
    return {result.rule: result.message for result in results(facts)}


def fix_of(facts: HostFacts, rule: str) -> tuple[str, ...]:
    """The commands of the fix that a rule prints."""
    (result,) = (one for one in results(facts) if one.rule == rule)
    assert result.fix is not None
    return result.fix.lines


def interpreter(facts: HostFacts) -> Interpreter:
    assert isinstance(facts.interpreter, Interpreter)
    return facts.interpreter


def installed(facts: HostFacts) -> Installed:
    assert isinstance(facts.installed, Installed)
    return facts.installed


def loader(facts: HostFacts) -> Loader:
    assert isinstance(facts.loader, Loader)
    return facts.loader


def compile_library(
    path: Path,
    source: str = "",
    *,
    soname: str = "",
    needed: Sequence[Path] = (),
    rpath: str = "",
    runpath: str = "",
    language: str = "c",
) -> Path:
    """Compile a shared library by gcc. ``needed`` are libraries that it is linked against, by their sonames."""
    options = ["-x", language, "-Wl,--no-as-needed", f"-Wl,-soname,{soname or path.name}"]
    options += [f"-Wl,--disable-new-dtags,-rpath,{rpath}"] if rpath else []
    options += [f"-Wl,--enable-new-dtags,-rpath,{runpath}"] if runpath else []
    return compile_once(path, options, source, needed)
