"""Install a wheel with the real pip and uv, from a file and from an index on loopback. For the experiments of ``ci/``.

pip runs as its own ``main`` function in a child that installs many wheels, which spares 0.4 s of imports for each. Of a
sample of 100 wheels the command itself gave the same verdicts (November 2026, pip 26.3). uv runs as the command.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.range_server import RangeServer

BIN = Path(sys.executable).parent
_WRITTEN = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json")
_WORKER = """
import contextlib, io, json, sys
from pip._internal.cli.main import main
commands, sys.stdin = sys.stdin, io.StringIO()
answers = sys.stdout
for line in commands:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            code = main(json.loads(line))
        except BaseException as error:
            code, _ = 99, text.write(repr(error))
    print(json.dumps([code, text.getvalue()]), file=answers, flush=True)
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """The result for one wheel: ``says`` is the reason of a refusal, ``files`` are digests of installed files."""

    accepted: bool
    says: str
    files: dict[str, str]


def versions() -> dict[str, str]:
    """The versions of pip and uv that are asked."""
    found = {}
    for name in ("pip", "uv"):
        text = subprocess.run([BIN / name, "--version"], capture_output=True, text=True, check=True).stdout
        found[name] = text.split()[1]
    return found


class Installers:
    """pip and uv with a private folder; no configuration of the machine is read."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="wheelproof-installers-"))
        kept = {key: value for key, value in os.environ.items() if not key.upper().startswith(("PIP_", "UV_"))}
        self._environment = kept | {"PIP_CONFIG_FILE": os.devnull, "HOME": str(self._folder), "PIP_NO_INPUT": "1"}
        self._environment["UV_HTTP_RETRIES"] = "0"
        self._worker: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def pip(self, wheel: Path, *, command: bool = False) -> Installed:
        """Install by pip from a file; ``command`` runs the command instead of the function."""
        return self._pip(["--no-index", str(wheel)], command=command)

    def pip_from(self, index: str, requirement: str) -> Installed:
        """Install by pip from an index."""
        return self._pip(["--index-url", index, requirement])

    def uv(self, wheel: Path) -> Installed:
        """Install by uv from a file."""
        return self._uv(["--offline", str(wheel)])

    def uv_from(self, index: str, requirement: str) -> Installed:
        """Install by uv from an index: it unpacks the wheel while it comes."""
        return self._uv(["--index-url", index, requirement])

    def _pip(self, what: list[str], *, command: bool = False) -> Installed:
        target = self._target()
        options = ["install", "--no-deps", "--no-compile", "--no-cache-dir", "--disable-pip-version-check"]
        arguments = [*options, "--root-user-action=ignore", "--retries=0", "--target", str(target), *what]
        code, text = self._command(["pip", *arguments]) if command else self._ask(arguments)
        errors = re.findall(r"ERROR: (?!Exception|Could not find|Could not install)(.+)", text)
        errors += [line for line in text.strip().splitlines()[-1:] if code]
        return self._installed(target, code, errors[0] if code and errors else "")

    def _uv(self, what: list[str]) -> Installed:
        target = self._target()
        options = ["pip", "install", "--no-config", "--no-deps", "--no-progress", "--color=never"]
        options += ["--cache-dir", str(self._folder / "cache")]  # of interpreters: paths and URLs of wheels differ
        code, text = self._command(["uv", *options, "--python", sys.executable, "--target", str(target), *what])
        causes = re.findall(r"(?:[Cc]ause(?:d by)?|error):? +(.+)", text)
        return self._installed(target, code, causes[-1] if code and causes else text.strip()[-200:] if code else "")

    def _command(self, command: list[str]) -> tuple[int, str]:
        ran = subprocess.run(
            [BIN / command[0], *command[1:]],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            env=self._environment,
            cwd=self._folder,
            timeout=60,
        )
        return ran.returncode, ran.stdout + ran.stderr

    def _ask(self, arguments: list[str]) -> tuple[int, str]:
        if self._worker is not None and self._worker.poll() is not None:
            self._end()
        if self._worker is None:
            self._worker = subprocess.Popen(
                [sys.executable, "-I", "-c", _WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=self._environment,
                cwd=self._folder,
            )
        worker = self._worker
        if worker.stdin is None or worker.stdout is None:
            raise RuntimeError("pip has no pipes")
        worker.stdin.write(json.dumps(arguments) + "\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
        if not line:
            worker.wait()
            return 99, "pip ended"
        code, text = json.loads(line)
        return code, text

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None and worker.stdin is not None and worker.stdout is not None:
            worker.stdin.close()
            worker.wait()
            worker.stdout.close()

    def _target(self) -> Path:
        target = self._folder / "target"
        shutil.rmtree(target, ignore_errors=True)
        return target

    @staticmethod
    def _installed(target: Path, code: int, says: str) -> Installed:
        says = re.sub(r"/\S*/", "", says.replace(str(target), "TARGET"))[:300]
        return Installed(code == 0, says, _files(target) if code == 0 else {})


def _files(target: Path) -> dict[str, str]:
    """Digests by path, without the installer's own files; only names of scripts, which have a shebang."""
    found = {}
    for path in sorted(target.rglob("*")):
        name = path.relative_to(target).as_posix()
        if path.is_dir() or path.name == ".lock" or "__pycache__" in name or name.startswith("include/"):
            continue  # headers have no place below --target, and each installer chooses its own
        if ".dist-info/" in name and path.name in _WRITTEN:
            continue
        data = b"" if name.startswith("bin/") else path.read_bytes()
        found[name] = hashlib.sha256(data).hexdigest()[:16]
    return found


def requirement_of(file_name: str) -> str:
    """The requirement that selects a file of an index, "" if no installer accepts its name."""
    try:
        name, version, *_ = parse_wheel_filename(file_name)
    except InvalidWheelFilename:
        return ""
    return f"{name}=={version}"


@contextmanager
def index_of(file_name: str, data: bytes) -> Iterator[tuple[str, str, str]]:
    """A simple index on loopback with one file: the URL of the index, the requirement, and the URL of the file."""
    requirement = requirement_of(file_name)
    project = requirement.partition("==")[0] or "demo"
    path = f"/files/{quote(file_name)}"
    page = f'<!doctype html><html><body><a href="{path}">{escape(file_name)}</a></body></html>'
    with RangeServer({f"/simple/{project}/": page.encode(), path: data}) as server:
        yield server.url("/simple/"), requirement, server.url(path)
