"""The guards of ``conftest.py``: no test reaches the network, or the state of the machine and shell that it runs in."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest


def test_looking_up_a_host_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"tried to reach 'example\.org'"):
        socket.create_connection(("example.org", 443))


def test_connecting_to_an_address_fails_the_test() -> None:
    with (
        socket.socket() as connection,
        pytest.raises(pytest.fail.Exception, match=r"tried to reach '192\.0\.2\.1'"),
    ):
        connection.connect(("192.0.2.1", 443))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_is_open(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection((host, server.getsockname()[1])):
        connection, _address = server.accept()
        connection.close()


def test_nothing_of_the_user_is_in_the_environment(tmp_path: Path) -> None:
    assert not [name for name in os.environ if name.startswith(("WHEELPROOF_", "PIP_", "UV_"))]
    assert Path.home() == tmp_path / "home"
    assert os.environ["XDG_CACHE_HOME"] == str(tmp_path / "cache")


def test_a_child_can_be_interrupted_though_the_suite_runs_in_the_background() -> None:
    ask = "from signal import *; print(getsignal(SIGINT) is default_int_handler, getsignal(SIGQUIT) is SIG_DFL)"
    assert subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True).stdout == b"True True\n"
