"""Complete commands for the Python environment under diagnosis: its interpreter, and what installed torch there."""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.commands import (
    CHECK_TORCH,
    Command,
    NoCommand,
    Step,
    Word,
    option,
    package,
    path,
    requirement,
    run,
)
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Installed, Interpreter
from wheel_checks.facts.host.torch.choice import configured_index
from wheel_checks.model import Unavailable
from wheel_checks.parsing import requirement_or_none

NEW_ENVIRONMENT = "torch-env"  # where a new environment is made: in the home folder, where that is known
CONDA_NAMES = {"torch": "pytorch"}

_PYTHON_NAME = re.compile(r"(?:python|pypy)[\w.-]*", re.ASCII)
_PYTHON_VERSION = re.compile(r"\d+\.\d+t?", re.ASCII)
_SITE_PACKAGES = {"site-packages", "dist-packages"}


def install(
    facts: HostFacts,
    *requirements: str,
    force: bool = False,
    no_deps: bool = False,
    index: str = "",
    cache: bool = True,
    options: Iterable[str] = (),
) -> tuple[Step, ...]:
    """The commands that install these requirements into the environment under diagnosis.

    ``force`` reinstalls what is already satisfied; without ``cache`` it is fetched again. ``index`` is a build of
    PyTorch's index as uv calls it ("cu126"), or the URL of an index; "" means the configured one, past which no command
    leads. ``options`` are those
    that pip and uv share. What conda installed, conda installs. A Python of the operating system in which the user has
    no torch gets an environment first (PEP 668). What is not a requirement by name and version gives no command.
    """
    wanted = [requirement(text) for text in requirements]
    if refused := next((word for word in wanted if isinstance(word, NoCommand)), None):
        return (refused,)
    names = [canonicalize_name(Requirement(text).name) for text in requirements]
    installer = _installer(facts, names)
    if installer == "conda" and not index:
        words = ["--force-reinstall"] * force + ["--no-deps"] * no_deps
        return (run("conda", "install", *_prefix(facts), *words, *map(_conda_requirement, requirements)),)
    backend = bool(index) and "/" not in index
    where: list[Word] = [f"--torch-backend={index}" if backend else option("--index-url", index)] if index else []
    tail = [*where, *["--no-deps"] * no_deps, *options, *wanted]
    setting = configured_index(facts)
    reinstall = [f"--reinstall-package={name}" for name in names if force]
    if _is_guarded(facts):
        make = run("uv", "venv", "--python", _python(facts), path(_new_environment(facts)))
        return (make, _uv_install(_new_python(facts), *["--no-cache"] * (not cache), *tail))
    if installer == "pip" and not backend and (no_deps or not force):  # forced, pip upgrades all dependencies, too
        again = ["--force-reinstall"] * force + ["--no-cache-dir"] * (not cache)
        return (run(_python(facts), "-m", "pip", "install", *_system_option(facts), *again, *tail),)
    if setting and (backend or setting.tool == "pip"):  # uv would go past it, to another index
        return (repair(facts),)
    again = [*reinstall, *["--no-cache"] * (not cache)]
    return (_uv_install(_python(facts), *_system_option(facts), *again, *tail),)


def install_with_python(facts: HostFacts, version: str, *requirements: str, index: str = "") -> tuple[Step, ...]:
    """The commands that make an environment with this Python ("3.12"), install into it, and show whether it works."""
    if not _PYTHON_VERSION.fullmatch(version):
        return (NoCommand(f"{version!a} is not a Python version"),)
    where = [f"--torch-backend={index}"] if index else []
    return (
        run("uv", "venv", "--python", version, path(_new_environment(facts))),
        _uv_install(_new_python(facts), *where, *map(requirement, requirements)),
        run(_new_python(facts), "-c", CHECK_TORCH),
    )


def install_with_conda(facts: HostFacts, specification: str, *, cuda: str = "") -> Step:
    """The command by which conda installs a specification in its own form, a constant ("pytorch=*=*cuda*").

    With ``cuda`` ("12.8") conda's solver goes by this CUDA, whatever driver it sees.
    """
    override = ["env", f"CONDA_OVERRIDE_CUDA={cuda}"] if cuda else []
    return run(*override, "conda", "install", *_prefix(facts), specification)


def uninstall(facts: HostFacts, *names: str) -> Step:
    """The command that removes these distributions."""
    installer = _installer(facts, names)
    if installer == "conda":
        chosen = [package(CONDA_NAMES.get(name, name)) for name in names]
        return run("conda", "remove", *_prefix(facts), "--force", *chosen)
    wanted = [package(name) for name in names]
    if installer == "debian":
        refused = next((word for word in wanted if isinstance(word, NoCommand)), None)
        return refused or run("sudo", "apt-get", "remove", *(f"python3-{name}" for name in names))
    remove: tuple[Word, ...] = (_python(facts), "-m", "pip", "uninstall", "-y")
    if installer == "uv":
        remove = ("uv", "pip", "uninstall", "--python", _python(facts))
    return run(*remove, *_system_option(facts), *wanted)


def check_torch(facts: HostFacts) -> Step:
    """The command that shows, after a fix, whether torch computes on the GPU: it prints a version and 2.0."""
    return run(_new_python(facts) if _is_guarded(facts) else _python(facts), "-c", CHECK_TORCH)


def repair(facts: HostFacts) -> Step:
    """The command that plans the repair with what only the index and all of the environment can say, and asks."""
    return run("wheelproof", "doctor", "--python", _python(facts), "--fix")


def python_command(facts: HostFacts, *words: str) -> Step:
    """The interpreter under diagnosis with these arguments, which are constants."""
    return run(_python(facts), *words)


def noted(steps: Iterable[Step], note: str) -> tuple[Step, ...]:
    """These steps with a note that says when they are meant."""
    return tuple(replace(step, note=note) if isinstance(step, Command) else step for step in steps)


def is_of_conda(facts: HostFacts) -> bool:
    """Whether the torch of the environment was installed by conda."""
    return isinstance(facts.installed, Installed) and (
        bool(facts.installed.conda)
        or any(p.name == "torch" and p.installer == "conda" for p in facts.installed.packages)
    )


def remove(file: str, *, folder: bool = False) -> Step:
    """The command that deletes a file, or a ``folder``, of installed packages; it deletes nothing that is elsewhere.

    The path is a probe's, or of facts that were saved on another machine.
    """
    if not is_whole(file) or _SITE_PACKAGES.isdisjoint(file.split("/")[:-1]):
        return NoCommand(f"{file!a} is not in site-packages, so look at it first")
    return run("rm", *["-r"] * folder, file)


def is_whole(file: str) -> bool:
    """Whether a path is absolute and normalized: it leads where it seems to lead."""
    return file.startswith("/") and not file.startswith("//") and file != "/" and posixpath.normpath(file) == file


def _installer(facts: HostFacts, names: Iterable[str]) -> str:
    """What installed these distributions, else torch: conda, debian, uv or pip; uv where there is no pip."""
    installed = facts.installed
    known: set[str] = set()
    if isinstance(installed, Installed):
        own = [package for name in names if (package := installed.named(name))]
        torch = installed.named("torch")
        known = {package.installer for package in own or ([torch] if torch else [])}
    if found := next((name for name in ("conda", "debian") if name in known), ""):
        return found
    has_pip = not isinstance(facts.interpreter, Interpreter) or facts.interpreter.has_pip
    return "uv" if "uv" in known or not has_pip else "pip"


def _is_guarded(facts: HostFacts) -> bool:
    """Whether the operating system keeps this Python to itself, and its user has respected that so far (PEP 668)."""
    interpreter, installed = facts.interpreter, facts.installed
    if isinstance(interpreter, Unavailable) or not interpreter.externally_managed or interpreter.is_virtual:
        return False
    torch = None if isinstance(installed, Unavailable) else installed.named("torch")
    return torch is None or torch.installer == "debian"


def _system_option(facts: HostFacts) -> list[str]:
    """What an installer asks for before it changes a Python of the operating system, where that was done before."""
    interpreter = facts.interpreter
    if isinstance(interpreter, Interpreter) and interpreter.externally_managed and not interpreter.is_virtual:
        return ["--break-system-packages"]
    return []


def _python(facts: HostFacts) -> Word:
    """The interpreter under diagnosis, the one program that facts choose: by its whole path, and named like one.

    Of a log's the path is unknown.
    """
    if isinstance(facts.interpreter, Unavailable) or not facts.interpreter.path:
        return "python3"
    file = facts.interpreter.path
    if file.startswith("/") and _PYTHON_NAME.fullmatch(file.rpartition("/")[2]):
        return file
    return NoCommand(f"{file!a} is not the absolute path of a Python")


def _new_environment(facts: HostFacts) -> str:
    home = facts.variables.get("HOME", "")
    return posixpath.join(home, NEW_ENVIRONMENT) if home.startswith("/") else NEW_ENVIRONMENT


def _new_python(facts: HostFacts) -> str:
    return f"{_new_environment(facts)}/bin/python"


def _uv_install(python: Word, *words: Word) -> Step:
    return run("uv", "pip", "install", "--python", python, *words)


def _prefix(facts: HostFacts) -> tuple[Word, ...]:
    """The option that names conda's environment; without it conda takes the active one."""
    named = facts.variables.get("CONDA_PREFIX", "")
    prefix = facts.interpreter.prefix if isinstance(facts.interpreter, Interpreter) else named
    if not prefix:
        return ()
    return ("--prefix", prefix) if prefix.startswith("/") else (NoCommand(f"{prefix!a} is not an absolute path"),)


def _conda_requirement(text: str) -> Word:
    wanted = requirement_or_none(text)
    if wanted is None:
        return requirement(text)  # which says why not
    exact = str(wanted.specifier).replace("==", "=") if len(wanted.specifier) == 1 else wanted.specifier
    return f"{CONDA_NAMES.get(wanted.name, wanted.name)}{exact}"
