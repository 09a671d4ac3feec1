"""Which GPUs code runs on, by NVIDIA's rules."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheel_checks.data import load
from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu.targets import Product, amd_products, coverage, parse_gpu, parse_gpus, products, runs_on
from wheel_checks.formats.gpu.fatbin import GpuCode, GpuEntry

quick = settings(max_examples=200)

TORCH_AARCH64 = ("sm_80", "sm_90", "sm_100", "sm_110", "sm_120", "sm_90a", "sm_100a", "sm_103a", "sm_121a")
CAPABILITIES: list[int] = load("products")["capabilities"]

devices = st.sampled_from(CAPABILITIES).map(lambda sm: Product(f"sm_{sm}", sm))
labels = st.builds(
    "{}_{}{}".format, st.sampled_from(("sm", "compute")), st.sampled_from(CAPABILITIES), st.sampled_from(("", "a", "f"))
)


@pytest.mark.parametrize(
    ("code", "runs", "refused"),
    [
        ("sm_80", "8.0 8.6 8.8 8.9", "7.5 8.7 9.0 10.0"),  # 8.7 is Tegra
        ("sm_86", "8.6 8.8 8.9", "8.0 8.7 9.0"),
        ("sm_87", "8.7", "8.0 8.6 8.9"),
        ("sm_89", "8.9", "8.6 9.0"),
        ("sm_90", "9.0", "8.9 10.0"),
        ("sm_100", "10.0 10.3", "9.0 11.0 12.0"),
        ("sm_103", "10.3", "10.0"),
        ("sm_120", "12.0 12.1", "10.0 11.0"),
        ("sm_101", "11.0", "10.0 10.3"),  # the old number of Thor
        ("sm_100a", "10.0", "10.3"),
        ("sm_103a", "10.3", "10.0"),
        ("sm_101a", "11.0", "10.0"),
        ("sm_100f", "10.0 10.3", "9.0 11.0 12.0"),
        ("sm_103f", "10.3", "10.0"),
        ("sm_110f", "11.0", "10.3 12.0"),
        ("sm_120f", "12.0 12.1", "11.0"),
        ("sm_121f", "12.1", "12.0"),
        ("sm_130f", "", "12.1"),  # past the horizon of the table
    ],
)
def test_machine_code(code: str, runs: str, refused: str) -> None:
    assert [sm for sm in runs.split() if runs_on([code], parse_gpu(sm)).how != "native"] == []
    assert [sm for sm in refused.split() if runs_on([code], parse_gpu(sm)).how != "none"] == []


@pytest.mark.parametrize(
    ("code", "runs", "refused"),
    [
        ("compute_75", "7.5 8.0 8.7 9.0 12.1", "7.0 7.2"),
        ("compute_120", "12.0 12.1", "11.0 9.0"),
        ("compute_90a", "9.0", "8.9 10.0"),
        ("compute_100f", "10.0 10.3", "9.0 11.0 12.0"),
    ],
)
def test_ptx(code: str, runs: str, refused: str) -> None:
    assert [sm for sm in runs.split() if runs_on([code], parse_gpu(sm)).how != "jit"] == []
    assert [sm for sm in refused.split() if runs_on([code], parse_gpu(sm)).how != "none"] == []


@pytest.mark.parametrize(
    ("gpu", "label"),
    [
        ("GH200", "sm_90a"),
        ("GB200", "sm_100a"),
        ("GB300", "sm_103a"),
        ("B200", "sm_100a"),
        ("Thor", "sm_110"),
        ("GB10", "sm_121a"),
        ("RTX 5090", "sm_120"),
        ("A100", "sm_80"),
        ("L4", "sm_80"),
    ],
)
def test_what_torch_for_aarch64_loads(gpu: str, label: str) -> None:
    assert runs_on(TORCH_AARCH64, parse_gpu(gpu)).label == label


def test_why_torch_for_aarch64_does_not_run_on_a_t4() -> None:
    assert runs_on(("sm_80", "sm_90", "sm_90a", "compute_120"), parse_gpu("T4")).why == (
        "nothing runs on T4 (7.5): sm_80, sm_90: machine code for another major version; sm_90a: only for exactly "
        "its own version; compute_120: PTX for newer GPUs"
    )


def test_why_nothing_runs_where_there_is_nothing() -> None:
    assert runs_on(["lto_80", "kind16_100"], parse_gpu("GB200")).why == ("no GPU code can run on GB200 (10.0)")


def test_machine_code_comes_before_ptx_that_is_nearer() -> None:
    assert runs_on(["compute_103", "sm_100"], parse_gpu("GB300")).label == "sm_100"
    assert runs_on(["compute_80", "compute_90"], parse_gpu("GB300")).label == "compute_90"


def test_a_suffix_that_is_not_known_leaves_its_family_open() -> None:
    found = {gpu: runs_on(["sm_100?"], parse_gpu(gpu)).how for gpu in ("GB200", "GB300", "H100")}

    assert found == {"GB200": "native", "GB300": "unknown", "H100": "none"}
    assert runs_on(["sm_100?", "compute_90"], parse_gpu("GB300")).how == "jit"


def test_entries_are_judged_as_their_labels() -> None:
    how = runs_on([GpuEntry("elf", 100, "f", 4096, "zstd")], parse_gpu("GB300"))
    assert (how.how, how.label, how.why) == ("native", "sm_100f", "sm_100f runs on GB300 (10.3)")


CUBLASLT = {  # of nvidia-cublas 13, x86_64, but for some rare sets
    "sm_120f sm_90a": 868, "sm_100": 614, "sm_90a": 273, "sm_100f": 242, "sm_120f sm_80 sm_89 sm_90a": 224,
    "compute_120 sm_100 sm_120": 176, "sm_100 sm_120 sm_80 sm_90": 85, "sm_103": 60, "sm_120": 48, "sm_75": 34,
    "compute_120 sm_100 sm_120 sm_75 sm_80 sm_86 sm_90": 63, "sm_100 sm_120 sm_75 sm_80 sm_86 sm_90": 36,
    "sm_120f": 34, "sm_100a": 32, "sm_80": 28, "compute_120 sm_120f sm_89": 21, "compute_120 sm_120": 8,
    "compute_120 sm_100 sm_120 sm_75 sm_80 sm_90": 17, "sm_100 sm_120 sm_75 sm_80 sm_90": 16, "sm_103f": 12,
    "sm_100 sm_120 sm_80 sm_86 sm_90": 12, "sm_80 sm_90a": 9, "sm_100 sm_120": 6,
    "compute_120 sm_100 sm_120 sm_80 sm_86 sm_90": 6, "compute_75 sm_75": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"sm_90": 96, "sm_90 sm_100": 1, "sm_90 compute_90": 3}, "GB200 4/100, GH200 100/100"),
        ({"sm_90": 67, "sm_90 compute_90": 20}, "GB200 20/87, GH200 87/87"),  # cvcuda 0.19.0
        ({"sm_80 sm_90 sm_100": 47, "sm_90": 7, "sm_90a": 27, "sm_100f": 24}, "GB200 47/54, L40S 47/47, H100 54/54"),
        ({"sm_80": 30, "sm_90a": 20, "sm_100": 10, "sm_100f": 10}, "A100 30/30, H100 20/20, GB200 10/10, T4 0/40"),
        ({"sm_80": 600, "sm_90": 67, "sm_100": 1}, "GB200 1/668, A100 600/600"),  # one file is no alternative
        ({"sm_90a": 53, "sm_100f": 53}, "H100 53/53, GB300 53/53, T4 0/106"),
        ({"sm_80 sm_90": 50, "sm_100f": 24}, "GB200 24/74, H100 50/50"),
        ({"compute_80": 9}, "GB200 9/9, T4 0/9"),
        (
            CUBLASLT,
            "T4 171/171, A100 501/501, L40S 522/522, H100 473/556, GB200 1036/1290, GB300 1096/1350, GB10 723/732",
        ),
        (  # libcufft.so.12 of CUDA 13
            {"compute_75": 7190, "lto_75": 6573, "compute_80": 585, "sm_75": 309, "sm_80": 356, "sm_90": 393},
            "T4 7499/7499, H100 8168/8168",
        ),
        ({"gfx90a gfx942": 3, "gfx942": 1}, "MI300X 4/4, MI250X 3/4"),
    ],
)
def test_coverage_counts_the_compiled_files_that_are_meant_for_a_gpu(files: dict[str, int], expected: str) -> None:
    containers = {frozenset(labels.split()): count for labels, count in files.items()}
    code = GpuCode({label: 1 for labels in containers for label in labels}, "exact", containers)
    for text in expected.split(", "):
        gpu, share = text.split()
        found = coverage(code, parse_gpu(gpu))
        assert (gpu, f"{found.running}/{found.files}") == (gpu, share)


def test_coverage_without_files() -> None:
    found = coverage(GpuCode({"sm_100": 0}, "declared", {}), parse_gpu("GB200"))

    assert (found.files, found.share) == (0, 1)


@quick
@given(st.lists(labels, max_size=6), labels, devices)
def test_more_code_never_runs_worse(code: list[str], more: str, device: Product) -> None:
    worst_first = ("none", "jit", "native")
    before, after = runs_on(code, device), runs_on([*code, more], device)
    assert worst_first.index(after.how) >= worst_first.index(before.how)
    assert after.label in {before.label, more}


@quick
@given(st.lists(labels, max_size=6), devices)
def test_what_is_chosen_is_there_and_the_order_of_the_code_does_not_matter(code: list[str], device: Product) -> None:
    how = runs_on(code, device)
    assert how.label in code or (how.how, how.label) == ("none", "")
    assert runs_on(code[::-1], device).label == how.label


@quick
@given(st.sampled_from(("sm", "compute")), st.sampled_from(CAPABILITIES), devices)
def test_a_suffix_only_narrows(prefix: str, sm: int, device: Product) -> None:
    general, family, exact = (runs_on([f"{prefix}_{sm}{suffix}"], device).how != "none" for suffix in ("", "f", "a"))
    assert exact <= family <= general
    assert exact == (device.sm == sm)


@quick
@given(st.sampled_from(CAPABILITIES), devices, devices)
def test_ptx_that_an_older_gpu_runs_every_newer_one_runs(sm: int, one: Product, other: Product) -> None:
    older, newer = sorted((one, other), key=lambda product: product.sm)
    assert (runs_on([f"compute_{sm}"], older).how == "jit") <= (runs_on([f"compute_{sm}"], newer).how == "jit")


@quick
@given(st.text(max_size=30), devices)
def test_any_text_as_a_label(label: str, device: Product) -> None:
    assert runs_on([label], device).why


@pytest.mark.parametrize(
    ("text", "product"),
    [
        ("GB200", Product("GB200", 100, "aarch64")),
        ("gh200", Product("GH200", 90, "aarch64")),
        (" NVIDIA H100 ", Product("H100", 90, "x86_64")),
        ("geforce rtx-5090", Product("RTX 5090", 120, "x86_64")),
        ("DGX Spark", Product("DGX Spark", 121, "aarch64")),
        ("T4", Product("T4", 75, "x86_64")),
        ("sm_100", Product("sm_100", 100)),
        ("sm103", Product("sm_103", 103)),
        ("90", Product("sm_90", 90)),
        ("12.1", Product("sm_121", 121)),
    ],
)
def test_products_and_capabilities(text: str, product: Product) -> None:
    assert parse_gpu(text) == product


def test_a_list_of_products() -> None:
    assert [str(product) for product in parse_gpus("GB200, gh200,sm_120,gb200")] == [
        "GB200 (10.0)",
        "GH200 (9.0)",
        "sm_120 (12.0)",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("GB20", "unknown GPU 'GB20'; expected a product such as GB200 or MI300X, .*did you mean GB200"),
        ("H1000", "did you mean H100"),
        ("sm_90a", "unknown GPU 'sm_90a'"),
        ("", "unknown GPU ''"),
        ("10.7", "no GPU of compute capability 10.7 is known as of 2026-11; expected 5.0, "),
        ("sm_999", "no GPU of compute capability 99.9 is known"),
        ("\u0661\u0660\u0660", "unknown GPU '.*'"),  # 100 in Arabic digits
    ],
)
def test_what_is_no_gpu(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse_gpu(text)
    with pytest.raises(UsageError):
        parse_gpus(f"GB200,{text}")


@quick
@given(st.text(max_size=30))
def test_any_text_as_a_gpu(text: str) -> None:
    with suppress(UsageError):
        assert parse_gpu(text).sm in CAPABILITIES


def test_the_table_is_consistent() -> None:
    table = load("products")
    rows = table["product"]
    names = [name for row in rows for name in (row["name"], *row.get("aliases", ()))]
    assert [parse_gpu(name).name for name in names] == names
    assert {product.sm for product in products()} <= set(CAPABILITIES)
    assert {product.machine for product in products()} == {"x86_64", "aarch64"}
    assert [row["name"] for row in rows if not row["source"]] == []
    related = [
        *(sm for row in table["family"] for sm in row["members"]),
        *(row["capability"] for row in table["tegra"]),
    ]
    assert set(related) <= set(CAPABILITIES)
    assert len(related) == len(set(related))


def _place(product: Product) -> tuple[int, int]:
    kinds = (r"(?!RTX )", r"RTX (A\d|\d+ Ada|PRO)", r"RTX \d\d$")  # data centre or Jetson, workstation, GeForce
    return product.sm, next(number for number, kind in enumerate(kinds) if re.match(kind, product.name))


def test_the_rows_are_in_the_order_that_the_table_states() -> None:
    for before, after in pairwise(products()):
        assert _place(before) <= _place(after), f"products.toml: the row of {after.name} must be above {before.name}"
    for before, after in pairwise(amd_products()):
        ordered = (len(before.gfx), before.gfx) <= (len(after.gfx), after.gfx)
        assert ordered, f"products.toml: the row of {after.name} must be above {before.name}"


@pytest.mark.parametrize(
    ("capability", "names"),
    [
        ("8.0", "A100"),
        ("8.6", "A10"),
        ("8.9", "L4 L40S"),
        ("9.0", "H100 H200 GH200"),
        ("10.0", "B200 GB200"),
        ("10.3", "B300 GB300"),
        ("11.0", "Thor"),
        ("12.1", "GB10"),
        ("8.7", "Orin"),
        ("7.5", "T4 T4G"),
        ("7.0", "V100"),
    ],
)
def test_capabilities_of_products(capability: str, names: str) -> None:
    assert {parse_gpu(name).capability for name in names.split()} == {capability}


@pytest.mark.parametrize(
    ("code", "runs", "refused"),
    [
        ("gfx942", "MI300X MI300A gfx942", "MI250X MI350X MI100"),
        ("gfx90a", "MI250X MI210", "MI300X"),
        ("gfx90a:xnack-", "MI250X", "MI300X"),
        ("gfx90a:xnack+", "", "MI250X"),  # only with HSA_XNACK=1
        ("gfx90a:sramecc+:xnack-", "MI250X", "MI100"),
        ("gfx942:sramecc-", "", "MI300X"),
        ("gfx9-4-generic", "MI300X MI350X MI355X", "MI250X MI100"),
        ("gfx11-generic", "RX-7900-XTX", "RX-9070-XT MI300X"),
        ("gfx99-generic", "", "MI300X"),  # past the horizon of the table
        ("gfx950", "MI350X", "MI300X"),  # no code runs on older or newer processors
    ],
)
def test_code_objects_of_amd(code: str, runs: str, refused: str) -> None:
    assert [gpu for gpu in runs.split() if runs_on([code], parse_gpu(gpu)).how != "native"] == []
    assert [gpu for gpu in refused.split() if runs_on([code], parse_gpu(gpu)).how != "none"] == []


def test_neither_maker_runs_the_code_of_the_other() -> None:
    assert runs_on(["sm_90", "compute_50"], parse_gpu("MI300X")).how == "none"
    assert runs_on(["gfx942", "gfx9-4-generic"], parse_gpu("H100")).how == "none"
    assert runs_on(["sm_90", "gfx942"], parse_gpu("MI300X")).label == "gfx942"
    assert "xnack" in runs_on(["gfx90a:xnack+"], parse_gpu("MI250X")).why.lower()
