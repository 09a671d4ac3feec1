"""Files that are read by name: nothing waits, nothing swells, and no other way leads to them."""

from __future__ import annotations

import ast
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from wheel_checks.sources.regular_file import open_regular, read_end, read_start, read_whole

ROOT = Path(__file__).resolve().parents[2]

INSIDE_THE_GUARD = (
    *("guarded", "held", "installing", "layout", "main", "pip_conf", "pip_front", "receipt", "tripwire", "uv_front"),
)

# Other calls that open files, and why they never wait for untrusted files.
EXCEPTIONS = {
    "tools/wheelproof/cli/main.py": "writes to /dev/null",
    "tools/wheelproof/doctor/inside/cuda.py": "runs in another Python: /proc/self/maps",
    "tools/wheelproof/doctor/inside/nvml.py": "runs in another Python: /proc/self/maps",
    "tools/wheelproof/doctor/inside/torch_import.py": "runs in another Python: /proc/self/environ, and regular files",
    "tools/wheelproof/doctor/probes/driver.py": "/dev/kmsg, a device that is read without waiting",
    "tools/wheelproof/doctor/probes/nodes.py": "opens devices to see whether it may, without waiting",
    "tools/wheelproof/doctor/repair/snapshot.py": "files that it creates, and folders",
    "tools/wheelproof/doctor/repair/undoing.py": "a folder, to lock it",
    "tools/wheelproof/matrix/executors/docker/first_process.py": "runs in another Python: /dev/null",
    "tools/wheelproof/matrix/executors/docker/image.py": "an archive that it made, and a list of this package",
    "tools/wheelproof/matrix/folders.py": "its own lock file, opened for writing, which never waits",
    "tools/wheelproof/matrix/inside/run_command.py": "runs in another Python: reports of at most 8 MiB",
    "tools/wheelproof/cli/completion/command.py": "a resource of the package",
    "tools/wheelproof/cli/schema.py": "a resource of the package",
    "tools/wheelproof/new/writing.py": "resources of the package",
    "tools/wheelproof/pins/atomic.py": "files that it creates, and folders",
    **dict.fromkeys(
        (f"tools/wheelproof/pins/guard/inside/{name}.py" for name in INSIDE_THE_GUARD),
        "runs in another Python, in an environment of the user",
    ),
    "tools/wheelproof/plugins/installed.py": "entry points of its own environment, whose code it imports",
    "wheel_checks/data/__init__.py": "a resource of the package",
    "wheel_checks/facts/links/torch_exports.py": "a resource of the package",
    "wheel_checks/process/tree.py": "/proc",
    "wheel_checks/report/__init__.py": "a resource of the package",
    "wheel_checks/report/html/page.py": "a resource of the package",
    "wheel_checks/sources/http/cache_database.py": "its own lock file, opened for writing, which never waits",
    "wheel_checks/sources/regular_file.py": "this is the one",
    "wheel_checks/sources/scratch_folder.py": "folders, and files by O_NONBLOCK, to lock them",
    "wheel_checks/sources/uv/own_configuration.py": "a file that it creates",
}


def special_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Names of irregular files, and the expected error for each."""
    os.mkfifo(folder / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "socket"))
    listening.close()
    (folder / "folder").mkdir()
    (folder / "to-pipe").symlink_to("pipe")
    (folder / "to-zero").symlink_to("/dev/zero")
    (folder / "to-nothing").symlink_to("missing")
    (folder / "loop").symlink_to("loop")
    (folder / "file").write_bytes(b"")
    yield str(folder / "pipe"), "a pipe, not a regular file"
    yield str(folder / "to-pipe"), "a pipe, not a regular file"
    yield str(folder / "socket"), "a socket, not a regular file"
    yield "/dev/zero", "a device, not a regular file"
    yield str(folder / "to-zero"), "a device, not a regular file"
    yield str(folder / "folder"), "Is a directory"
    yield str(folder / "to-nothing"), "No such file or directory"
    yield str(folder / "file" / "below"), "Not a directory"
    yield str(folder / "loop"), "Too many levels of symbolic links"
    yield str(folder / "null\0character"), "a null character"
    yield str(folder / ("long" * 100)), "File name too long"


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    for path, said in special_files(tmp_path):
        for read in (lambda path: read_start(path, 10), lambda path: read_whole(path, 10), open_regular, read_end_of):
            with pytest.raises(OSError, match=said):
                read(path)


def read_end_of(path: str) -> bytes:
    return read_end(path, 10)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    files = list(special_files(tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path, said in files:
        with pytest.raises(OSError, match=said):
            read_start(path, 10)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_device_is_not_even_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(os, "open", lambda *arguments: opened.append(arguments[0]))
    with pytest.raises(OSError, match="a device"):
        read_start("/dev/zero", 10)
    assert opened == []


def test_a_pipe_that_takes_the_name_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_bytes(b"x")
    seen = file.stat()
    monkeypatch.setattr(os, "stat", lambda *_, **__: seen)
    with pytest.raises(OSError, match="a pipe"):
        read_start(pipe, 10)


def test_content_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"0123456789")
    assert read_start(file, 4) == b"0123"
    assert read_start(file, 400) == read_whole(file, 10) == b"0123456789"
    assert read_end(file, 4) == b"6789"
    assert read_end(file, 400) == b"0123456789"
    with pytest.raises(OSError, match="more than 9 bytes"):
        read_whole(file, 9)


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    read = os.read

    def growing(descriptor: int, length: int) -> bytes:
        with file.open("ab") as end:
            end.write(bytes(1000))
        return read(descriptor, length)

    monkeypatch.setattr(os, "read", growing)
    assert len(read_start(file, 5000)) == 5000
    with pytest.raises(OSError, match="more than 5,000 bytes"):
        read_whole(file, 5000)


def test_a_pipe_that_the_caller_opened_is_read_when_the_user_names_it() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"from a command")
        os.close(writing)
        with pytest.raises(OSError, match="a pipe"):  # a tree may name it in a link or an include
            read_start(f"/dev/fd/{reading}", 100)
        with open_regular(f"/proc/self/fd/{reading}", given=True) as file:
            assert file.read(5) == b"from "
        assert read_start(f"/dev/fd/{reading}", 100, given=True) == b"a command"
    finally:
        os.close(reading)


def test_a_slow_pipe_that_the_user_names_is_read_to_its_end() -> None:
    reading, writing = os.pipe()
    go = threading.Event()

    def write() -> None:
        os.write(writing, b"one ")
        go.wait()
        os.write(writing, b"two")
        os.close(writing)

    thread = threading.Thread(target=write)
    thread.start()
    go.set()
    try:
        assert read_start(f"/dev/fd/{reading}", 100, given=True) == b"one two"
    finally:
        thread.join()
        os.close(reading)


def test_files_are_opened_in_one_place() -> None:
    found = set()
    for folder in ("tools", "wheel_checks"):
        for path in (ROOT / folder).rglob("*.py"):
            if any(map(opens, ast.walk(ast.parse(path.read_text(encoding="utf-8"))))):
                found.add(str(path.relative_to(ROOT)))
    assert found == set(EXCEPTIONS)


def opens(node: ast.AST) -> bool:
    """Whether a call opens a file for reading by its name, as far as its own text shows."""
    match node:
        case ast.Call(func=ast.Attribute(attr="read_bytes" | "read_text")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="open")):
            return True
        case ast.Call(func=ast.Name(id="open")) | ast.Call(func=ast.Attribute(value=ast.Name(id="io"), attr="open")):
            return not _writes(node, 1)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=receiver), attr="open")) if "client" in receiver:
            return False  # wheel_checks.sources.client
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="client" | "_client"), attr="open")):
            return False
        case ast.Call(func=ast.Attribute(attr="open")):
            return not _writes(node, 0)
    return False


def _writes(call: ast.Call, position: int) -> bool:
    modes = [*call.args[position : position + 1], *(word.value for word in call.keywords if word.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax") for mode in modes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('path.open("rb")', True),
        ("path.open()", True),
        ("path.read_text()", True),
        ("Path(name).read_bytes()", True),
        ("open(name)", True),
        ("open(name, mode)", True),
        ("os.open(name, 0)", True),
        ("io.open(name)", True),
        ('path.open("w")', False),
        ('open(name, "xb")', False),
        ("client.open(url)", False),
        ("open_regular(name)", False),
    ],
)
def test_what_counts_as_opening(text: str, expected: bool) -> None:
    assert any(map(opens, ast.walk(ast.parse(text)))) is expected


def test_the_null_device_is_an_empty_file() -> None:
    assert read_start("/dev/null", 10) == read_whole("/dev/null", 10) == b""
