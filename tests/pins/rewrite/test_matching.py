"""An entry with match-runtime whose package leaves the resolution: uv would refuse to sync."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheelproof.pins import Mode, Policy, plan

HEAD = '[project]\nname = "x"\nversion = "1"\ndependencies = ["torch==2.8.0", "flash-attn"]\n'
ENTRY = '[tool.uv.extra-build-dependencies]\nflash-attn = [{ requirement = "torch", match-runtime = true }, "six"]\n'


def rewritten(text: str, folder: Path, policy: Policy | None = None) -> tuple[str, list[str]]:
    (folder / "pyproject.toml").write_text(text)
    (file,) = plan([folder], policy or Policy()).files
    return file.rewritten.decode(), [notice.code for notice in file.notices]


@pytest.mark.parametrize(
    ("table", "becomes"),
    [
        ("[tool.uv]\n", '[tool.uv]\nno-build-isolation-package = ["flash-attn"]\n'),
        (
            '[tool.uv]\nno-build-isolation-package = ["apex"]\n',
            '[tool.uv]\nno-build-isolation-package = ["apex", "flash-attn"]\n',
        ),
        ("[tool.uv]\nno-build-isolation-package = []\n", '[tool.uv]\nno-build-isolation-package = ["flash-attn"]\n'),
    ],
)
def test_the_build_takes_the_installed_torch_instead(table: str, becomes: str, tmp_path: Path) -> None:
    text, codes = rewritten(HEAD + table + ENTRY, tmp_path)
    assert text == HEAD.replace('"torch==2.8.0", ', "") + becomes + ENTRY.replace(
        '{ requirement = "torch", match-runtime = true }, ', ""
    )
    assert codes == ["match-runtime-replaced"]


@pytest.mark.parametrize("table", ['[tool.uv]\nno-build-isolation-package = ["Flash_Attn"]\n', ""])
def test_what_is_built_without_isolation_or_cannot_be_changed_is_named(table: str, tmp_path: Path) -> None:
    text, codes = rewritten(HEAD + table + ENTRY, tmp_path)
    assert text == HEAD.replace('"torch==2.8.0", ', "") + table + ENTRY
    assert codes == ["match-runtime", "match-runtime"]


def test_nothing_happens_where_torch_stays(tmp_path: Path) -> None:
    text = HEAD + "[tool.uv]\n" + ENTRY
    assert 'match-runtime = true }, "six"' in rewritten(text, tmp_path, Policy(Mode.UNPIN))[0]
    without = text.replace('"torch==2.8.0", ', "")
    assert rewritten(without, tmp_path)[0] == without


def test_a_guard_next_to_a_uv_toml_counts_for_nothing(tmp_path: Path) -> None:
    text = '[tool.uv]\noverride-dependencies = ["torch==2.8.0"]\n'
    assert rewritten(text, tmp_path) == (text.replace("torch==2.8.0", "torch; sys_platform == 'never'"), [])
    (tmp_path / "uv.toml").write_text('override-dependencies = ["torch==2.8.0"]\n')
    first, second = plan([tmp_path], Policy()).files
    assert [notice.code for notice in first.notices] == ["uv-toml"]
    assert second.rewritten.decode() == "override-dependencies = [\"torch; sys_platform == 'never'\"]\n"
