"""The public API: its names and signatures are in ``public_names.txt``, and importing it is fast.

After a change that is meant: ``python -m tests.api.test_public_names > tests/api/public_names.txt``, and an entry in
CHANGELOG.md. A name that has gone, or an argument that a caller must now give, is for the next major version.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Fields of facts grow with each rule; the page names the promised ones.
FACTS = {"Expectations", "HostFacts", "WheelFacts"}
MODULES = ("wheel_checks", "wheelproof", "wheelproof.doctor", "wheelproof.pins")
SNAPSHOT = Path(__file__).with_name("public_names.txt")


def described() -> Iterator[str]:
    """A line for each public name: of a class its fields, of an enumeration its values, of a function its signature."""
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in sorted(module.__all__):
            value = getattr(module, name)
            yield f"{module_name}.{name}{'' if name in FACTS else _shape(value)}"


def _shape(value: object) -> str:
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return f": {', '.join(str(member.value) for member in value)}"
    if isinstance(value, type) and issubclass(value, Exception):
        return f"({value.__base__.__name__ if value.__base__ else ''}){inspect.signature(value)}"
    if isinstance(value, type) and dataclasses.is_dataclass(value):
        methods = (n for n, member in vars(value).items() if not n.startswith("_") and _is_method(member))
        fields = ", ".join(field.name for field in dataclasses.fields(value))
        return f"({fields}) {' '.join(sorted(methods))}".rstrip()
    return str(inspect.signature(value)) if callable(value) else ""


def _is_method(member: object) -> bool:
    return isinstance(member, property | classmethod) or inspect.isfunction(member)


def test_the_public_names_are_those_of_the_snapshot() -> None:
    assert list(described()) == SNAPSHOT.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("module", ["wheel_checks", "wheelproof", "wheelproof.doctor"])
def test_importing_a_package_loads_nothing_else_of_ours(module: str) -> None:
    program = (
        f"import sys, {module}; print([n for n in sys.modules if n.split('.')[0] in {{'wheel_checks', 'wheelproof'}}])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    ours = set() if module == "wheel_checks" else {"wheelproof"}
    assert set(ast.literal_eval(loaded)) == ours | {module}


def test_a_name_that_is_not_there() -> None:
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        with pytest.raises(AttributeError, match="has no attribute 'veryfy'"):
            _ = module.veryfy


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in described())
