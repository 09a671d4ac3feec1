"""SEC001 to SEC011: code that a wheel runs automatically, and the paths that it writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.rules.case import NOTE, WARNING, Case
from tests.support.elf import X86_64, Elf
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.security.startup import MOST_FILES
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.wheel.entry_points import MAX_ENTRIES
from wheel_checks.formats.wheel.startup_file import MAX_SIZE

DISTUTILS = (
    "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; "
    "enabled and __import__('_distutils_hack').add_shim(); \n"
)

NAMESPACE = (  # of setuptools 80.9.0, for the package "acme"
    "import sys, types, os;p = os.path.join(sys._getframe(1).f_locals['sitedir'], *('acme',));"
    "importlib = __import__('importlib.util');__import__('importlib.machinery');"
    "m = sys.modules.setdefault('acme', importlib.util.module_from_spec("
    "importlib.machinery.PathFinder.find_spec('acme', [os.path.dirname(p)])));"
    "m = m or sys.modules.setdefault('acme', types.ModuleType('acme'));"
    "mp = (m or []) and m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p)\n"
)


def demo(path: str, data: bytes | str = b"x", **request: Any) -> WheelFacts:
    """A wheel of the project demo with one member more."""
    return facts_of(WheelBuilder().add(path, data), **request)


def named(name: str, path: str = "", data: str = "x") -> WheelFacts:
    """A wheel of another project, with a member of that name."""
    return facts_of(WheelBuilder(name).add(path or f"{name}/__init__.py", data))


def points(text: str, name: str = "demo") -> WheelFacts:
    """A wheel with this entry_points.txt."""
    return facts_of(WheelBuilder(name).dist_info_file("entry_points.txt", text))


def full(path: str, data: bytes) -> WheelFacts:
    """A wheel whose every byte is read."""
    return demo(path, data, depth=Depth.FULL)


def searching(**fields: Any) -> WheelFacts:
    """A wheel with a library that has these search paths."""
    library = Elf(machine=X86_64, **fields).build().data
    wheel = WheelBuilder(tags="cp312-cp312-manylinux_2_28_x86_64").add("demo/lib.so", library)
    return facts_of(wheel, depth=Depth.LINKS)


LIBRARY = Elf(machine=X86_64).build().data

CASES = [
    Case(
        "SEC001",
        "a .pth file that unpacks code",
        lambda: demo("demo-init.pth", "import os, base64; exec(base64.b64decode('cHJpbnQoMSk='))\n"),
        ("demo-init.pth runs code whenever Python starts, using b64decode, base64, exec",),
        member="demo-init.pth",
        line=1,
    ),
    Case(
        "SEC001",
        "code after a screen of spaces",
        lambda: demo("demo.pth", "import os;" + " " * 60 + "os.getcwd()\n"),
        ("demo.pth runs code whenever Python starts, using 40 spaces in a row",),
    ),
    Case(
        "SEC001",
        "a .pth file that imports the package",
        lambda: demo("demo.pth", "# starts demo\nimport demo.hooks\n"),
        ("demo.pth runs code whenever Python starts",),
        severity=WARNING,
        member="demo.pth",
        line=2,
        evidence=("import demo.hooks",),
    ),
    Case(
        "SEC001",
        "an entry point in a .start file of Python 3.15",
        lambda: demo("demo.start", "demo.hooks:install\n"),
        ("demo.start runs code whenever Python starts",),
        severity=WARNING,
    ),
    Case(
        "SEC001",
        "setuptools' line in a wheel of another project",
        lambda: demo("distutils-precedence.pth", DISTUTILS),
        ("distutils-precedence.pth runs code whenever Python starts",),
        severity=WARNING,
    ),
    Case(
        "SEC001",
        "by the folder of the environment",
        lambda: demo("demo-1.0.data/data/lib/python3.12/site-packages/x.pth", "import demo\n"),
        ("x.pth runs code whenever Python starts",),
        severity=WARNING,
    ),
    Case(
        "SEC001",
        "a .pth file that is too large",
        lambda: demo("demo.pth", b"#" * (MAX_SIZE + 1)),
        (
            f"not known whether demo.pth runs code: 'demo.pth' claims {MAX_SIZE + 1:,} bytes; at most {MAX_SIZE:,} "
            "are read",
        ),
        undecided=True,
        severity=WARNING,
    ),
    Case(
        "SEC001",
        "more .pth files than are read",
        lambda: facts_of(_many(MOST_FILES + 1)),
        (f"not known whether p{MOST_FILES:02}.pth runs code: at most {MOST_FILES} files are read",),
        undecided=True,
        severity=WARNING,
    ),
    Case(
        "SEC001",
        "the finder of an editable install",
        lambda: demo(
            "__editable__.demo-1.0.pth", "import __editable___demo_1_0_finder; __editable___demo_1_0_finder.install()"
        ),
        ("__editable__.demo-1.0.pth starts the finder of an editable install",),
        severity=NOTE,
    ),
    Case(
        "SEC001",
        "code in the middle of a namespace declaration",
        lambda: demo("demo-nspkg.pth", NAMESPACE.replace("m = m or", "m = open('/tmp/x') or m or")),
        ("demo-nspkg.pth runs code whenever Python starts",),
        severity=WARNING,
    ),
    Case("SEC001", "a namespace declaration", lambda: demo("demo-1.0-py3.12-nspkg.pth", NAMESPACE)),
    Case("SEC001", "setuptools", lambda: named("setuptools", "distutils-precedence.pth", DISTUTILS)),
    Case("SEC001", "a path, and the word import in a comment", lambda: demo("demo.pth", "# import demo\ndemo_src\n")),
    Case("SEC001", "a model's weights", lambda: demo("demo/weights.pth", "import os\n")),
    Case("SEC001", "weights at the top that are no text", lambda: demo("resnet.pth", b"\x80\x02}q\x00.")),
    Case(
        "SEC002",
        "a sitecustomize",
        lambda: demo("sitecustomize.py"),
        ("sitecustomize.py runs whenever Python starts, instead of the host's own",),
        member="sitecustomize.py",
    ),
    Case(
        "SEC002",
        "a package that is usercustomize",
        lambda: demo("demo-1.0.data/purelib/usercustomize/__init__.py"),
        ("demo-1.0.data/purelib/usercustomize/__init__.py runs whenever Python starts, instead of the host's own",),
    ),
    Case("SEC002", "one that a tool puts on the path itself", lambda: demo("demo/bootstrap/sitecustomize.py")),
    Case(
        "SEC003",
        "a folder that everybody may write to",
        lambda: demo("demo.pth", "/tmp/build/src\n"),
        ("demo.pth adds /tmp/build/src to the search path, which every user of the host can write to",),
    ),
    Case(
        "SEC003",
        "an editable wheel, and one that climbs",
        lambda: demo("__editable__.demo-1.0.pth", "/home/user/demo/src\n../../other\n"),
        (
            "__editable__.demo-1.0.pth adds /home/user/demo/src to the search path",
            "__editable__.demo-1.0.pth adds ../../other to the search path",
        ),
    ),
    Case("SEC003", "its own folder", lambda: demo("demo.pth", "demo_vendored\n")),
    Case(
        "SEC004",
        "a backend of torch",
        lambda: points("[torch.backends]\ndemo = demo:_autoload\n"),
        ("demo:_autoload is an entry point of torch.backends: `import torch` runs it",),
        severity=NOTE,
        member="entry_points.txt",
        line=2,
    ),
    Case("SEC004", "a plugin of pytest, which only pytest loads", lambda: points("[pytest11]\ndemo = demo.plugin\n")),
    Case(
        "SEC005",
        "a file of torch",
        lambda: demo("torch/__init__.py"),
        ("the wheel installs 1 file into torch, which is a package of torch",),
        member="torch/__init__.py",
    ),
    Case(
        "SEC005",
        "a module at the top, by the purelib scheme",
        lambda: demo("demo-1.0.data/purelib/typing_extensions.py"),
        ("the wheel installs 1 file into typing_extensions, which is a package of typing-extensions",),
    ),
    Case(
        "SEC005",
        "a project named as a build of torch",
        lambda: named("torch_cu13", "torch/__init__.py"),
        ("the wheel installs 1 file into torch, which is a package of torch",),
    ),
    Case("SEC005", "torch itself", lambda: named("torch")),
    Case("SEC005", "a build of cuml for another CUDA", lambda: named("cuml_cu12", "cuml/__init__.py")),
    Case(
        "SEC005", "the project without a build", lambda: named("transformer_engine", "transformer_engine/__init__.py")
    ),
    Case("SEC005", "another build of a project", lambda: named("fbgemm_gpu_genai", "fbgemm_gpu/__init__.py")),
    Case(
        "SEC005",
        "a name that begins as that of a project does",
        lambda: named("fbgemm_gpu_evil", "fbgemm_gpu/__init__.py"),
        ("the wheel installs 1 file into fbgemm_gpu, which is a package of fbgemm-gpu",),
    ),
    Case("SEC005", "a namespace package, and a package that is not known", lambda: demo("nvidia/demo/__init__.py")),
    Case("SEC005", "a vendored copy", lambda: demo("demo/_vendor/torch/__init__.py")),
    Case(
        "SEC006",
        "over the standard library",
        lambda: demo("demo-1.0.data/data/lib/python3.12/json/__init__.py"),
        ("demo-1.0.data/data/lib/python3.12/json/__init__.py is installed into Python's standard library",),
    ),
    Case(
        "SEC006",
        "the configuration of the environment",
        lambda: demo("demo-1.0.data/data/pyvenv.cfg"),
        ("demo-1.0.data/data/pyvenv.cfg replaces pyvenv.cfg of the environment",),
    ),
    Case(
        "SEC006",
        "into site-packages past its scheme",
        lambda: demo("demo-1.0.data/data/lib/python3.12/site-packages/demo/a.py"),
        (
            "demo-1.0.data/data/lib/python3.12/site-packages/demo/a.py is installed into site-packages through the "
            "root of the environment",
        ),
        severity=WARNING,
    ),
    Case("SEC006", "a manual page", lambda: demo("demo-1.0.data/data/share/man/man1/demo.1")),
    Case("SEC006", "a library in lib", lambda: demo("demo-1.0.data/data/lib/libdemo.so")),
    Case(
        "SEC007",
        "a letter is missing",
        lambda: named("torchvison"),
        ("the project is named torchvison, which resembles torchvision",),
        severity=WARNING,
    ),
    Case(
        "SEC007",
        "a zero for an o",
        lambda: named("t0rch"),
        ("the project is named t0rch, which resembles torch",),
        severity=WARNING,
    ),
    Case("SEC007", "torchvision", lambda: named("torchvision")),
    Case("SEC007", "the same for another CUDA", lambda: named("nvidia_cusparselt_cu14")),
    Case("SEC007", "a short name near another", lambda: named("tdqm2")),
    Case(
        "SEC008",
        "an entry point called pip",
        lambda: points("[console_scripts]\npip = demo:main\n"),
        ("the script pip has the name of an installer",),
        member="entry_points.txt",
        line=2,
        evidence=("pip, setuptools",),
    ),
    Case(
        "SEC008",
        "a script called python3",
        lambda: demo("demo-1.0.data/scripts/python3"),
        ("the script python3 has the name of an interpreter",),
        member="demo-1.0.data/scripts/python3",
    ),
    Case(
        "SEC008",
        "sudo, by the data scheme",
        lambda: demo("demo-1.0.data/data/bin/sudo"),
        ("the script sudo has the name of a program of the system",),
    ),
    Case(
        "SEC008",
        "a tool of clusters",
        lambda: points("[console_scripts]\nsrun = demo:main\n"),
        ("the script srun has the name of a tool",),
        severity=WARNING,
    ),
    Case(
        "SEC008",
        "an indented line, which is a script for pip",
        lambda: points("[console_scripts]\ndemo = demo:main\n  pip = demo:main\n"),
        ("the script pip has the name of an installer",),
        line=3,
        member="entry_points.txt",
    ),
    Case(
        "SEC008",
        "more entry points than are read",
        lambda: points("[console_scripts]\n" + "a = demo:main\n" * (MAX_ENTRIES + 1)),
        (
            "the entry points of the wheel are unknown: entry_points.txt has too many lines; expected at most "
            f"{MAX_ENTRIES:,} entry points",
        ),
        undecided=True,
    ),
    Case("SEC009", "an indented group", lambda: points("[a]\nb = demo\n\n[console_scripts]\n  tool = demo:main\n")),
    Case("SEC008", "pip itself", lambda: points("[console_scripts]\npip = pip:main\npip3 = pip:main\n", "pip")),
    Case("SEC008", "names that begin alike", lambda: points("[console_scripts]\npython-demo = demo:main\n")),
    Case(
        "SEC009",
        "a script that climbs",
        lambda: points("[console_scripts]\n../../evil = demo:main\n"),
        ("the script name '../../evil' is not a plain file name",),
        member="entry_points.txt",
        line=2,
    ),
    Case(
        "SEC009",
        "code for a value",
        lambda: points("[console_scripts]\ntool = os:system('id')\n"),
        ("the entry point tool contains code: \"os:system('id')\"",),
    ),
    Case(
        "SEC009",
        "a plugin without an object",
        lambda: points("[demo.plugins]\ntool = not a name\n"),
        ("the entry point tool does not refer to an object: 'not a name'",),
        severity=WARNING,
    ),
    Case(
        "SEC009",
        "what the specification allows",
        lambda: points(
            "# all\n[console_scripts]\na = demo.cli:main\nb=demo : App.run\n[x.y]\nc = demo [extra]\nd = demo\n"
        ),
    ),
    Case(
        "SEC010",
        "a library called .png",
        lambda: full("demo/logo.png", LIBRARY),
        ("demo/logo.png is an ELF file with the name of data",),
        member="demo/logo.png",
    ),
    Case(
        "SEC010",
        "a program of Windows called .txt",
        lambda: full("demo/a.txt", b"MZ" + bytes(58) + (64).to_bytes(4, "little") + b"PE\0\0" + bytes(20)),
        ("demo/a.txt is a PE file with the name of data",),
    ),
    Case(
        "SEC010",
        "a member whose start was not seen",
        lambda: replace(full("demo/a.txt", b"x"), disguised=(("demo/a.txt", ""),)),
        ("not proven that demo/a.txt is data: its first bytes are not enough; --depth full reads the whole file",),
        undecided=True,
        member="demo/a.txt",
    ),
    Case("SEC010", "a library", lambda: full("demo/lib.so.1.2", LIBRARY)),
    Case("SEC010", "GPU code, which is ELF for no processor", lambda: full("demo/k.cubin", _cubin())),
    Case("SEC010", "a text that starts with MZ", lambda: full("demo/a.txt", b"MZ " + bytes(80))),
    Case(
        "SEC010",
        "a Java class, which begins as Mach-O does",
        lambda: full("demo/A.class", b"\xca\xfe\xba\xbe\0\0\0\x34"),
    ),
    Case(
        "SEC011",
        "a RUNPATH to /tmp",
        lambda: searching(runpath="$ORIGIN:/tmp/build/lib"),
        ("1 file looks for libraries in /tmp/build/lib",),
        member="demo/lib.so",
    ),
    Case(
        "SEC011",
        "an empty entry",
        lambda: searching(rpath="$ORIGIN:"),
        ("1 file looks for libraries in an empty entry, relative to the working directory",),
        severity=WARNING,
    ),
    Case(
        "SEC011", "its own folder, and one of the build machine", lambda: searching(rpath="$ORIGIN/../lib:/opt/x/lib")
    ),
]


def _many(count: int) -> WheelBuilder:
    wheel = WheelBuilder()
    for number in range(count):
        wheel.add(f"p{number:02}.pth", "demo\n")
    return wheel


def _cubin() -> bytes:
    return LIBRARY[:18] + (190).to_bytes(2, "little") + LIBRARY[20:]
