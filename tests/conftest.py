"""For every test: no network except loopback, a clean environment, and a report of lanes that did not run.

Markers open lanes that not every machine has. ``online`` tests talk to the configured package index, and are
skipped when it does not answer. ``browser`` tests need Chromium, and are skipped if none exists. ``kernels`` tests
need the environment with torch and triton that ``ci/develop.py test`` makes. A skipped lane is named in red at the end
of the run, since a run without it has proven less; with ``--strict-lanes`` it fails the run.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings

from ci.system import NEEDS, apt_line
from tests.support.docker_engine import runs_emulated, runs_natively
from tests.support.shells import all_there
from tests.support.slurm import is_there as has_slurm
from wheelproof.cli.main import main

LANES = {
    "online": "the package index did not answer",
    "compiler": f"gcc, git or ps is not installed ({apt_line('compiler')})",
    "browser": f"no Chromium was found ({apt_line('browser')})",
    "slurm": f"Slurm is not installed ({apt_line('slurm')}), or this user is not root",
    "kernels": "WHEELPROOF_KERNELS_PYTHON names no Python that has torch and triton",
    "docker": "no Docker engine answers, or it has no image of `wheelproof matrix image`",
    "emulation": "no Docker engine runs our image for the other architecture",
    "shells": f"bash, zsh, fish, mandoc or man is not installed ({apt_line('shells')})",
}
# A loaded machine is not a bug. In CI Hypothesis starts from its profile "ci", of which everything else is kept.
settings.register_profile("any load", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of CI, where nothing may be left out."""
    parser.addoption("--strict-lanes", action="store_true", help="fail when a lane did not run")


def pytest_configure() -> None:
    """Give children the state of a foreground shell: a background command is started with signals ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of a thousand children compiles all of wheelproof again


@functools.cache
def find_chromium() -> str | None:
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def kernels_python() -> str | None:
    """The path of a Python that has torch and triton, or None."""
    return os.environ.get("WHEELPROOF_KERNELS_PYTHON")


@functools.cache
def index_answers() -> bool:
    """True when the package index that this host is configured to use answers."""
    resolve = [sys.executable, "-m", "uv", "pip", "compile", "-", "--no-deps", "--no-cache", "--quiet"]
    try:
        answer = subprocess.run(resolve, input=b"packaging", capture_output=True, check=False, timeout=30)
    except subprocess.TimeoutExpired:
        return False
    return answer.returncode == 0


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests of a lane that this host does not have."""
    available: dict[str, Callable[[], object]] = {
        "online": index_answers,
        "browser": find_chromium,
        "kernels": kernels_python,
        "slurm": has_slurm,
        "docker": runs_natively,
        "emulation": runs_emulated,
        "shells": all_there,
    }
    for lane, reason in LANES.items():
        if item.get_closest_marker(lane) and not available[lane]():
            pytest.skip(f"{lane} lane: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Skip a test that itself starts a compiler, git or ps if it is missing; programs started by our code are not
    excused.
    """
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, FileNotFoundError) and error.filename in NEEDS["compiler"].missing:
        root = item.config.rootpath
        paths = [Path(entry.path) for entry in call.excinfo.traceback] if call.excinfo else []
        own = [path for path in paths if path.is_relative_to(root) and not path.is_relative_to(root / ".venv")]
        if own and own[-1].is_relative_to(root / "tests"):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"Skipped: compiler lane: {LANES['compiler']}")
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name in red each lane that did not run."""
    for lane, missed in missed_lanes(terminalreporter).items():
        line = f"NOT RUN: the {lane} lane ({missed} tests): {LANES[lane]}"
        terminalreporter.write_line(line, red=True, bold=True)


def missed_lanes(terminalreporter: Any) -> dict[str, int]:
    """The lanes that did not run, and how many tests each has."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    counts = {lane: sum(f"{lane} lane: {reason}" in text for text in skipped) for lane, reason in LANES.items()}
    return {lane: count for lane, count in counts.items() if count}


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a strict run in which a lane did not run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--strict-lanes") and reporter and missed_lanes(reporter) and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _clean_environment(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of this host or its user reaches a test; only an online test keeps its installers' own."""
    prefixes: tuple[str, ...] = ("WHEELPROOF_", "XDG_")
    if request.node.get_closest_marker("online") is None:
        prefixes += ("PIP_", "UV_", "NETRC")
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in os.environ:
        if name.startswith(prefixes) or name in {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


class _Started(subprocess.Popen[Any]):
    """Notes each process that a test starts, in its own code or in ours."""

    all: ClassVar[list[_Started]] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.all.append(self)

    def has_open_pipe(self) -> bool:
        """Whether a ResourceWarning follows, in any later test in which the garbage collector runs."""
        return any(pipe is not None and not pipe.closed for pipe in (self.stdin, self.stdout, self.stderr))


@pytest.fixture(autouse=True)
def _pipes_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test that leaves a pipe of a child open fails, and not another one, later."""
    _Started.all.clear()
    monkeypatch.setattr(subprocess, "Popen", _Started)
    yield
    leaking = [process.args for process in _Started.all if process.has_open_pipe()]
    assert not leaking, f"pipes are open of {leaking}"


@pytest.fixture(autouse=True)
def _only_loopback(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that is not marked online fails when it looks up a host or connects to anything but this host."""
    if request.node.get_closest_marker("online"):
        return

    def guarded(call: Callable[..., Any], host_of: Callable[..., object]) -> Callable[..., Any]:
        def check_and_call(*arguments: Any, **options: Any) -> Any:
            host = host_of(*arguments, **options)
            if not is_loopback(host):
                pytest.fail(f"the test tried to reach {host!r}; mark it online, or use a server on 127.0.0.1")
            return call(*arguments, **options)

        return check_and_call

    def address_host(sock: socket.socket, address: Any) -> object:
        return address[0] if sock.family in {socket.AF_INET, socket.AF_INET6} else None

    monkeypatch.setattr(socket.socket, "connect", guarded(socket.socket.connect, address_host))
    monkeypatch.setattr(socket.socket, "connect_ex", guarded(socket.socket.connect_ex, address_host))
    monkeypatch.setattr(socket, "getaddrinfo", guarded(socket.getaddrinfo, lambda host, *_rest, **_options: host))


def is_loopback(host: object) -> bool:
    """True for this host's own addresses and names, and for None, which means them."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in {None, "", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(str(name)).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Run:
    """The result of a command: exit code, standard output and standard error."""

    status: int
    out: str
    err: str


Wheelproof = Callable[..., Run]


@pytest.fixture
def wheelproof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Wheelproof:
    """Run the command line in this process, from a folder of the test's own: ``wheelproof("rules", "WHL201").out``."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run(*arguments: str) -> Run:
        status = main(list(arguments))
        return Run(status, *capsys.readouterr())

    return run
