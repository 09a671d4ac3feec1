"""Documents made to take long: bounded memory and time. Each took minutes in a reader that was quadratic."""

from __future__ import annotations

import string
from itertools import pairwise

import pytest

from tests.pins.documents.test_any_document import judged

MANY = 20_000
LETTERS = string.ascii_lowercase


@pytest.mark.parametrize(
    ("kind", "text", "outcome"),
    [
        ("requirements", " " * MANY + "x" + " " * MANY + "torch" + " " * MANY + "#", "planned"),
        ("requirements", "./" + "a-1" * MANY + ".whl", "planned"),
        ("requirements", "\\\n" * MANY, "planned"),
        ("requirements", "torch\n" + "# via\n" * MANY, "planned"),
        ("requirements", "torch never;" + " " * MANY + "x", "planned"),
        ("commands", 'pip install "' * MANY, "planned"),
        ("commands", "pip -pip " * MANY, "planned"),
        ("commands", "{{" * MANY, "planned"),
        ("commands", "pip install " + "${{" * MANY, "planned"),
        ("commands", "A=torch\n" + "A=$A$A\n" * 200 + "pip install $A\n", "planned"),
        ("conda", "dependencies: [" + "torch, " * MANY + "]", "planned"),
        ("conda", "a: " * MANY, "refused"),
        ("conda", "dependencies: " + "[" * MANY, "refused"),
        ("conda", "- " * MANY, "refused"),
        ("conda", "{? " * MANY, "refused"),
        ("conda", "{%" * MANY, "refused"),
        ("conda", "{% " + "%{#" * MANY, "refused"),
        ("conda", "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in pairwise(LETTERS)), "refused"),
        ("conda", "dependencies:\n- torch\n" + "  # c\n" * MANY, "planned"),
        ("conda", "dependencies:\n- torch\n" + "  x\n" * MANY, "planned"),
        ("conda", "dependencies: [" + "&a torch, " * MANY + "]", "planned"),
        ("conda", '- "\\UFFFFFFFF"', "refused"),
        ("conda", "- " + "x" * (1 << 18), "refused"),
        ("script", "# /// script\n" * MANY, "planned"),
        ("setup.cfg", "x" * MANY + "\n", "refused"),
        ("setup.py", "(" * MANY, "refused"),
        ("setup.py", "setup(install_requires=[" + '"torch","six",' * (MANY // 4) + "])", "planned"),
        ("pyproject", "x = " + "[" * MANY, "refused"),
        ("pyproject", "[project]\ndependencies=[" + '"torch","six",' * (MANY // 4) + "]", "planned"),
    ],
)
def test_it_ends(kind: str, text: str, outcome: str) -> None:
    assert judged(kind, text.encode()) == outcome
