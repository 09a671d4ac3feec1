"""The requirements in files, and the files that no installer opens, fetches or builds."""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.wheels import WheelBuilder
from wheel_checks.errors import SourceError, UsageError, WheelproofError
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.requirement_files import is_built
from wheel_checks.sources.trust import NO_TRUST, Trust, UntrustedAddressError
from wheel_checks.targets.target import Target
from wheelproof.stacks.inputs import parse_inputs
from wheelproof.wheels.handing import Handed, hand_over

TARGET = Target((3, 12), "x86_64", (2, 39))
CONFIG = IndexConfig(("https://mine.example/simple",), trust=NO_TRUST.with_places(["https://mine.example/simple"]))


def handed(file: Path, config: IndexConfig = CONFIG) -> Handed:
    return hand_over(parse_inputs([], [str(file)]), TARGET, config)


def written(folder: Path, text: str, name: str = "requirements.txt") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "line",
    [
        "-r pipe",
        "-rpipe",
        "  -r   pipe  # a comment",
        "--requirement pipe",
        "--requirement=pipe",
        "-c pipe",
        "-cpipe",
        "--constraint=pipe",
        '-r "pipe"',
        "-r below/other.txt",
        "-e project",
        "--editable=project[extra]",
        "./project",
    ],
)
def test_a_pipe_is_found_wherever_a_line_leads(tmp_path: Path, line: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "below").mkdir()
    (tmp_path / "below/other.txt").write_text("-c ../pipe\n")
    (tmp_path / "project").mkdir()
    os.mkfifo(tmp_path / "project/pyproject.toml")
    file = tmp_path / "requirements.txt"
    file.write_text(f"six\n{line}\n")
    with pytest.raises(UsageError, match="it is a pipe, not a regular file"):
        handed(file)


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.11.0 --hash=sha256:00\n",
        "# -r pipe\ntorch\n",
        "--index-url https://mine.example/simple\n--require-hashes\ntorch\n",
        "-r requirements.txt\ntorch",  # itself
        "-e below\n",
        "pipe\n",
    ],
)
def test_what_leads_to_no_pipe_is_silent(tmp_path: Path, text: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    written(tmp_path, '[project]\nname = "below"\ndependencies = ["torch"]\n', "below/pyproject.toml")
    assert len(handed(written(tmp_path, text)).requirements) == 1


def test_the_number_of_files_is_bounded(tmp_path: Path) -> None:
    names = [f"{number}.txt" for number in range(1001)]
    for name in names:
        (tmp_path / name).write_text("")
    (tmp_path / "all.txt").write_text("".join(f"-r {name}\n" for name in names))
    with pytest.raises(SourceError, match="exceeds the limit of 1000"):
        handed(tmp_path / "all.txt")


def test_blank_lines_cost_no_more_than_others(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        file = tmp_path / "requirements.txt"
        file.write_text(" \n" * count)
        start = time.process_time()
        parse_inputs([], [str(file)])
        return time.process_time() - start

    assert seconds(400_000) < 8 * seconds(100_000) + 0.5


def test_what_an_installer_is_given_of_files(tmp_path: Path) -> None:
    wheel = WheelBuilder("local", "1.0").write(tmp_path)
    written(tmp_path, "numpy<3\n", "bounds.txt")
    written(tmp_path, "--extra-index-url https://mine.example/simple/more\nbase[fast] >= 1 # why\n", "sub/more.txt")
    written(
        tmp_path,
        '[project]\nname = "Lib"\nversion = "1.0"\ndependencies = ["numpy", "torch; sys_platform == \'win32\'"]\n'
        '[project.optional-dependencies]\nall = ["lib[gpu]"]\ngpu = ["triton"]\ndocs = ["mkdocs"]\n',
        "lib/pyproject.toml",
    )
    (tmp_path / ".git").mkdir()
    text = "-c bounds.txt\n-r sub/more.txt\n-e ./lib[all]\n--pre\nsix --hash=sha256:00 \\\n  --hash=sha256:11\n"
    text += f"./{wheel.name}\nother @ https://x.example/other-1.0-py3-none-any.whl ; sys_platform == 'win32'\n"
    found = handed(written(tmp_path, text))
    assert found.of_files == (
        "six",
        f"local @ {wheel.as_uri()}",
        "base[fast]>=1",
        "numpy",
        'torch; sys_platform == "win32"',
        "triton",
    )
    assert (found.constraints, [project.name for project in found.projects]) == (("numpy<3",), ["lib"])
    assert found.hashes == {"six": ("sha256:00", "sha256:11")}
    assert found.options == ("--extra-index-url https://mine.example/simple/more", "--pre")
    assert found.config.indexes == ("https://mine.example/simple", "https://mine.example/simple/more")
    assert "six --hash=sha256:00 --hash=sha256:11\n" in found.lines(pinned=True)


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        ("-r ../secret.txt", SourceError, "requirements.txt:1 names '../secret.txt', which leads out of the tree"),
        ("-r /etc/hostname", SourceError, "leads out of the tree"),
        ("-r link.txt", SourceError, "names 'link.txt', which leads out of the tree"),
        ("-c link.txt", SourceError, "leads out of the tree"),
        ("-e ..", SourceError, "leads out of the tree"),
        ("../x-1.0-py3-none-any.whl", SourceError, "leads out of the tree"),
        ("x @ file:///etc/x-1.0-py3-none-any.whl", SourceError, "leads out of the tree"),
        ("file:///etc/x-1.0-py3-none-any.whl", SourceError, "leads out of the tree"),
        ("--find-links /etc", SourceError, "leads out of the tree"),
        ("--find-links file:///etc", SourceError, "leads out of the tree"),
        ("-e .", SourceError, "known only by building the project, which is not done"),
        ("./x-1.0.tar.gz", SourceError, "known only by building the project, which is not done"),
        ("--no-binary :all:", SourceError, "must be built from a source archive"),
        ("git@host.example:x/y.git", UntrustedAddressError, "the repository git@host.example:x/y.git"),
        ("ssh://git@host.example/x.git", UntrustedAddressError, "the repository ssh://host.example/x.git"),
        ("-r https://x.example/r.txt", UntrustedAddressError, "requirements.txt:1 needs the repository"),
        (
            "-i https://x.example/simple",
            UntrustedAddressError,
            "requirements.txt needs the index https://x.example/simple",
        ),
        ("--trusted-host x\nwhat is this", UsageError, "requirements.txt:2 is not a requirement: 'what is this'"),
        ("--config-settings a=b", UsageError, "requirements.txt:1 is not a valid requirements line"),
        ("-r gone.txt", UsageError, "requirements.txt:1 includes a file: .*gone.txt cannot be read"),
    ],
)
def test_what_is_not_followed(tmp_path: Path, text: str, error: type[WheelproofError], sentence: str) -> None:
    folder = tmp_path / "tree"
    written(tmp_path, "torch\n", "secret.txt")
    file = written(folder, f"{text}\n")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(error, match=sentence):
        handed(file)


def test_files_of_one_repository_include_one_another(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    written(tmp_path, "torch\n", "common.txt")
    assert handed(written(tmp_path, "-r ../common.txt\n", "requirements/cuda.txt")).of_files == ("torch",)


def test_a_chain_of_a_thousand_files_and_projects_is_no_recursion(tmp_path: Path) -> None:
    for number in range(600):
        written(tmp_path, f"-r {number + 1}.txt\n", f"{number}.txt")
    written(tmp_path, "-e p0\n", "600.txt")
    for number in range(390):
        text = f'[project]\nname = "p{number}"\ndependencies = ["p{number + 1} @ file://{tmp_path}/p{number + 1}"]\n'
        written(tmp_path, text if number < 389 else '[project]\nname = "last"\n', f"p{number}/pyproject.toml")
    found = handed(tmp_path / "0.txt")
    assert [len(found.projects), found.projects[-1].name] == [390, "last"]


@pytest.mark.parametrize(
    ("source", "pinned", "left_out"),
    [
        ('{ index = "x" }', {}, ["torch"]),
        ('{ index = "mine" }', {"torch": "https://mine.example/simple/cu130"}, []),
        ('{ index = "unknown" }', {}, ["torch"]),
        ('[{ index = "x", marker = "sys_platform == \'win32\'" }]', {}, []),
        ('[{ index = "x", extra = "cu130" }, { index = "x", group = "dev" }]', {}, []),
        (
            '[{ index = "mine", marker = "python_version > \'3\'" }, { index = "x" }]',
            {"torch": "https://mine.example/simple/cu130"},
            [],
        ),
        ('{ git = "https://mine.example/simple/x" }', {}, ["torch"]),
        ("{ workspace = true }", {}, ["torch"]),
        ('{ url = "https://x.example/torch-2.11.0-py3-none-any.whl" }', {}, ["torch"]),
    ],
)
def test_sources_of_uv(tmp_path: Path, source: str, pinned: dict[str, str], left_out: list[str]) -> None:
    text = f'[project]\nname = "mine"\ndependencies = ["torch>=2", "numpy"]\n[tool.uv.sources]\nTorch = {source}\n'
    for name, url in (("x", "https://x.example/simple"), ("mine", "https://mine.example/simple/cu130")):
        text += f'[[tool.uv.index]]\nname = "{name}"\nurl = "{url}"\nexplicit = true\n'
    found = handed(written(tmp_path, text, "pyproject.toml"))
    assert (found.pinned, list(found.left_out)) == (pinned, left_out)
    assert "numpy" in found.of_files


def test_a_project_whose_requirements_are_dynamic_is_open(tmp_path: Path) -> None:
    path = written(tmp_path, '[project]\nname = "mine"\ndynamic = ["dependencies"]\n', "pyproject.toml")
    with pytest.raises(SourceError, match=r"pyproject\.toml: the requirements are known only by building") as caught:
        handed(path)
    assert "-r FILE" in caught.value.hint


def test_the_flag_wins_over_the_index_of_a_file(tmp_path: Path) -> None:
    file = written(tmp_path, "--index-url https://x.example/simple\ntorch\n")
    flag = IndexConfig(("https://flag.example/simple",), origin={"https://flag.example/simple": "--index-url"})
    assert handed(file, flag).config.indexes == ("https://flag.example/simple",)
    trusting = IndexConfig(CONFIG.indexes, trust=Trust.parse(["x.example"]))
    assert handed(file, trusting).config.indexes == ("https://x.example/simple",)


@pytest.mark.parametrize("name", ["uv.lock", "pylock.toml", "pylock.cuda.toml"])
def test_addresses_of_a_lock_are_not_contacted(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match="is a lock, and its URLs are not contacted"):
        handed(written(tmp_path, 'lock-version = "1.0"\n', name))


# Builds and queries of an installer

BUILDS = [  # each was seen to run code in November 2026, with pip or with uv
    "-e .",
    "-e./project",
    "-e git+https://example.org/x.git",
    "--editable=.",
    "--edit .",
    "--pre -e .",
    '--pre "-e" .',
    "--pre \\-e .",
    "-\\\ne .",
    "six \\\n# a comment\n-e .",
    "six --hash=sha256:00 '--no-binary' six",
    "six --hash=sha256:00 \\\n'--no-binary' six",
    "--no-binary :all:",
    "--no-binary=six",
    "--no-bin six",
    "six --no-binary six",
    "--only-binary :none:",
    "--only-binary=six,:none:",
    "--prefer-binary -r other.txt",
    "--req other.txt",
    "-r https://example.org/requirements.txt",
    "-r ${HOME}/requirements.txt",
    "-r editable.txt",
    "-c editable.txt",
    "-r script.py",
    "# -*- coding: utf-7 -*-\n+AC0-e .",
    "\x0c-e .",
]
PIP_BUILDS = [
    ".",
    "./project",
    "./project[extra]",
    "project/",
    "file:///x/project",
    "git+https://example.org/x.git",
    "https://example.org/six-1.0.tar.gz",
    "six @ file:///x/project",
    "six @ git+https://example.org/x.git ; python_version > '3'",
    "six @ https://example.org/six-1.0.zip#sha256=00",
    "-c url.txt",
]
HARMLESS = [
    "six",
    "six==1.0 ; python_version > '3'  # a comment",
    "six==1.0 --hash=sha256:00 --hash sha256:11",
    "six==1.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11",
    "-r below/other.txt",
    '-r "below/other.txt"',
    "--requirement=below/other.txt",
    "-c below/other.txt",
    "-i https://example.org/simple",
    "--index-url https://me:secret@example.org/simple",
    "--extra-index-url=https://example.org/simple",
    "--find-links wheels",
    "-f wheels",
    "--trusted-host example.org",
    "--only-binary :all:",
    "--pre\n--prefer-binary\n--no-index\n--require-hashes",
    "./wheels/six-1.0-py3-none-any.whl",
    "file:///x/six-1.0-py3-none-any.whl",
    "six @ https://example.org/six-1.0-py3-none-any.whl#sha256=00",
    "# -*- coding: utf-8 -*-\nsix",
    "",
]


# All that an installer may get: names and versions, wheels, and options about indexes whose places are trusted.
GIVEN = re.compile(
    r"(?:six|local)(?:==1\.0)?(?:; python_version > \"3\")?(?: --hash=sha256:\w\w)*"
    r"|six @ (?:file|https)://\S+\.whl(?:#sha256=00)?"
    r"|--(?:index-url|extra-index-url) https://example\.org/simple|--find-links file://\S+/wheels|--no-index|--pre"
)


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    written(tmp_path, "six\n", "below/other.txt")
    written(tmp_path, "-e .\n", "editable.txt")
    written(tmp_path, "six @ file:///x/project\n", "url.txt")
    written(tmp_path, "# /// script\n# dependencies = ['six']\n# ///\n-e .\n", "script.py")
    written(tmp_path, "", "wheels/six-1.0-py3-none-any.whl")
    return tmp_path / "requirements.txt"


@pytest.mark.parametrize("trusted", [(), ("example.org",)])
@pytest.mark.parametrize("line", BUILDS + PIP_BUILDS)
def test_what_an_installer_may_build_is_not_given_to_it(
    requirements: Path, line: str, trusted: tuple[str, ...]
) -> None:
    requirements.write_text(f"six\n{line}\n" if not line.startswith("# -*-") else f"{line}\n")
    try:
        found = handed(requirements, replace(CONFIG, trust=Trust.parse(trusted)))
    except WheelproofError:
        return  # a sentence, and nothing is given
    built = [text for text in (*found.of_files, *found.constraints) if is_built(text)]
    assert built == [] or (found.left_out or trusted), "pins predict gives pip nothing that is built"
    assert all(GIVEN.fullmatch(row) or is_built(row) for row in found.lines(pinned=True).splitlines())
    assert line in ("--only-binary :none:", "--only-binary=six,:none:") or built or found.left_out


@pytest.mark.parametrize("line", HARMLESS)
def test_what_is_harmless_is_given(requirements: Path, line: str) -> None:
    requirements.write_text(f"{line}\nlocal\n")
    if line.startswith("file:"):
        with pytest.raises(SourceError, match="leads out of the tree"):
            handed(requirements)
        return
    found = handed(requirements, replace(CONFIG, trust=Trust.parse(["example.org"])))
    assert "local" in found.of_files
    assert all(GIVEN.fullmatch(row) for row in found.lines(pinned=True).splitlines())


@pytest.mark.parametrize("content", ["-e .\n".encode("utf-16"), b"six\xff\n"])
def test_bytes_that_installers_read_in_two_ways_are_refused(requirements: Path, content: bytes) -> None:
    requirements.write_bytes(content)
    with pytest.raises(UsageError, match="is not valid UTF-8"):
        handed(requirements)
