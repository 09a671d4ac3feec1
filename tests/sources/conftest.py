"""A client that does not wait long, and an environment without proxies and credentials."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE
from wheel_checks.sources.client import HttpClient

MakeClient = Callable[..., HttpClient]


@pytest.fixture(autouse=True)
def _no_proxies_and_no_keyring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def make_client() -> Iterator[MakeClient]:
    """``make_client(**options)``: an HttpClient with short waits, closed after the test."""
    with ExitStack() as stack:

        def make(*arguments: object, **options: object) -> HttpClient:
            quick = functools.partial(HttpClient, backoff=0.001, timeout=PATIENCE)
            return stack.enter_context(quick(*arguments, **options))  # type: ignore[arg-type]  # passed through

        yield make


@pytest.fixture
def client(make_client: MakeClient) -> HttpClient:
    """A client with the default options and short waits."""
    return make_client()
