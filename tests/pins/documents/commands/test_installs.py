"""Which files hold install commands, and their requirements: a line and its reading by `pins check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wheelproof.pins.documents.reading import kind_of, read_source
from wheelproof.pins.model import Document, Source


def read(name: str, text: str) -> Document:
    path = Path(name)
    kind = kind_of(path, named=False)
    return read_source(Source(path, text.encode(), text), "pipeline" if kind == "yaml" else kind)


def found(name: str, text: str) -> list[str]:
    return [requirement.text for requirement in read(name, text).requirements]


SHELL = [
    ("pip install torch==2.7 -r x.txt -c y.txt -e . six", ["torch==2.7", "six"]),
    ("pip3.12 --no-cache-dir -q install -U 'torch>=2'", ["torch>=2"]),
    ("python3 -m pip install -qU torch", ["torch"]),
    ("sudo -H env A=b time pip install torch", ["torch"]),
    ("/opt/venv/bin/pip install torch", ["torch"]),
    ("PY=3.12\npip${PY} install torch", ["torch"]),
    ("pip${PY} install torch", ["torch"]),
    ("$PIP install torch", ["torch"]),
    ("V=2.7\npip install torch==$V", ["torch==2.7"]),
    ("pip install torch==$V", ["torch==…"]),
    ("pip install --index-url torch numpy", ["numpy"]),
    ("pip install -i torch --extra-index-url=torch numpy", ["numpy"]),
    ("pip uninstall torch; pip download torch; pip list; pip install --dry-run torch", []),
    ("echo pip install torch; echo 'pip install torch' && pip install six", ["six"]),
    ("# pip install torch \\\npip install six", ["six"]),
    ("bash -lc 'cd x && pip install torch'", ["torch"]),
    ('docker run --rm img bash -c "pip install torch"', ["torch"]),
    ("docker exec c pip install torch", ["torch"]),
    ("ssh host 'pip install torch'", ["torch"]),
    ("python -c 'pip install torch'", []),
    ("conda run -n x pip install torch", ["torch"]),
    ("cat > x.sh <<EOF\npip install torch\nEOF", ["torch"]),
    ("cat > Dockerfile.x <<EOF\nFROM a\nRUN pip install torch\nEOF", ["torch"]),
    ("cat > x.txt <<EOF\npip install torch\nEOF", []),
    ("uv pip install --system torch --torch-backend auto", ["torch"]),
    ("uv --quiet pip install torch", ["torch"]),
    ("uv add torch --group dev", ["torch"]),
    ("uv run --with torch==2.7 --with 'a>=1,<2, b' python -m pip install six", ["torch==2.7", "a>=1,<2", "b", "six"]),
    ("uv run pytest --with torch", []),
    ("uvx ruff check; uv tool install ruff", []),
    ("conda install -y -c pytorch pytorch==2.7 pytorch-cuda=12.4", ["pytorch==2.7", "pytorch-cuda=12.4"]),
    ("mamba create -n x 'conda-forge::pytorch-gpu>=2'", ["conda-forge::pytorch-gpu>=2"]),
    ("poetry add torch@^2.7 --group dev", ["torch@^2.7"]),
    ("pdm add -G gpu torch", ["torch"]),
    ("pip_install torch", ["torch"]),
    ("pip install git+https://github.com/pytorch/vision@v0.2", ["git+https://github.com/pytorch/vision@v0.2"]),
    ("pip install dist/torch-*.whl ./x.whl", ["dist/torch-*.whl"]),
    ("Run pip install torch first", []),
    ("pip install torch, six", ["torch", "six"]),
    ("conda env create -f environment.yml", []),
]


@pytest.mark.parametrize(("line", "expected"), SHELL)
def test_a_shell_script(line: str, expected: list[str]) -> None:
    assert found("x.sh", f"#!/bin/sh\n{line}\n") == expected


def test_powershell_and_batch() -> None:
    assert found("x.ps1", "& .venv\\Scripts\\pip.exe install `\n  torch==2.7\n") == ["torch==2.7"]
    assert found("x.bat", "call venv\\Scripts\\pip install ^\r\n torch==2.7 %MORE%\r\nREM pip install six\r\n") == [
        "torch==2.7"
    ]


def test_what_is_only_known_when_it_runs_is_reported() -> None:
    document = read("x.sh", 'pip install $PACKAGES "$@" dist/*.whl -r $FILE\npip install . ./sub -e $ROOT/x\n')
    assert document.requirements == ()
    assert [notice.code for notice in document.notices] == ["dynamic", "dynamic", "dynamic", "install-file"]
    assert [command.place.line for command in document.commands] == [1, 2]


DOCKERFILE = """\
# syntax=docker/dockerfile:1
ARG TORCH=2.7.0
FROM base
ENV NUMPY=numpy<2 \\
    CUDA="cu128"
ARG UNSET
RUN --mount=type=cache,target=/root/.cache \\
    # a comment, which ends in a backslash \\
    pip install torch==${TORCH} \\

    "$NUMPY" --index-url https://x.test/$CUDA
RUN ["pip", "install", "torchvision>=0.2"]
# RUN pip install torchaudio
RUN <<EOF
pip install six
EOF
RUN pip install torch==$UNSET
"""


def test_a_dockerfile() -> None:
    document = read("Dockerfile", DOCKERFILE)
    assert [(r.text, r.place.line, r.certain) for r in document.requirements] == [
        ("torch==2.7.0", 9, True),
        ("numpy<2", 11, True),
        ("torchvision>=0.2", 12, True),
        ("six", 15, True),
        ("torch==…", 17, False),
    ]


WORKFLOW = """\
on:
  workflow_call:
    inputs:
      old: {default: "torch==1.0"}
env:
  NUMPY: numpy==2
jobs:
  a:
    strategy:
      matrix:
        torch: ["2.7", "2.8"]
        include:
          - {extra: torchaudio}
    steps:
      - name: pip install torch==9
        run: |
          pip install torch==${{ matrix.torch }} "$NUMPY"
          # pip install torch \\
          pip install ${{ matrix.extra }} ${{ inputs.old }}
      - run: >-
          pip install
          torchvision
      - {run: "pip install \\"six>=1\\"", shell: bash}
      - {run: "pip install torch==8", shell: python}
      - uses: actions/setup-python@v6
        with: {pip-install: torchcodec}
  b:
    steps:
      - run: pip install torch==${{ matrix.torch }} ${{ secrets.X }}
"""


def test_a_workflow() -> None:
    document = read(".github/workflows/test.yml", WORKFLOW)
    assert [(r.text, r.place.line) for r in document.requirements] == [
        ("torch==2.7", 17),
        ("numpy==2", 17),
        ("torch==2.8", 17),
        ("torchaudio", 19),
        ("torch==1.0", 19),
        ("torchvision", 22),
        ("six>=1", 23),
        ("torchcodec", 26),
        ("torch==…", 29),
    ]
    assert [notice.code for notice in document.notices] == ["dynamic"]


def test_the_default_shell_of_a_workflow() -> None:
    text = (
        "defaults: {run: {shell: pwsh}}\njobs:\n  a:\n    steps:\n"
        "    - run: |\n        pip install `\n          torch==2.7\n"
    )
    assert found(".github/workflows/x.yml", text) == ["torch==2.7"]
    assert found(".github/workflows/x.yml", text.replace("pwsh", "python")) == []


def test_gitlab_and_others() -> None:
    job = "x:\n  variables: {V: '2.7'}\n  script: pip install torch==$V\ny:\n  script: pip install six==$V\n"
    assert found(".gitlab-ci.yml", job) == ["torch==2.7", "six==…"]
    text = "variables: {V: '2.7'}\nx:\n  before_script:\n    - pip install torch==$V\n  script: ['pip install six']\n"
    assert found(".gitlab-ci.yml", text) == ["torch==2.7", "six"]
    assert found("k8s/job.yaml", "command: [pip, install, 'torch>=2']\n") == ["torch>=2"]
    assert found("k8s/job.yaml", "args: ['-c', 'pip install torch']\n") == ["torch"]
    assert found(".github/workflows/x.yml", "a: [b: c\n") == []
    assert [n.code for n in read(".github/workflows/x.yml", "a: [b: c\n").notices] == ["dynamic"]


def test_a_notebook() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["!pip install torch"]},
        {
            "cell_type": "code",
            "source": ["import x\n", "!pip install -q \\\n", '  "torch>=2" {extra}\n', "# !pip install a"],
        },
        {"cell_type": "code", "source": "%%bash\npip install torchvision\n"},
        {
            "cell_type": "code",
            "source": ["if x:\n", "    %pip install torchaudio\n", "!{sys.executable} -m pip install six"],
        },
        {"cell_type": "code", "source": ["%conda install pytorch\n", "print('pip install numpy')"]},
    ]
    text = json.dumps({"cells": cells}, indent=1)
    document = read("x.ipynb", text)
    assert [r.text for r in document.requirements] == ["torch>=2", "torchvision", "torchaudio", "six", "pytorch"]
    line = document.requirements[0].place.line
    assert "torch>=2" in text.splitlines()[line - 1]


README = """\
Run `pip install torch` or:

```bash
# Install it
pip install torch >= 2.7 <name>
```

1. like so

   ```console
   $ pip install torchvision
   Successfully installed pip install nothing
   ```

Or so:

    pip install torchaudio

```python
pip = "pip install jax"
!pip install six
```
"""


def test_a_readme() -> None:
    assert found("README.md", README) == ["torch>=2.7", "torchvision", "torchaudio", "six"]
    assert found("docs/install.rst", "x::\n\n    pip install torch\n\n.. code-block:: bash\n\n   $ uv add six\n") == [
        "torch",
        "six",
    ]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("Makefile", "PIP ?= python -m pip\ninstall: x\n\t@$(PIP) install torch\n", 3),
        ("GNUmakefile", "deps: ; uv pip \\\n  install torch\n", 1),
        ("x.mk", "install: build # with pip install\n\tcp a b\nclean:\n\trm pip.log\n", None),
        ("justfile", "setup:\n    uv sync\n", 2),
        ("justfile", "test:\n    uv run pytest\n", None),
        ("justfile", "test:\n    uv run --with torch pytest\n", 2),
        ("noxfile.py", "@nox.session\ndef a(session):\n    session.install('torch')\n", 3),
        ("noxfile.py", "def a(session):\n    session.run(\n        'pip',\n        'install',\n", 4),
        ("noxfile.py", "def a(session):\n    session.conda_install(*DEV)\n", 2),
        ("noxfile.py", "def a(session):\n    # session.install('torch')\n    session.run('pytest')\n", None),
        ("tox.ini", "[testenv]\ndeps = pip\ncommands_pre =\n    python -m pip install torch\n", 4),
        ("tox.ini", "[testenv]\ndeps = pip\ncommands = pytest\n", None),
        ("tox.toml", "[env_run_base]\ncommands = [['python', '-m', 'pip', 'install', 'torch']]\n", 2),
    ],
)
def test_install_commands_that_are_not_read(name: str, text: str, line: int | None) -> None:
    document = read(name, text)
    places = [notice.place.line for notice in document.notices if notice.code == "not-read" and notice.place]
    assert places == ([line] if line else [])
    assert (document.requirements, document.commands) == ((), ()) or name == "tox.ini"


def test_the_deps_of_tox_are_read() -> None:
    text = "[testenv]\ndeps =\n    torch==2.7\n    gpu: torchvision\n    -r requirements.txt\n"
    document = read("tox.ini", text)
    assert [(r.text, str(r.role)) for r in document.requirements] == [("torch==2.7", "group"), ("torchvision", "group")]
    assert document.includes == (Path("requirements.txt"),)
