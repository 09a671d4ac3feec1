"""Crafted wheels that run or overwrite files of others, each with the rule that finds it; and innocent ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.rules.security.security_cases import DISTUTILS, LIBRARY, NAMESPACE
from tests.support.elf import X86_64, Elf
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.catalogue import select_rules
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Audience, Outcome, Severity, Subject
from wheel_checks.runner import run_rules

DATA = "demo-1.0.data/data/"
SITE = f"{DATA}lib/python3.12/site-packages/"
PE = b"MZ" + bytes(58) + (64).to_bytes(4, "little") + b"PE\0\0" + bytes(20)
MACH_O = b"\xcf\xfa\xed\xfe" + bytes(60)
ENCODED = "import base64;exec(base64.b64decode('cHJpbnQoMSk='))\n"

Wheel = Callable[[], WheelBuilder]


def member(path: str, data: bytes | str = "x", name: str = "demo") -> Wheel:
    """A wheel with one member more."""
    return lambda: WheelBuilder(name).add(path, data)


def points(text: str, name: str = "demo") -> Wheel:
    """A wheel with this entry_points.txt."""
    return lambda: WheelBuilder(name).dist_info_file("entry_points.txt", text)


def script(name: str) -> Wheel:
    """A wheel with this program."""
    return points(f"[console_scripts]\n{name} = demo:main\n")


def named(name: str) -> Wheel:
    """A wheel of a project of this name."""
    return member(f"{name}_package/__init__.py", name=name)


def library(**fields: Any) -> Wheel:
    """A wheel with a library like this."""
    built = Elf(machine=X86_64, **fields).build().data
    return lambda: WheelBuilder(tags="cp312-cp312-manylinux_2_28_x86_64").add("demo/lib.so", built)


PATTERNS: list[tuple[str, str, Wheel]] = [
    # code that runs when Python starts
    ("code in base64", "SEC001", member("demo.pth", ENCODED)),
    ("a program that is started", "SEC001", member("demo.pth", "import os; os.system('id')\n")),
    ("a tab behind import", "SEC001", member("demo.pth", "import\tos, subprocess; subprocess.Popen(['id'])\n")),
    ("a byte order mark", "SEC001", member("demo.pth", b"\xef\xbb\xbfimport os\n")),
    ("a line that begins after a carriage return", "SEC001", member("demo.pth", "# paths\rimport os\r")),
    ("far to the right", "SEC001", member("demo.pth", "import os;" + " " * 200 + "os.getcwd()\n")),
    ("after a path", "SEC001", member("demo.pth", "demo_vendored\nimport demo._hook\n")),
    ("a module of the wheel", "SEC001", member("zz.pth", "import demo._hook\n")),
    ("names put together", "SEC001", member("demo.pth", "import os; getattr(os, 'sys' + 'tem')('id')\n")),
    ("letters that look alike", "SEC001", member("demo.pth", "import os; \uff45\uff58\uff45\uff43('1')\n")),
    ("a line of 5,000 characters", "SEC001", member("demo.pth", f"import os; x = '{'a' * 5000}'\n")),
    ("a hidden file", "SEC001", member(".demo.pth", ENCODED)),
    ("by the purelib scheme", "SEC001", member("demo-1.0.data/purelib/demo.pth", ENCODED)),
    ("by the platlib scheme", "SEC001", member("demo-1.0.data/platlib/demo.pth", ENCODED)),
    ("by the folder of the environment", "SEC001", member(f"{SITE}demo.pth", ENCODED)),
    ("by that folder on Windows", "SEC001", member(f"{DATA}Lib/site-packages/demo.pth", ENCODED)),
    ("by lib64", "SEC001", member(f"{DATA}lib64/python3.12/site-packages/demo.pth", ENCODED)),
    ("by Debian's folder", "SEC001", member(f"{DATA}lib/python3/dist-packages/demo.pth", ENCODED)),
    ("past a folder that is left again", "SEC001",
     member(f"{DATA}share/../lib/python3.12/site-packages/d.pth", ENCODED)),
    ("an entry point of Python 3.15", "SEC001", member("demo.start", "demo.hooks:install\n")),
    ("the line of setuptools in another project", "SEC001", member("distutils-precedence.pth", DISTUTILS)),
    ("more after the line of setuptools", "SEC001",
     member("distutils-precedence.pth", f"{DISTUTILS.strip()} import demo\n", name="setuptools")),
    ("the line of setuptools under another name", "SEC001", member("zz.pth", DISTUTILS, name="setuptools")),
    ("code in a namespace declaration", "SEC001",
     member("demo-nspkg.pth", NAMESPACE.replace("m = m or", "m = __import__('os').system('id') or m or"))),
    ("sitecustomize", "SEC002", member("sitecustomize.py")),
    ("usercustomize as a package", "SEC002", member("usercustomize/__init__.py")),
    ("sitecustomize, compiled", "SEC002", member("sitecustomize.cpython-312-x86_64-linux-gnu.so")),
    ("sitecustomize as bytecode", "SEC002", member("sitecustomize.pyc")),
    ("sitecustomize by a scheme", "SEC002", member("demo-1.0.data/platlib/sitecustomize.py")),
    ("sitecustomize by the folder of the environment", "SEC002", member(f"{SITE}sitecustomize.py")),
    # folders of others on the search path
    ("a folder in /tmp", "SEC003", member("demo.pth", "/tmp/build\n")),
    ("a folder in /dev/shm", "SEC003", member("demo.pth", "/dev/shm/x\n")),
    ("a folder above the environment", "SEC003", member("demo.pth", "../../../other\n")),
    ("a folder of the author", "SEC003", member("__editable__.demo-1.0.pth", "/home/me/demo/src\n")),
    ("a share of Windows", "SEC003", member("demo.pth", "\\\\server\\share\n")),
    # code that another import runs
    ("a backend of torch", "SEC004", points("[torch.backends]\ndemo = demo:_autoload\n")),
    # files of others
    ("torch/__init__.py", "SEC005", member("torch/__init__.py")),
    ("a new module in torch", "SEC005", member("torch/utils/_demo.py")),
    ("torch's library", "SEC005", member("torch/lib/libtorch_cpu.so")),
    ("bytecode of torch", "SEC005", member("torch/__pycache__/__init__.cpython-312.pyc")),
    ("a module that hides a package", "SEC005", member("numpy.py")),
    ("typing_extensions by a scheme", "SEC005", member("demo-1.0.data/platlib/typing_extensions.py")),
    ("torch by the folder of the environment", "SEC005", member(f"{SITE}torch/hub.py")),
    ("the standard library", "SEC006", member(f"{DATA}lib/python3.12/json/__init__.py")),
    ("its compiled modules", "SEC006", member(f"{DATA}lib/python3.12/lib-dynload/_json.so")),
    ("that of Windows", "SEC006", member(f"{DATA}Lib/os.py")),
    ("the archive before the standard library", "SEC006", member(f"{DATA}lib/python312.zip", b"PK")),
    ("pyvenv.cfg", "SEC006", member(f"{DATA}pyvenv.cfg", "home = /tmp\n")),
    ("pyvenv.cfg by the interpreter", "SEC006", member("demo-1.0.data/scripts/pyvenv.cfg", "home = /tmp\n")),
    ("the path file of Windows", "SEC006", member(f"{DATA}Scripts/python312._pth", "C:\\x\n")),
    ("the configuration of pip", "SEC006", member(f"{DATA}pip.conf", "[global]\n")),
    ("the configuration of the loader", "SEC006", member(f"{DATA}etc/ld.so.preload", "/tmp/x.so\n")),
    # names of others
    ("torchvison", "SEC007", named("torchvison")),
    ("two letters that changed places", "SEC007", named("transfromers")),
    ("a zero for an o", "SEC007", named("t0rch")),
    ("rn for m", "SEC007", named("nurnpy")),
    ("one letter more", "SEC007", named("requestss")),
    ("without its dash", "SEC007", named("huggingfacehub")),
    ("python3", "SEC008", member("demo-1.0.data/scripts/python3")),
    ("python3.12 as an entry point", "SEC008", script("python3.12")),
    ("pip", "SEC008", script("pip")),
    ("PIP.EXE", "SEC008", member("demo-1.0.data/scripts/PIP.EXE")),
    ("uv by the folder of the environment", "SEC008", member(f"{DATA}bin/uv")),
    ("a program with a window", "SEC008", points("[gui_scripts]\npythonw = demo:main\n")),
    ("sudo", "SEC008", script("sudo")),
    ("ls", "SEC008", member("demo-1.0.data/scripts/ls")),
    ("bash", "SEC008", script("bash")),
    ("a tool of clusters", "SEC008", script("srun")),
    # entry points
    ("a script that climbs", "SEC009", script("../../evil")),
    ("a script that climbs on Windows", "SEC009", script("..\\evil")),
    ("a call", "SEC009", points("[console_scripts]\ntool = os:system('id')\n")),
    ("a second statement", "SEC009", points("[console_scripts]\ntool = demo:main; import os\n")),
    ("no object", "SEC009", points("[console_scripts]\ntool = a-b\n")),
    # native code
    ("a library called .png", "SEC010", member("demo/logo.png", LIBRARY)),
    ("a library called .py", "SEC010", member("demo/tool.py", LIBRARY)),
    ("a program of Windows called .txt", "SEC010", member("demo/a.txt", PE)),
    ("a library of macOS called .json", "SEC010", member("demo/a.json", MACH_O)),
    ("a RUNPATH to /tmp", "SEC011", library(runpath="/tmp/lib")),
    ("an RPATH to /var/tmp", "SEC011", library(rpath="$ORIGIN:/var/tmp")),
    ("a RUNPATH that climbs to /tmp", "SEC011", library(runpath="$ORIGIN/../../../../../../../tmp/lib")),
    ("an RPATH from the working directory", "SEC011", library(rpath="lib")),
    ("an empty entry", "SEC011", library(runpath="$ORIGIN:")),
    ("an executable stack", "WHL509", library(stack_flags=7)),
    ("text relocations", "WHL510", library(text_relocations=True)),
]  # fmt: skip

INNOCENT: list[tuple[str, Wheel]] = [
    ("nothing more", WheelBuilder),
    ("a path in a .pth file", member("demo.pth", "demo_vendored\n")),
    ("import in a comment", member("demo.pth", "# import os\nsrc\n")),
    ("a folder whose name starts with import", member("demo.pth", "importer\n")),
    ("a model's weights", member("demo/weights.pth", ENCODED)),
    ("weights at the top", member("resnet.pth", b"\x80\x02}q\x00.")),
    ("a .pth file of tests", member("demo/tests/data/x.pth", ENCODED)),
    ("setuptools", member("distutils-precedence.pth", DISTUTILS, name="setuptools")),
    ("a namespace declaration", member("demo-1.0-py3.12-nspkg.pth", NAMESPACE)),
    ("a sitecustomize that a tool uses", member("demo/agent/sitecustomize.py")),
    ("a module called customize", member("customize.py")),
    ("the module of jupyter", member("jupyter.py", name="jupyter")),
    ("a plugin of pytest", points("[pytest11]\ndemo = demo.plugin\n")),
    ("a vendored torch", member("demo/_vendor/torch/__init__.py")),
    ("its own package next to torch", member("torch_demo/__init__.py", name="torch_demo")),
    ("a namespace package", member("nvidia/demo/lib/libdemo.so.1")),
    ("manual pages and data", member(f"{DATA}share/man/man1/demo.1")),
    ("a library in lib", member(f"{DATA}lib/libdemo.so.1")),
    ("headers", member("demo-1.0.data/headers/demo.h")),
    ("a configuration of Jupyter", member(f"{DATA}etc/jupyter/jupyter_server_config.d/demo.json", "{}")),
    ("torchvision", named("torchvision")),
    ("the same for another CUDA", named("cupy_cuda14x")),
    ("a name with a prefix", named("torch_geometric_demo")),
    ("python-demo", script("python-demo")),
    ("pip-demo", script("pip-demo")),
    ("catalog", script("catalog")),
    ("what the specification allows", points("[console_scripts]\na = demo.cli:App.run\n[x.y]\nd = demo [extra]\n")),
    ("a library", member("demo/lib.so.1.2", LIBRARY)),
    ("a text that starts with MZ", member("demo/a.txt", b"MZ " + bytes(80))),
    ("a Java class", member("demo/A.class", b"\xca\xfe\xba\xbe\0\0\0\x34")),
    ("a search path to a folder called tmp", library(runpath="$ORIGIN/../tmp")),
    ("a search path from the library", library(runpath="$ORIGIN/../demo.libs")),
]


def found(wheel: WheelBuilder, reader: Audience = Audience.BOTH) -> dict[str, Severity]:
    """The rules that find something in a wheel whose every byte is read, with the worst severity for this reader."""
    rules = [rule for rule in select_rules("wheel") if rule.id.startswith("SEC") or rule.id in ("WHL509", "WHL510")]
    results = run_rules(rules, facts_of(wheel, depth=Depth.FULL), Expectations())
    severities: dict[str, Severity] = {}
    for result in Subject("", "wheel", results=results).read_by(reader).results:
        assert result.outcome is not Outcome.ERROR, result.message
        if result.outcome is Outcome.FAIL:
            worst = max(result.severity, severities.get(result.rule, Severity.NOTE), key=lambda one: one.rank)
            severities[result.rule] = worst
    return severities


def test_there_are_enough() -> None:
    assert len(PATTERNS) >= 60
    assert len({name for name, _, _ in PATTERNS}) == len(PATTERNS)


@pytest.mark.parametrize(("rule", "wheel"), [row[1:] for row in PATTERNS], ids=[row[0] for row in PATTERNS])
def test_a_crafted_wheel_is_found(rule: str, wheel: Wheel) -> None:
    severities = found(wheel())
    assert rule in severities
    least = Severity.NOTE if rule == "SEC004" else Severity.WARNING
    assert severities[rule].rank >= least.rank


@pytest.mark.parametrize("wheel", [row[1] for row in INNOCENT], ids=[row[0] for row in INNOCENT])
def test_an_innocent_wheel_is_not(wheel: Wheel) -> None:
    assert found(wheel()) == {}


@pytest.mark.parametrize(
    ("rule", "wheel", "installer", "publisher"),
    [
        ("SEC001", member("__editable__.demo.pth", "import __editable___d_finder; __editable___d_finder.install()"),
         Severity.WARNING, Severity.NOTE),
        ("SEC003", member("demo.pth", "/home/me/src\n"), Severity.WARNING, Severity.ERROR),
        ("SEC003", member("demo.pth", "/tmp/src\n"), Severity.WARNING, Severity.ERROR),
        ("SEC005", member("torch/a.py"), Severity.WARNING, Severity.ERROR),
        ("SEC006", member(f"{SITE}demo/a.py"), Severity.NOTE, Severity.WARNING),
        ("SEC007", named("torchvison"), Severity.WARNING, Severity.NOTE),
        ("SEC009", points("[demo.plugins]\ntool = not a name\n"), Severity.NOTE, Severity.WARNING),
        ("SEC011", library(runpath="/tmp/lib"), Severity.WARNING, Severity.ERROR),
    ],
)  # fmt: skip
def test_what_it_means_to_whom(rule: str, wheel: Wheel, installer: Severity, publisher: Severity) -> None:
    assert found(wheel(), Audience.INSTALLER)[rule] is installer
    assert found(wheel(), Audience.PUBLISHER)[rule] is publisher
