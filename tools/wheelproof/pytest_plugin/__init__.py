"""The pytest plug-in: ``--gpu-expect``, ``--gpu-smoke``, the marker ``gpu``, the fixtures ``accelerator`` and ``gpu``.

pytest imports this module in every session, so it imports nothing but pytest until an option, a marker or a fixture of
its own is used. The host is examined once a run: by the controller, before pytest-xdist starts a worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from wheelproof.pytest_plugin.gpu_session import Accelerator, Gpu

MARKER = (
    'gpu(min_sm=90, memory="40 GB", count=2): requires so many GPUs with at least this compute capability and memory'
)

OURS = ("min_sm", "memory", "count")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("wheelproof", "GPUs (wheelproof)")
    group.addoption(
        "--gpu-expect",
        metavar="WHAT",
        default="",
        help='what torch is built for and which GPUs are here: cuda, "cuda==13.0,GB200", "4 x H100", rocm, xpu, cpu; '
        "otherwise the session stops immediately",
    )
    group.addoption(
        "--gpu-smoke",
        metavar="LEVEL",
        choices=("quick", "full", "deep"),
        default="",
        help="first run wheelproof's Triton kernels at this level (quick, full, deep); a failure ends the session",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Examine the host before anything is collected, and before workers are started."""
    expected, level = session.config.getoption("--gpu-expect"), session.config.getoption("--gpu-smoke")
    if not (expected or level) or hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return
    from wheelproof.pytest_plugin.gpu_session import blocker_of

    blocker = blocker_of(expected, level)
    if blocker is not None:
        pytest.exit(blocker.text, returncode=blocker.status)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose marker does not match this host, with the reason.

    Many projects have their own marker gpu; one without our arguments is theirs.
    """
    marker = item.get_closest_marker("gpu")
    if marker is None or marker.kwargs.keys().isdisjoint(OURS):
        return
    from wheelproof.pytest_plugin.gpu_session import needs_of, why_not

    try:
        reason = why_not(needs_of(marker.args, marker.kwargs))
    except ValueError as error:
        pytest.fail(f"{item.nodeid}: {error}", pytrace=False)
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def accelerator() -> Accelerator:
    """What the torch of this session computes with: its ``name``, ``version``, ``device`` and ``gpus``."""
    from wheelproof.pytest_plugin.gpu_session import accelerator_here

    return accelerator_here()


@pytest.fixture
def gpu(accelerator: Accelerator) -> Gpu:
    """The first GPU; a test that asks for it is skipped if none exists."""
    if not accelerator.gpus:
        pytest.skip(f"there is no GPU: {accelerator.absence}")
    return accelerator.gpus[0]
