"""pylock.toml: packages and files out of bytes, and a FormatError that names the field for anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.errors import FormatError
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.formats.lock.pylock import parse_pylock
from wheel_checks.formats.lock.tables import MAX_SIZE

FOLDER = Path("/lock")
DIGEST = "E91AF169e4ca6aa89502cb900616fc3c420ba83c63dca82ba292670a101e0da8"
URL = "https://files.example.org/torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl"
LOCK = f"""
lock-version = "1.0"
created-by = "uv"
requires-python = ">=3.12"

[[packages]]
name = "Torch"
version = "2.11.0"
marker = "sys_platform == 'linux'"
sdist = {{ path = "torch-2.11.0.tar.gz", hashes = {{ odd = "no digest" }} }}
wheels = [
    {{ url = "{URL}", size = 419731115, upload-time = 2026-01-21T16:24:44Z, hashes = {{ sha256 = "{DIGEST}" }} }},
]

[[packages]]
name = "local"
archive = {{ url = "file:///wheels/local-1.0-py3-none-any.whl", hashes = {{}} }}

[[packages]]
name = "cloned"
vcs = {{ type = "git", url = "https://example.org/cloned.git", commit-id = "0" }}
"""


def parse(text: str) -> tuple[LockedPackage, ...]:
    return parse_pylock(text.encode(), FOLDER)


def entry(fields: str) -> str:
    return f'lock-version = "1.0"\n[[packages]]\n{fields}\n'


def test_wheels_and_source_archive_of_a_package() -> None:
    torch, _, _ = parse(LOCK)
    wheel, sdist = torch.files
    assert (torch.name, torch.version, torch.marker, torch.direct) == (
        "torch",
        "2.11.0",
        "sys_platform == 'linux'",
        False,
    )
    assert wheel.file_name == "torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl"
    assert (wheel.size, wheel.hashes, wheel.upload_time) == (
        419_731_115,
        {"sha256": DIGEST.lower()},
        "2026-01-21 16:24:44+00:00",
    )
    assert (sdist.url, sdist.hashes) == ("file:///lock/torch-2.11.0.tar.gz", {})


def test_a_direct_file_and_a_repository() -> None:
    _, local, cloned = parse(LOCK)
    assert (local.direct, local.version, local.files[0].url) == (True, "", "file:///wheels/local-1.0-py3-none-any.whl")
    assert (cloned.source, cloned.files) == ("vcs", ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "the lock is not valid TOML"),
        ("x = " + "[" * 20_000, "the lock is not valid TOML"),
        ("", "lock-version is None; expected 1.0"),
        ('lock-version = "2.0"', "lock-version is '2.0'"),
        ('lock-version = "1.0"\npackages = 1', "packages is not a list of tables"),
        ('lock-version = "1.0"\npackages = [1]', r"packages\[0\] is of type int; expected a table"),
        (entry("name = 1"), r"packages\[0\].name is of type int; expected a string"),
        (entry('name = "a b"'), r"packages\[0\].name is 'a b'; expected the name of a project"),
        (entry('name = "a"\nwheels = 1'), r"packages\[0\].wheels is not a list"),
        (entry('name = "a"\nwheels = [{}]'), r"packages\[0\].wheels\[0\] names no file"),
        (entry('name = "a"\nsdist = { url = "ssh://x/a-1.tar.gz" }'), r"packages\[0\].sdist names no file"),
        (entry('name = "a"\nsdist = { url = "https://[x/a-1.tar.gz" }'), r"packages\[0\].sdist names no file"),
        (entry('name = "a"\nsdist = { path = "a\\u0000.zip" }'), r"packages\[0\].sdist names no file"),
        (entry('name = "a"\nsdist = { path = "a.zip", hashes = 1 }'), r"packages\[0\].sdist.hashes is of type int"),
    ],
)
def test_what_is_no_lock_is_named(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse(text)


def test_a_lock_without_end_is_refused() -> None:
    with pytest.raises(FormatError, match="the lock has"):
        parse_pylock(b"#" * (MAX_SIZE + 1), FOLDER)


SCALARS = st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=8)
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3))


@given(st.binary(max_size=300) | st.builds(lambda tail: LOCK.encode() + tail, st.binary(max_size=100)))
def test_no_bytes_crash_it(data: bytes) -> None:
    try:
        packages = parse_pylock(data, FOLDER)
    except FormatError as error:
        assert error.what  # noqa: PT017  # either outcome is right, and both are checked
    else:
        assert all(package.name for package in packages)


@given(st.sampled_from(["name", "version", "marker", "wheels", "sdist", "archive", "vcs"]), VALUES)
def test_no_value_of_a_field_crashes_it(field: str, value: object) -> None:
    import tomlkit

    package = {"name": "a", "version": "1", "wheels": [], field: value}
    try:
        text = tomlkit.dumps({"lock-version": "1.0", "packages": [package]})
    except (ValueError, TypeError):  # values that TOML cannot represent
        return
    try:
        (found,) = parse(text)
    except FormatError as error:
        assert error.what  # noqa: PT017  # as above
    else:
        assert found.name == "a" or field == "name"
