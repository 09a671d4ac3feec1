"""REL201 to REL208: whether the wheels of a release offer the same."""

from __future__ import annotations

from tests.rules.case import WARNING, Case
from tests.support.pairs import difference, library, wheel_for
from tests.support.wheels import torch_like
from wheel_checks.facts.difference.pairing import Pairing, pair_files
from wheel_checks.facts.difference.wheels import Difference

MEBIBYTE = bytes(1 << 20)


def files(a: dict[str, bytes], b: dict[str, bytes]) -> Difference:
    """A wheel for aarch64 with the files ``a``, against one for x86_64 with the files ``b``."""
    wheels = wheel_for("aarch64"), wheel_for("x86_64")
    for wheel, members in zip(wheels, (a, b), strict=True):
        for name, content in members.items():
            wheel.add(name, content)
    return difference(*wheels)


def requirements(a: list[str], b: list[str]) -> Difference:
    """Two wheels whose METADATA state these requirements."""
    return difference(wheel_for("aarch64").metadata(requires=a), wheel_for("x86_64").metadata(requires=b))


def modules(count: int) -> dict[str, bytes]:
    return {f"demo/m{number}.py": b"" for number in range(count)}


def linked(needed_a: tuple[str, ...], needed_b: tuple[str, ...]) -> Difference:
    """A library for either machine that needs these."""
    return files(
        {"demo/lib.so": library("aarch64", needed=needed_a)}, {"demo/lib.so": library("x86_64", needed=needed_b)}
    )


def gpu(a: tuple[str, ...], b: tuple[str, ...]) -> Difference:
    """A library with GPU code for these targets, next to another one for the same GPU on both."""
    return files(
        {"demo/lib.so": library("aarch64", gpu=a), "demo/ops.so": library("aarch64", gpu=["sm_90"])},
        {"demo/lib.so": library("x86_64", gpu=b), "demo/ops.so": library("x86_64", gpu=["sm_90"])},
    )


def wheels(*names: str) -> list[str]:
    return [f"demo-1.0-{name}.whl" for name in names]


def sets(a: list[str], b: list[str]) -> Pairing:
    return pair_files(wheels(*a), wheels(*b))


CASES = [
    Case(
        "REL201",
        "torch 2.10.0, CUDA for x86_64 and CPU only for aarch64",
        lambda: difference(torch_like("cpu", "2.10.0", "aarch64"), torch_like("cuda", "2.10.0", "x86_64")),
        ("aarch64 is CPU only, but x86_64 is CUDA 12.8",),
        evidence=("__version__ = '2.10.0+cpu', cuda = hip = rocm = xpu = None",),
    ),
    Case(
        "REL201",
        "torch 2.11.0, CUDA 13.0 for both",
        lambda: difference(torch_like("cuda", "2.11.0", "aarch64"), torch_like("cuda", "2.11.0", "x86_64")),
    ),
    Case(
        "REL202",
        "one module of twenty for one architecture alone",
        lambda: files(modules(19), modules(19) | {"demo/vendor.py": b"", "demo/vendor.pyc": b""}),
        ("1 Python file only for x86_64",),
        WARNING,
        evidence=("demo/vendor.py",),
    ),
    Case(
        "REL202",
        "less than a tenth of the modules missing",
        lambda: files(modules(20), modules(18)),
        ("2 Python files only for aarch64",),
        WARNING,
    ),
    Case(
        "REL202",
        "a quarter of the modules missing",
        lambda: files(modules(20), modules(15)),
        ("5 Python files only for aarch64",),
    ),
    Case("REL202", "modules with other content", lambda: files({"demo/a.py": b"1"}, {"demo/a.py": b"2"})),
    Case(
        "REL203",
        "a library for one architecture alone",
        lambda: files({}, {"demo/libextra.so.3": library("x86_64")}),
        ("x86_64 has 1 native file that aarch64 lacks",),
        WARNING,
        evidence=("demo/libextra.so.3",),
    ),
    Case(
        "REL203",
        "a maths library for the other architecture",
        lambda: files({"demo/libmkl_core.so.3": library()}, {"demo/libarm_compute.so": library("x86_64")}),
        ("aarch64 has 1 native file that x86_64 lacks", "x86_64 has 1 native file that aarch64 lacks"),
        WARNING,
    ),
    Case(
        "REL203",
        "maths libraries where they belong, and auditwheel's hashes",
        lambda: files(
            {
                "demo/libarm_compute-9ce79921.so": library(),
                "demo/libnvpl_blas_core.so.0": library(),
                "demo/_C.cpython-312-aarch64-linux-gnu.so": library(),
                "demo.libs/libgomp-a49a47f9.so.1.0.0": library(),
            },
            {
                "demo/libmkl_core.so.3": library("x86_64"),
                "demo/_C.cpython-312-x86_64-linux-gnu.so": library("x86_64"),
                "demo.libs/libgomp-24fd393f.so.1.0.0": library("x86_64"),
            },
        ),
    ),
    Case(
        "REL204",
        "a requirement that one METADATA has not",
        lambda: requirements(["sympy"], ["sympy", "nvidia-nccl-cu13==2.28.9"]),
        ("1 requirement differs without a marker",),
        WARNING,
        evidence=("aarch64: not required; x86_64: ==2.28.9",),
    ),
    Case(
        "REL204",
        "a requirement that the other METADATA has not",
        lambda: requirements(["sympy", "numpy; platform_machine == 'aarch64'"], ["sympy"]),
        ("1 requirement differs without a marker",),
        WARNING,
        evidence=("aarch64: any version; x86_64: not required",),
    ),
    Case(
        "REL204",
        "another version, and another extra",
        lambda: requirements(["numpy<2", "demo[a]"], ["numpy<3", "demo[b]"]),
        ("2 requirements differ without a marker",),
        WARNING,
    ),
    Case(
        "REL204",
        "what differs, by markers that both have",
        lambda: requirements(
            ["nvidia-nccl-cu13==2; platform_machine == 'x86_64'", "numpy<2; platform_machine == 'x86_64'", "numpy<3"],
            ["nvidia-nccl-cu13==2; platform_machine == 'x86_64'", "numpy<2; platform_machine == 'x86_64'", "numpy<3"],
        ),
    ),
    Case(
        "REL205",
        "libtorch_cuda_linalg.so of torch 2.11.0",
        lambda: gpu((), ("sm_80", "sm_86", "sm_90")),
        ("demo/lib.so has no GPU code for aarch64, but code for 3 targets for x86_64",),
        WARNING,
        evidence=("sm_80 sm_86 sm_90",),
    ),
    Case(
        "REL205",
        "a library without kernels for x86_64",
        lambda: gpu(("sm_90",), ()),
        ("demo/lib.so has no GPU code for x86_64, but code for 1 target for aarch64",),
        WARNING,
    ),
    Case("REL205", "other GPUs next to the other CPU", lambda: gpu(("sm_90", "sm_110"), ("sm_75", "sm_90"))),
    Case(
        "REL206",
        "a library of a fraction of the size",
        lambda: files({"demo/lib.so": MEBIBYTE}, {"demo/lib.so": 3 * MEBIBYTE}),
        ("demo/lib.so is 3.0 times as large for x86_64 as for aarch64",),
        WARNING,
    ),
    Case(
        "REL206",
        "a library with alignment to 64 KiB",
        lambda: files({"demo/lib.so": library() + bytes(4 << 16)}, {"demo/lib.so": library("x86_64")}),
    ),
    Case(
        "REL206",
        "a library that is one and a half times as large",
        lambda: files({"demo/lib.so": 4 * MEBIBYTE}, {"demo/lib.so": 6 * MEBIBYTE}),
    ),
    Case(
        "REL207",
        "libtorch_global_deps.so of torch 2.11.0",
        lambda: linked(("libc.so.6",), ("libc.so.6", "libgomp.so.1")),
        ("one library needs different libraries on the two sides: libgomp.so.1",),
        WARNING,
        evidence=("libgomp.so.1",),
    ),
    Case(
        "REL207",
        "the loader, the system's libraries, maths libraries, auditwheel's hash",
        lambda: linked(
            ("ld-linux-aarch64.so.1", "libm.so.6", "libnvpl_blas_lp64_gomp.so.0", "libx-0a1b2c3d.so.1"),
            ("ld-linux-x86-64.so.2", "libdl.so.2", "libmkl_rt.so.3", "libx-4e5f6a7b.so.1"),
        ),
    ),
    Case(
        "REL208",
        "a Python that one set lacks",
        lambda: sets(
            ["cp312-cp312-manylinux_2_28_aarch64"],
            ["cp312-cp312-manylinux_2_28_x86_64", "cp314-cp314-manylinux_2_28_x86_64"],
        ),
        ("1 wheel of B has no counterpart",),
        WARNING,
        evidence=("demo-1.0-cp314-cp314-manylinux_2_28_x86_64.whl",),
    ),
    Case(
        "REL208",
        "a second build of the same wheel",
        lambda: sets(
            ["cp312-cp312-manylinux_2_28_aarch64"],
            ["cp312-cp312-manylinux_2_28_x86_64", "3-cp312-cp312-manylinux_2_28_x86_64"],
        ),
    ),
]
