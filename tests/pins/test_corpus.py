"""The corpus: every format, byte for byte, in both sets of names, with the warnings that each file should give.

``tests/data/pins`` has ``input``, ``expected-core``, ``expected-wide``, and a manifest with the warnings in prose.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.trees import contents, give_back, rewrite
from wheelproof.pins import NameSet, Policy, plan
from wheelproof.pins.model import FilePlan

DATA = Path(__file__).parents[1] / "data"
CORPUS = DATA / "pins"
MANIFEST = json.loads((CORPUS / "manifest.json").read_text())
NAMES = [case["name"] for case in MANIFEST]
BY_EFFECT = DATA / "pins-by-effect"
MANIFEST_BY_EFFECT = json.loads((BY_EFFECT / "manifest.json").read_text())

# The notice for each warning of the manifest.
CODES = {
    "transformers[torch]: extra pulls torch transitively": "extra",
    "nvidia-modelopt[torch] extra": "extra",
    "hash-checking mode: uv --require-hashes will now fail on transitive torch; pip passes only if installed torch "
    "satisfies": "hash-mode",
    "flash-attn wheel URL is built for torch2.10: ABI mismatch risk": "wheel-abi",
    "--extra-index-url/--find-links for pytorch kept": "index-kept",
    "build-system.requires changed: install with --no-build-isolation": "build-requires",
    "match-runtime + exclude: build env resolves torch from the index": "match-runtime",
    "dependency-metadata of flash-attn lists torch (policy: keep)": "dependency-metadata",
    "poetry.lock now stale": "stale-lock",
    'conda-provided torch cannot be "existing pip torch": env is created anew, so report rather than rewrite by '
    "default": "conda",
    "TORCH name resolved dynamically: reported, not edited": "dynamic",
}


def planned(name: str, names: NameSet, *, conda: bool) -> FilePlan:
    """The plan of one input; the expected files are those with ``conda``."""
    path = CORPUS / "input" / name
    files = plan([path], Policy(names=names, conda=conda)).files
    return next(file for file in files if file.target == path.resolve())


@pytest.mark.parametrize("names", list(NameSet))
@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_rewritten_as_expected(name: str, names: NameSet) -> None:
    assert planned(name, names, conda=True).rewritten == (CORPUS / f"expected-{names}" / name).read_bytes()


@pytest.mark.parametrize("names", list(NameSet))
@pytest.mark.parametrize("name", NAMES)
def test_what_was_rewritten_stays_as_it_is(name: str, names: NameSet) -> None:
    path = CORPUS / f"expected-{names}" / name
    files = plan([path], Policy(names=names, conda=True)).files

    assert [file.path for file in files if file.changed] == []


@pytest.mark.parametrize("case", [case for case in MANIFEST if case["warn"]], ids=lambda case: str(case["name"]))
def test_every_file_gives_its_warnings(case: dict[str, object]) -> None:
    warned = {notice.code for notice in planned(str(case["name"]), NameSet.CORE, conda=False).notices}

    assert isinstance(case["warn"], list)
    assert {CODES[warning] for warning in case["warn"]} <= warned


@pytest.mark.parametrize("names", list(NameSet))
def test_the_whole_folder_at_once_and_back_again(names: NameSet, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(CORPUS / "input", project)
    journal = tmp_path / "journal.json"

    rewrite(project, plan([project], Policy(names=names, conda=True)), journal)
    rewritten = contents(project)
    give_back(project, journal=journal)

    assert rewritten == contents(CORPUS / f"expected-{names}")
    assert contents(project) == contents(CORPUS / "input")
    assert not journal.exists()


@pytest.mark.parametrize("names", list(NameSet))
@pytest.mark.parametrize("case", MANIFEST_BY_EFFECT, ids=lambda case: str(case["name"]))
def test_what_an_installer_would_see(case: dict[str, object], names: NameSet, tmp_path: Path) -> None:
    name = str(case["name"])
    project = tmp_path / name
    source = BY_EFFECT / "input" / name
    shutil.copytree(source, project) if source.is_dir() else shutil.copy(source, project)

    planned_ = plan([project], Policy(names=names))
    warned = {notice.code for file in planned_.files for notice in file.notices}
    for file in planned_.files:
        file.path.write_bytes(file.rewritten)

    expected = BY_EFFECT / f"expected-{names}" / name
    assert contents(project) == contents(expected) if source.is_dir() else project.read_bytes() == expected.read_bytes()
    assert set(case["warn"] if isinstance(case["warn"], list) else ()) <= warned
    assert not plan([project], Policy(names=names)).changed
