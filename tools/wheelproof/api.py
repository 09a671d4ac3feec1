"""``wheelproof.verify`` and ``wheelproof.stack``: the commands for programs.

Nothing is printed, no signal handler is installed, and errors are exceptions. All functions are thread-safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath

from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu.targets import Product, parse_gpus
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations, parse_expectation
from wheel_checks.model import FailOn, Report
from wheel_checks.process.interrupts import left_alone
from wheel_checks.report import FORMATS
from wheelproof.plugins.loading import NO_PLUGINS, load_plugins
from wheelproof.reporting import Selection
from wheelproof.wheels.described import machines_of, platforms_of
from wheelproof.wheels.model import Judgement
from wheelproof.wheels.opening import Opened, Places, open_places

Path = str | PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of :func:`verify` and :func:`stack`, with the defaults of the commands."""

    platform: str | Sequence[str] = ()  # x86_64, aarch64, ... or all; by default that of ``gpu`` or of this host
    python: str | Sequence[str] = ()  # versions, such as 3.12; if empty, this Python
    expect: str = ""  # the expected build, such as cuda==13.0 or cpu; for ``stack``, of its torch
    gpu: str | Sequence[str] = ()  # GPUs it must run on, such as GB200 or sm_100
    driver: str | Sequence[str] = ()  # drivers it must run with, such as 580
    depth: str = "quick"  # quick, links, gpu or full
    select: str | Sequence[str] = ()  # prefixes of the rules to run; if empty, all rules
    ignore: str | Sequence[str] = ()  # prefixes of rules not to run
    fail_on: str = "error"  # the lowest severity that makes the exit code 1: error, warning or never
    index_url: str | None = None  # the package index; None for the index configured for uv and pip
    extra_index_url: str | Sequence[str] = ()  # additional package indexes
    find_links: Path | Sequence[Path] = ()  # pages and folders with files
    no_index: bool = False  # use no package index
    offline: bool = False  # use no network, only local files and the cache
    deadline: float | None = None  # total network timeout, in seconds
    plugins: bool = True  # run the rules of other installed packages


def verify(target: Path | Sequence[Path], options: Options = Options()) -> Report:
    """Judge wheels as ``wheelproof verify TARGET`` does.

    A target is a .whl file, a folder, a URL, or a requirement on an index. A target that cannot be read is a subject of
    the report with an error, and the verdict is undecided.

    Raises UsageError for an option that means nothing, and WheelproofError for a configuration that cannot be read.
    """
    from wheelproof.verifying.wheels import verify as judge
    from wheelproof.wheels.planning import Wanted

    targets = _texts(target)
    if not targets:
        raise UsageError("nothing to check", expected="a target")
    gpus, platforms, drivers = _gpus(options), _texts(options.platform), _texts(options.driver)
    machines = machines_of(gpus, drivers, None, platforms)
    wanted = Wanted(
        platforms_of(platforms, gpus, machines),
        _texts(options.python),
        machines=machines,
        assumed_platforms=not platforms,
    )
    expected = parse_expectation(options.expect) if options.expect else None
    judgement = _judgement(Expectations(expected, gpus=gpus, drivers=drivers), options)
    with _opened(options, judgement.depth) as opened:
        return judge(targets, wanted, judgement, opened.client, opened.index, dependencies=opened.dependencies)


def stack(
    package: Path | Sequence[Path] = (), options: Options = Options(), *, requirement: Path | Sequence[Path] = ()
) -> Report:
    """Resolve a set of requirements for a target and judge every wheel of it, as ``wheelproof stack PACKAGE`` does.

    A package is a requirement, a .whl file, a pyproject.toml or a lock file; ``requirement`` are files, as for ``-r``.

    Raises UsageError for an option that means nothing, and WheelproofError for a configuration that cannot be read.
    """
    from wheel_checks.targets.extras_and_groups import NO_EXTRAS
    from wheelproof.stacks.report import judge_stack
    from wheelproof.stacks.request import read_request

    gpus, platforms, drivers = _gpus(options), _texts(options.platform), _texts(options.driver)
    machines = machines_of(gpus, drivers, None, platforms)
    request = read_request(
        _texts(package),
        _texts(requirement),
        NO_EXTRAS,
        platforms_of(platforms, gpus, machines),
        _texts(options.python),
        gpus=tuple(product.name for product in gpus),
        machines=machines,
        offline=options.offline,
        timeout=options.deadline,
    )
    expected = parse_expectation(options.expect) if options.expect else None
    judgement = _judgement(Expectations(gpus=gpus, drivers=drivers, of_torch=expected), options)
    with _opened(options, judgement.depth) as opened:
        return judge_stack(request, judgement, opened.client, opened.config, dependencies=opened.dependencies)


def _texts(values: Path | Sequence[Path]) -> tuple[str, ...]:
    """One value, or several; each as text."""
    several = (values,) if isinstance(values, str | PathLike) else values
    return tuple(fspath(value) for value in several)


def _gpus(options: Options) -> tuple[Product, ...]:
    return parse_gpus(",".join(_texts(options.gpu))) if options.gpu else ()


def _judgement(expectations: Expectations, options: Options) -> Judgement:
    if options.fail_on not in {severity.value for severity in FailOn}:
        what = f"fail_on={options.fail_on!r} is not a severity"
        raise UsageError(what, expected=f"one of {', '.join(value.value for value in FailOn)}")
    with left_alone():
        plugins = load_plugins(FORMATS) if options.plugins else NO_PLUGINS
    selection = Selection(_texts(options.select), _texts(options.ignore), FailOn(options.fail_on), plugins=plugins)
    if options.depth not in {depth.value for depth in Depth}:
        expected = f"one of {', '.join(depth.value for depth in Depth)}"
        raise UsageError(f"{options.depth!r} is not a depth", expected=expected)
    return Judgement(expectations, selection, Depth(options.depth))


@contextmanager
def _opened(options: Options, depth: Depth) -> Iterator[Opened]:
    """The opened sources, with the reader of links if the depth needs it."""
    places = Places(
        options.index_url,
        _texts(options.extra_index_url),
        _texts(options.find_links),
        options.no_index,
        offline=options.offline,
        deadline=options.deadline,
    )
    links, whole = depth.includes(Depth.LINKS), depth is Depth.FULL
    with left_alone(), open_places(places, places.config(), links=links, whole=whole) as opened:
        yield opened
