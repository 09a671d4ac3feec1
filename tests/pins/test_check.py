"""Results of `pins check` on a tree: findings fail, unknown requirements are undecided."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheel_checks.catalogue import all_rules
from wheel_checks.model import Outcome
from wheel_checks.targets.target import Target, parse_targets
from wheelproof.pins import Policy
from wheelproof.pins.applicability import EVERY_LINUX, applies
from wheelproof.pins.check import KIND, check_files
from wheelproof.pins.documents.reading import read_source
from wheelproof.pins.model import Source

INSTALLED = {"torch": "2.11.0+cu130", "torchvision": "0.26.0+cu130"}


POETRY = "[tool.poetry.dependencies]\ntorch = [{}]\n"
MATRIX = (
    "jobs: {a: {strategy: {matrix: {t: ["
    + ", ".join((*(f"package-{number}" for number in range(20)), "torch==2.8"))
    + "]}}, steps: [{run: 'pip install ${{ matrix.t }}'}]}}\n"
)


def verdict(folder: Path, targets: tuple[Target, ...] = EVERY_LINUX) -> str:
    """The verdict of the results: "fail", "undecided" or "pass"; warnings and notes are a pass."""
    rules = [rule for rule in all_rules() if rule.kind == KIND]
    subjects = check_files([folder], Policy(), INSTALLED, rules, targets=targets).subjects
    results = [result for subject in subjects for result in subject.results]
    if any(result.outcome is Outcome.FAIL and result.severity.value == "error" for result in results):
        return "fail"
    return "undecided" if any(result.outcome is Outcome.ERROR for result in results) else "pass"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Dockerfile", "FROM x\nRUN pip install torch==2.8.0\n", "fail"),
        ("Dockerfile", "FROM x\nRUN pip install 'torch>=2.8'\n", "pass"),
        ("Dockerfile", "FROM x\nRUN pip install -U 'torch>=2.8'\n", "fail"),
        ("Dockerfile", "FROM x\nRUN pip install -U torch==2.11.0\n", "pass"),
        ("Dockerfile", "FROM x\nRUN pip install --force-reinstall torch==2.11.0\n", "fail"),
        ("Dockerfile", "FROM x\nARG V\nRUN pip install torch==$V\n", "undecided"),
        ("Dockerfile", "FROM x\nRUN pip install $PACKAGES\n", "undecided"),
        ("Dockerfile", "FROM x\nRUN pip install \"torch==2.8; sys_platform == 'win32'\"\n", "pass"),
        (".github/workflows/a.yml", "jobs: {a: {steps: [{run: pip install torch==2.8}]}}\n", "fail"),
        ("README.md", "```\npip install torch==2.8\n```\n", "fail"),
        ("Makefile", "x:\n\tpip install torch==2.11.0\n", "undecided"),
        ("Makefile", "install:\n\tcp x y\n", "pass"),
        ("noxfile.py", "def a(session):\n    session.install('.')\n", "undecided"),
        ("tox.ini", "[testenv]\ndeps = six\ncommands = pip install -e .\n", "undecided"),
        ("README.md", "```\npip install $X\n```\n", "pass"),
        ("setup.py", "from setuptools import setup\nx = ['torch<2.7']\nsetup(install_requires=x)\n", "fail"),
        ("setup.py", "from setuptools import setup\nx = ['torch<2.7']\nprint(x)\nsetup(install_requires=x)\n", "fail"),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=read())\n", "undecided"),
        ("setup.py", "from setuptools import setup\nv = '2.8'\nsetup(install_requires=[f'torch=={v}'])\n", "fail"),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=[f'torch=={v}'])\n", "undecided"),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=[f'six=={v}'])\n", "pass"),
        ("Pipfile", "[packages]\ntorch = '==2.8.0'\n", "fail"),
        ("Pipfile", "[packages]\ntorch = '*'\n", "pass"),
        ("uv.toml", "constraint-dependencies = ['torch<2.9']\n", "fail"),
        ("tox.ini", "[testenv]\ndeps = torch==2.8\n", "fail"),
        ("pyproject.toml", "[tool.rye]\ndev-dependencies = ['torch==2.8']\n", "fail"),
        ("pyproject.toml", "[tool.tox.env_run_base]\ndeps = ['torch==2.8']\n", "fail"),
        ("pixi.toml", "[pypi-options.dependency-overrides]\ntorch = '==2.8'\n", "fail"),
        ("pixi.toml", "[target.win-64.pypi-dependencies]\ntorch = '==2.8'\n", "pass"),
        ("pyproject.toml", "[tool.poetry.dependencies]\ntorch = {version='2.8', platform='win32'}\n", "pass"),
        (
            "pyproject.toml",
            POETRY.format("{version='2.8', platform='win32'}, {version='2.9', platform='darwin'}"),
            "pass",
        ),
        (
            "pyproject.toml",
            POETRY.format("{version='2.8', platform='win32'}, {version='2.9', platform='linux'}"),
            "fail",
        ),
        ("pyproject.toml", POETRY.format("{version='2.8', platform='win32'}, {version='*', platform='linux'}"), "pass"),
        (
            "pyproject.toml",
            POETRY.format("{version='2.8', markers=\"sys_platform == 'win32'\"}, {version='2.9', platform='darwin'}"),
            "pass",
        ),
        ("tox.ini", "[base]\ndeps = torch==2.8\n[testenv]\ndeps = {[base]deps}\n  six\n", "fail"),
        ("tox.ini", "[a]\nx = torch==2.8\n[b]\ndeps = {[a]x}\n[testenv]\ndeps =\n  gpu: {[b]deps}\n", "fail"),
        ("tox.ini", "[base]\ndeps = torch==2.8\n[testenv]\ndeps = six\n", "pass"),
        ("tox.ini", "[testenv]\ndeps = {env:EXTRA_DEPS}\n", "undecided"),
        ("tox.ini", "[testenv]\ndeps = -r{env:FILE}\n", "undecided"),
        ("install.sh", "cat <<EOF > a.sh && bash a.sh\npip install torch==2.8\nEOF\n", "fail"),
        ("install.sh", "cat <<EOF | sh\npip install torch==2.8\nEOF\n", "fail"),
        ("install.sh", "pip install torch==2.8\n# " + "x" * (1 << 20), "undecided"),
        ("a.yml", "".join("- " + "[" * n + "'pip install torch==2.8'" + "]" * n + "\n" for n in (1, 61)), "undecided"),
        ("data/a.yaml", "a: " + "x" * (1 << 19) + "\nrun: pip install torch==2.8\n", "undecided"),
        (".github/workflows/a.yml", MATRIX, "fail"),
        ("Dockerfile", "FROM x\nRUN pip install https://mirror.example/get?torch\n", "undecided"),
        (
            "setup.py",
            "from setuptools import setup\nsetup(install_requires=read('a.txt') + read('b.txt'))\n",
            "undecided",
        ),
        ("setup.py", "def sorted(x): return ['torch==2.8']\nsetup(install_requires=sorted(['six']))\n", "undecided"),
        ("pyproject.toml", "[tool.cibuildwheel]\nbefore-build = 'pip install torch==2.8'\n", "fail"),
        ("pyproject.toml", "[tool.hatch.envs.a.scripts]\nx = ['pip install torch==2.8']\n", "fail"),
        ("pyproject.toml", "[project]\nname = 'x'\ndescription = 'pip install torch==2.8'\n", "pass"),
        ("pixi.toml", "[tasks]\na = {cmd = 'pip install torch==2.8'}\n", "fail"),
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.11.0"\n', "fail"),
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.11.0+cu130"\n', "pass"),
        (
            "uv.lock",
            '[[package]]\nname = "torch"\nversion = "2"\n[[package]]\nname = "torch"\nversion = "2.11.0+cu130"\n',
            "pass",
        ),
        ("uv.lock", '[[package]]\nname = "torch"\nsource = { registry = "x" }\n', "pass"),
        ("Dockerfile", "FROM x\nRUN pip install https://x.test/torch-${V}-cp312-cp312-linux_x86_64.whl\n", "fail"),
    ],
)
def test_verdicts(name: str, text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert verdict(tmp_path) == expected


def test_a_script_in_utf_16_is_read(tmp_path: Path) -> None:
    (tmp_path / "install.ps1").write_bytes("pip install torch==2.8\r\n".encode("utf-16"))
    assert verdict(tmp_path) == "fail"
    (tmp_path / "install.ps1").write_bytes("pip install torch==2.8\r\n".encode("utf-16-le"))
    assert verdict(tmp_path) == "undecided"


def test_every_file_that_a_setup_py_reads_counts(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("setup(install_requires=read('a.txt') + read('b.txt'))\n")
    (tmp_path / "a.txt").write_text("six\n")
    assert verdict(tmp_path) == "undecided"
    (tmp_path / "b.txt").write_text("torch==2.8\n")
    assert verdict(tmp_path) == "fail"


def test_a_setup_py_that_reads_a_file_is_what_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup(install_requires=read('deps/core.txt'))\n")
    (tmp_path / "deps").mkdir()
    (tmp_path / "deps/core.txt").write_text("six\n")
    assert verdict(tmp_path) == "pass"
    (tmp_path / "deps/core.txt").write_text("torch==2.8\n")
    assert verdict(tmp_path) == "fail"
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\ndef read():\n    return open('deps/core.txt').read().split()\n"
        "setup(install_requires=read())\n"
    )
    assert verdict(tmp_path) == "fail"


def test_a_file_that_a_command_names_is_read_where_it_lies_in_the_tree(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker/Dockerfile").write_text("FROM x\nRUN pip install -r /workspace/app/deps/all.list\n")
    assert verdict(tmp_path) == "undecided"
    (tmp_path / "deps").mkdir()
    (tmp_path / "deps/all.list").write_text("torch==2.8\n")
    assert verdict(tmp_path) == "fail"


@pytest.mark.parametrize(
    ("platform", "python", "marker", "expected"),
    [
        ("win_amd64", "3.12", "sys_platform == 'win32'", True),
        ("x86_64", "3.12", "sys_platform == 'win32'", False),
        ("x86_64", "3.12", "platform_machine == 'aarch64'", False),
        ("all", "3.12", "platform_machine == 'aarch64'", True),
        ("x86_64", "3.12", "python_version < '3.11'", False),
        ("x86_64", "3.10", "python_version < '3.11'", True),
        ("x86_64", "3.12", "extra == 'gpu'", True),
        ("x86_64", "3.12", "extra == 'gpu' and sys_platform == 'darwin'", False),
        ("x86_64", "3.12", "no_such_name == 'x'", True),
    ],
)
def test_markers(platform: str, python: str, marker: str, expected: bool) -> None:
    text = f"torch==2.8 ; {marker}\n"
    (found,) = read_source(Source(Path("requirements.txt"), text.encode(), text), "requirements").requirements
    assert applies(found, parse_targets([platform], [python], systems=True)) is expected


def test_what_uv_and_conda_take_for_files_is_read_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\ndependencies = ["torch>=2"]\n')
    (tmp_path / "environment.yml").write_text("dependencies:\n- pip:\n  - torch>=2\n")
    (tmp_path / "a.sh").write_text("uv pip install -r pyproject.toml\nconda env create -f environment.yml\n")
    assert verdict(tmp_path) == "pass"
    (tmp_path / "environment.yml").write_text("dependencies:\n- pip:\n  - torch==2.8\n")
    assert verdict(tmp_path) == "fail"


def test_no_rewriting_is_advised_for_what_stands_in_a_command(tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text("FROM x\nRUN pip install torchvision\n")
    rules = [rule for rule in all_rules() if rule.kind == KIND]
    (subject,) = check_files([file], Policy(), {"torch": "2.11.0+cu130"}, rules).subjects
    commands = [step for result in subject.results if result.fix for step in result.fix.commands]

    assert {result.rule for result in subject.results if result.outcome is Outcome.FAIL} == {"PIN103", "PIN104"}
    assert commands == []
