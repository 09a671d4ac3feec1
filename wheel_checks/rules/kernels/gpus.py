"""Is each GPU as its product should be? KRN5xx judge what was measured of it, and who else uses it."""

from collections.abc import Iterator

from wheel_checks.data import load
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.kernels.gpus import GpuFacts, GpuProcess, GpuState, product_of
from wheel_checks.model import Evidence, Finding, Severity, Unavailable, need
from wheel_checks.phrases import plural, summarised
from wheel_checks.registry import rules_of

KIND = "gpu"
rule = rules_of(KIND)
MOST_SHOWN = 8
_CAP = "software power cap"
_MPS = "nvidia-cuda-mps-server"  # which is there for others, and does nothing without them
_AT_THE_CAP = 0.9  # of the limit: a GPU that the cap holds down draws as much
_BUSY, _IDLE_MEMORY = 10, 2 << 30  # percent, and bytes: drivers and firmware keep some hundred megabytes for themselves
_FALL = 0.15  # of the first rate: a GPU that gets warm at the cap of its power loses some percent


@rule(
    "KRN501",
    "memory bandwidth reaches the rate of the product",
    why="The limits of kernels are fractions of what this GPU reaches in the same run, so that a GPU at half its speed "
    "meets them all. A dated table states what its product reaches: a GPU below a measured rate fails, below a data "
    "sheet's rate it gets a warning.",
    example="1.88 TB/s, 44 % of an H200's rate (4.25)",
    fix="Find out who else uses the GPU and what reduces its clocks (the finding names both); then test its memory.",
)
def bandwidth(facts: GpuFacts, _: Expectations) -> Iterator[Finding]:
    """The bandwidth of a copy is that of the product."""
    yield from _rates(facts, ("bandwidth",))


@rule(
    "KRN502",
    "matrix products reach the rate of the product",
    why="The same holds as for memory bandwidth. A power cap, a fixed clock, heat and another job on the GPU look the "
    "same in a training run: it is slow.",
    example="210 TF bf16, 28 % of an H200's rate (745), at 279 of 700 W",
    fix="Address the reasons in the finding: free the GPU, cool it, or restore its power limit and clocks.",
)
def products(facts: GpuFacts, _: Expectations) -> Iterator[Finding]:
    """The rates of bf16 and fp8 matrix products are those of the product."""
    yield from _rates(facts, ("bf16", "fp8"))


@rule(
    "KRN503",
    "the GPU has as many multiprocessors and as much memory as its product",
    Severity.WARNING,
    why="A GPU with fewer is a partition (vGPU, MIG), or another product under the same name.",
    example="an H200 with 114 multiprocessors",
    fix="Ask the provider what is rented out.",
)
def parts(facts: GpuFacts, _: Expectations) -> Iterator[Finding]:
    """Multiprocessors and memory are those of the product."""
    product, gpu = need(product_of(facts.gpu)), facts.gpu
    if product.multiprocessors and gpu.multiprocessors and gpu.multiprocessors != product.multiprocessors:
        message = f"{gpu.multiprocessors} multiprocessors; {product.with_article} has {product.multiprocessors}"
        yield Finding(message, (Evidence("product", product.name, product.source),))
    if product.memory and gpu.memory_bytes and gpu.memory_bytes < load("gpu_rates")["least_memory"] * product.memory:
        message = f"{gpu.memory_bytes / 1e9:.0f} GB of memory; {product.with_article} has {product.memory / 1e9:.0f}"
        yield Finding(message, (Evidence("product", product.name, product.source),))


@rule(
    "KRN504",
    "no other process uses the GPU",
    Severity.WARNING,
    why="Another process on the same GPU can take half of its speed, and is the first cause to look for behind a slow "
    "run. This is checked before the suite uses the GPU. A container cannot list the processes of others, but it sees "
    "their load and their memory use.",
    example="process 4242 (python) with 12 GiB",
    fix="End it, or wait for it; `nvidia-smi` on the host lists it.",
)
def alone(facts: GpuFacts, _: Expectations) -> Iterator[Finding]:
    """No other process, no work and no memory in use was seen before the run."""
    state = facts.gpu.state
    if state == GpuState():
        need(Unavailable("NVML returned no data for this GPU"))
    if used := _neighbours(state):
        yield Finding(f"the GPU was in use before this run: {used}")


@rule(
    "KRN505",
    "the GPU keeps its rate under sustained load",
    why="A GPU that slows down after a minute has a cooling or power problem; a GPU that computes wrong results when "
    "hot must be replaced.",
    example="after 300 s at 510 TF, 32 % less than at the beginning; software thermal slowdown, 89 degrees Celsius",
    fix="Check cooling and power. Replace a GPU with wrong results.",
)
def sustained(facts: GpuFacts, _: Expectations) -> Iterator[Finding]:
    """Every result was right, and the rate fell by no more than heat at the power limit explains."""
    soak = need(facts.reading.soak or Unavailable("no sustained load was requested", "--soak SECONDS"))
    if soak.wrong:
        yield Finding(f"{soak.wrong} of {plural(soak.compared, 'compared result')} differ from the first", _soak(facts))
    if soak.fall > _FALL:
        held = summarised(soak.held_down_by, MOST_SHOWN) or "NVML reports no reason"
        change = f"{_percent(soak.fall)} less than at the beginning ({_number('bf16', soak.first)})"
        message = f"after {soak.asked_seconds:g} s at {_rate('bf16', soak.last)}, {change}: {held}"
        yield Finding(message, _soak(facts), severity=Severity.WARNING)


def _rates(facts: GpuFacts, kinds: tuple[str, ...]) -> Iterator[Finding]:
    calibration = need(facts.reading.calibration or Unavailable("no rate was measured", "--level full measures them"))
    product = need(product_of(facts.gpu))
    for kind in kinds:
        rate = getattr(calibration, kind)
        if rate is None or kind not in product.rates or rate >= product.least(kind):
            continue
        share = _percent(rate / product.rates[kind][0])
        of = (
            f"the rate of {product.with_article}"
            if product.measured
            else f"the data-sheet rate of {product.with_article}"
        )
        reasons = [*_held(calibration.gpu), *_others(facts.gpu.state)]
        message = f"{_rate(kind, rate)}, {share} of {of} ({_number(kind, product.rates[kind][0])})"
        evidence = (Evidence("product", product.name, product.source), *_state(calibration.gpu))
        severity = None if product.measured else Severity.WARNING
        yield Finding("; ".join([message, *reasons]), evidence, severity=severity)


def _held(state: GpuState) -> Iterator[str]:
    """What holds the clocks down; a cap on power that is far from reached explains nothing."""
    if state.held_down_by:
        yield f"its clocks are reduced: {summarised(state.held_down_by, MOST_SHOWN)}"
    power, limit = state.power_watts, state.power_limit_watts
    if limit and state.power_default_watts and limit < state.power_default_watts:
        yield f"its power limit is {limit} W, but the default is {state.power_default_watts} W"
    if _CAP in state.held_down_by and power and limit and power < _AT_THE_CAP * limit:
        yield f"a power cap at {power} of {limit} W does not explain it"


def _others(state: GpuState) -> Iterator[str]:
    if used := _neighbours(state):
        yield f"it was in use before this run: {used}"


def _neighbours(state: GpuState) -> str:
    """Who else uses the GPU, as far as NVML shows it; "" when nothing does."""
    said = [_process(process) for process in state.processes if not process.name.endswith(_MPS)]
    if state.utilization_percent and state.utilization_percent >= _BUSY:
        said.append(f"{state.utilization_percent} % busy")
    if state.memory_used_bytes and state.memory_used_bytes >= _IDLE_MEMORY:
        said.append(f"{state.memory_used_bytes / 2**30:.1f} GiB of memory in use")
    return summarised(said, MOST_SHOWN)


def _process(process: GpuProcess) -> str:
    name = f" ({process.name})" if process.name else ""
    memory = f" with {process.memory_bytes / 2**30:.1f} GiB" if process.memory_bytes else ""
    return f"process {process.pid}{name}{memory}"


def _state(state: GpuState) -> Iterator[Evidence]:
    """Clocks, power and temperature while it multiplied."""
    for label, value, limit, unit in (
        ("SM clock", state.sm_clock_mhz, state.sm_clock_limit_mhz, "MHz"),
        ("memory clock", state.memory_clock_mhz, None, "MHz"),
        ("power", state.power_watts, state.power_limit_watts, "W"),
        ("temperature", state.temperature_celsius, None, "degrees Celsius"),
    ):
        if value is not None:
            yield Evidence(label, f"{value} of {limit} {unit}" if limit else f"{value} {unit}")


def _soak(facts: GpuFacts) -> tuple[Evidence, ...]:
    soak = need(facts.reading.soak or Unavailable("no sustained load was requested"))
    lowest = Evidence("lowest rate", _rate("bf16", soak.lowest))
    hottest = [Evidence("hottest", f"{soak.hottest_celsius} degrees Celsius")] if soak.hottest_celsius else []
    before = (Evidence(f"{each.label} before", each.value) for each in _state(soak.before))
    return (lowest, *hottest, *before, *_state(soak.after))


def _rate(kind: str, rate: float) -> str:
    return f"{_number(kind, rate)} TB/s" if kind == "bandwidth" else f"{_number(kind, rate)} TF {kind}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _number(kind: str, rate: float) -> str:
    return f"{rate / 1e12:.2f}" if kind == "bandwidth" else f"{rate / 1e12:,.0f}"
