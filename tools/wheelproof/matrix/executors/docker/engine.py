"""The connection to a Docker engine, and its errors in words for users."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import socket
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from wheel_checks.errors import SourceError
from wheel_checks.fixes.extras import how_to_install

if TYPE_CHECKING:  # the SDK is an extra, and takes a third of a second to import
    from docker import APIClient
    from requests import Response

DEFAULT_HOST = "unix:///var/run/docker.sock"
OLDEST_API = (1, 41)  # of engine 20.10, the first that takes a platform when it makes a container
TIMEOUT = 20  # seconds that a new connection may take to say its version
ANSWER = 120  # seconds that any other request may take; an engine of a busy machine is slow
START_HINT = "on Debian and Ubuntu: apt-get install docker.io; then `systemctl start docker`, or `dockerd` as root"

# Messages of the engine, in lower case, with their meaning and fix.
_MEANINGS = (
    (
        "no space left on device",
        "the disk of the Docker engine is full",
        "check with `docker system df`, and free space with `docker system prune`",
    ),
    (
        "could not select device driver",
        "the Docker engine cannot pass a GPU to a container",
        "install the NVIDIA Container Toolkit, then `nvidia-ctk runtime configure --runtime=docker` and restart it",
    ),
    (
        "executable file not found",
        "the image lacks the Python of the cell",
        "set the key image of the cell to an image with that Python",
    ),
    (
        "bind source path does not exist",
        "the Docker engine cannot find a folder to mount",
        "it must run on this host, with the same file system",
    ),
)


class EngineError(SourceError):
    """The Docker engine is missing, forbids a request, or fails."""


def connect(environ: Mapping[str, str] = os.environ) -> APIClient:
    """A client of the engine that DOCKER_HOST names, else of the default one.

    Raises EngineError, with a fix, if the SDK is not installed or no engine of this host answers.
    """
    # Not by import: with a checkout on the path, its folder docker/ would be found.
    try:
        importlib.metadata.version("docker")
    except importlib.metadata.PackageNotFoundError:
        raise EngineError("the Docker SDK for Python is not installed", hint=how_to_install("docker")) from None
    host = environ.get("DOCKER_HOST") or DEFAULT_HOST
    _knock(host)
    import docker.errors
    import requests

    try:
        client = docker.APIClient(base_url=host, version="auto", timeout=TIMEOUT, max_pool_size=64)
        version = tuple(map(int, client.api_version.split(".")))
    except (docker.errors.DockerException, requests.exceptions.RequestException, ValueError) as error:
        raise EngineError(
            f"the answer from {host} is not that of a Docker engine: {_first_line(error)}", hint="see DOCKER_HOST"
        ) from error
    if version < OLDEST_API:
        raise EngineError(f"the Docker engine at {host} is too old", expected="version 20.10 or later")
    client.timeout = ANSWER
    return client


def _knock(host: str) -> None:
    """Raise EngineError unless something listens at ``host``, the URL of a socket."""
    path = host.removeprefix("unix://")
    if path == host:
        raise EngineError(
            f"DOCKER_HOST is {host}",
            expected="unix:// and the path of a socket: the engine mounts folders of this host",
        )
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
            knocking.settimeout(TIMEOUT)
            knocking.connect(path)
    except PermissionError as error:
        raise EngineError(
            f"this user may not use the Docker engine at {path}",
            hint='`sudo usermod -aG docker "$USER"` and a new login (equivalent to root access), or a rootless engine',
        ) from error
    except FileNotFoundError as error:
        raise EngineError(f"no Docker engine is running: {path} does not exist", hint=START_HINT) from error
    except OSError as error:
        raise EngineError(f"no Docker engine answers at {path}: {error.strerror or error}", hint=START_HINT) from error


@contextlib.contextmanager
def answering(doing: str) -> Iterator[None]:
    """Turn errors of the engine while ``doing`` something into an EngineError with a fix."""
    import docker.errors
    import requests

    try:
        yield
    except docker.errors.APIError as error:
        text = str(error.explanation or error)
        for sign, meaning, hint in _MEANINGS:
            if sign in text.lower():
                raise EngineError(f"{meaning} ({doing}: {_first_line(text)})", hint=hint) from error
        raise EngineError(f"the Docker engine failed ({doing}): {_first_line(text)}") from error
    except requests.exceptions.Timeout as error:
        raise EngineError(f"the Docker engine does not answer within {ANSWER} s ({doing})") from error
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise EngineError(
            f"the Docker engine disconnected ({doing}): {_first_line(error)}", hint="`docker version` asks it"
        ) from error


@contextlib.contextmanager
def asking(client: APIClient, method: str, path: str, **parameters: str | int) -> Iterator[Response]:
    """The answer of the engine to a request, after its headers; the body is not read yet.

    The SDK has functions for this, which leave connections open. Raises the errors of the SDK, see :func:`answering`.
    """
    import docker.errors
    import requests

    url = f"{client.base_url}/v{client.api_version}{path}"
    with client.request(method, url, params=parameters, stream=True, timeout=ANSWER) as response:
        try:
            response.raise_for_status()
        except requests.exceptions.HTTPError as error:
            raise docker.errors.create_api_error_from_http_exception(error) from error
        yield response


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
