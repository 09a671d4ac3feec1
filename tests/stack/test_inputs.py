"""The request in the arguments of ``wheelproof stack``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.wheels import WheelBuilder
from wheel_checks.errors import UsageError
from wheelproof.stacks.inputs import parse_inputs


def known(*texts: str, files: tuple[str, ...] = ()) -> list[str]:
    return list(map(str, parse_inputs(texts, files).known))


def test_requirements_and_files_of_them(tmp_path: Path) -> None:
    listed = tmp_path / "requirements.txt"
    listed.write_text(
        "# what we serve with\n"
        "-r base.txt\n"
        "--index-url https://example.org/simple\n"
        'vllm==0.20.0 ; python_version > "3.10"  # pinned\n'
        "torch==2.11.0 \\\n    --hash=sha256:0\n"
        "a @ https://example.org/a-1.0-py3-none-any.whl#sha256=0\n"
        "what is this\n"
    )
    requested = parse_inputs(["numpy>=2"], [str(listed)])
    assert list(map(str, requested.known)) == [
        "numpy>=2",
        'vllm==0.20.0; python_version > "3.10"',
        "torch==2.11.0",
        "a @ https://example.org/a-1.0-py3-none-any.whl#sha256=0",
    ]
    assert (requested.requirements, requested.files, requested.label) == (
        ("numpy>=2",),
        (listed,),
        "numpy>=2, requirements.txt",
    )


@pytest.mark.parametrize("as_option", [True, False])
def test_a_project(tmp_path: Path, as_option: bool) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\nname = "mine"\ndependencies = ["torch>=2.11", "numpy"]\n')
    found = known(files=(str(project),)) if as_option else known(str(project))
    assert found == ["torch>=2.11", "numpy"]


def test_a_wheel_on_disk(tmp_path: Path) -> None:
    path = WheelBuilder("demo").write(tmp_path)
    assert known(str(path)) == [f"demo @ {path.as_uri()}"]


def test_names_show_no_password() -> None:
    requested = parse_inputs(["demo @ https://user:hunter2@example.org/demo-1.0-py3-none-any.whl"], [])
    assert "hunter2" not in requested.label


def test_many_are_reported_in_short() -> None:
    assert parse_inputs(["a", "b", "c", "d", "e"], []).label == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["foo bar"], "a requirement does not parse"),
        ([], "nothing was requested"),
        (["none.txt"], "the file none.txt cannot be read"),
        (["./folder"], "a requirement does not parse"),
    ],
)
def test_what_is_no_input(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_inputs(texts, [])


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[project\n", b"project = 1", b'[project]\ndependencies = "a"', b""])
def test_a_broken_project_is_left_to_the_resolver(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(content)
    assert parse_inputs([str(path)], []).known == ()
