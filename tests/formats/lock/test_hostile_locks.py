"""Locks that are malformed, huge or hostile: one sentence each, in bounded time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.errors import FormatError
from wheel_checks.formats.lock.reading import read_lock
from wheel_checks.formats.lock.tables import MAX_SIZE

UV = 'version = 1\nrequires-python = ">=3.11"\n[[package]]\n'
POETRY = '[metadata]\nlock-version = "2.1"\ncontent-hash = "0"\n[[package]]\n'
PDM = '[metadata]\nlock_version = "4.5"\n[[package]]\n'
PIXI = "version: 6\nenvironments:\n  default:\n    packages:\n      linux-64: []\npackages:\n"


def read(name: str, text: str) -> None:
    read_lock(text.encode(), Path("/project") / name)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("uv.lock", "", "version is None; expected 1"),
        ("uv.lock", "version = 2", "version is 2; expected 1"),
        ("uv.lock", "x = " + "[" * 100_000, "the lock is not valid TOML"),
        ("uv.lock", "a" + ".a" * 50_000 + " = 1", "a key has more than 32 parts"),
        (
            "uv.lock",
            "version = 1\npackage = [" + "{}," * 20_001 + "]",
            "package has 20,001 values; expected at most 20,000",
        ),
        ("uv.lock", UV + 'name = "a b"', r"package\[0\].name is 'a b'; expected the name of a project"),
        ("uv.lock", UV + 'name = "\\u001b[31m"', r"package\[0\].name is '\\x1b\[31m'"),
        ("uv.lock", UV + 'name = "a"\nversion = "1;rm"', r"version is '1;rm'; expected a version"),
        ("uv.lock", UV + 'name = "a"\nwheels = [{ url = "ssh://x/a.whl" }]', "wheels names no file"),
        ("uv.lock", UV + 'name = "a"\nwheels = [{ url = "https://u:p@[x/a.whl" }]', "wheels names no file"),
        ("uv.lock", UV + 'name = "a"\nwheels = [{ path = "a\\u0000.whl" }]', "wheels names no file"),
        ("uv.lock", UV + 'name = "a"\ndependencies = [1]', "dependencies is of type int; expected a table"),
        ("uv.lock", UV + f'name = "a"\ndependencies = [{{ name = "b", marker = "{"x" * 200_001}" }}]', "200,001 char"),
        ("poetry.lock", "a = 1", "metadata is of type NoneType; expected a table"),
        ("poetry.lock", '[metadata]\nlock-version = "3.0"', "metadata.lock-version is '3.0'"),
        ("poetry.lock", POETRY + 'name = "a"\nfiles = [{ file = "../../etc/passwd" }]', "expected the name of a file"),
        ("poetry.lock", POETRY + 'name = "a"\nfiles = 1', "files is not a list"),
        ("poetry.lock", POETRY + 'name = "a"\n[package.dependencies]\n"a b" = "*"', "expected the name of a project"),
        ("pdm.lock", '[metadata]\nlock_version = "5.0"', "metadata.lock_version is '5.0'"),
        ("pdm.lock", PDM + 'name = "a"\ndependencies = ["=="]', r"dependencies is '=='; expected a requirement"),
        ("pixi.lock", "", "the lock is of type str; expected a table"),
        ("pixi.lock", "version: 99\n", "version is '99'; expected 3 to 7"),
        ("pixi.lock", "version: 6\n", "the lock has no environment"),
        ("pixi.lock", "a: [" * 100_000, "the lock is"),
        ("pixi.lock", "a: &x [1]\nb: *x\n", r"the lock has an alias \(line 2\)"),
        ("pixi.lock", "[a]: b\n", "has a key that is no text"),
        ("pixi.lock", PIXI + "- conda: https://c.example/linux-64/a b-1-0.conda\n", "expected a package of conda"),
        ("pixi.lock", PIXI + "- conda_source: a b\n", r"packages\[0\] is 'a b'; expected name\[hash\] @ location"),
        (
            "pixi.lock",
            PIXI + "platforms: [{name: p1, virtual-packages: 12}]\n",
            "virtual-packages is '12'; expected a list",
        ),
        ("pixi.lock", PIXI + "- other: x\n", r"packages\[0\] has other; expected an entry conda or pypi"),
        ("pixi.lock", PIXI.replace("[]", "[{pypi: x}]"), "environments name 'pypi x'"),
        ("pylock.toml", "x = 1", "lock-version is None"),
        ("odd.lock", "nothing", "odd.lock is not a known lock file; expected uv.lock, pylock.toml"),
    ],
)
def test_one_sentence(name: str, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        read(name, text)
    assert len(str(caught.value)) < 800
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["uv.lock", "pylock.toml", "poetry.lock", "pdm.lock", "pixi.lock"])
def test_fifty_megabytes_are_refused_at_once(name: str) -> None:
    started = time.process_time()
    with pytest.raises(FormatError, match=f"{name} has more than {MAX_SIZE:,} bytes"):
        read_lock(b"#" * 50_000_000, Path(name))
    assert time.process_time() - started < 1


PIECES = ["name", "version", "source", "wheels", "files", "groups", "markers", "dependencies", "extras", "sdist"]
VALUES = st.recursive(
    st.booleans() | st.integers(0, 9) | st.text(max_size=6),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from([*PIECES, "url", "hash"]), v, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from([("uv.lock", UV), ("poetry.lock", POETRY), ("pdm.lock", PDM)]),
    st.dictionaries(st.sampled_from(PIECES), VALUES, max_size=4),
)
def test_no_value_of_a_field_crashes_it(form: tuple[str, str], fields: dict[str, object]) -> None:
    import tomlkit

    name, head = form
    try:
        text = tomlkit.dumps({"name": "a", **fields})
    except (ValueError, TypeError):  # values that TOML cannot represent
        return
    try:
        read(name, head + text)
    except FormatError as error:
        assert error.what  # noqa: PT017  # either outcome is right


@given(st.binary(max_size=200))
def test_no_bytes_crash_a_lock_of_pixi(data: bytes) -> None:
    try:
        read_lock(PIXI.encode() + data, Path("pixi.lock"))
    except FormatError as error:
        assert error.what  # noqa: PT017  # either outcome is right
