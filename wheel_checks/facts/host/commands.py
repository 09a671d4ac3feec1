"""Complete commands for the Python environment under diagnosis: its interpreter, and what installed torch there."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Installed, Interpreter
from wheel_checks.model import Unavailable

NEW_ENVIRONMENT = "~/torch-env"  # where a new environment is made; the shell expands the tilde
CONDA_NAMES = {"torch": "pytorch"}

_NEW_PYTHON = f"{NEW_ENVIRONMENT}/bin/python"
_CHECK = "import torch; print(torch.__version__, torch.ones(2, device='cuda').sum().item())"


def install(facts: HostFacts, *requirements: str, force: bool = False, no_deps: bool = False, index: str = "") -> str:
    """The command that installs these requirements into the environment under diagnosis.

    ``force`` installs them anew even where they are satisfied. ``index`` is a build of PyTorch's index as uv calls it
    ("cu126"), or the URL of an index; "" means the configured one. What conda installed, conda installs. A Python of
    the operating system in which there is no torch of the user's gets an environment first (PEP 668).
    """
    names = [canonicalize_name(Requirement(text).name) for text in requirements]
    installer = _installer(facts, names)
    if installer == "conda" and not index:
        options = ["--force-reinstall"] * force + ["--no-deps"] * no_deps
        wanted = [shlex.quote(_conda_requirement(text)) for text in requirements]
        return " ".join(["conda install --prefix", _quoted_prefix(facts), *options, *wanted])
    backend = bool(index) and "/" not in index
    where = [f"--torch-backend={index}" if backend else f"--index-url {shlex.quote(index)}"] if index else []
    tail = [*where, *["--no-deps"] * no_deps, *map(shlex.quote, requirements)]
    if _is_guarded(facts):
        make = f"uv venv --python {_python(facts)} {NEW_ENVIRONMENT}"
        return f"{make} && {' '.join([_uv_install(_NEW_PYTHON), *tail])}"
    if installer == "pip" and not backend:
        again = ["--force-reinstall"] * force
        return " ".join([f"{_python(facts)} -m pip install", *_system_option(facts), *again, *tail])
    again = [f"--reinstall-package {name}" for name in names if force]
    return " ".join([_uv_install(_python(facts)), *_system_option(facts), *again, *tail])


def install_anew(python: str, *requirements: str, index: str = "") -> tuple[str, ...]:
    """The commands that make an environment with this Python ("3.12"), install into it, and show whether it works."""
    where = [f"--torch-backend={index}"] if index else []
    return (
        f"uv venv --python {python} {NEW_ENVIRONMENT}",
        " ".join([_uv_install(_NEW_PYTHON), *where, *map(shlex.quote, requirements)]),
        f'{_NEW_PYTHON} -c "{_CHECK}"',
    )


def install_with_conda(facts: HostFacts, specification: str) -> str:
    """The command by which conda installs what a specification of its own says ("pytorch=*=*cuda*")."""
    return f"conda install --prefix {_quoted_prefix(facts)} {shlex.quote(specification)}"


def uninstall(facts: HostFacts, *names: str) -> str:
    """The command that removes these distributions."""
    installer = _installer(facts, names)
    if installer == "conda":
        chosen = [CONDA_NAMES.get(name, name) for name in names]
        return " ".join(["conda remove --prefix", _quoted_prefix(facts), "--force", *chosen])
    if installer == "debian":
        return " ".join(["sudo apt-get remove", *(f"python3-{name}" for name in names)])
    remove = (
        f"uv pip uninstall --python {_python(facts)}" if installer == "uv" else f"{_python(facts)} -m pip uninstall -y"
    )
    return " ".join([remove, *_system_option(facts), *names])


def check_torch(facts: HostFacts) -> str:
    """The command that shows, after a fix, whether torch computes on the GPU: it prints a version and 2.0."""
    return f'{_NEW_PYTHON if _is_guarded(facts) else _python(facts)} -c "{_CHECK}"'


def is_of_conda(facts: HostFacts) -> bool:
    """Whether the torch of the environment was installed by conda."""
    return isinstance(facts.installed, Installed) and (
        bool(facts.installed.conda)
        or any(p.name == "torch" and p.installer == "conda" for p in facts.installed.packages)
    )


def _installer(facts: HostFacts, names: Iterable[str]) -> str:
    """What installed these distributions, else torch: conda, debian, uv or pip; uv where there is no pip."""
    installed = facts.installed
    told: set[str] = set()
    if isinstance(installed, Installed):
        own = [package for name in names if (package := installed.named(name))]
        torch = installed.named("torch")
        told = {package.installer for package in own or ([torch] if torch else [])}
    if found := next((name for name in ("conda", "debian") if name in told), ""):
        return found
    has_pip = not isinstance(facts.interpreter, Interpreter) or facts.interpreter.has_pip
    return "uv" if "uv" in told or not has_pip else "pip"


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


def _python(facts: HostFacts) -> str:
    return shlex.quote(facts.interpreter.path) if isinstance(facts.interpreter, Interpreter) else "python3"


def _uv_install(python: str) -> str:
    return f"uv pip install --python {python}"


def _quoted_prefix(facts: HostFacts) -> str:
    return shlex.quote(facts.interpreter.prefix) if isinstance(facts.interpreter, Interpreter) else '"$CONDA_PREFIX"'


def _conda_requirement(text: str) -> str:
    requirement = Requirement(text)
    exact = str(requirement.specifier).replace("==", "=") if len(requirement.specifier) == 1 else requirement.specifier
    return f"{CONDA_NAMES.get(requirement.name, requirement.name)}{exact}"
