"""Which files of a tree are found, and by which format they are read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wheel_checks.errors import NotFoundError
from wheelproof.pins.documents.reading import kind_of
from wheelproof.pins.rewrite.files.discovery import find_files
from wheelproof.pins.rewrite.files.documents import read_all

FOUND = {
    "requirements.txt": "requirements",
    "dev-requirements.in": "requirements",
    "requirements/cuda.txt": "requirements",
    "constraints-gpu.txt": "requirements",
    "pyproject.toml": "pyproject",
    "sub/setup.py": "setup.py",
    "sub/setup.cfg": "setup.cfg",
    "hatch.toml": "hatch",
    "pixi.toml": "pixi",
    "uv.lock": "lock",
    "pylock.gpu.toml": "lock",
    "docker/Dockerfile.cuda": "commands",
    "install.sh": "commands",
    "environment-gpu.yml": "conda",
    "script.py": "script",
}
IGNORED = (
    *("CMakeLists.txt", "MANIFEST.in", "notes.txt", "plain.py", "config.yml", "Cargo.lock", "Cargo.toml"),
    *(".git/requirements.txt", "env/requirements.txt", "build/requirements.txt", "deep/logs/requirements.txt"),
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (*FOUND, *IGNORED, "env/pyvenv.cfg", "build/keep/requirements.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# /// script\n# ///\n" if name == "script.py" else "")
    (tmp_path / ".gitignore").write_text("# made\n/build/*\n!/build/keep/\nlogs/\n")
    return tmp_path


def found_in(folder: Path, **options: bool) -> dict[str, str]:
    return {str(path.relative_to(folder)): kind for path, kind in find_files([folder], **options)}


def test_a_tree(tree: Path) -> None:
    assert found_in(tree) == {**FOUND, "build/keep/requirements.txt": "requirements"}


def test_vendored_projects_are_skipped_only_on_request(tree: Path) -> None:
    (tree / "third_party").mkdir()
    (tree / "third_party/requirements.txt").touch()

    assert "third_party/requirements.txt" in found_in(tree)
    assert "third_party/requirements.txt" not in found_in(tree, skip_vendored=True)


@pytest.mark.parametrize(
    ("pattern", "path", "ignored"),
    [
        ("*.txt", "a/requirements.txt", True),
        ("/*.txt", "a/requirements.txt", False),
        ("a/**/requirements.txt", "a/b/c/requirements.txt", True),
        ("a/*/requirements.txt", "a/b/c/requirements.txt", False),
        ("**/c", "a/b/c/requirements.txt", True),
        ("requirement[a-s].txt", "requirements.txt", True),
        ("requirement[!s].txt", "requirements.txt", False),
        ("\\#x\nrequirements.txt   ", "requirements.txt", True),
        ("[z-a].txt", "requirements.txt", False),
        ("[[:lower:]]equirements.txt", "requirements.txt", True),
        ("[\\r]equirements.txt", "requirements.txt", True),
        ("a**/requirements.txt", "a/b/requirements.txt", False),
        ("a[!x]requirements.txt", "a/requirements.txt", False),
    ],
)
def test_patterns_of_gitignore(pattern: str, path: str, ignored: bool, tmp_path: Path) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).touch()
    (tmp_path / ".gitignore").write_text(pattern + "\n")

    assert (path not in found_in(tmp_path)) == ignored


def test_nested_gitignores_as_git_reads_them(tmp_path: Path) -> None:
    gitignores = {
        "": "build/\n/data/*\n!/data/kept/\n*.in\n!dev/\n# logs\n[[:alpha:]]x\n!\n/\n",
        "a/": "*\n!*/\n!requirements.txt\n",
        "a/b/": "!constraints.txt\nc/\n",
        "d/": "/requirements.txt\n!build/\nbuild/deep/\ne\\ \n",
        "f/": "**/build/**/requirements.txt\n!*.in\nlogs\n",
    }
    folders = ("", "a/", "a/b/", "a/b/c/", "build/", "data/", "data/kept/", "data/other/", "d/", "d/build/", "dev/")
    for folder in (*folders, "d/build/deep/", "d/e /", "f/", "f/build/x/", "f/logs/", "f/build/x/logs/"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / ".gitignore").write_text(gitignores.get(folder, ""))
        for name in ("requirements.txt", "constraints.txt", "requirements.in"):
            (tmp_path / folder / name).touch()
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    listing = ["git", "-C", str(tmp_path), "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"]
    files = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0")

    assert set(found_in(tmp_path)) == {file for file in files if file.endswith((".txt", ".in"))}


def test_includes_are_followed_each_once_and_missing_ones_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("-r b.txt\n-c c.txt\n--requirement=gone.txt\n-r http://x/y.txt\n")
    (tmp_path / "b.txt").write_text("-r a.txt\n-cc.txt\ntorch\n")
    (tmp_path / "c.txt").write_text("torch==2\n")
    notices: list[str] = []
    read = list(read_all([tmp_path / "a.txt"], lambda notice: notices.append(notice.code)))

    assert [path.name for path, _ in read] == ["a.txt", "b.txt", "c.txt"]
    assert [found.role for _, document in read for found in document.requirements] == ["runtime", "constraint"]
    assert notices == ["include-missing"]


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no .*nothing"):
        list(find_files([tmp_path / "nothing"]))


@pytest.mark.parametrize(("name", "kind"), [("odd.txt", "requirements"), ("odd.toml", "pyproject"), ("odd.bin", "")])
def test_a_named_file_may_have_an_unusual_name(name: str, kind: str) -> None:
    assert kind_of(Path(name)) == kind
    assert kind_of(Path(name), named=False) == ""
