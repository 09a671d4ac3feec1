"""``wheelproof.verify`` and ``wheelproof.stack``: what the commands do, for a program.

Nothing is printed, no signal handler is installed, and what goes wrong is an exception. Calls may be made from any
thread, and several at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath

from wheel_checks.errors import UsageError
from wheel_checks.facts.expectations import AcceleratorExpectation, Expectations, parse_expectation
from wheel_checks.facts.gpu.targets import Product, parse_gpus
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.interrupts import left_alone
from wheel_checks.model import FailOn, Report
from wheel_checks.report import FORMATS
from wheelproof.plugins.loading import NO_PLUGINS, load_plugins
from wheelproof.reporting import Selection
from wheelproof.wheels.described import machines_of, platforms_of
from wheelproof.wheels.model import Judgement
from wheelproof.wheels.opening import Places, open_places

Path = str | PathLike[str]


def verify(
    target: Path | Sequence[Path],
    *,
    platform: str | Sequence[str] = (),
    python: str | Sequence[str] = (),
    expect: str = "",
    gpu: str | Sequence[str] = (),
    driver: str | Sequence[str] = (),
    depth: str = "quick",
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    fail_on: str = "error",
    index_url: str | None = None,
    extra_index_url: str | Sequence[str] = (),
    find_links: Path | Sequence[Path] = (),
    no_index: bool = False,
    offline: bool = False,
    deadline: float | None = None,
    plugins: bool = True,
) -> Report:
    """Judge wheels as ``wheelproof verify TARGET`` does.

    A target is a .whl file, a folder, a URL, or a requirement on an index. The other arguments are those of the
    command, with the same defaults; the index is the one that uv and pip are configured to use. ``deadline`` is in
    seconds, ``plugins=False`` omits the rules of other installed packages. A target that cannot be read is a
    subject of the report with an error, and the verdict is undecided.

    Raises UsageError for an argument that means nothing, and WheelproofError for a configuration that cannot be read.
    """
    from wheelproof.verifying.wheels import verify as judge
    from wheelproof.wheels.planning import Wanted

    targets = _texts(target)
    if not targets:
        raise UsageError("nothing to check", expected="a target")
    gpus, platforms, drivers = _gpus(gpu), _texts(platform), _texts(driver)
    machines = machines_of(gpus, drivers, None, platforms)
    wanted = Wanted(platforms_of(platforms, gpus, machines), _texts(python), machines=machines)
    expectations = Expectations(_expected(expect), gpus=gpus, drivers=drivers)
    judgement = Judgement(expectations, _selection(select, ignore, fail_on, plugins=plugins), _depth(depth))
    places = _places(index_url, extra_index_url, find_links, no_index=no_index, offline=offline, deadline=deadline)
    links, whole = judgement.depth.includes(Depth.LINKS), judgement.depth is Depth.FULL
    with left_alone(), open_places(places, places.config(), links=links, whole=whole) as opened:
        return judge(targets, wanted, judgement, opened.client, opened.index, dependencies=opened.dependencies)


def stack(
    package: Path | Sequence[Path] = (),
    *,
    requirement: Path | Sequence[Path] = (),
    platform: str | Sequence[str] = (),
    python: str | Sequence[str] = (),
    expect: str = "",
    gpu: str | Sequence[str] = (),
    driver: str | Sequence[str] = (),
    depth: str = "quick",
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    fail_on: str = "error",
    index_url: str | None = None,
    extra_index_url: str | Sequence[str] = (),
    find_links: Path | Sequence[Path] = (),
    no_index: bool = False,
    offline: bool = False,
    deadline: float | None = None,
    plugins: bool = True,
) -> Report:
    """Resolve a set of requirements for a target and judge every wheel of it, as ``wheelproof stack PACKAGE`` does.

    A package is a requirement, a .whl file, a pyproject.toml or a lock file; ``requirement`` are files, as for ``-r``.
    The other arguments are those of :func:`verify`, but ``expect`` is about the torch of the stack.

    Raises UsageError for an argument that means nothing, and WheelproofError for a configuration that cannot be read.
    """
    from wheel_checks.targets.extras_and_groups import NO_EXTRAS
    from wheelproof.stacks.report import judge_stack
    from wheelproof.stacks.request import read_request

    gpus, drivers = _gpus(gpu), _texts(driver)
    machines = machines_of(gpus, drivers, None, _texts(platform))
    request = read_request(
        _texts(package),
        _texts(requirement),
        NO_EXTRAS,
        platforms_of(_texts(platform), gpus, machines),
        _texts(python),
        gpus=tuple(product.name for product in gpus),
        machines=machines,
        offline=offline,
        timeout=deadline,
    )
    expectations = Expectations(gpus=gpus, drivers=drivers, of_torch=_expected(expect))
    judgement = Judgement(expectations, _selection(select, ignore, fail_on, plugins=plugins), _depth(depth))
    places = _places(index_url, extra_index_url, find_links, no_index=no_index, offline=offline, deadline=deadline)
    links, whole = judgement.depth.includes(Depth.LINKS), judgement.depth is Depth.FULL
    with left_alone(), open_places(places, places.config(), links=links, whole=whole) as opened:
        return judge_stack(request, judgement, opened.client, opened.config, dependencies=opened.dependencies)


def _texts(values: Path | Sequence[Path]) -> tuple[str, ...]:
    """One value, or several; each as text."""
    several = (values,) if isinstance(values, str | PathLike) else values
    return tuple(fspath(value) for value in several)


def _gpus(gpu: str | Sequence[str]) -> tuple[Product, ...]:
    return parse_gpus(",".join(_texts(gpu))) if gpu else ()


def _expected(text: str) -> AcceleratorExpectation | None:
    return parse_expectation(text) if text else None


def _depth(text: str) -> Depth:
    if text not in {depth.value for depth in Depth}:
        raise UsageError(f"{text!r} is not a depth", expected=f"one of {', '.join(depth.value for depth in Depth)}")
    return Depth(text)


def _selection(select: str | Sequence[str], ignore: str | Sequence[str], fail_on: str, *, plugins: bool) -> Selection:
    if fail_on not in {severity.value for severity in FailOn}:
        what = f"fail_on={fail_on!r} is not a severity"
        raise UsageError(what, expected=f"one of {', '.join(value.value for value in FailOn)}")
    with left_alone():
        loaded = load_plugins(FORMATS) if plugins else NO_PLUGINS
    return Selection(_texts(select), _texts(ignore), FailOn(fail_on), plugins=loaded)


def _places(
    index_url: str | None,
    extra_index_url: str | Sequence[str],
    find_links: Path | Sequence[Path],
    *,
    no_index: bool,
    offline: bool,
    deadline: float | None,
) -> Places:
    return Places(index_url, _texts(extra_index_url), _texts(find_links), no_index, offline=offline, deadline=deadline)
