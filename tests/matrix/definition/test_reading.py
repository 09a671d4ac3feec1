"""A matrix file: its cells, the errors of a wrong one, and agreement of the JSON Schema."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

import wheelproof.matrix.definition
from wheel_checks.errors import UsageError
from wheelproof.matrix.definition.reading import parse_matrix, read_matrix
from wheelproof.matrix.model import Cell, Smoke

OWN = Path(__file__).parents[3] / "ci" / "matrix.toml"
SCHEMA = json.loads(
    Path(str(wheelproof.matrix.definition.__file__)).with_name("matrix.schema.json").read_text(encoding="utf-8")
)
AXES = """\
[axes]
platform = ["x86_64", "aarch64"]
python = ["3.11", "3.12"]
torch = ["2.10.0"]
"""
FULL = f"""\
exclude = ["x86_64-py3.11-*"]
{AXES}
[cell]
accelerator = "cuda>=12.8"
gpu = ["H100", "sm_100"]
smoke = ["interpret", "compile"]
level = "full"
kernels = ["norm", "scaled_mm"]
packages = ["numpy<3"]
glibc = "2.34"
deadline = 600

[[override]]
select = "aarch64-*"
expect = {{ accelerator = "cpu", reason = "no CUDA build" }}
smoke = []

[[include]]
platform = "x86_64"
python = "3.13t"
torch = "2.11.0"
name = "gpu"
smoke = ["cuda"]
deadline = 60.5

[runners]
x86_64 = ["ubuntu-24.04"]
aarch64 = ["ubuntu-24.04-arm"]
gpu = ["self-hosted", "gpu"]

[images]
x86_64 = "python:3.12-slim"
"""


def schema_accepts(text: str) -> bool:
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(tomllib.loads(text))


def cells(text: str) -> dict[str, Cell]:
    assert schema_accepts(text)
    return {cell.id: cell for cell in parse_matrix(text.encode()).cells}


def test_every_combination_of_the_axes_is_a_cell() -> None:
    assert list(cells(AXES)) == [
        "x86_64-py3.11-torch2.10.0",
        "x86_64-py3.12-torch2.10.0",
        "aarch64-py3.11-torch2.10.0",
        "aarch64-py3.12-torch2.10.0",
    ]


def test_what_is_excluded_makes_room_for_what_is_not() -> None:
    text = AXES.replace('["2.10.0"]', str([f"2.{n}" for n in range(75)]))
    found = cells(f'exclude = ["x86_64-*"]\n{text}')

    assert len(found) == 150
    assert list(found)[-1] == "aarch64-py3.12-torch2.74"


def test_a_cell_has_what_holds_for_all_and_what_overrides_say() -> None:
    found = cells(FULL)

    assert list(found) == [
        "x86_64-py3.12-torch2.10.0",
        "aarch64-py3.11-torch2.10.0",
        "aarch64-py3.12-torch2.10.0",
        "x86_64-py3.13t-torch2.11.0-gpu",
    ]
    plain, known = found["x86_64-py3.12-torch2.10.0"], found["aarch64-py3.12-torch2.10.0"]
    assert (str(plain.accelerator), str(plain.expected), plain.smoke) == (
        "cuda>=12.8",
        "cuda>=12.8",
        (Smoke.INTERPRET, Smoke.COMPILE),
    )
    assert (plain.gpu, plain.level, plain.kernels) == (("H100", "sm_100"), "full", ("norm", "scaled_mm"))
    assert plain.requirements == ("torch==2.10.0", "numpy<3")
    assert (plain.target.id, plain.deadline) == ("cp312-manylinux_2_34_x86_64", 600)
    assert (plain.runner, plain.image) == (("ubuntu-24.04",), "python:3.12-slim")
    assert (str(known.expected), known.smoke, known.image) == ("cpu", (), "")


def test_a_cell_that_runs_on_a_gpu_takes_the_runner_with_one() -> None:
    cell = cells(FULL)["x86_64-py3.13t-torch2.11.0-gpu"]

    assert (cell.needs_gpu, cell.runner, cell.deadline) == (True, ("self-hosted", "gpu"), 60.5)
    assert cell.target.free_threaded


def test_torch_is_a_version_a_specifier_or_a_word() -> None:
    texts = ["2.11.0", "2.11.0+cu128", ">=2.11, <3", "==2.11.*", "latest", "nightly"]
    axes = AXES.replace('["2.10.0"]', str(texts))
    found = cells(f"{axes}[cell]\nindex = 'https://x.example/simple'\n")

    assert {name.removeprefix("x86_64-py3.11-"): cell.torch_requirement for name, cell in list(found.items())[:6]} == {
        "torch2.11.0": "torch==2.11.0",
        "torch2.11.0+cu128": "torch==2.11.0+cu128",
        "torch-ge2.11-lt3": "torch>=2.11,<3",
        "torch-eq2.11.x": "torch==2.11.*",
        "torch-latest": "torch",
        "torch-nightly": "torch",
    }
    assert all(re.fullmatch(r"[A-Za-z0-9._+-]+", name) for name in found)


def test_choices_are_further_axes() -> None:
    found = cells(
        f"exclude = ['aarch64-*-old']\n{AXES}[cell]\nlevel = 'full'\nretries = 1\n"
        "[choices.numpy.old]\npackages = ['numpy<2']\nretries = 3\n[choices.numpy.new]\npackages = ['numpy>=2']\n"
    )

    assert [name for name in found if "py3.11" in name] == [
        "x86_64-py3.11-torch2.10.0-old",
        "x86_64-py3.11-torch2.10.0-new",
        "aarch64-py3.11-torch2.10.0-new",
    ]
    old = found["x86_64-py3.11-torch2.10.0-old"]
    assert (old.packages, old.retries, old.level) == (("numpy<2",), 3, "full")


def test_what_says_where_packages_are_from_and_what_runs() -> None:
    (cell, *_) = cells(
        AXES
        + """[cell]
index = ["https://x.example/simple", "./simple"]
torch-index = "https://y.example/cu128"
find-links = "dist"
pre = true
constraints = ["numpy<3", "constraints.txt"]
env = { OMP_NUM_THREADS = "2", LD_LIBRARY_PATH = "/opt/x" }
system-packages = ["libgl1", "g++"]
command = "pytest --junitxml=out/report.xml"
junit = "out/*.xml"
timeout = 60
retries = 2
"""
    ).values()
    assert (cell.index, cell.torch_index) == (("https://x.example/simple", "./simple"), "https://y.example/cu128")
    assert (cell.find_links, cell.pre, cell.constraints) == (("dist",), True, ("numpy<3", "constraints.txt"))
    assert (cell.env["OMP_NUM_THREADS"], cell.system_packages, cell.junit) == ("2", ("libgl1", "g++"), "out/*.xml")
    assert (cell.timeout, cell.retries) == (60, 2)
    assert cell.executes == (
        *("command", "index", "torch-index", "find-links", "constraints", "env", "system-packages"),
    )


def test_a_later_override_wins() -> None:
    text = AXES + '[[override]]\nselect = "*"\nlevel = "full"\n[[override]]\nselect = "a*"\nlevel = "deep"\n'

    assert [cell.level for cell in cells(text).values()] == ["full", "full", "deep", "deep"]


def test_our_own_matrix_expects_the_cpu_build_of_torch_2_10_on_aarch64() -> None:
    matrix = read_matrix(OWN)
    known = {cell.id: (str(cell.accelerator), str(cell.expected)) for cell in matrix.cells}

    assert schema_accepts(OWN.read_text(encoding="utf-8"))
    assert {name: expected for name, expected in known.items() if expected[0] != expected[1]} == {
        "aarch64-py3.11-torch2.10.0": ("cuda", "cpu")
    }
    assert len(known) == 4


def test_globs_choose_cells() -> None:
    matrix = parse_matrix(AXES.encode(), "m.toml")

    assert [cell.id for cell in matrix.only(["*-py3.12-*", "aarch64-py3.11*"])] == [
        "x86_64-py3.12-torch2.10.0",
        "aarch64-py3.11-torch2.10.0",
        "aarch64-py3.12-torch2.10.0",
    ]
    assert matrix.only([]) == matrix.cells
    with pytest.raises(UsageError, match=r"no cell of m.toml matches 'arm64-\*'; expected one of x86_64-py3.11"):
        matrix.only(["arm64-*"])


# A fault of a file, its message, and whether the schema finds it, too.
WRONG = [
    (
        AXES.replace("aarch64", "arm64"),
        r"axes.platform\[1\] \(line 2\) is 'arm64'; expected one of x86_64, aarch64",
        True,
    ),
    (AXES.replace('"3.11"', '"311"'), r"axes.python\[0\] \(line 3\) is wrong: '311' is not a Python version", True),
    (AXES.replace('"3.11"', '"3.1\u0661"'), "axes.python.* .* '3.1\u0661' is not a Python version", True),
    (AXES.replace('"3.11"', '"3.11 "'), "axes.python.* .* '3.11 ' is not a Python version", True),
    (AXES.replace('"3.11"', '"3.7"'), "axes.python.* .* the Python '3.7' is unknown", False),
    (
        AXES.replace('"3.11"', '"3.12"'),
        r"axes.python \(line 3\) is wrong: '3.12' is there twice; expected each once",
        True,
    ),
    (AXES.replace("2.10.0", "newest"), "axes.torch.* .* 'newest' is not a version", True),
    ("[axes]\n", "axes .* spans no cell", False),
    (AXES + "[axis]\n", r"axis \(line 5\) is not a known key; expected axes", True),
    (AXES + "[cell]\nsmok = []\n", r"cell.smok \(line 6\) is not a known key; expected smoke", True),
    (AXES + '[cell]\nsmoke = ["cpu"]\n', r"cell.smoke\[0\] .* is 'cpu'; expected one of interpret", True),
    (AXES + '[cell]\nlevel = "fast"\n', "cell.level .* is 'fast'; expected one of quick, full, deep", True),
    (AXES + '[cell]\naccelerator = "gpu"\n', "cell.accelerator .* does not name an accelerator", True),
    (AXES + '[cell]\ngpu = ["GB999"]\n', r"cell.gpu\[0\] .* is wrong", False),
    (AXES + '[cell]\nglibc = "2.12"\n', "cell.glibc .* '2.12' is not a glibc version", True),
    (AXES + '[cell]\nglibc = "2.2\u0668"\n', "cell.glibc .* '2.2\u0668' is not a glibc version", True),
    (AXES + '[cell]\ngpu = ["sm_9\u0660"]\n', r"cell.gpu\[0\] .* is wrong", False),
    (
        AXES + '[cell]\nsmoke = ["compile"]\n[[override]]\nselect = "x86_64-*"\ngpu = ["H100"]\n',
        r"cell \(line 5\) names no GPU for which the kernels of aarch64-py3.11-torch2.10.0 and 1 more are compiled",
        False,
    ),
    (AXES + '[cell]\nkernels = ["../x"]\n', r"cell.kernels\[0\] .* is not a name", True),
    (AXES + '[cell]\npackages = ["torch==1"]\n', r"cell.packages\[0\] .* its own axis", False),
    (AXES + '[cell]\npackages = ["a b"]\n', r"cell.packages\[0\] .* 'a b' is not a requirement", False),
    (AXES.replace("2.10.0", ">=2.10 or so"), "axes.torch.* .* '>=2.10 or so' is not a version", False),
    (AXES.replace("2.10.0", "nightly"), "torch .*of x86_64-py3.11-torch-nightly and 3 more is nightly", False),
    (AXES + '[cell]\njunit = "report.xml"\n', "junit .*needs a command that writes it", False),
    (
        AXES + '[cell]\ncommand = "x"\njunit = "../r.xml"\n',
        "'../r.xml' is not a file in the folder of the command",
        True,
    ),
    (AXES + '[cell]\ncommand = "x"\njunit = "a**.xml"\n', "'a..\\.xml' is not a file in the folder", False),
    (AXES + '[cell]\ncommand = "x"\njunit = "/r.xml"\n', "'/r.xml' is not a file in the folder of the command", True),
    (
        AXES + "[cell]\nsystem-packages = ['libgl1']\n[images]\naarch64 = 'mine'\n",
        "aarch64-py3.11-torch2.10.0 and 1 more are not installed into your own image",
        False,
    ),
    (AXES + "[cell]\nsystem-packages = ['--force']\n", "'--force' is not a Debian package", True),
    (AXES + "[cell]\nindex = 'ftp://x.example'\n", "'ftp://x.example' is not a package location", True),
    (
        AXES + "[cell]\nindex = 'https://me:secret@x.example/simple'\n",
        r"'https://[^s]*x.example/simple' contains a login",
        False,
    ),
    (AXES + "[cell]\nfind-links = ['a b']\n", "'a b' is not a package location", True),
    (AXES + "[cell]\nconstraints = ['numpy 3']\n", "'numpy 3' is not a requirement", False),
    (AXES + "[cell]\nenv = { 'A-B' = '1' }\n", "'A-B' is not a variable", True),
    (AXES + "[cell]\nenv = { PYTHONPATH = '/x' }\n", "PYTHONPATH is set by wheelproof", True),
    (AXES + "[cell]\nenv = { A = 1 }\n", "cell.env.A .* is 1; expected a string", True),
    (AXES + "[cell]\nretries = 11\n", "cell.retries .* is 11; expected from 0 to 10", True),
    (AXES + "[cell]\ntimeout = 0\n", "cell.timeout .* is 0; expected a number of at least 1", True),
    (AXES + "[choices.a.b]\nsmok = []\n", "choices.a.b.smok .*is not a known key; expected smoke", True),
    (AXES + "[cell]\ndeadline = 0\n", "cell.deadline .* is 0; expected a number of at least 1", True),
    (AXES + '[cell]\nexpect.accelerator = "cpu"\n', "cell.expect.reason .*is missing", True),
    (AXES + "[[override]]\nlevel = 'full'\n", r"override\[0\].select .*is missing", True),
    (AXES + '[[override]]\nselect = "arm*"\n', r"override\[0\].select .*'arm\*' matches no cell", False),
    (
        AXES + '[[include]]\nplatform = "x86_64"\n',
        r"include\[0\].python .*is missing.*include\[0\].torch .*is missing",
        True,
    ),
    (
        AXES + '[[include]]\nplatform = "x86_64"\npython = "3.11"\ntorch = "2.10.0"\n',
        "makes a second cell x86_64-py3.11-torch2.10.0; expected a unique name",
        False,
    ),
    ('exclude = ["b*"]\n' + AXES, r"exclude\[0\] \(line 1\) 'b\*' matches no cell", False),
    (AXES + "[runners]\narm64 = ['x']\n", "runners.arm64 .* is 'arm64'; expected one of x86_64, aarch64, gpu", True),
    (AXES.replace('["2.10.0"]', str([f"2.{n}" for n in range(99)])), "spans 396 cells; expected at most 256", False),
    (
        AXES.replace('["2.10.0"]', str([f"2.{n}" for n in range(2501)])),
        r"m.toml: axes \(line 1\) have 10,004 combinations; expected at most 10,000",
        False,
    ),
]


@pytest.mark.parametrize(("text", "message", "schema_sees"), WRONG, ids=[message[:40] for _, message, _ in WRONG])
def test_what_is_wrong_is_reported_with_its_key(text: str, message: str, schema_sees: bool) -> None:
    with pytest.raises(UsageError, match=message):
        parse_matrix(text.encode(), "m.toml")

    assert schema_accepts(text) is not schema_sees


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(UsageError, match=r"2 faults: axes.platform\[1\] .*'arm64'.*; cell.level .*'fast'"):
        parse_matrix((AXES.replace("aarch64", "arm64") + '[cell]\nlevel = "fast"\n').encode())


def test_a_file_that_cannot_be_read_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read: No such file"):
        read_matrix(tmp_path / "matrix.toml")
    (tmp_path / "latin.toml").write_bytes(b"[axes]\n# \xe9\n")
    with pytest.raises(UsageError, match=r"is not UTF-8 \(line 2\)"):
        read_matrix(tmp_path / "latin.toml")
    with pytest.raises(UsageError, match=r"is not valid TOML"):
        parse_matrix(b"[axes\n", "m.toml")


def test_the_matrix_of_the_documentation_is_one() -> None:
    text = (OWN.parents[1] / "docs" / "matrix.md").read_text(encoding="utf-8")
    found = cells(text.partition("```toml\n")[2].partition("```")[0])

    assert len(found) == 2 * 2 * 2 - 2 + 1
    assert found["aarch64-py3.11-torch2.11.0-gh200"].runner == ("self-hosted", "gpu")
