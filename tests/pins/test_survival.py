"""Does an installed torch survive a requirement? The table, and the same asked of the real pip and uv."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pip
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from tests.support.fake_torch import World
from wheel_checks.errors import UsageError
from wheelproof.pins.survival import parse_installed, parse_spec, survives

KEPT, REPLACED, REFUSED = "kept", "replaced", "refused"  # refused: the index has no such version, and nothing happens
CUDA, NIGHTLY, NGC = "2.7.0+cu128", "2.12.0.dev20260101+cu130", "2.7.0a0+ecf3bae40a.nv25.3"

# The fate of each installed version; ``torch`` is on the index as 2.7.0, 2.8.0 and 2.12.0.
TABLE: Mapping[str, tuple[str, str, str]] = {
    # requirement     CUDA      NIGHTLY   NGC
    "torch": (KEPT, KEPT, KEPT),
    ">=2.7": (KEPT, KEPT, REPLACED),
    ">2.7.0": (REPLACED, KEPT, REPLACED),
    "==2.7.0": (KEPT, REPLACED, REPLACED),
    "~=2.7.0": (KEPT, REPLACED, REPLACED),
    "<=2.7.0": (KEPT, REPLACED, KEPT),
    "===2.7.0": (REPLACED, REPLACED, REPLACED),
    "==2.8.0": (REPLACED, REPLACED, REPLACED),
    ">=2.12": (REPLACED, REPLACED, REPLACED),
    "==2.7.0+cpu": (REFUSED, REFUSED, REFUSED),
    # beyond the thirty cells
    "!=2.7.0": (REPLACED, KEPT, KEPT),
    "==2.7.*": (KEPT, REPLACED, KEPT),
    "<2.8": (KEPT, REPLACED, KEPT),
    "<2.7.0": (REFUSED, REFUSED, REFUSED),
    "==2.7.0+cu128": (KEPT, REFUSED, REFUSED),
    "===2.7.0+cu128": (KEPT, REFUSED, REFUSED),
}
CELLS = [(spec, *cell) for spec, row in TABLE.items() for cell in zip((CUDA, NIGHTLY, NGC), row, strict=True)]


@pytest.mark.parametrize(("spec", "installed", "fate"), CELLS)
def test_the_table(spec: str, installed: str, fate: str) -> None:
    survival = survives(parse_spec(spec), Version(installed))

    assert survival.kept == (fate == KEPT)
    assert survival.reasons


@pytest.mark.parametrize("installed", [CUDA, NIGHTLY, NGC])
@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_the_installers_do_so_too(tmp_path: Path, installer: str, installed: str) -> None:
    world = World.create(tmp_path, installed)
    column = (CUDA, NIGHTLY, NGC).index(installed)

    found = asked_of_uv(world) if installer == "uv" else asked_of_pip(world)

    assert found == {spec: row[column] for spec, row in TABLE.items()}


def asked_of_uv(world: World) -> dict[str, str]:
    """What uv would do with each requirement of the table, by its dry runs."""
    found = {}
    for spec in TABLE:
        done = world.shell(f"uv pip install --dry-run '{parse_spec(spec)}'")
        assert done.status == 0 or "No solution found" in done.words, done.words
        found[spec] = REFUSED if done.status else REPLACED if "+ torch==" in done.words else KEPT
    return found


# One process for all requirements: most of the time of a run of pip goes into its start.
ASK_PIP = """
import json, sys
from pip._internal.cli.main import main
fates = []
for requirement in sys.argv[1:]:
    status = main(["install", "--quiet", "--dry-run", "--report", "report.json", requirement])
    with open("report.json" if status == 0 else "/dev/null") as file:
        fates.append("refused" if status else "replaced" if json.load(file)["install"] else "kept")
print(json.dumps(fates))
"""


def asked_of_pip(world: World) -> dict[str, str]:
    """The same by pip, which runs in the environment."""
    (world.root / "only-pip").mkdir()
    (world.root / "only-pip" / "pip").symlink_to(Path(pip.__file__).parent)
    world.variables["PYTHONPATH"] = str(world.root / "only-pip")
    del world.variables["PIP_PYTHON"]
    done = world.run(str(world.python), "-c", ASK_PIP, *(str(parse_spec(spec)) for spec in TABLE))
    assert done.status == 0, done.words
    return dict(zip(TABLE, json.loads(done.words.splitlines()[-1]), strict=True))


@pytest.mark.parametrize(
    ("spec", "installed", "reason"),
    [
        (">2.7.0", CUDA, ">2.7.0 excludes every local version of 2.7.0: 2.7.0+cu128 counts as 2.7.0"),
        ("===2.7.0", CUDA, "=== compares the text, local version included: 2.7.0+cu128 is not 2.7.0"),
        ("==2.7.0+cpu", CUDA, "==2.7.0+cpu names the local version +cpu, and 2.7.0+cu128 has +cu128"),
        ("==2.7.0", CUDA, "==2.7.0 says nothing about a local version, so 2.7.0+cu128 counts as 2.7.0"),
        (">=2.7.0", NGC, f"{NGC} is a pre-release of 2.7.0 and comes before it: >=2.7.0 excludes it"),
        (">=2.12", NIGHTLY, f"{NIGHTLY} is a pre-release of 2.12.0 and comes before it: >=2.12 excludes it"),
        ("<2.12", NIGHTLY, f"<2.12 excludes 2.12 and its pre-releases, so also {NIGHTLY}"),
        ("!=2.7.0", CUDA, "2.7.0+cu128 counts as 2.7.0, which !=2.7.0 excludes"),
        ("==2.8.0", CUDA, "2.7.0+cu128 does not satisfy ==2.8.0"),
    ],
)
def test_the_reason(spec: str, installed: str, reason: str) -> None:
    assert reason in survives(parse_spec(spec), Version(installed)).reasons


def test_a_pre_release_that_is_installed_counts() -> None:
    (reason,) = survives(parse_spec("torch>=2.7"), Version(NIGHTLY)).reasons
    assert "a pre-release that is installed counts" in reason


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_direct_url_replaces_unless_it_is_the_very_same(tmp_path: Path, installer: str) -> None:
    world = World.create(tmp_path)
    other = f"torch @ {next(world.index.glob('files/torch-2.7.0-*')).as_uri()}"
    same = f"torch @ {next(tmp_path.glob('own-wheels/torch-*')).as_uri()}"

    assert not survives(parse_spec(other), Version(CUDA)).kept
    command = "uv pip" if installer == "uv" else "pip"
    assert world.shell(f"{command} install '{same}'").status == 0
    assert world.torch == CUDA
    assert world.shell(f"{command} install '{other}'").status == 0
    assert world.torch == "2.7.0"


def test_what_no_requirement_is() -> None:
    with pytest.raises(UsageError, match="does not parse"):
        parse_spec("torch=>2")


@pytest.mark.parametrize("text", ["2.7.0cu", "torch", "torch==", ""])
def test_what_no_installed_version_is(text: str) -> None:
    with pytest.raises(UsageError, match="is not an installed version"):
        parse_installed(text)


def test_an_installed_version_may_name_its_package() -> None:
    assert parse_installed("Torch_Vision==0.22.0+cu128") == ("torch-vision", Version("0.22.0+cu128"))
    assert parse_installed(CUDA) == ("torch", Version(CUDA))


@given(st.text(max_size=60), st.text(max_size=30))
def test_arbitrary_text_is_judged_or_refused(spec: str, installed: str) -> None:
    try:
        survival = survives(parse_spec(spec), parse_installed(installed)[1])
    except UsageError:
        return
    assert survival.reasons
