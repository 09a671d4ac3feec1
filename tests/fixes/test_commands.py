from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hostile import HEAD, HOSTILE, faults, intended, read_by_a_shell
from wheel_checks.fixes import commands
from wheel_checks.fixes.commands import (
    CHECK_TORCH,
    Command,
    Export,
    NoCommand,
    Options,
    Pipe,
    UnsafeCommandError,
    Unset,
    Word,
    WriteFile,
    commented,
    in_words,
    run,
    shell,
)

TEXT = st.one_of(st.sampled_from(sorted(HOSTILE.values())), st.text(alphabet=st.characters(codec="utf-8")))
ARGUMENT = TEXT.filter(lambda text: "\0" not in text and text.isprintable() | ("\n" in text) and _encodable(text))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def test_every_kind_of_step_as_text() -> None:
    python = "/home/me/my env/bin/python"
    assert [
        shell(Command(("uv", "pip", "install", "torch<2.15"))),
        shell(Command((python, "-c", CHECK_TORCH), folder="/")),
        shell(Export("LD_PRELOAD", "/a b/c.so")),
        shell(Export("TRITON_CACHE_DIR", ("mktemp", "--directory"))),
        shell(Unset(("CC", "CXX"))),
        shell(Pipe((("sudo", "dmesg"), ("grep", "-i", "xid")))),
        shell(WriteFile("/etc/modprobe.d/x.conf", ("blacklist x", "options x modeset=0"), as_root=True)),
    ] == [
        "uv pip install 'torch<2.15'",
        f"(cd / && '/home/me/my env/bin/python' -c {shlex.quote(CHECK_TORCH)})",
        "export LD_PRELOAD='/a b/c.so'",
        'export TRITON_CACHE_DIR="$(mktemp --directory)"',
        "unset CC CXX",
        "sudo dmesg | grep -i xid",
        "printf '%s\\n' 'blacklist x' 'options x modeset=0' | sudo tee /etc/modprobe.d/x.conf",
    ]


def test_a_note_is_a_comment_for_a_shell() -> None:
    step = Command(("nvidia-smi",), note="when CUDA 13 is shown")
    assert (shell(step), commented(step)) == ("nvidia-smi", "nvidia-smi  # when CUDA 13 is shown")


def test_what_is_no_command_is_a_sentence() -> None:
    docker = Options(("docker", "run"), ("--shm-size=16g", "--gpus", "all"), "on the host")
    assert in_words(docker) == "add to `docker run`: --shm-size=16g --gpus all (on the host)"
    assert in_words(NoCommand("the name is odd")) == "no command: the name is odd"


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("",),
        ("sh", "-c", "id"),
        ("/bin/bash", "x"),
        ("sudo", "-u", "root", "sh", "-c", "id"),
        ("sudo", "env", "A=1", "bash"),
        ("env", "-S", "id x"),
        ("env", "--split-string=id x"),
        ("env", "A=1"),
        ("xargs", "-n", "1", "sh"),
        ("docker", "exec", "x", "sh", "-c", "id"),
        ("eval", "x"),
        ("export", "A=1"),
        ("cd", "/"),
        ("python3.12", "-c", "import os"),
        ("python", "-cimport os"),
        ("python", "-Ic", "import os"),
        ("python", "-c"),
        ("echo", "a\0b"),
        ("echo", "\udcff"),
    ],
)
def test_a_vector_holds_no_code_for_a_shell_or_for_python(argv: tuple[str, ...]) -> None:
    with pytest.raises(UnsafeCommandError):
        Command(argv)


def test_code_of_ours_and_names_that_look_like_a_shell() -> None:
    assert Command(("/venv/bin/python", "-I", "-c", "pass")).argv
    assert Command(("python", "-m", "pip", "install", "-c", "constraints.txt", "x")).argv
    assert Command(("rm", "-r", "--", "sh")).argv
    assert Command(("python", "script.py", "-c", "x")).argv
    assert Command(("env", "CONDA_OVERRIDE_CUDA=13.0", "conda", "install", "x")).argv


@pytest.mark.parametrize("note", ["two\nlines", "it's", "(once)", "`id`", "$(id)", "a; b", "a # b"])
def test_a_note_that_a_shell_could_read_otherwise(note: str) -> None:
    with pytest.raises(UnsafeCommandError):
        Command(("true",), note)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Export("A B", "x"),
        lambda: Export("A", ("sh", "-c", "x")),
        lambda: Unset(()),
        lambda: Unset(("A;id",)),
        lambda: Pipe((("cat", "x"),)),
        lambda: Pipe((("cat", "x"), ("sh",))),
        lambda: WriteFile("x", ()),
        lambda: WriteFile("/x", ("a\nb",)),
        lambda: Options((), ("x",)),
    ],
)
def test_other_steps_that_could_not_be_run(make: object) -> None:
    assert callable(make)
    with pytest.raises(UnsafeCommandError):
        make()


@pytest.mark.parametrize(
    ("made", "argv"),
    [
        (run("rm", "-r", operands=[commands.path("-x")]), ("rm", "-r", "./-x")),
        (run("rm", "-r", operands=[commands.path("/a b")]), ("rm", "-r", "/a b")),
        (run("wheelproof", "verify", operands=["-x", "y"]), ("wheelproof", "verify", "--", "-x", "y")),
        (run("pip", commands.option("--python", "/x")), ("pip", "--python", "/x")),
        (run("pip", commands.option("--python", "-x")), ("pip", "--python=-x")),
        (run("uv", commands.package("torch", "2.11.0+cu130")), ("uv", "torch==2.11.0+cu130")),
        (
            run("uv", commands.requirement("torch<2.15; python_version > '3'")),
            ("uv", "torch<2.15; python_version > '3'"),
        ),
    ],
)
def test_words_that_are_made_of_values(made: Command | NoCommand, argv: tuple[str, ...]) -> None:
    assert made == Command(argv)


@pytest.mark.parametrize(
    ("word", "why"),
    [
        (commands.path(""), "the path is unknown"),
        (commands.option("-i", "-x"), "'-x' starts with a dash, and -i cannot be given such a value"),
        (commands.package("a b"), "'a b' is not the name of a package"),
        (commands.package("x @ https://e/x.whl"), "'x @ https://e/x.whl' is not the name of a package"),
        (commands.package("-r"), "'-r' is not the name of a package"),
        (commands.package("x", "1 e"), "'1 e', the version of x, is not one that an installer could be requested"),
        (commands.requirement("x @ file:/x"), "'x @ file:/x' names a URL, which only the user can choose to trust"),
        (commands.requirement("-r x"), "'-r x' is not a requirement"),
        ("a\0", "an argument cannot contain NUL"),
        ("\udcff", "'\\udcff' is not text in UTF-8, and cannot be shown exactly"),
    ],
)
def test_values_for_which_there_is_no_command(word: Word, why: str) -> None:
    assert run("uv", "pip", "install", operands=[word]) == NoCommand(why)
    assert run("uv", word, "x") == NoCommand(why)


def test_a_program_without_two_dashes_gets_no_such_operand() -> None:
    why = "'-x' starts with a dash, and patchelf would take it for an option"
    assert run("patchelf", "--print-rpath", operands=["-x"]) == NoCommand(why)


@given(st.lists(ARGUMENT, max_size=3), TEXT, TEXT, TEXT)
def test_a_shell_reads_every_step_as_it_is_meant(argv: list[str], value: str, path: str, name: str) -> None:
    steps: list[object] = [
        run("rm", "-r", commands.option("--python", value), operands=[*argv, commands.path(path)]),
        run("uv", "pip", "install", operands=[commands.package(name, value), commands.requirement(name)]),
    ]
    if all(map(_encodable, argv)):
        steps += [Export("A", "".join(argv)), Pipe((("cat", *argv), ("grep", *argv)))]
    for step in steps:
        assert isinstance(step, (Command, Export, Pipe, NoCommand))
        if not isinstance(step, NoCommand):
            assert read_by_a_shell(step) == intended(step)


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_a_real_shell_makes_of_a_hostile_argument(kind: str, tmp_path: Path) -> None:
    hostile = HOSTILE[kind]
    for made in (run("printf", "%s", commands.path(hostile)), run("printf", "%s%s", operands=["x", f"x{hostile}"])):
        assert list(faults(made, hostile)) == []
        assert isinstance(made, NoCommand) == (kind in {"no UTF-8", "NUL"})
        if isinstance(made, Command):
            done = subprocess.run(["sh", "-c", shell(made)], cwd=tmp_path, capture_output=True, check=True)
            assert done.stdout.endswith(hostile.encode())
    assert list(tmp_path.iterdir()) == []


def test_what_is_guarded_is_found_when_the_guard_goes() -> None:
    hostile = HOSTILE["option"]
    assert list(faults(Command(("rm", hostile)), hostile))
    assert list(faults(Command(("rm", HEAD)), HOSTILE["spaces"]))
    assert list(faults(Command(("pip", "install", HOSTILE["git"])), HOSTILE["git"]))
