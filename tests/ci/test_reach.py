"""``ci/reach.py``: which tests a change can reach, through imports by name and children, too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ci.reach import EXTRA, FOREIGN, PACKAGES, Graph

ROOT = Path(__file__).parents[2]
# Started only by people and other programs.
ENTRIES = {"tools/wheelproof/__main__.py", "kernels_smoke/__main__.py"}
NEAR = 3.0


@pytest.fixture(scope="module")
def graph() -> Graph:
    """That of this repository; an unpacked sdist, which has no git, contains nothing but the repository's files."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if (ROOT / ".git").exists():
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if "__pycache__" not in path.parts]
    return Graph(ROOT, {name for name in names if (ROOT / name).is_file()})


def near(graph: Graph, changed: str) -> set[str]:
    """The files of the tests that are near to a change of this file."""
    return {path for (path, _), distance in graph.tests([changed]).items() if distance <= NEAR}


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("wheel_checks/rules/wheel/linking.py", "tests/rules/test_rules.py"),  # by the ids of its rules
        ("wheel_checks/formats/zip/directory.py", "tests/formats/zip/test_directory.py"),  # imported
        ("wheel_checks/data/products.toml", "tests/facts/gpu/test_targets.py"),  # a table that is loaded by name
        ("wheel_checks/report/junit.py", "tests/report/test_junit.py"),  # a renderer, imported by name
        ("wheel_checks/report/report.schema.json", "tests/report/test_json_report.py"),  # a resource
        ("tools/wheelproof/cli/stack.py", "tests/cli/test_stack.py"),  # a command of the table
        ("tools/wheelproof/doctor/probes/loader.py", "tests/doctor/test_loader_probe.py"),  # a probe
        ("tools/wheelproof/doctor/inside/interpreter.py", "tests/doctor/test_python_probe.py"),  # run by children only
        ("tools/wheelproof/matrix/run/worker.py", "tests/matrix/run/test_execution.py"),  # the same, by -m
        ("tools/wheelproof/pins/documents/conda.py", "tests/pins/documents/test_documents.py"),  # of a table of readers
        ("kernels_smoke/norm/cases.py", "tests/kernels/test_norm.py"),  # imported where torch is
        ("kernels_smoke/suite/probes/driver_program.py", "tests/kernels/suite/test_driver.py"),  # start.command()
        ("tests/support/elf.py", "tests/formats/elf/test_file.py"),
        ("tests/data/pins/input/01-basic.requirements.txt", "tests/pins/test_corpus.py"),
        ("docs/how-to/both-architectures.md", "tests/docs/test_commands.py"),
        (".github/workflows/ci.yml", "tests/adopters/test_workflows.py"),
    ],
)
def test_a_change_reaches_the_test_that_is_about_it(graph: Graph, changed: str, test: str) -> None:
    assert test in near(graph, changed)


def test_a_test_reaches_what_its_own_function_uses_and_not_its_neighbours(tmp_path: Path) -> None:
    files = {
        "wheel_checks/a.py": "",
        "wheel_checks/b.py": "",
        "tests/test_both.py": "from wheel_checks import a, b\n"
        "def use():\n    a\ndef test_a():\n    use()\ndef test_b():\n    b\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)

    found = Graph(tmp_path, files).tests(["wheel_checks/a.py"])

    assert found["tests/test_both.py", "test_a"] < found["tests/test_both.py", "test_b"]  # which mirrors it, at least


def test_every_module_is_reached_by_an_import_or_by_its_name(graph: Graph) -> None:
    """A module that is loaded in a new way is in no graph, and ``check`` would not see its changes."""
    assert {path for path in graph.programs() if not graph.users[path, ""]} <= ENTRIES


def test_every_dynamic_import_has_an_edge(graph: Graph) -> None:
    product = [path for path in graph.sources if path.startswith(tuple(PACKAGES))]
    dynamic = {path for path in product if any(uses.dynamic for uses in graph.sources[path].definitions.values())}
    lost = {path for path in dynamic - set(FOREIGN) if not graph.dispatched(path)}
    assert not lost, "name what these load in a table of strings, or in FOREIGN of ci/reach.py"
    assert set(FOREIGN) <= dynamic, "no longer dynamic: take it out of FOREIGN"


def test_the_explicit_edges_lead_to_tests(graph: Graph) -> None:
    for patterns in EXTRA.values():
        for pattern in patterns:
            assert any(Path(path).match(pattern) for path in graph.sources), pattern


def test_a_change_of_a_conftest_reaches_every_test_below_it(graph: Graph) -> None:
    tests = {node for path in graph.sources for node in ((path, name) for name in graph.sources[path].definitions)}
    wanted = {node for node in tests if Path(node[0]).name.startswith("test_") and node[1].startswith("test_")}
    assert set(graph.tests(["tests/conftest.py"])) >= wanted
