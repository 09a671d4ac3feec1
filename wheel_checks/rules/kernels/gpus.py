"""Is each GPU as its product should be? KRN5xx judge what was measured of it, and who else uses it."""

from __future__ import annotations

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
    "memory is as fast as the product's",
    why="The bars of kernels are fractions of what this GPU reaches in the same run, so that a GPU at half its speed "
    "keeps them all. What its product reaches is in a dated table: measured rates fail a GPU, data sheets only warn.",
    example="1.88 TB/s, 44 % of what an H200 reaches (4.25)",
    fix="See who else uses the GPU and what holds its clocks down (the finding names both); then test its memory.",
)
def bandwidth(facts: GpuFacts, _: Expectations) -> Iterator[Finding]:
    """The bandwidth of a copy is that of the product."""
    yield from _rates(facts, ("bandwidth",))


@rule(
    "KRN502",
    "matrix products are as fast as the product's",
    why="As for memory. A cap on power, a clock that was set, heat and a neighbour look alike in a training run: it is "
    "slow.",
    example="210 TF bf16, 28 % of what an H200 reaches (745), at 279 of 700 W",
    fix="Follow the reasons in the finding: free the GPU, cool it, or give it its power and clocks back.",
)
def products(facts: GpuFacts, _: Expectations) -> Iterator[Finding]:
    """The rates of bf16 and fp8 matrix products are those of the product."""
    yield from _rates(facts, ("bf16", "fp8"))


@rule(
    "KRN503",
    "the GPU has the multiprocessors and the memory of its product",
    Severity.WARNING,
    why="A GPU that shows fewer is a part of one (vGPU, MIG), or another product under the same name.",
    example="an H200 with 114 multiprocessors",
    fix="Ask who runs the machine what was rented out.",
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
    "nothing else uses the GPU",
    Severity.WARNING,
    why="Whoever multiplies on the same GPU takes half of it, and is the first thing to look for behind a slow run. It "
    "is looked at before the suite uses the GPU. A container is not shown the processes of others, but their work and "
    "their memory.",
    example="process 4242 (python) with 12 GiB",
    fix="End it, or wait for it; `nvidia-smi` shows it on the host.",
)
def alone(facts: GpuFacts, _: Expectations) -> Iterator[Finding]:
    """No other process, no work and no memory in use was seen before the run."""
    state = facts.gpu.state
    if state == GpuState():
        need(Unavailable("NVML said nothing of this GPU"))
    if used := _neighbours(state):
        yield Finding(f"the GPU was in use before this run: {used}")


@rule(
    "KRN505",
    "the GPU holds its rate under sustained load",
    why="What is fast for a second and slow after a minute is a matter of cooling or power; a GPU that computes wrong "
    "when it is hot must be replaced.",
    example="after 300 s at 510 TF, 32 % less than at the beginning; software thermal slowdown, 89 degrees Celsius",
    fix="Look after cooling and power. A GPU with wrong results must go.",
)
def sustained(facts: GpuFacts, _: Expectations) -> Iterator[Finding]:
    """Every result was right, and the rate fell by no more than heat at the power limit explains."""
    soak = need(facts.reading.soak or Unavailable("no sustained load was asked for", "--soak SECONDS"))
    if soak.wrong:
        yield Finding(f"{soak.wrong} of {plural(soak.compared, 'compared result')} differ from the first", _soak(facts))
    if soak.fall > _FALL:
        held = summarised(soak.held_down_by, MOST_SHOWN) or "no reason that NVML names"
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
        of = f"what {product.with_article} reaches" if product.measured else f"the data sheet of {product.with_article}"
        reasons = [*_held(calibration.gpu), *_others(facts.gpu.state)]
        message = f"{_rate(kind, rate)}, {share} of {of} ({_number(kind, product.rates[kind][0])})"
        evidence = (Evidence("product", product.name, product.source), *_state(calibration.gpu))
        severity = None if product.measured else Severity.WARNING
        yield Finding("; ".join([message, *reasons]), evidence, severity=severity)


def _held(state: GpuState) -> Iterator[str]:
    """What holds the clocks down; a cap on power that is far from reached explains nothing."""
    if state.held_down_by:
        yield f"its clocks are held down: {summarised(state.held_down_by, MOST_SHOWN)}"
    power, limit = state.power_watts, state.power_limit_watts
    if limit and state.power_default_watts and limit < state.power_default_watts:
        yield f"its power limit is set to {limit} W, and {state.power_default_watts} W is the default"
    if _CAP in state.held_down_by and power and limit and power < _AT_THE_CAP * limit:
        yield f"a cap on power at {power} of {limit} W does not explain it"


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
    soak = need(facts.reading.soak or Unavailable("no sustained load was asked for"))
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
