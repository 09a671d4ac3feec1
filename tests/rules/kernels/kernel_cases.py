"""KRN001 to KRN406: a run of the kernels, judged for the installation, each kernel, each target."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.rules.case import NOTE, WARNING, Case
from tests.support.smoke import H200, case, compiled, document, fault, mutant, parsed, probe, speed
from wheel_checks.facts.kernels.facts import InstallationFacts, KernelFacts, TargetFacts
from wheel_checks.facts.kernels.gpus import GpuFacts
from wheel_checks.fixes.commands import Command

PYTHON = "/opt/venv/bin/python"
NEWER = {"argv": ["pip", "install", "triton>=3.7.1"], "note": ""}
REPLAY = Command(("wheelproof", "smoke", "--device", "cuda", "--level", "full", "--only", "norm", "--seed", "123"))


def installation(*probes: dict[str, Any], **fields: Any) -> InstallationFacts:
    return InstallationFacts(PYTHON, parsed(document(probes=list(probes), **fields)))


def kernel(*runs: dict[str, Any]) -> KernelFacts:
    """The kernel "norm"; ``runs`` are cases, timed runs and mutants."""
    found = parsed(
        document(
            cases=[run for run in runs if run["kind"] == "case"],
            speeds=[run for run in runs if run["kind"] == "speed"],
            mutants=[run for run in runs if run["kind"] == "mutant"],
        )
    )
    return KernelFacts("norm", found.cases, found.speeds, REPLAY, mutants=found.mutants)


RATES = {"bandwidth": 4.25e12, "bf16": 746e12, "fp8": 1500e12}
AT_WORK: dict[str, Any] = {
    "sm_clock_mhz": 1755,
    "sm_clock_limit_mhz": 1980,
    "memory_clock_mhz": 3201,
    "power_watts": 698,
    "power_limit_watts": 700,
    "temperature_celsius": 61,
    "held_down_by": ["software power cap"],
}
IDLE: dict[str, Any] = {"power_watts": 76, "processes": [], "utilization_percent": 0, "memory_used_bytes": 630 << 20}


def gpu(
    state: dict[str, Any] | None = None,
    at_work: dict[str, Any] | None = None,
    soak: dict[str, Any] | None = None,
    name: str = "NVIDIA H200",
    uuid: str = "GPU-a",
    rates: dict[str, Any] | None = None,
    **fields: Any,
) -> GpuFacts:
    """A GPU that was idle before the run, with these ``rates`` instead of those of a healthy H200."""
    entry = H200 | {"name": name, "uuid": uuid, "state": IDLE if state is None else state} | fields
    calibration = RATES | (rates or {}) | {"gpu": AT_WORK if at_work is None else at_work}
    reading = {"gpu": uuid, "calibration": calibration, "soak": soak}
    found = parsed(document(environment={"gpus": [entry]}, readings=[reading]))
    return GpuFacts(found.environment.gpus[0], found.readings[0])


SOAK: dict[str, Any] = {
    "asked_seconds": 300,
    "first": 750e12,
    "last": 700e12,
    "lowest": 690e12,
    "fall": 0.0667,
    "wrong": 0,
    "compared": 298,
    "held_down_by": ["software power cap"],
    "hottest_celsius": 74,
    "after": AT_WORK,
    "before": IDLE,
}


def target(*records: dict[str, Any], name: str = "sm_90") -> TargetFacts:
    return TargetFacts(name, parsed(document(mode="compile", compiled=list(records))).compiled)


SLOW = "200.0 us instead of at most 151.3: 1.60 times the floor (125.0 us), where 1.10 is the bar"

# Rule: its own probe, and its message on failure.
PROBES = (
    ("KRN101", "torch", "torch 2.10.0+cpu is built only for the CPU"),
    ("KRN102", "triton", "torch 2.11.0 requires triton 3.6.0, and 3.3.0 is installed"),
    ("KRN103", "driver", "the driver does not match its library: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"),
    ("KRN103", "cuda_init", "torch cannot start CUDA"),
    ("KRN104", "allocation", "1 GiB cannot be allocated"),
    ("KRN104", "copies", "a copy of 64 MiB came back with another checksum"),
    ("KRN105", "streams_and_events", "an event did not wait"),
    ("KRN105", "cuda_graph", "the replay gave the result of the capture"),
    ("KRN106", "cublas", "a product in float32 is wrong"),
    ("KRN107", "cudnn", "a convolution is wrong"),
    ("KRN108", "c_compiler", "there is no C compiler"),
    ("KRN108", "triton_launcher", "the launcher cannot be built"),
    ("KRN109", "jit_cache", "~/.triton/cache cannot be written"),
    ("KRN110", "ptxas", "the bundled ptxas does not know sm_121"),
    ("KRN111", "nccl", "the all-reduce did not come back within 30 s"),
    ("KRN114", "gpus", "GPU 7 could not be tried: CUDA sees 0 (GPU-a)"),
    ("KRN113", "interpreter", "NumPy 2.4 breaks the interpreter of triton 3.6.0"),
    ("KRN115", "kernels /x/mine.py", "/x/mine.py has a kernel scaled_mm, which is the name of one of wheelproof"),
    ("KRN199", "a_probe_of_tomorrow", "it does not work"),
)

OTHER_PROBE = {"KRN101": "triton"}  # a probe that the rule must ignore; torch everywhere else

CASES = [
    *(
        Case(rule, f"{name} fails", partial(installation, probe(name, "fail", says)), (says,))
        for rule, name, says in PROBES
    ),
    *(
        Case(
            rule,
            f"{name} passes, while another probe fails",
            partial(installation, probe(name), probe(OTHER_PROBE.get(rule, "torch"), "fail", "it does not work")),
        )
        for rule, name, _ in PROBES
    ),
    Case(
        "KRN112",
        "torch.compile fails",
        lambda: installation(probe("torch_compile", "fail", "InvalidCxxCompiler", evidence={"severity": "warning"})),
        ("InvalidCxxCompiler",),
        WARNING,
    ),
    Case("KRN112", "torch.compile passes", lambda: installation(probe("torch_compile"))),
    Case(
        "KRN102",
        "a Triton that torch did not ask for, and with which the kernels work",
        lambda: installation(probe("triton", "fail", "torch asks for 3.6.0", evidence={"severity": "warning"})),
        ("torch asks for 3.6.0",),
        WARNING,
    ),
    Case(
        "KRN001",
        "one of its processes was killed",
        lambda: installation(
            probe("suite", "fail", "killed by SIGABRT", evidence={"last words": "LLVM ERROR\n\n  at 0x1\n"}),
            verdict="fail",
        ),
        ("killed by SIGABRT",),
        evidence=("LLVM ERROR", "  at 0x1"),
    ),
    Case(
        "KRN001",
        "a kernel is wrong, which is another rule's",
        lambda: installation(cases=[case("norm", outcome="wrong")], verdict="fail", message="norm: wrong"),
    ),
    Case(
        "KRN001",
        "the suite was interrupted",
        lambda: installation(probe("torch"), verdict="undecided", partial="interrupted by SIGTERM"),
        ("the report is partial: interrupted by SIGTERM",),
        undecided=True,
    ),
    Case(
        "KRN106",
        "a product is wrong on one of two GPUs",
        lambda: installation(
            probe("cublas", "fail", "a product is wrong", gpu="GPU-b"),
            environment={"gpus": [{"name": "NVIDIA H200", "index": n, "uuid": f"GPU-{'ab'[n]}"} for n in (0, 1)]},
        ),
        ("GPU 1 (NVIDIA H200, GPU-b): a product is wrong",),
    ),
    Case("KRN001", "everything passes", lambda: installation(probe("torch"))),
    Case(
        "KRN201",
        "two cases are wrong",
        lambda: kernel(
            case("norm", "plain"),
            case("norm", "strided", "wrong", "out: relative error 0.12 instead of at most 0.0025"),
            case("norm", "empty", "wrong", "memory around out was written", evidence={"first": "row 3"}),
        ),
        ("2 of 3 cases wrong: strided, empty",),
        evidence=("out: relative error 0.12 instead of at most 0.0025", "memory around out was written", "row 3"),
    ),
    Case(
        "KRN201",
        "ten cases are wrong",
        lambda: kernel(*(case("norm", f"c{number}", "wrong", "far off") for number in range(10))),
        ("10 of 10 cases wrong: c0, c1, c2, c3, c4, c5, c6, c7 and 2 more",),
    ),
    Case(
        "KRN201",
        "a case crashed, another was skipped: both are other rules'",
        lambda: kernel(case("norm", "plain"), case("norm", "fp8", "skip", "no fp8"), case("norm", "big", "crash")),
    ),
    Case(
        "KRN202",
        "a case and a timed run crashed",
        lambda: kernel(
            case("norm", "plain"),
            case("norm", "big", "crash", "illegal memory access", evidence={"last words": "CUDA error"}),
            speed("norm", outcome="crash", message="illegal memory access"),
        ),
        ("2 of 3 runs crashed: big, 16384x4096",),
        evidence=("illegal memory access", "CUDA error"),
    ),
    Case("KRN202", "a case that is wrong", lambda: kernel(case("norm", outcome="wrong"))),
    Case(
        "KRN203",
        "a case hangs",
        lambda: kernel(case("norm", "plain", "hang", "nothing came from it any more, and it was killed")),
        ("1 of 1 cases hung: plain",),
        evidence=("nothing came from it any more, and it was killed",),
    ),
    Case("KRN203", "a case crashed", lambda: kernel(case("norm", outcome="crash"))),
    Case(
        "KRN204",
        "the compiler refuses a case",
        lambda: kernel(case("norm", "plain"), case("norm", "wide", "refused", "OutOfResources: shared memory")),
        ("1 of 2 cases refused: wide",),
        evidence=("OutOfResources: shared memory",),
    ),
    Case(
        "KRN204",
        "a kernel for several GPUs ran on each alone",
        lambda: kernel(case("norm", "2 ranks"), case("norm", "2 GPUs", "not run across GPUs", "all ranks on one GPU")),
        ("1 of 2 cases not run across GPUs: 2 GPUs",),
        evidence=("all ranks on one GPU",),
        undecided=True,
    ),
    Case(
        "KRN201",
        "a kernel for several GPUs that is right on each alone",
        lambda: kernel(case("norm", "2 ranks"), case("norm", "2 GPUs", "not run across GPUs")),
    ),
    Case(
        "KRN205",
        "automatic mutants are missed",
        lambda: kernel(*(mutant("norm", f"m{n}", outcome) for n, outcome in enumerate(("caught", "missed", "skip")))),
        ("1 of 3 automatic mutants missed: m1",),
        WARNING,
    ),
    Case(
        "KRN205",
        "a mutant of the author is missed",
        lambda: kernel(mutant("norm", "no epsilon", "missed", automatic=False), mutant("norm", "m1")),
        ("1 of 2 mutants missed: no epsilon",),
    ),
    Case("KRN205", "every mutant is caught", lambda: kernel(mutant("norm", "m1"), mutant("norm", "m2"))),
    Case("KRN204", "a case is wrong", lambda: kernel(case("norm", outcome="wrong"))),
    Case(
        "KRN301",
        "a run above its bar",
        lambda: kernel(speed("norm", outcome="slow", message=SLOW, microseconds=200.0, ratio=1.6)),
        (f"16384x4096: {SLOW}",),
        evidence=("2.68 TB/s",),
    ),
    Case(
        "KRN301",
        "a matrix product above its bar, at the cap on its power, where it always is",
        lambda: kernel(
            speed(
                "norm",
                outcome="slow",
                message=SLOW,
                microseconds=200.0,
                flops=2 * 8192**3,
                held_down_by=["software power cap"],
                evidence={"GPU": "power 699 of 700 W"},
            )
        ),
        (f"16384x4096: {SLOW}",),
        evidence=("5498 TFLOP/s", "power 699 of 700 W"),
    ),
    Case(
        "KRN301",
        "a hot GPU above its bar",
        lambda: kernel(
            speed(
                "norm",
                outcome="slow",
                message=SLOW,
                held_down_by=["software power cap", "hardware thermal slowdown"],
            )
        ),
        (f"16384x4096: {SLOW}",),
        WARNING,
    ),
    Case("KRN301", "a run above its bar within the allowance for noise", lambda: kernel(speed("norm", bar_met=False))),
    Case("KRN301", "a timed run that crashed", lambda: kernel(speed("norm"), speed("norm", "two", "crash"))),
    Case(
        "KRN501",
        "an H200 at less than half its bandwidth, next to a process and with its clocks held down",
        lambda: gpu(
            state=IDLE | {"processes": [{"pid": 4242, "name": "python", "memory_bytes": 12 << 30}]},
            at_work=AT_WORK | {"power_watts": 279},
            rates={"bandwidth": 1.88e12},
        ),
        (
            "1.88 TB/s, 44 % of the rate of an H200 (4.25); its clocks are reduced: software power cap; a power cap "
            "at 279 of 700 W does not explain it; it was in use before this run: process 4242 (python) with 12.0 GiB",
        ),
        evidence=("H200", "1755 of 1980 MHz", "3201 MHz", "279 of 700 W", "61 degrees Celsius"),
    ),
    Case(
        "KRN501",
        "an H100 far below its data sheet",
        lambda: gpu(name="NVIDIA H100 80GB HBM3", rates={"bandwidth": 1.0e12}, at_work={}),
        ("1.00 TB/s, 30 % of the data-sheet rate of an H100 SXM (3.35)",),
        WARNING,
    ),
    Case("KRN501", "a healthy H200", gpu),
    Case("KRN501", "an H200 a little below the others", lambda: gpu(rates={"bandwidth": 3.9e12})),
    Case("KRN501", "a healthy H100", lambda: gpu(name="NVIDIA H100 80GB HBM3", rates={"bandwidth": 2.9e12})),
    Case("KRN501", "slow matrix products, which are another rule's", lambda: gpu(rates={"bf16": 100e12})),
    Case(
        "KRN502",
        "an H200 whose clocks someone has set",
        lambda: gpu(
            at_work=AT_WORK | {"sm_clock_mhz": 600, "held_down_by": ["application clocks are set"], "power_watts": 240},
            rates={"bf16": 226e12, "fp8": 440e12},
        ),
        (
            "226 TF bf16, 30 % of the rate of an H200 (745); its clocks are reduced: application clocks are set",
            "440 TF fp8, 31 % of the rate of an H200 (1,405); its clocks are reduced: application clocks are set",
        ),
        evidence=("600 of 1980 MHz", "240 of 700 W"),
    ),
    Case(
        "KRN502",
        "a hot H200",
        lambda: gpu(
            at_work=AT_WORK | {"held_down_by": ["hardware thermal slowdown"], "temperature_celsius": 92},
            rates={"bf16": 500e12},
        ),
        ("500 TF bf16, 67 % of the rate of an H200 (745); its clocks are reduced: hardware thermal slowdown",),
        evidence=("92 degrees Celsius",),
    ),
    Case(
        "KRN502",
        "an H200 whose power limit someone has set",
        lambda: gpu(
            at_work=AT_WORK | {"power_watts": 349, "power_limit_watts": 350, "power_default_watts": 700},
            rates={"bf16": 480e12},
        ),
        (
            "480 TF bf16, 64 % of the rate of an H200 (745); its clocks are reduced: software power cap; its power "
            "limit is 350 W, but the default is 700 W",
        ),
        evidence=("349 of 350 W",),
    ),
    Case("KRN502", "a healthy H200 at the cap of its power", gpu),
    Case("KRN502", "a GPU without fp8", lambda: gpu(name="NVIDIA A100-SXM4-80GB", rates={"bf16": 250e12, "fp8": None})),
    Case(
        "KRN503",
        "an H200 that shows a part of itself",
        lambda: gpu(multiprocessors=114, memory_bytes=70 << 30),
        ("114 multiprocessors; an H200 has 132", "75 GB of memory; an H200 has 141"),
        WARNING,
    ),
    Case("KRN503", "a whole H200", lambda: gpu(multiprocessors=132)),
    Case(
        "KRN504",
        "a container is shown no process, but its work",
        lambda: gpu(state=IDLE | {"utilization_percent": 98, "memory_used_bytes": 40 << 30}),
        ("the GPU was in use before this run: 98 % busy, 40.0 GiB of memory in use",),
        WARNING,
    ),
    Case("KRN504", "an idle GPU", gpu),
    Case(
        "KRN504",
        "a GPU with an idle server of MPS",
        lambda: gpu(state=IDLE | {"processes": [{"pid": 9, "name": "/usr/bin/nvidia-cuda-mps-server"}]}),
    ),
    Case(
        "KRN505",
        "it gets hot, and slow",
        lambda: gpu(
            soak=SOAK | {"last": 510e12, "fall": 0.32, "held_down_by": ["software thermal slowdown"]},
        ),
        ("after 300 s at 510 TF bf16, 32 % less than at the beginning (750): software thermal slowdown",),
        WARNING,
        evidence=("690 TF bf16", "74 degrees Celsius", "76 W", "698 of 700 W"),
    ),
    Case(
        "KRN505",
        "it computes wrong",
        lambda: gpu(soak=SOAK | {"wrong": 2}),
        ("2 of 298 compared results differ from the first",),
    ),
    Case("KRN505", "it holds its rate", lambda: gpu(soak=SOAK)),
    Case(
        "KRN401",
        "the compiler refuses, and crashes",
        lambda: target(
            compiled("norm"),
            compiled("mm", outcome="fail", faults=[fault("refused", "ptxas fatal : Ptx assembly aborted")]),
            compiled("mm", case="", function="", outcome="crash", message="SIGABRT", evidence={"last words": "LLVM"}),
        ),
        ("mm / plain: _mm: ptxas fatal : Ptx assembly aborted", "mm: the compiler crashed: SIGABRT"),
    ),
    Case(
        "KRN401",
        "faults that are other rules'",
        lambda: target(
            compiled("mm", outcome="fail", faults=[fault("spills", "1,024 bytes are spilled")]),
            compiled("fp8", outcome="skip", faults=[fault("unsupported", "sm_80 has no fp8")]),
            compiled("new", outcome="fail", faults=[fault("unknown_to_ptxas", "sm_121 is unknown")]),
        ),
    ),
    Case(
        "KRN402",
        "more spills than are recorded",
        lambda: target(
            compiled("mm", outcome="fail", spill_bytes=1024, faults=[fault("spills", "1,024 bytes are spilled")])
        ),
        ("mm / plain: _mm: 1,024 bytes are spilled",),
        evidence=("64", "1,024 bytes", "49,152 bytes", "HGMMA"),
    ),
    Case("KRN402", "spills that are recorded", lambda: target(compiled("mm", spill_bytes=16))),
    Case(
        "KRN403",
        "a matrix product without matrix instructions",
        lambda: target(
            compiled("mm", outcome="fail", instructions=[], faults=[fault("matrix_instructions", "HGMMA is missing")])
        ),
        ("mm / plain: _mm: HGMMA is missing",),
    ),
    Case("KRN403", "a norm, which needs none", lambda: target(compiled("norm", instructions=[]))),
    Case(
        "KRN404",
        "more shared memory than the target has",
        lambda: target(
            compiled("mm", outcome="fail", faults=[fault("shared_memory", "262,144 bytes, 101,376 are there")])
        ),
        ("mm / plain: _mm: 262,144 bytes, 101,376 are there",),
    ),
    Case("KRN404", "all the shared memory there is", lambda: target(compiled("mm", shared_bytes=232_448))),
    Case(
        "KRN405",
        "a ptxas that does not know the target",
        lambda: target(
            *(
                compiled(
                    name,
                    "sm_121",
                    "fail",
                    [fault("unknown_to_ptxas", "ptxas does not know sm_121", NEWER)],
                    registers=None,
                )
                for name in ("norm", "mm")
            ),
            name="sm_121",
        ),
        ("ptxas does not know sm_121",),
        evidence=("norm, mm",),
    ),
    Case("KRN405", "a kernel that is refused", lambda: target(compiled("mm", outcome="fail"))),
    Case(
        "KRN406",
        "kernels that need fp8, on a target without it",
        lambda: target(
            compiled("norm", "sm_80"),
            *(
                compiled(name, "sm_80", "skip", [fault("unsupported", "sm_80 has no e4m3")], registers=None)
                for name in ("mm", "quant", "mm")
            ),
            name="sm_80",
        ),
        ("mm, quant cannot run on the target, at least in part: sm_80 has no e4m3",),
        NOTE,
    ),
    Case(
        "KRN406",
        "kernels whose fp8 is converted",
        lambda: target(
            compiled("norm", "gfx942"),
            *(compiled(name, "gfx942", message="Triton 3.7.1 converts fp8") for name in ("mm", "blocks", "mm")),
            name="gfx942",
        ),
        ("mm, blocks: Triton 3.7.1 converts fp8",),
        NOTE,
    ),
    Case("KRN406", "everything compiles", lambda: target(compiled("norm"))),
]
