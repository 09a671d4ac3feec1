"""Measure the cost of hostile wheels, pages and servers: peak memory and seconds of `wheelproof verify`.

usage: python benchmarks/hostile.py [--tree FOLDER] [CASE...]     (default: this checkout, all cases)

`--tree` names a checkout of another version, to compare it. Each case runs in a child, killed after two minutes; the
machine is noisy, so nothing is asserted here. tests/ bounds the growth of each.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = "demo-1.0-py3-none-any.whl"
MIB = 1 << 20
LIMIT = 120.0  # seconds

Argv = list[str]
CASES: dict[str, Callable[[Path, str], contextlib.AbstractContextManager[Argv]]] = {}


def case(name: str) -> Callable[[Callable[[Path, str], Iterator[Argv]]], None]:
    """Register a function that makes hostile input in a folder, given its server's URL, and yields the arguments."""

    def register(make: Callable[[Path, str], Iterator[Argv]]) -> None:
        CASES[name] = contextlib.contextmanager(make)

    return register


def wheel(folder: Path, members: dict[str, bytes] | None = None, *, metadata: str = "", record: str = "") -> Path:
    """A wheel with these members, each deflated."""
    path = folder / NAME
    head = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (members or {}).items():
            archive.writestr(name, data)
        archive.writestr("demo-1.0.dist-info/METADATA", head + metadata)
        archive.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("demo-1.0.dist-info/RECORD", record)
    return path


def zeros(folder: Path, count: int, suffix: str) -> Path:
    """A wheel of ``count`` members of 63 MiB of zeros."""
    return wheel(folder, dict.fromkeys((f"demo/{number}{suffix}" for number in range(count)), bytes(63 * MIB)))


@case("24 members of 63 MiB, quick")
def _(folder: Path, _: str) -> Iterator[Argv]:
    yield [str(zeros(folder, 24, ".bin"))]


@case("100 members of 63 MiB, full")
def _(folder: Path, _: str) -> Iterator[Argv]:
    yield [str(zeros(folder, 100, ".bin")), "--depth", "full"]


@case("500 libraries at one place, full")
def _(folder: Path, _: str) -> Iterator[Argv]:
    data = zlib.compressobj(wbits=-15)
    elf = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    packed = data.compress(elf + os.urandom(4 * MIB) + bytes(60 * MIB)) + data.flush()
    size = 64 + 64 * MIB
    names = [f"demo/lib{number:04}.so".encode() for number in range(500)]
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 0, 0, len(packed), size, len(names[0]), 0) + names[0]
    rows = [
        struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 0, n, len(packed), size, len(name), 0, 0, 0, 0, 0, 0)
        + name
        for n, name in enumerate(names)
    ]
    directory = b"".join(rows)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, len(rows), len(rows), len(directory), len(local) + len(packed), 0)
    path = folder / NAME
    path.write_bytes(local + packed + directory + end)
    yield [str(path), "--depth", "full"]


@case("1,000,000 members")
def _(folder: Path, _: str) -> Iterator[Argv]:
    rows = bytearray()
    for number in range(1_000_000):
        name = b"d/%d" % number
        rows += struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 0, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0) + name
    count, size = 1_000_000, len(rows)
    end64 = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, 0)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, size, 1)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, size, 0, 0)
    path = folder / NAME
    path.write_bytes(bytes(rows) + end64 + locator + end)
    yield [str(path)]


@case("60,000 members as in large real wheels")
def _(folder: Path, _: str) -> Iterator[Argv]:
    yield [str(wheel(folder, {f"demo/{number}.py": b"" for number in range(60_000)}))]


@case("60,000 dist-info folders")
def _(folder: Path, _: str) -> Iterator[Argv]:
    yield [str(wheel(folder, {f"d{number}-1.dist-info/METADATA": b"" for number in range(60_000)}))]


@case("600 markers of 7,000 characters")
def _(folder: Path, _: str) -> Iterator[Argv]:
    marker = " or ".join(["python_version=='3.9'"] * 250)
    yield [str(wheel(folder, metadata="".join(f"Requires-Dist: p{n}; {marker}\n" for n in range(600))))]


@case("100,000 lines of METADATA")
def _(folder: Path, _: str) -> Iterator[Argv]:
    yield [str(wheel(folder, metadata="Classifier: A :: B\n" * 100_000))]


@case("RECORD of 240,000 rows")
def _(folder: Path, _: str) -> Iterator[Argv]:
    digest = "sha256=" + "A" * 43
    yield [str(wheel(folder, record="".join(f"d/{number},{digest},1\n" for number in range(240_000))))]


@case("METADATA of 60 MiB of zeros")
def _(folder: Path, _: str) -> Iterator[Argv]:
    yield [str(wheel(folder, metadata="\0" * 60 * MIB))]


def index(folder: Path, url: str, body: bytes, kind: str) -> Argv:
    """Arguments for an index whose page of demo is ``body``."""
    (folder / "page").write_bytes(body)
    (folder / "kind").write_text(kind, encoding="utf-8")
    return ["demo", "--index-url", f"{url}/simple", "--platform", "x86_64", "--python", "3.12"]


@case("JSON page of 500,000 files")
def _(folder: Path, url: str) -> Iterator[Argv]:
    rows = (
        {"filename": f"demo-1.{n}-py3-none-any.whl", "url": f"/{n}/demo-1.{n}-py3-none-any.whl", "hashes": {}}
        for n in range(500_000)
    )
    body = b'{"meta":{"api-version":"1.0"},"files":[' + b",".join(json.dumps(row).encode() for row in rows) + b"]}"
    yield index(folder, url, body, "application/vnd.pypi.simple.v1+json")


@case("HTML page of 500,000 files")
def _(folder: Path, url: str) -> Iterator[Argv]:
    body = b"".join(b'<a href="/%d/demo-1.%d-py3-none-any.whl">x</a>\n' % (n, n) for n in range(500_000))
    yield index(folder, url, body, "text/html")


@case("JSON page of 15,000 files as the largest real ones")
def _(folder: Path, url: str) -> Iterator[Argv]:
    digest = "a" * 64
    rows = (
        {
            "filename": f"demo-1.{n}-py3-none-any.whl",
            "url": f"https://files.example.test/packages/{digest}/demo-1.{n}-py3-none-any.whl",
            "hashes": {"sha256": digest},
            "requires-python": ">=4",
            "size": 1000,
            "upload-time": "2026-01-01T00:00:00.000000Z",
            "core-metadata": {"sha256": digest},
        }
        for n in range(15_000)
    )
    body = json.dumps({"meta": {"api-version": "1.1"}, "files": list(rows)}).encode()
    yield index(folder, url, body, "application/vnd.pypi.simple.v1+json")


@case("JSON page of 20,000,000 small lists")
def _(folder: Path, url: str) -> Iterator[Argv]:
    body = b'{"files":[],"versions":[' + b"[]," * 10_000_000 + b"[]]}"
    yield index(folder, url, body, "application/vnd.pypi.simple.v1+json")


@case("page that inflates a thousandfold")
def _(folder: Path, url: str) -> Iterator[Argv]:
    yield [*index(folder, url, gzip.compress(b" " * (1 << 30), 9), "text/html gzip")]


@case("header that drips, --deadline 3")
def _(_: Path, url: str) -> Iterator[Argv]:
    yield ["demo", "--index-url", f"{url}/drip", "--platform", "x86_64", "--deadline", "3"]


@case("server without ranges and without end")
def _(_: Path, url: str) -> Iterator[Argv]:
    yield [f"{url}/endless/{NAME}", "--allow-download"]


@case("locked cache")
def _(folder: Path, url: str) -> Iterator[Argv]:
    arguments = index(folder, url, b"<a href=/files/demo-1.0-py3-none-any.whl>x</a>", "text/html")
    cache = folder / "cache"
    subprocess.run([*command(ROOT), *arguments, "--cache-dir", str(cache)], check=False, capture_output=True)
    (database,) = cache.glob("*.sqlite3")
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        yield [*arguments, "--cache-dir", str(cache)]


class _Handler(BaseHTTPRequestHandler):
    """Serves the page of a folder, a header that drips, and a body of 12 GB without a length."""

    folder: Path

    def do_GET(self) -> None:
        with contextlib.suppress(OSError):
            if self.path.startswith("/drip"):
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                for _ in range(600):
                    self.wfile.write(b"y")
                    time.sleep(0.1)
            elif self.path.startswith("/endless"):
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                for _ in range(12_000):
                    self.wfile.write(bytes(1_000_000))
            elif self.path.startswith("/simple"):
                body, kind = (self.folder / "page").read_bytes(), (self.folder / "kind").read_text(encoding="utf-8")
                encoding = "Content-Encoding: gzip\r\n" if kind.endswith(" gzip") else ""
                head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind.split()[0]}\r\n{encoding}"
                self.wfile.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            else:
                self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """The URL of a server of the folder."""
    handler = type("Handler", (_Handler,), {"folder": folder})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        httpd.daemon_threads = True
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


def command(tree: Path) -> Argv:
    """How the wheelproof of a checkout is started."""
    paths = f"import sys; sys.path[:0] = [{str(tree)!r}, {str(tree / 'tools')!r}]"
    return [sys.executable, "-c", f"{paths}; from wheelproof.cli.main import main; sys.exit(main())", "verify"]


# A child's peak begins with the size of the process that started it, so a small one does. Prints seconds, KiB, status.
_STARTER = """
import os, subprocess, sys, threading, time
child = subprocess.Popen(sys.argv[2:])
timer = threading.Timer(float(sys.argv[1]), child.kill)
started = time.monotonic()
timer.start()
_, status, usage = os.wait4(child.pid, 0)
timer.cancel()
print(time.monotonic() - started, usage.ru_maxrss, os.waitstatus_to_exitcode(status), file=sys.stderr)
"""


def measure(arguments: Argv, tree: Path, folder: Path) -> str:
    """One row: seconds, peak memory, exit code, size of the report, files left in the temporary folder, first line."""
    spools = folder / "tmp"
    spools.mkdir()
    given = arguments if "--cache-dir" in arguments else [*arguments, "--no-cache"]
    run = subprocess.run(
        [sys.executable, "-c", _STARTER, str(LIMIT), *command(tree), *given],
        capture_output=True,
        check=True,
        env={**os.environ, "TMPDIR": str(spools)},
    )
    seconds, peak, code = run.stderr.decode().splitlines()[-1].split()
    left = sum(file.stat().st_size for file in spools.rglob("*") if file.is_file())
    end = "killed" if int(code) < 0 else f"exit {code}"
    first = run.stdout.decode("utf-8", "replace").partition("\n")[0]
    size = f"{len(run.stdout) / 1e6:5.1f} MB report" + (f", {left / 1e9:.1f} GB left behind" if left else "")
    return f"{float(seconds):6.1f} s {int(peak) / 1024:6.0f} MiB  {end:7} {size}  {first[:80]}"


def main() -> None:
    """Run the cases and print a row of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    for name, make in CASES.items():
        if options.case and not any(wanted in name for wanted in options.case):
            continue
        with (
            tempfile.TemporaryDirectory() as scratch,
            server(Path(scratch)) as url,
            make(Path(scratch), url) as arguments,
        ):
            print(f"{name:52} {measure(arguments, options.tree.absolute(), Path(scratch))}", flush=True)


if __name__ == "__main__":
    main()
