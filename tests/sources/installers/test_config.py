"""Given these flags, variables and files, these indexes are queried."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wheel_checks.errors import SourceError, UsageError
from wheel_checks.sources import uv_binary
from wheel_checks.sources.installers.config import FIRST_INDEX, MERGE, IndexConfig, configured_indexes
from wheel_checks.sources.trust import Trust

A, B, C = "https://a.example.org/simple/", "https://b.example.org/simple/", "https://c.example.org/simple/"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The current folder of these tests, two levels deep in a project; user and system folders are its siblings."""
    deep = tmp_path / "project" / "src"
    deep.mkdir(parents=True)
    return deep


def configured(folder: Path, environ: dict[str, str] | None = None, **flags: object) -> IndexConfig:
    base = folder.parent.parent
    own = {
        "HOME": str(base / "home"),
        "XDG_CONFIG_DIRS": str(base / "system"),
        "VIRTUAL_ENV": str(base / "venv"),
        **(environ or {}),
    }
    return configured_indexes(own, folder, **flags)  # type: ignore[arg-type]  # each test gives the right ones


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_flags_win_over_everything(folder: Path) -> None:
    environ = {"UV_INDEX_URL": B, "PIP_EXTRA_INDEX_URL": B, "PIP_FIND_LINKS": "/dist", "PIP_NO_INDEX": "1"}
    config = configured(folder, environ, index_url=A, extra_index_urls=[C], find_links=["wheels"])
    assert config.indexes == (A, C)
    assert config.find_links == ((folder / "wheels").as_uri(),)
    assert config.origin[A] == "--index-url"


def test_no_index_leaves_the_links(folder: Path) -> None:
    config = configured(folder, {"PIP_INDEX_URL": A}, no_index=True, find_links=[B])
    assert (config.indexes, config.find_links) == ((), (B,))


@pytest.mark.parametrize(
    ("environ", "indexes"),
    [
        ({"UV_DEFAULT_INDEX": A, "UV_INDEX_URL": B, "PIP_INDEX_URL": C}, (A,)),
        ({"UV_DEFAULT_INDEX": f"mirror={A}"}, (A,)),
        ({"UV_INDEX_URL": B, "PIP_INDEX_URL": C}, (B,)),
        ({"PIP_INDEX_URL": f" {C} "}, (C,)),
        ({"PIP_INDEX_URL": A, "PIP_EXTRA_INDEX_URL": f"{B} {C}\n{B}"}, (A, B, C)),
        ({"PIP_INDEX_URL": A, "PIP_NO_INDEX": "true"}, ()),
        ({"PIP_INDEX_URL": A, "PIP_NO_INDEX": "0"}, (A,)),
        ({"PIP_INDEX_URL": "", "UV_INDEX_URL": A}, (A,)),
    ],
)
def test_the_environment(folder: Path, environ: dict[str, str], indexes: tuple[str, ...]) -> None:
    config = configured(folder, environ)
    assert (config.indexes, config.strategy) == (indexes, MERGE)


def test_extra_indexes_of_uv_come_first_and_are_combined_as_uv_does(folder: Path) -> None:
    environ = {"UV_INDEX": f"torch={A} {B}", "UV_DEFAULT_INDEX": C}
    config = configured(folder, environ)
    assert (config.indexes, config.strategy) == ((A, B, C), FIRST_INDEX)
    assert config.origin == {A: "UV_INDEX", B: "UV_INDEX", C: "UV_DEFAULT_INDEX"}
    merged = configured(folder, {**environ, "UV_INDEX_STRATEGY": "unsafe-best-match"})
    assert (merged.indexes, merged.strategy) == ((C, A, B), MERGE)


def test_find_links_of_the_environment(folder: Path) -> None:
    assert configured(folder, {"PIP_FIND_LINKS": f"dist {A}", "PIP_NO_INDEX": "1"}).find_links == (
        (folder / "dist").as_uri(),
        A,
    )
    assert configured(folder, {"UV_FIND_LINKS": f"my dist,{A}", "UV_NO_INDEX": "1"}).find_links == (
        (folder / "my dist").as_uri(),
        A,
    )


def test_named_indexes_of_a_pyproject_found_upwards(folder: Path) -> None:
    path = write(
        folder.parent / "pyproject.toml",
        f"""
        [[tool.uv.index]]
        name = "torch"
        url = "{A}"
        [[tool.uv.index]]
        name = "mirror"
        url = "{B}"
        default = true
        [[tool.uv.index]]
        name = "private"
        url = "{C}"
        explicit = true
        [[tool.uv.index]]
        url = "dist"
        format = "flat"
        """,
    )
    pip = {"PIP_CONFIG_FILE": str(write(folder / "pip.conf", f"[global]\nindex-url = {C}"))}
    refused = configured(folder, pip)
    assert (refused.indexes, [address.url for address in refused.refused]) == ((), [B, A])
    config = configured(folder, pip, trust=Trust.parse(["a.example.org", "b.example.org"]))
    assert (config.indexes, config.strategy, config.refused) == ((A, B), FIRST_INDEX, ())
    assert config.find_links == ((folder.parent / "dist").as_uri(),)
    assert config.origin[A] == str(path)
    assert config.notes == (
        f"the index private in {path} is explicit: it is asked for the packages that [tool.uv.sources] of a judged "
        "pyproject.toml takes from it, and for others only when --index-url names it",
    )


def test_the_nearest_uv_file_wins_over_the_user_and_the_system(folder: Path) -> None:
    base = folder.parent.parent
    write(base / "system" / "uv" / "uv.toml", f'index-url = "{A}"\nextra-index-url = ["{C}"]')
    assert configured(folder).indexes == (C, A)
    write(base / "home" / ".config" / "uv" / "uv.toml", f'index-url = "{B}"')
    assert configured(folder).indexes == (C, B)
    write(folder.parent / "pyproject.toml", '[project]\nname = "x"')
    assert configured(folder).indexes == (C, B)
    write(folder.parent / "uv.toml", f'[pip]\nindex-url = "{C}"')
    assert configured(folder).indexes == (C,)
    assert configured(folder, {"UV_NO_CONFIG": "1", "PIP_INDEX_URL": A}).indexes == (A,)
    only = write(base / "only.toml", f'index-url = "{A}"')
    assert configured(folder, {"UV_CONFIG_FILE": str(only)}).indexes == (A,)


def test_pips_files_from_the_weakest_to_the_strongest(folder: Path) -> None:
    base = folder.parent.parent
    write(base / "system" / "pip" / "pip.conf", f"[global]\nindex-url = {A}\nextra-index-url =\n    {B}\n    {C}")
    assert configured(folder).indexes == (A, B, C)
    write(base / "home" / ".config" / "pip" / "pip.conf", f"[global]\nindex_url = {B}\n[list]\nformat = columns")
    assert configured(folder).indexes == (B, C)
    write(base / "venv" / "pip.conf", f"[global]\nindex-url = {A}\n[install]\nindex-url = {C}\nextra-index-url = {B}")
    assert configured(folder).indexes == (C, B)
    assert configured(folder).origin[C] == str(base / "venv" / "pip.conf")
    assert configured(folder, {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": A}).indexes == (A,)


def test_the_last_resort_is_the_default_of_uv_which_is_that_of_pip(folder: Path) -> None:
    environ = {"PIP_CONFIG_FILE": "/dev/null"}
    config = configured(folder, environ)
    pip_help = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--help"], capture_output=True, text=True, check=True
    ).stdout

    assert f"(default {config.indexes[0]})" in " ".join(pip_help.split())
    assert config.origin == {config.indexes[0]: "the default of uv"}


@pytest.mark.parametrize(
    ("help_text", "found"),
    [
        ("--default-index <URL>\n  An index (by\n  default: <https://a.example.org/simple/>) [env: X]", True),
        ("--default-index <URL>\n  An index\n--index <URL>\n  (by default: <https://a.example.org/simple/>)", False),
        ("", False),
    ],
)
def test_what_the_help_of_uv_names(help_text: str, found: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = write(folder / "uv", f"#!/bin/sh\nprintf %s '{help_text}'\n")
    uv.chmod(0o755)
    monkeypatch.setattr(uv_binary, "find_uv", lambda: str(uv))
    read = uv_binary.default_index.__wrapped__  # not the answer of an earlier test
    if found:
        assert read() == A
    else:
        with pytest.raises(UsageError, match=r"no index is configured, .*--index-url"):
            read()


def test_without_uv_a_sentence_asks_for_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise SourceError("uv is not installed")

    monkeypatch.setattr(uv_binary, "find_uv", missing)
    with pytest.raises(UsageError, match=r"no index is configured, .*--index-url"):
        uv_binary.default_index.__wrapped__()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("uv.toml", "index-url = ", r"uv\.toml is not valid TOML"),
        ("uv.toml", "index-url = 3", r"index-url in .*uv\.toml is of type int; expected str"),
        ("uv.toml", "extra-index-url = [1]", r"extra-index-url in .* contains a value that is not a string"),
        ("uv.toml", "index = [{name = 'x'}]", r'an entry of "index" in .*uv\.toml has no url'),
        ("uv.toml", "index-strategy = 'best'", r"the index strategy 'best' .* is unknown"),
        ("uv.toml", "index-url = 'ftp://example.org/'", r"names a location of the kind 'ftp'"),
        ("uv.toml", "x = " + "[" * 5000, r"uv\.toml is not valid TOML"),
        ("pyproject.toml", "[tool", r"pyproject\.toml is not valid TOML"),
        ("pyproject.toml", "\0\udcff", r"cannot be read"),
        ("pyproject.toml", "#" * (1 << 20) + "##", r"is too long"),
    ],
)
def test_a_malformed_file_is_named(folder: Path, name: str, content: str, sentence: str) -> None:
    (folder / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=sentence):
        configured(folder)


@pytest.mark.parametrize("content", ["index-url = https://me:secret@example.org/", "[global]\nhttps//me secret"])
def test_a_malformed_pip_file_is_named_and_not_quoted(folder: Path, content: str) -> None:
    path = write(folder / "pip.conf", content)
    with pytest.raises(UsageError, match=r"pip\.conf is not a valid pip configuration \(see line \d\)") as caught:
        configured(folder, {"PIP_CONFIG_FILE": str(path)})
    assert "secret" not in str(caught.value)


def test_a_named_file_that_is_not_there(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file .*gone\.toml; expected the file that UV_CONFIG_FILE names"):
        configured(folder, {"UV_CONFIG_FILE": "gone.toml"})


@pytest.mark.parametrize(
    ("text", "indexes", "refused"),
    [
        (f'index-url = "{A}"', (), [A]),
        (f'index-url = "{B}"', (B,), []),  # the user has configured it
        (f'index-url = "{B}below/"', (f"{B}below/",), []),
        (f'index-url = "{B[:-8]}/other/"', (), [f"{B[:-8]}/other/"]),
        (f'index-url = "{B}../other/"', (), [f"{B}../other/"]),
        (f'extra-index-url = ["{A}"]', (B,), [A]),
        (f'[[index]]\nurl = "{A}"\nexplicit = true', (B,), []),
        (
            f'index-url = "https://b.example.org@evil.example{B[21:]}"',
            (),
            [f"https://b.example.org@evil.example{B[21:]}"],
        ),
        (f'index-url = "https://me:secret@{B[8:]}"', (B,), []),  # without the login of a stranger
        (f'find-links = ["{A}"]', (B,), [A]),
        ("no-index = true", (), []),
    ],
)
def test_what_a_tree_names_counts_when_the_user_has_configured_it(
    folder: Path, text: str, indexes: tuple[str, ...], refused: list[str]
) -> None:
    write(folder.parent.parent / "home" / ".config" / "uv" / "uv.toml", f'index-url = "{B}"')
    write(folder / "uv.toml", text)
    config = configured(folder)
    assert (config.indexes, [address.url for address in config.refused]) == (indexes, refused)


@pytest.mark.parametrize(("place", "inside"), [("dist", True), ("link", False), ("../..", False), ("/etc", False)])
def test_folders_of_a_tree_are_read_and_others_are_not(folder: Path, place: str, inside: bool) -> None:
    (folder.parent / ".git").mkdir()
    (folder / "dist").mkdir()
    (folder / "link").symlink_to("/etc")
    write(folder / "uv.toml", f'index-url = "{B}"\nfind-links = ["{place}"]')
    config = configured(folder, {"UV_DEFAULT_INDEX": A})
    assert (len(config.find_links), len(config.refused)) == ((1, 0) if inside else (0, 1))


def test_the_login_of_a_named_index_goes_to_the_users_own_alone(folder: Path) -> None:
    login = {"UV_INDEX_MY_MIRROR_USERNAME": "me", "UV_INDEX_MY_MIRROR_PASSWORD": "s/cret"}
    named = '[[index]]\nname = "my-mirror"\nurl = "{}"\ndefault = true\n'
    user = write(folder.parent.parent / "home" / ".config" / "uv" / "uv.toml", named.format(B))
    assert configured(folder, login).indexes == (f"https://me:s%2Fcret@{B[8:]}",)
    assert configured(folder, {**login, "UV_INDEX": f"my-mirror={C}"}).indexes[0] == f"https://me:s%2Fcret@{C[8:]}"
    user.write_text(f'index-url = "{B}"')
    write(folder / "uv.toml", named.format(A))
    assert configured(folder, login, trust=Trust.parse(["a.example.org"])).indexes == (A,)
