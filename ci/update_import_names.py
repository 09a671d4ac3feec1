"""Writes wheel_checks/data/import_names.toml: whose the packages and modules of site-packages are.

usage: python ci/update_import_names.py [--check]

Reads the central directories of the latest wheels of the packages that the project names (``ci/corpora.py``), for
x86_64 and aarch64, with all that they require, from the configured index. A folder counts with an ``__init__`` of its
own, since namespace packages belong to many; so does one into which several projects write without owning it. A name
that is customary for tests and examples is omitted. Projects that write into the package of another are named: whether
they are meant to is a row of startup_code.toml. ``--check`` compares the table with the index, and writes nothing.
"""

from __future__ import annotations

import datetime as dt
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

from packaging.utils import canonicalize_name

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ci.corpora import newest_of_any_machine, newest_wheels
from wheel_checks.facts.security.places import place_of
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Unavailable

TABLE = Path(__file__).parent.parent / "wheel_checks" / "data" / "import_names.toml"
SHARED = {  # names that many projects install, by mistake or on purpose
    "benchmark", "benchmarks", "bin", "ci", "csrc", "doc", "docs", "example", "examples", "lib", "licenses", "scripts",
    "src", "test", "tests", "test_utils", "testing", "tools", "util", "utils",
}  # fmt: skip
FURTHER = [  # further builds of the same sources: a wheel of each is read, for any machine
    "cupy-cuda11x", "cupy-rocm-5-0", "faiss-gpu", "faiss-gpu-cu11", "intel-tensorflow", "onnxruntime-directml",
    "onnxruntime-openvino", "onnxruntime-qnn==1.17.3", "onnxruntime-training", "opencv-contrib-python",
    "opencv-contrib-python-headless", "opencv-python", "opencv-python-headless", "pytorch-triton",
    "pytorch-triton-rocm", "tensorflow-gpu", "tensorflow-intel", "tensorflow-rocm", "tf-nightly", "triton-rocm",
    "triton-windows", "xgboost-cpu",
]  # fmt: skip
NOT_ON_THE_INDEX = {  # by project (2026-11): none of their wheels is on the package index
    "cupy": ["cupy"],  # cupy-14.2.0.tar.gz
    "cupy_backends": ["cupy"],
    "cupyx": ["cupy"],
    "PIL": ["pillow-simd"],  # src/PIL of pillow_simd-12.1.1.post0.tar.gz
    "triton": ["pytorch-triton-xpu"],  # pytorch/pytorch, .github/scripts/build_triton_wheel.py: triton_pkg_name
}
MOST_GUESTS = 2  # projects that write into the package of another; with more it is a namespace
_INIT = re.compile(r"__init__\.(?:pyi?|pyc|(?:[\w-]+\.)*(?:so|pyd))")
_MODULE = re.compile(r"(\w+)(?:\.py|(?:\.[\w-]+)*\.(?:so|pyd))")


def main() -> int:
    """Read the wheels, then write or compare the table."""
    found: dict[str, set[str]] = defaultdict(set)
    writers: dict[str, set[str]] = defaultdict(set)
    wheels = size = 0
    for facts in newest_wheels(("x86_64", "aarch64")):
        wheels, size = wheels + 1, size + facts.bytes_read
        project = canonicalize_name(facts.file_name.partition("-")[0])
        for name in import_names(facts):
            found[name].add(project)
        for name in folders(facts):
            writers[name].add(project)
    for name in list(found):
        guests = writers[name] - found[name]
        if len(guests) > MOST_GUESTS:
            del found[name]
        elif guests:
            print(f"{', '.join(sorted(guests))} into {name} of {', '.join(sorted(found[name]))}")
    add_further_builds(found)
    print(f"{wheels} wheels, {size:,} bytes read, {len(found)} names")
    if "--check" in sys.argv[1:]:
        table = tomllib.loads(TABLE.read_text(encoding="utf-8"))["imports"]
        missing = {name: sorted(owners) for name, owners in found.items() if owners - set(table.get(name, ()))}
        for name, owners in sorted(missing.items()):
            print(f"{name}: {', '.join(owners)} not in the table")
        return 1 if missing else 0
    today = dt.datetime.now(dt.UTC).date()
    lines = [
        "# The projects that install a regular package or module of site-packages, by its import name: another project",
        "# that writes there changes what these run. Namespace packages, and names that many use, are omitted.",
        f"# Read from central directories on the package index by ci/update_import_names.py on {today}.",
        "",
        f'source = "{wheels} latest wheels for Python 3.12 on x86_64 and aarch64 ({today})"',
        "",
        "[imports]",
        *(
            f'"{name}" = [{", ".join(map(repr, sorted(owners)))}]'.replace("'", '"')
            for name, owners in sorted(found.items())
        ),
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def add_further_builds(found: dict[str, set[str]]) -> None:
    """Add the projects of FURTHER to the names of other projects that their wheels bring."""
    for facts in newest_of_any_machine(FURTHER):
        project = canonicalize_name(facts.file_name.partition("-")[0])
        shared = sorted(import_names(facts) & found.keys())
        print(f"{project} ({facts.file_name}): {', '.join(shared) or 'nothing that another project has'}")
        for name in shared:
            found[name].add(project)
    for name, projects in NOT_ON_THE_INDEX.items():
        found[name] |= set(projects)


def folders(facts: WheelFacts) -> set[str]:
    """The folders at the top of site-packages in which a wheel has files."""
    if isinstance(facts.archive, Unavailable):
        return set()
    places = (place_of(member.name) for member in facts.archive.members if not member.is_directory)
    return {place.path.partition("/")[0] for place in places if place.area == "site" and "/" in place.path}


def import_names(facts: WheelFacts) -> set[str]:
    """The regular packages and modules at the top of site-packages that a wheel brings."""
    if isinstance(facts.archive, Unavailable):
        return set()
    names = set()
    for member in facts.archive.members:
        place = place_of(member.name)
        top, _, rest = place.path.partition("/")
        if place.area != "site":
            continue
        if rest and _INIT.fullmatch(rest):
            names.add(top)
        elif not rest and (match := _MODULE.fullmatch(top)):
            names.add(match[1])
    return {name for name in names - SHARED if name.isidentifier()}


if __name__ == "__main__":
    sys.exit(main())
