"""The settings that uv gets for an install: all of the user's, and of a tree's those about versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.trust import Trust
from wheel_checks.sources.uv.own_configuration import configuration
from wheel_checks.sources.uv.user_settings import UvSettings, uv_settings

TRUST = Trust.parse(["good.example"])


def settings(tmp_path: Path, tree: str, user: str = "", system: str = "", **environ: str) -> UvSettings:
    for name, text in (("project/uv.toml", tree), ("home/.config/uv/uv.toml", user), ("system/uv/uv.toml", system)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text:
            path.write_text(text)
    own = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_DIRS": str(tmp_path / "system")}
    return uv_settings({**own, **environ}, tmp_path / "project", TRUST)


@pytest.mark.parametrize(
    ("tree", "table"),
    [
        ('constraint-dependencies = ["torch<3"]', {"constraint-dependencies": ["torch<3"]}),
        ('[pip]\nprerelease = "allow"', {"pip": {"prerelease": "allow"}}),
        ('override-dependencies = ["torch @ https://good.example/torch-1-py3-none-any.whl"]', None),
        ('index-url = "https://me:secret@good.example/simple"', {"index-url": "https://good.example/simple"}),
        (
            '[[index]]\nname = "corp"\nurl = "https://good.example/s"\ndefault = true\nauthenticate = "always"',
            {"index": [{"url": "https://good.example/s", "default": True}]},
        ),
        ('[[index]]\nname = "x"\nurl = "https://evil.example/s"\nexplicit = true', {}),
        ("upgrade = true\n[pip]\nreinstall = true", {"upgrade": True, "pip": {"reinstall": True}}),
        ('reinstall-package = ["torch"]', {"reinstall-package": ["torch"]}),
        ('cache-dir = "../victim"', {}),
        ('keyring-provider = "subprocess"', {}),
        ('allow-insecure-host = ["evil.example"]\nnative-tls = true', {}),
        ('python-install-mirror = "https://evil.example/"\npython-preference = "managed"', {}),
        ('publish-url = "https://evil.example/"\n[pip]\npython = "./evil"\nlink-mode = "copy"', {"pip": {}}),
    ],
)
def test_what_a_tree_may_say(tmp_path: Path, tree: str, table: dict[str, Any] | None) -> None:
    found = settings(tmp_path, tree)
    expected = {"override-dependencies": ["torch @ https://good.example/torch-1-py3-none-any.whl"]}
    assert (found.table, found.refused) == (expected if table is None else table, [])


@pytest.mark.parametrize(
    ("tree", "url"),
    [
        ('index-url = "https://evil.example/s"', "https://evil.example/s"),
        ('extra-index-url = ["https://good.example@evil.example/s"]', "https://good.example@evil.example/s"),
        ('find-links = ["/etc"]', "/etc"),
        ('find-links = ["file:///etc"]', "file:///etc"),
        ('[[index]]\nurl = "https://evil.example/s"', "https://evil.example/s"),
        ('[pip]\nindex-url = "https://evil.example/s"', "https://evil.example/s"),
        ('torch-backend = "cu130"', "torch-backend cu130"),
        ('constraint-dependencies = ["x @ https://evil.example/x"]', "x @ https://evil.example/x"),
        ('override-dependencies = ["x @ git+https://good.example/x"]', "x @ git+https://good.example/x"),
        ('override-dependencies = ["x @ ./here"]', "x @ ./here"),
        (
            '[[dependency-metadata]]\nname = "a"\nrequires-dist = ["x @ file:///etc/x"]',
            "x @ file:///etc/x",
        ),
    ],
)
def test_addresses_of_a_tree_that_would_count(tmp_path: Path, tree: str, url: str) -> None:
    assert [address.url for address in settings(tmp_path, tree).refused] == [url]


def test_files_are_merged_as_uv_merges_them(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        'constraint-dependencies = ["a"]\nresolution = "lowest"',
        'constraint-dependencies = ["b"]\nfind-links = ["wheels"]\n'
        'keyring-provider = "subprocess"\n[pip]\nno-deps = true',
        'constraint-dependencies = ["c"]\nresolution = "highest"\ncache-dir = "/c"\n[pip]\nprerelease = "allow"',
    )
    assert found.table == {
        "constraint-dependencies": ["a", "b", "c"],
        "resolution": "lowest",
        "find-links": [(tmp_path / "home/.config/uv/wheels").as_uri()],
        "keyring-provider": "subprocess",
        "cache-dir": "/c",
        "pip": {"no-deps": True, "prerelease": "allow"},
    }


@pytest.mark.parametrize(
    ("text", "builds"),
    [("no-binary = true", True), ('[pip]\nno-binary-package = ["a"]', True), ("no-binary = false", False)],
)
def test_settings_that_want_builds(tmp_path: Path, text: str, builds: bool) -> None:
    assert settings(tmp_path, text).builds is builds
    assert settings(tmp_path / "other", "", text).builds is builds


def test_the_variables_that_name_a_file_or_none(tmp_path: Path) -> None:
    only = tmp_path / "only.toml"
    only.write_text('index-url = "https://mine.example/s"')
    assert settings(tmp_path, 'resolution = "lowest"', UV_CONFIG_FILE=str(only)).table == {
        "index-url": "https://mine.example/s"
    }
    assert settings(tmp_path, 'resolution = "lowest"', UV_NO_CONFIG="1").table == {}


def test_the_users_ways_to_reach_servers_reach_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(tmp_path, 'keyring-provider = "disabled"', 'keyring-provider = "subprocess"\nprerelease = "allow"')
    monkeypatch.chdir(tmp_path / "project")
    text = configuration(IndexConfig(("https://mine.example/s",)), {"HOME": str(tmp_path / "home")})
    assert 'keyring-provider = "subprocess"' in text
    assert "prerelease" not in text
