"""An installed guard: its files, an upgrade of pip, and removal without leftovers."""

from __future__ import annotations

import ast
import base64
import csv
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from ci import update_guard_program
from tests.support.guarded_world import CUDNN, TORCH, GuardedWorld, Index

INSIDE = Path(__file__).parents[3] / "tools/wheelproof/pins/guard/inside"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.create(tmp_path_factory.mktemp("index"))


@pytest.fixture
def world(tmp_path: Path, index: Index) -> GuardedWorld:
    return GuardedWorld.create(tmp_path / "world", index)


def wrong_rows(world: GuardedWorld, distribution: str) -> list[str]:
    """The files whose size or digest differs from RECORD."""
    (record,) = world.site.glob(f"{distribution}-*.dist-info/RECORD")
    wrong = []
    for name, digest, size in csv.reader(record.read_text().splitlines()):
        path = world.site / name
        if digest:
            found = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
            if f"sha256={found}" != digest or str(path.stat().st_size) != size:
                wrong.append(name)
    return wrong


def test_the_table_of_the_program_is_up_to_date() -> None:
    assert update_guard_program.TABLE.read_text() == update_guard_program.text_of([update_guard_program.current()])


def test_the_options_of_the_program_are_those_of_the_table() -> None:
    assert update_guard_program.OPTIONS.read_text() == update_guard_program.options_text()


def test_the_program_is_of_python_3_9() -> None:
    for path in INSIDE.glob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 9))


def test_nothing_is_written_without_an_answer(world: GuardedWorld) -> None:
    before = world.tree()
    done = world.guard("--install")
    assert (done.status, world.tree()) == (2, before), done.words
    assert "torch 2.7.0+cu128" in done.words  # the plan


@pytest.mark.parametrize("uv_inside", [False, True])
def test_every_byte_is_restored(tmp_path: Path, index: Index, uv_inside: bool) -> None:
    world = GuardedWorld.create(tmp_path / "world", index, uv_inside=uv_inside)
    (world.venv / "pip.conf").write_text("; mine\n[install]\nno-cache-dir = 1\n[list]\nformat = columns")
    before, folders = world.tree(), world.folders()
    assert world.install_guard().status == 0
    assert world.install_guard().status == 0  # again
    assert not wrong_rows(world, "pip")
    assert not uv_inside or not wrong_rows(world, "uv")
    assert world.shell("pip config get install.no-cache-dir").words == "1\n"
    assert world.tree() != before
    done = world.guard("--uninstall", "--yes")
    assert done.status == 0, done.words
    assert (world.tree(), world.folders()) == (before, folders)


def test_what_the_user_writes_between_two_installations_is_kept(world: GuardedWorld) -> None:
    """PIN211 and PIN212 advise the second one."""
    file = world.venv / "pip.conf"
    file.write_text("[install]\nno-cache-dir = 1\n")
    assert world.install_guard().status == 0
    file.write_text(f"{file.read_text()}[list]\nformat = columns\n")
    assert world.install_guard().status == 0
    assert world.shell("pip config get list.format").words == "columns\n"
    assert world.guard("--uninstall", "--yes").status == 0
    assert file.read_text() == "[install]\nno-cache-dir = 1\n[list]\nformat = columns\n"
    assert world.shell("pip --version").status == 0


def test_a_failed_change_is_not_what_is_held(world: GuardedWorld) -> None:
    world.install_guard()
    before = world.tree()
    assert world.shell("WHEELPROOF_GUARD=off pip install torch==99.0").status != 0
    assert world.tree() == before


def test_constraints_of_the_user_stay_in_force(world: GuardedWorld) -> None:
    world.write("mine.txt", "six==1.16\n")
    (world.home / ".config" / "pip").mkdir(parents=True)
    (world.home / ".config" / "pip" / "pip.conf").write_text(f"[global]\nconstraint = {world.project}/mine.txt\n")
    world.install_guard()
    world.shell("python -m pip install six")
    assert (world.site / "six-1.16.dist-info").is_dir()
    world.variables["UV_CONSTRAINT"] = "mine.txt"
    assert world.shell("uv pip install six==1.17").status != 0


@pytest.mark.parametrize(
    "command", ["pip install -U pip", "uv pip install --reinstall pip", "python -m pip install -I pip"]
)
def test_an_upgraded_pip_is_behind_a_front_program_again(world: GuardedWorld, command: str) -> None:
    world.install_guard()
    assert world.shell(command).status == 0
    assert "wheelproof pins guard" in (world.venv / "bin/pip").read_text()
    assert not wrong_rows(world, "pip")
    assert world.shell("pip check").words.endswith("No broken requirements found.\n")
    assert world.shell("pip install torch==2.8.0").status != 0
    assert world.guard("--uninstall", "--yes").status == 0
    assert not wrong_rows(world, "pip")
    assert world.shell("pip --version").status == 0


def test_a_pip_that_is_removed_takes_its_front_programs_along(world: GuardedWorld) -> None:
    world.install_guard()
    assert world.shell("pip uninstall -y pip").status == 0
    assert not (world.venv / "bin/pip").exists()
    assert world.shell("uv pip install torch==2.8.0").status != 0
    assert world.guard("--uninstall", "--yes").status == 0


def test_a_library_that_was_overwritten_is_named_with_the_command_and_put_back(world: GuardedWorld) -> None:
    world.install_guard()
    done = world.shell("pip install needs-cu13")
    assert (done.status, world.is_intact) == (1, True), done.words
    assert (
        f"`pip install needs-cu13` damaged held packages: {CUDNN} of nvidia-cudnn-cu12 9.7 was overwritten"
        in done.words
    )
    assert "restored: nvidia-cudnn-cu12" in done.words


def test_what_was_changed_around_the_guard_stops_the_next_command(world: GuardedWorld) -> None:
    world.install_guard()
    world.check(str(world.uv), "pip", "install", "--quiet", "torch==2.8.0")
    done = world.shell("pip install six")
    assert done.status == 1
    assert f"torch {TORCH} was replaced by 2.8.0" in done.words
    assert not (world.site / "six").exists()
    (accept,) = (line.partition("now: ")[2] for line in done.words.splitlines() if "to hold what is installed" in line)
    assert world.shell(accept).status == 0
    assert world.shell("pip install six torch").status == 0
    assert world.torch == "2.8.0"


def test_an_upgrade_that_is_meant(world: GuardedWorld) -> None:
    world.install_guard()
    done = world.shell("WHEELPROOF_GUARD=off python -m pip install torch==2.8.0 torchvision==0.23.0")
    assert done.status == 0, done.words
    assert "from now on torch 2.8.0" in done.words
    assert world.shell("pip install torch==2.7.0").status != 0
    assert world.torch == "2.8.0"


def test_two_guarded_environments(tmp_path: Path, index: Index) -> None:
    first, second = (GuardedWorld.create(tmp_path / name, index) for name in ("first", "second"))
    second.shell(f"{second.uv} pip install -q torch==2.8.0 torchvision==0.23.0")
    for world in (first, second):
        assert world.install_guard().status == 0
    path = f"PATH={first.venv}/bin:$PATH"  # the front programs of the first, the environment of the second
    assert second.shell(f"{path} uv pip install torch==2.7.0").status != 0
    assert second.shell(f"{path} uv pip install six torch==2.8.0").status == 0
    assert (first.torch, second.torch) == (TORCH, "2.8.0")


def test_an_environment_made_from_a_guarded_one_is_free(world: GuardedWorld) -> None:
    world.install_guard()
    inner = world.root / "inner"
    world.check(str(world.python), "-m", "venv", str(inner))
    assert world.shell(f"{inner}/bin/python -m pip install torch==2.8.0").status == 0
    assert world.shell(f"VIRTUAL_ENV={inner} uv pip install torch==2.7.0").status == 0
    assert world.is_intact


def test_the_program_needs_the_standard_library_alone() -> None:
    program = [
        sys.executable,
        "-I",
        "-S",
        "-B",
        "-c",
        f"import sys; sys.path[:0] = [{str(INSIDE.parent)!r}]; import inside.main",
    ]
    assert subprocess.run(program, check=False).returncode == 0


def test_what_is_damaged_already_is_reported_in_the_plan(world: GuardedWorld) -> None:
    world.shell(f"{world.uv} pip install -q nvidia-cudnn-cu13")
    done = world.guard("--install")
    assert f"note: {CUDNN} of nvidia-cudnn-cu12 9.7 is not the installed file" in done.words


def without_links(world: GuardedWorld) -> None:
    """Take the environment for one on an overlay file system, where no hard links are made."""
    module = world.venv / "share/torch-guard/program/torch_guard/tripwire.py"
    module.write_text(module.read_text().replace("return kind in", "return True or kind in"))


def test_without_links_a_library_is_put_back_from_what_uv_has(world: GuardedWorld) -> None:
    world.install_guard()
    without_links(world)
    done = world.shell("pip install needs-cu13")
    assert (done.status, world.is_intact) == (1, True), done.words
    assert "restored: nvidia-cudnn-cu12" in done.words


@pytest.mark.parametrize("way", ["pip install six", "uv pip install six"])
def test_damage_that_cannot_be_put_back_stays_damage(world: GuardedWorld, way: str) -> None:
    world.install_guard()
    without_links(world)
    done = world.shell("pip install impostor")
    assert done.status == 1
    assert "NOT restored: torch; run: WHEELPROOF_GUARD=off" in done.words
    again = world.shell(way)
    assert (
        again.status,
        "nothing was done, as held packages are already damaged: torch/__init__.py" in again.words,
    ) == (1, True), again.words
    assert world.guard("--check").status == 1


def test_a_project_below_a_guarded_one_has_its_own_environment(world: GuardedWorld) -> None:
    world.write_project("six")
    world.install_guard()
    inner = world.project / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text((world.project / "pyproject.toml").read_text().replace("six", "torch==2.8.0"))
    done = world.run("env", "-u", "VIRTUAL_ENV", "uv", "sync", cwd=inner)
    assert done.status == 0, done.words
    assert list(inner.glob(".venv/lib/python3*/site-packages/torch-2.8.0.dist-info"))
    assert world.is_intact


@pytest.mark.parametrize(
    "command",
    [
        "uv --of-a-later-release value pip install torch==2.8.0",
        "uv run --of-a-later-release value --with needs-2-8 python -V",
        "pip --of-a-later-release value install torch==2.8.0",
    ],
)
def test_an_option_that_is_not_known_leads_no_call_around_the_guard(world: GuardedWorld, command: str) -> None:
    world.install_guard()
    assert world.shell(command).status != 0
    assert world.is_intact


def test_files_that_are_links_into_a_cache(world: GuardedWorld) -> None:
    cache = world.root / "cache"
    link = ["env", f"UV_CACHE_DIR={cache}", "UV_LINK_MODE=symlink", str(world.uv), "pip", "install", "--quiet"]
    world.check(*link, "--reinstall", "--no-deps", *map(str, world.index.own.glob("torch-*.whl")))
    world.settle()
    world.install_guard()
    assert world.shell("pip install impostor").status == 1
    assert world.is_intact
    world.check(str(world.uv), "cache", "clean", "--quiet", "--cache-dir", str(cache))
    assert world.guard("--check").status == (0 if world.is_intact else 1)


@pytest.mark.parametrize(
    "command", ["pip install impostor", "uv pip install impostor", "pip install --ignore-installed torch==2.7.0"]
)
def test_a_module_that_hides_what_is_held_elsewhere(world: GuardedWorld, command: str) -> None:
    outer = world.root / "outer"
    outer.mkdir()
    for path in [*world.site.glob("torch*"), *world.site.glob("triton*"), *world.site.glob("nvidia*")]:
        path.rename(outer / path.name)
    (world.site / "outer.pth").write_text(f"{outer}\n")
    assert world.torch == TORCH
    assert world.install_guard().status == 0
    done = world.shell(command)
    assert done.status != 0
    assert world.torch == TORCH
    assert "hides that of torch" in done.words or "(constraint) torch" in done.words, done.words


def test_the_user_level_is_requested_and_restored(world: GuardedWorld) -> None:
    config = world.home / ".config" / "uv" / "uv.toml"
    config.parent.mkdir(parents=True)
    config.write_text("# mine\noffline = true\n[pip]\nstrict = true")
    before = world.tree()
    assert world.install_guard("--user").status == 0
    outside = world.run(str(world.uv), "pip", "install", "torch==2.8.0")  # not the front program
    assert (outside.status != 0, world.is_intact) == (True, True)
    assert world.guard("--uninstall", "--yes").status == 0
    assert world.tree() == before


def test_the_files_hold_the_closure(world: GuardedWorld) -> None:
    folder = world.root / "torch-guard"
    assert world.guard("--quiet", "--directory", str(folder)).status == 0
    names = [line.partition("==")[0] for line in (folder / "constraints.txt").read_text().splitlines()[1:]]
    assert names[0] == "torch"
    assert set(names) == {"torch", "torchvision", "triton", "nvidia-cudnn-cu12", "nvidia-nccl-cu12"}


def test_an_image_needs_the_files_alone(world: GuardedWorld) -> None:
    folder = world.root / "torch-guard"
    world.guard("--quiet", "--directory", str(folder))
    before = world.tree()
    program = [str(world.python), "-B", f"{folder}/program"]
    done = world.run(*program, "install", f"{folder}/settings.json")
    assert done.status == 0, done.words
    assert world.shell("python -m pip install torch==2.8.0").status != 0
    assert world.guard("--check").status == 0
    done = world.run(str(world.python), "-B", f"{world.venv}/share/torch-guard/program", "uninstall")
    assert (done.status, world.tree()) == (0, before)


def test_a_path_with_white_space(tmp_path: Path, index: Index) -> None:
    world = GuardedWorld.create(tmp_path / "my environments", index)
    before = world.tree()
    assert world.install_guard().status == 0
    for command in ("python -m pip install torch==2.8.0", "uv pip install -U torch==2.8.0", "pip install needs-2-8"):
        done = world.shell(command)
        assert "torch-guard: torch 2.7.0+cu128" in done.words
        assert (done.status != 0, world.is_intact) == (True, True), done.words
    assert world.guard("--check").status == 0
    assert world.guard("--uninstall", "--yes").status == 0
    assert world.tree() == before


def test_what_a_guard_holds_is_held_by_the_next_installation(world: GuardedWorld) -> None:
    """The advice of a prediction names one package, and takes none away."""
    assert world.install_guard("--package", "pip").status == 0
    assert world.install_guard("--package", "torch").status == 0
    held = (world.venv / "share/torch-guard/constraints.txt").read_text()
    assert "pip==" in held
    assert "torch==2.7.0+cu128" in held


def test_a_family_that_the_guard_does_not_hold_is_named(world: GuardedWorld) -> None:
    assert world.install_guard().status == 0
    assert world.guard("--check").status == 0
    done = world.guard("--check", "--package", "pip")
    assert done.status == 1, done.words
    assert "pip" in done.words


def test_a_check_of_nothing_is_no_pass(world: GuardedWorld) -> None:
    done = world.guard("--check", "--family", "jax")
    assert done.status != 0, done.words
    assert f"no jax in {world.venv}\n" in done.words


@pytest.mark.parametrize("text", [None, "", "[]", '{"packages": []}', '{"packages": {"torch": {"version": 1}}}'])
def test_without_the_record_of_the_guard_a_check_is_undecided(world: GuardedWorld, text: str | None) -> None:
    world.install_guard()
    state = world.venv / "share/torch-guard/state.json"
    state.unlink()
    if text is not None:
        state.write_text(text)
    done = world.guard("--check")
    assert done.status == 3, done.words
    assert "the guarded state of torch 2.7.0+cu128 is unknown: the guard's record is missing or broken" in done.words


def test_a_configuration_behind_a_relative_link_is_kept(world: GuardedWorld) -> None:
    (world.venv / "mine.conf").write_text("[list]\nformat = columns\n")
    (world.venv / "pip.conf").symlink_to("mine.conf")
    before = world.tree()
    world.install_guard()
    assert world.install_guard().status == 0
    assert world.shell("pip config get list.format").words == "columns\n"
    assert world.guard("--uninstall", "--yes").status == 0
    assert world.tree() == before


def test_the_output_file_holds_the_plan_and_the_end(world: GuardedWorld) -> None:
    report = world.root / "report.txt"
    assert world.install_guard("--output", str(report)).status == 0
    assert "will hold" in report.read_text()
    assert "installed; check it with" in report.read_text()
