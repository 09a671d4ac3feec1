"""Plans, and what plain calls keep: the same bits as the function itself, other layouts refused, memory kept."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

from kernels_smoke.launching.checks import check_apart
from kernels_smoke.launching.plan import Plan, Plannable, _tensors, allocated, launch, plannable, plannable_apart
from kernels_smoke.matmul.scaled_mm import scaled_mm
from kernels_smoke.norm import fused_add_rms_norm as norm
from kernels_smoke.norm.fused_add_rms_norm import fused_add_rms_norm
from kernels_smoke.suite import registry
from kernels_smoke.suite.compiling.ahead_of_time import compiling
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.correctness.judge import same_bits
from kernels_smoke.suite.model import LEVELS, Case, Kernel
from kernels_smoke.suite.speed.timing import copied
from tests.kernels.support import DEVICE, zeros

KERNELS = {entry.name: registry.load(entry) for entry in registry.ENTRIES}
PLANNED = sorted(
    name
    for name, kernel in KERNELS.items()
    if isinstance(getattr(importlib.import_module(kernel.module), name, None), Plannable)
)


class Calling:
    """Replaces the module of a kernel in ``Kernel.launch``; ``of(function)`` makes its functions."""

    def __init__(self, kernel: Kernel, of: Callable[[Any], Any]) -> None:
        self._module, self._of = importlib.import_module(kernel.module), of

    def __getattr__(self, name: str) -> Any:
        return self._of(getattr(self._module, name))


def least_case(kernel: Kernel) -> Case:
    """The case of the lowest level that the interpreter runs, too, whose tensors are the smallest."""
    cases = [case for case in kernel.cases if "interpret" in case.where]
    lowest = min(LEVELS.index(case.level) for case in cases)
    return min((case for case in cases if LEVELS.index(case.level) == lowest), key=lambda case: _elements(kernel, case))


def _elements(kernel: Any, case: Case) -> int:
    inputs = kernel.inputs(Draw(0, DEVICE), **case.shape)
    return sum(value.numel() for value in inputs.values() if isinstance(value, torch.Tensor))


@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_writes_the_bits_that_the_function_writes_and_making_it_writes_none(name: str) -> None:
    kernel: Any = KERNELS[name]
    draw = Draw(20261127, DEVICE)
    inputs = kernel.inputs(draw, **least_case(kernel).shape)
    results = []
    for of in (lambda function: function.function, lambda function: function.plan):
        drawn, outputs = copied(inputs), draw.outputs(kernel.outputs(inputs))
        before = copied({**drawn, **outputs})
        made = kernel.launch(Calling(kernel, of), drawn, outputs)
        if isinstance(made, Plan):
            after = {**drawn, **outputs}
            assert all(same_bits(after[key], value) for key, value in before.items() if isinstance(value, torch.Tensor))
            made()
        results.append({**{key: drawn[key] for key in kernel.modifies}, **outputs})
    by_function, by_plan = results
    assert by_plan
    for key, value in by_function.items():
        assert same_bits(by_plan[key], value), key


def given(function: Any) -> Callable[..., dict[str, Any]]:
    """The arguments of a call of ``function``, by name, instead of the call."""
    return lambda *args, **kwargs: dict(inspect.signature(function.function).bind(*args, **kwargs).arguments)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("name", PLANNED)
def test_plans_and_calls_like_earlier_ones_compute_from_the_values_of_other_tensors(name: str) -> None:
    kernel: Any = KERNELS[name]
    sets = []
    for seed in (1, 2):
        draw = Draw(seed, DEVICE)
        inputs = kernel.inputs(draw, **least_case(kernel).shape)
        sets.append((inputs, draw.outputs(kernel.outputs(inputs))))

    def launched(of: Callable[[Any], Any], number: int) -> tuple[Any, dict[str, Any]]:
        inputs, outputs = map(copied, sets[number])
        made = kernel.launch(Calling(kernel, of), inputs, outputs)
        return made, {**{key: inputs[key] for key in kernel.modifies}, **outputs}

    function = getattr(importlib.import_module(kernel.module), name)
    function._kept.clear()
    _, wanted = launched(lambda function: function.function, 1)
    launched(lambda function: function, 0)
    _, by_call = launched(lambda function: function, 1)
    assert len(function._kept) == 1  # the second call used the recording of the first
    plan, _ = launched(lambda function: function.plan, 0)
    arguments, by_plan = launched(given, 1)
    if isinstance(plan, Plan):
        plan(**{key: value for key, value in arguments.items() if _tensors(value)})
    for key, value in wanted.items():
        assert same_bits(by_call[key], value), key
        assert not isinstance(plan, Plan) or same_bits(by_plan[key], value), key


def test_every_kernel_can_be_planned_but_those_that_are_no_single_call() -> None:
    # An ascent takes as many launches as it needs, and both probes are bare kernels.
    assert set(KERNELS) - set(PLANNED) == {"dual_ascent", "chained_dots", "decayed_accumulator"}


ROWS, WIDTH = 3, 40


def drawn(seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Arguments of fused_add_rms_norm."""
    generator = torch.Generator().manual_seed(seed)
    x, residual = (torch.randn(ROWS, WIDTH, generator=generator).to(DEVICE, torch.float16) for _ in range(2))
    weight = torch.randn(WIDTH, generator=generator).to(DEVICE, torch.float16)
    return {"x": x, "residual": residual, "weight": weight, **changes}


def test_a_plan_writes_into_the_same_results_each_time() -> None:
    arguments = drawn()
    plan = fused_add_rms_norm.plan(**arguments)
    normed, total = plan()
    arguments["x"].zero_()
    assert plan()[0] is normed
    assert torch.equal(total, arguments["residual"])


def test_a_plan_takes_other_tensors_of_the_same_layout_for_one_call() -> None:
    one, other = drawn(1), drawn(2)
    plan = fused_add_rms_norm.plan(**one, out=(zeros(ROWS, WIDTH), zeros(ROWS, WIDTH)))
    wanted, wanted_of_other = fused_add_rms_norm(**one), fused_add_rms_norm(**{**one, "x": other["x"]})
    out = (zeros(ROWS, WIDTH), zeros(ROWS, WIDTH))
    made = plan(x=other["x"], out=out)
    assert all(one is other for one, other in zip(made, out, strict=True))
    assert all(map(torch.equal, out, wanted_of_other))
    assert all(map(torch.equal, plan(), wanted))


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (
            {"x": zeros(ROWS + 1, WIDTH)},
            r"x must be torch.float16 \(3, 40\) with .*, as in the plan, not .*\(4, 40\)",
        ),
        ({"x": zeros(ROWS, WIDTH + 1)[:, :WIDTH]}, r"strides \(40, 1\) .* strides \(41, 1\)"),
        ({"weight": zeros(WIDTH, dtype=torch.float32)}, "torch.float16 .* not torch.float32"),
        ({"weight": zeros(WIDTH + 1)[1:]}, "not .*, 2 bytes behind a multiple of 16"),
        ({"residual": zeros(ROWS, WIDTH, device="meta")}, "not .* on meta"),
        ({"weight": None}, "weight must have 1 tensors, as in the plan, not 0"),
        ({"epsilon": 1e-3}, "epsilon is not a tensor of the plan; its tensors are x, residual, weight"),
        ({"bias": zeros(WIDTH)}, "bias is not a tensor of the plan"),
    ],
)
def test_a_plan_refuses_tensors_of_another_layout(others: dict[str, Any], message: str) -> None:
    plan = fused_add_rms_norm.plan(**drawn())
    with pytest.raises(ValueError, match=message):
        plan(**others)


def test_a_plan_for_a_residual_that_is_updated_in_place_refuses_one_that_is_not() -> None:
    arguments = drawn()
    wanted = fused_add_rms_norm(**copied(arguments))
    out = (zeros(ROWS, WIDTH), arguments["residual"])
    plan = fused_add_rms_norm.plan(**arguments, out=out)
    plan()
    assert all(map(torch.equal, out, wanted))
    with pytest.raises(ValueError, match="residual: tensors are the same memory as others, or no longer are"):
        plan(residual=zeros(ROWS, WIDTH))


def test_a_plan_refuses_what_the_function_refuses() -> None:
    with pytest.raises(ValueError, match=r"residual must be torch\.float16"):
        fused_add_rms_norm.plan(**drawn(residual=zeros(ROWS, WIDTH, dtype=torch.float32)))


def test_a_plan_keeps_the_memory_of_its_tensors() -> None:
    arguments = drawn()
    wanted, _ = fused_add_rms_norm(**arguments)
    plan = fused_add_rms_norm.plan(**arguments)
    arguments["x"].data = zeros(ROWS, WIDTH)  # other memory: the plan does not see it
    del arguments
    assert torch.equal(plan()[0], wanted)


def test_a_plan_of_tensors_without_values_compiles() -> None:
    meta = {name: value.to("meta") for name, value in drawn().items()}
    plan = fused_add_rms_norm.plan(**meta)
    if DEVICE == "cuda":
        with compiling(GPUTarget("cuda", 90, 32)) as functions:
            plan()
        assert [function.name for function in functions] == ["_fused_add_rms_norm_kernel"]


# Plain calls


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain calls on this device keep their recordings, as on a GPU."""
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)


@pytest.mark.usefixtures("kept")
def test_a_call_like_an_earlier_one_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fused_add_rms_norm(**drawn(1))
    arguments = drawn(2)
    wanted = fused_add_rms_norm.function(**arguments)
    with monkeypatch.context() as patched:
        patched.setattr(norm, "check_rows", None)
        made = fused_add_rms_norm(**arguments)
        again = fused_add_rms_norm(**arguments)
        with pytest.raises(TypeError):
            fused_add_rms_norm(**drawn(2, weight=zeros(WIDTH + 1)[1:]))
    for results in (made, again):
        assert all(map(torch.equal, results, wanted))
    assert made[0].data_ptr() != again[0].data_ptr()  # each call has its own results


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({}, {"epsilon": 1.0}),
        ({}, {"zero_centred": True}),
        ({"zero_centred": False}, {"zero_centred": 0}),
        ({}, {"weight": torch.ones(WIDTH, device=DEVICE)}),
        ({}, {"x": zeros(ROWS, WIDTH + 1)[:, :WIDTH]}),
    ],
)
def test_a_call_that_differs_is_another_one(first: dict[str, Any], then: dict[str, Any]) -> None:
    fused_add_rms_norm(**drawn(1, **first))
    arguments = drawn(2, **then)
    assert all(map(torch.equal, fused_add_rms_norm(**arguments), fused_add_rms_norm.function(**arguments)))


@pytest.mark.usefixtures("kept")
def test_one_tensor_for_two_arguments_is_another_call() -> None:
    arguments = drawn(1)
    fused_add_rms_norm(**arguments)
    x = arguments["x"]
    made = fused_add_rms_norm(**{**arguments, "residual": x})
    assert torch.equal(made[1], 2 * x)
    assert all(map(torch.equal, fused_add_rms_norm(**drawn(1)), fused_add_rms_norm.function(**drawn(1))))


@pytest.mark.usefixtures("kept")
def test_another_layout_of_the_launch_is_used_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = drawn()
    fused_add_rms_norm(**arguments)
    requested: list[int] = []
    before = norm.configure

    def configure(width: int) -> Any:
        requested.append(width)
        return before(width)

    monkeypatch.setattr(norm, "configure", configure)
    fused_add_rms_norm(**arguments)
    assert requested == [WIDTH]


@pytest.mark.usefixtures("kept")
def test_results_that_are_allocated_have_the_dtype_that_was_requested() -> None:
    a, b = (torch.ones(20, 32, device=DEVICE, dtype=torch.float16) for _ in range(2))
    one = torch.ones(1, device=DEVICE)
    for _ in range(2):
        for dtype in (torch.float16, torch.float32):
            out = scaled_mm(a, b.t(), one, one, out_dtype=dtype)
            assert (out.dtype, float(out[0, 0])) == (dtype, 32.0)


# Functions of which no plan can be made


@triton.jit  # type: ignore[untyped-decorator]  # of Triton
def _double_kernel(x: Any, out: Any, count: tl.constexpr) -> None:
    offsets = tl.arange(0, count)
    tl.store(out + offsets, 2 * tl.load(x + offsets))  # [count]


def doubled(x: torch.Tensor, *, hidden: bool) -> torch.Tensor:
    out = torch.empty_like(x) if hidden else allocated(torch.empty_like(x))
    launch(_double_kernel, (1,), x=x, out=out, count=16)
    return out


@plannable_apart
def doubled_apart(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    check_apart("out", out, "x", x)
    launch(_double_kernel, (1,), x=x, out=out, count=16)
    return out


@pytest.mark.usefixtures("kept")
def test_a_call_with_tensors_that_share_memory_is_checked_although_one_like_it_was() -> None:
    memory = zeros(64)
    memory[:16] = 3.0
    assert torch.equal(doubled_apart(memory[:16], memory[32:48]), 2 * memory[:16])
    assert torch.equal(doubled_apart(memory[32:48], memory[48:]), 4 * memory[:16])
    for part in (memory[16:32], memory[32:48]):  # aligned as before
        with pytest.raises(ValueError, match="out and x must not share memory"):
            doubled_apart(memory[24:40], part)
    plan = doubled_apart.plan(memory[:16], memory[32:48])
    with pytest.raises(ValueError, match="tensors are the same memory as others"):
        plan(x=memory[24:40])


@dataclass(frozen=True)
class Begun:
    """The first ``count`` elements of ``x``; the owner of their memory is not compared."""

    x: torch.Tensor
    count: int
    owner: Any = field(default=None, compare=False)


@plannable
def begun_doubled(begun: Begun) -> torch.Tensor:
    out = allocated(torch.zeros_like(begun.x))
    launch(_double_kernel, (1,), x=begun.x, out=out, count=begun.count)
    return out


def test_a_plan_takes_the_tensors_of_a_dataclass_and_refuses_one_that_differs_in_more() -> None:
    one, other = torch.ones(16, device=DEVICE), torch.full((16,), 3.0, device=DEVICE)
    plan = begun_doubled.plan(Begun(one, 16))
    assert torch.equal(plan(), 2 * one)
    assert torch.equal(plan(begun=Begun(other, 16, owner=object())), 2 * other)
    with pytest.raises(ValueError, match="begun differs from that of the plan in more than its tensors"):
        plan(begun=Begun(other, 8))


@pytest.mark.usefixtures("kept")
def test_a_plain_call_looks_into_a_dataclass() -> None:
    for value in (1.0, 2.0):
        for count in (16, 8):
            x = torch.full((16,), value, device=DEVICE)
            assert torch.equal(begun_doubled(Begun(x, count, owner=object()))[:count], 2 * x[:count])
    assert len(begun_doubled._kept) == 2


def test_a_function_that_hides_what_it_allocates_has_no_plan() -> None:
    x = torch.ones(16, device=DEVICE)
    assert torch.equal(plannable(doubled).plan(x, hidden=False)(), 2 * x)
    with pytest.raises(RuntimeError, match="no plan can be made: out is part of 0 of"):
        plannable(doubled).plan(x, hidden=True)


@pytest.mark.usefixtures("kept")
def test_a_plain_call_of_such_a_function_works_each_time() -> None:
    function = plannable(doubled)
    for value in (1.0, 2.0):
        x = torch.full((16,), value, device=DEVICE)
        assert torch.equal(function(x, hidden=True), 2 * x)


def test_a_planned_function_within_another_is_part_of_its_plan() -> None:
    inner = plannable(doubled)

    def twice(x: torch.Tensor) -> torch.Tensor:
        return inner(inner(x, hidden=False), hidden=False)

    x = torch.ones(16, device=DEVICE)
    plan = plannable(twice).plan(x)
    x.fill_(3.0)
    assert torch.equal(plan(), 4 * x)
