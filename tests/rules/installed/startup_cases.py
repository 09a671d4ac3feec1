"""SEC013 and SEC014: code that an environment runs when Python starts, and files in place of pip and uv."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.rules.case import WARNING, Case
from tests.rules.installed.installed_cases import env, wheel
from tests.rules.security.security_cases import DISTUTILS
from tests.support.environments import Installed, library
from wheel_checks.facts.installed.facts import InstalledEnvironment

PIP = """#!{python}
# -*- coding: utf-8 -*-
import sys
from pip._internal.cli.main import main
if __name__ == "__main__":
    if sys.argv[0].endswith("-script.pyw"):
        sys.argv[0] = sys.argv[0][:-11]
    elif sys.argv[0].endswith(".exe"):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit(main())
"""
OF_PIP = PIP.partition("    if sys")[0].replace("import sys", "import re\nimport sys") + (
    "    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n    sys.exit(main())\n"
)
LONG = PIP.replace("#!{python}", "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''")
RUNS_MORE = PIP.replace("#!{python}", "#!/bin/sh\n'''exec' /opt/evil;{python} \"$0\" \"$@\"\n' '''")
FRONT = '#!/bin/sh\nexec guard pip "$@"\n'
FINDER = "import __editable___demo_1_0_finder; __editable___demo_1_0_finder.install()"
ENCODED = "import os, base64; exec(base64.b64decode('cGFzcw=='))\n"


def venv(*, recognised: Sequence[str] = (), **programs: str | bytes) -> Callable[[], InstalledEnvironment]:
    """A virtual environment with these programs; a guard has written the ``recognised`` ones."""

    def build() -> InstalledEnvironment:
        with tempfile.TemporaryDirectory() as folder:
            site = Installed(Path(folder), "lib/python3.12/site-packages")
            (site.folder / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.3\n")
            (site.folder / "bin").mkdir()
            for name, content in programs.items():
                data = content.encode() if isinstance(content, str) else content
                (site.folder / "bin" / name).write_bytes(data.replace(b"{python}", f"{folder}/bin/python".encode()))
            facts = site.facts()
        return replace(facts, recognised=frozenset(f"{facts.environment.path}/bin/{name}" for name in recognised))

    return build


CASES = [
    Case(
        "SEC013",
        "code in a file that no RECORD lists",
        env(lambda e: e.install(wheel()).write("init.pth", ENCODED)),
        ("init.pth of no distribution runs code whenever Python starts",),
        severity=WARNING,
        evidence=("b64decode, base64, exec",),
    ),
    Case(
        "SEC013",
        "code of a distribution, and a sitecustomize",
        env(
            lambda e: (
                e.install(wheel().add("demo-init.pth", "import demo\n"))
                .write("sitecustomize.py", "")
                .write("a.pth", "demo")
            )
        ),
        (
            "demo-init.pth of demo runs code whenever Python starts",
            "sitecustomize.py runs whenever Python starts, instead of the host's own",
        ),
        severity=WARNING,
    ),
    Case(
        "SEC013",
        "what virtualenv, setuptools and an editable install write",
        env(
            lambda e: (
                e.install(wheel())
                .write("_virtualenv.pth", "import _virtualenv")
                .write("__editable__.demo-1.0.pth", FINDER)
                .write("distutils-precedence.pth", DISTUTILS)
                .write("paths.pth", "../src\n")
            )
        ),
    ),
    Case(
        "SEC014",
        "scripts in place of pip and uv that no installer writes",
        venv(pip='#!/bin/sh\nexec /opt/pip "$@"\n', pip3=PIP, pip4=RUNS_MORE, uv=FRONT),
        (
            "bin/pip of no distribution is a script that no installer writes",
            "bin/pip4 of no distribution is a script that no installer writes",
            "bin/uv of no distribution is a script that no installer writes",
        ),
        severity=WARNING,
    ),
    Case(
        "SEC014",
        "scripts of pip with a line more and of another package, and an interpreter that is a script",
        venv(
            pip=PIP.replace("import sys\n", "import sys\nimport evil\n"),
            pip3=PIP.replace("pip._internal", "demo"),
            python='#!/bin/sh\nexec python3.12 "$@"\n',
        ),
        (
            "bin/pip of no distribution is a script that no installer writes",
            "bin/pip3 of no distribution calls demo.cli.main",
            "bin/python of no distribution is a script that no installer writes",
        ),
        severity=WARNING,
    ),
    Case(
        "SEC014",
        "a native program called pip",
        venv(pip=library()),
        ("bin/pip of no distribution is a native program (ELF)",),
        severity=WARNING,
    ),
    Case(
        "SEC014",
        "what pip and uv write, native programs, and the front program of a guard",
        venv(
            pip=PIP, pip3=LONG, pip4=OF_PIP, uv=library(), python=library(), uvx=FRONT, activate="#", recognised=["uvx"]
        ),
    ),
]
