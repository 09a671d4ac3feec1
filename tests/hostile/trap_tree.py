"""A repository full of traps: whatever of it is run, imported or built leaves a witness, and says which it was."""

from __future__ import annotations

import os
import stat
import tarfile
from pathlib import Path

from tests.support.wheels import WheelBuilder

WHEEL = "demo-1.0-py3-none-any.whl"
# Started by name or by a relative path; imported by name; in the order of what our commands start and import.
PROGRAMS = (
    *("python", "python3", "python3.11", "uv", "pip", "pip3", "git", "gcc", "clang", "cc", "ldconfig", "keyring", "sh"),
    *(
        "nvidia-smi",
        "nvidia-modprobe",
        "ptxas",
        "docker",
        "conda",
        "evil",
        "wheelproof",
        "env",
        "lspci",
        "modprobe",
        "rustc",
    ),
)
MODULES = (
    *("torch", "triton", "numpy", "pip", "packaging", "wheelproof", "wheel_checks", "kernels_smoke", "tomlkit"),
    *("runpy", "json", "importlib", "site", "sitecustomize", "usercustomize", "ctypes", "subprocess", "encodings"),
    *("traceback", "warnings", "faulthandler", "platform", "sysconfig", "rich", "urllib3"),
)
SHARED_KEYS = {"output": '"../victim.txt"', "also": '["json=victim.json"]', "format": '"html"', "quiet": "true"}
SHARED_KEYS |= {"verbose": "2", "color": "true", "offline": "false", "fail-on": '"never"', "safe-directory": '["*"]'}
SOURCE_KEYS = {"index-url": '"http://127.0.0.1:9/simple"', "extra-index-url": '["http://127.0.0.1:9/simple"]'}
SOURCE_KEYS |= {"find-links": '["."]', "no-index": "false", "allow-download": "true", "cache-dir": '"cache"'}
SOURCE_KEYS |= {"no-cache": "true", "deadline": "86400.0"}
# What no tree may set, by command; the values are what an attacker would like.
REFUSED = {
    "doctor": {"python": '"./evil"', "root": '"."', "save-facts": '"../victim.txt"', "facts": '"facts.json"'}
    | {"fix": "true", "yes": "true", "full": "true", "timeout": "86400.0", "host": '"evil"'},
    "verify": {"installed": "true", "root": '"."', "ld-library-path": '"."', "explain": '["libc.so.6"]'} | SOURCE_KEYS,
    "smoke": {"python": '"./evil"', "device": '"interpret"', "only": '["x"]', "seed": "1"}
    | {"level": '"deep"', "target": '["sm_90"]', "compile-only": "true", "deadline": "86400.0"},
    "pins.check": {"python": '"./evil"', "package": '["nothing"]', "skip-vendored": "true"},
    "pins.predict": {"python": '"./evil"', "installer": '"pip"', "build": "true", "requirement": '["r.txt"]'}
    | SOURCE_KEYS,
    "pins.guard": {"directory": '"../victim"', "python": '"./evil"', "project": '"/"', "check": "false"},
    "stack": SOURCE_KEYS,
    "matrix.run": {"matrix": '"evil.toml"', "work": '".."', "executor": '"venv"', "jobs": "99", "fresh": "true"},
}
MATRIX = """\
[axes]
platform = ["x86_64"]
python = ["3.12"]
torch = ["2.11.0"]
accelerator = "cpu"
"""
BACKEND = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
UV = """\
[tool.uv]
no-binary = true
no-build = false
[tool.uv.pip]
no-binary = [":all:"]
[tool.uv.sources]
six = { path = ".", editable = true }
"""


def plant(tree: Path, witness: Path) -> None:
    """Fill an empty folder with traps that write into ``witness``."""

    def module(name: str) -> str:
        return f"open({str(witness)!r}, 'a').write({name!r} + '\\n')\n"

    def program(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {path.relative_to(tree)} >> '{witness}'\n")
        path.chmod(0o755)

    for name in PROGRAMS:
        if name not in MODULES:
            program(tree / name)
        program(tree / "bin" / name)
    for name in MODULES:
        (tree / name).mkdir()
        (tree / name / "__init__.py").write_text(module(name))
        (tree / name / "__main__.py").write_text(module(f"{name}.__main__"))
    for name in ("setup", "backend", "conftest", "noxfile"):
        (tree / f"{name}.py").write_text(module(name))
    environment = tree / ".venv"
    for name in ("python", "python3"):
        program(environment / "bin" / name)
    packages = environment / "lib/python3.12/site-packages"
    packages.mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.1\n")
    (packages / "evil.pth").write_text("import sitecustomize\n")
    (tree / ".git").mkdir()
    (tree / ".git/config").write_text(f"[core]\nfsmonitor = {tree}/evil\n")
    (tree / "ci").mkdir()
    (tree / "ci/matrix.toml").write_text(MATRIX)
    (tree / "wheelproof.toml").write_text(configuration())
    (tree / "pyproject.toml").write_text(f'{BACKEND}[project]\nname = "x"\ndynamic = ["version", "dependencies"]\n{UV}')
    (tree / "uv.toml").write_text('[pip]\nno-binary = ["evilpkg"]\n')
    (tree / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:9/simple\n")
    (tree / ".python-version").write_text(".venv/bin/python\n")
    (tree / ".env").write_text("WHEELPROOF_OUTPUT=victim.txt\nUV_INDEX_URL=http://127.0.0.1:9/simple\n")
    (tree / "requirements.txt").write_text("torch==2.8.0\n")
    (tree / "r.txt").write_text("-e .\n")
    # Each was seen to make pip, or uv, build in spite of the option that forbids it.
    (tree / "no-binary.txt").write_text("--no-binary evilpkg\nevilpkg\n")
    (tree / "nested.txt").write_text('evilpkg --no-binary evilpkg\n--pre "-e" .\n')
    (tree / "facts.json").write_text("{}")
    with tarfile.open(tree / "evilpkg-1.0.tar.gz", "w:gz") as archive:
        for name in ("pyproject.toml", "backend.py", "setup.py"):
            archive.add(tree / name, f"evilpkg-1.0/{name}")
    (tree / "job.log").write_text("RuntimeError: CUDA error: no kernel image is available for execution\n")
    WheelBuilder().write(tree)


def configuration() -> str:
    """The wheelproof.toml of the tree: every key that it may not set."""
    lines = [f"{key} = {value}" for key, value in SHARED_KEYS.items()]
    for command, keys in REFUSED.items():
        lines += [f"[{command}]", *(f"{key} = {value}" for key, value in keys.items())]
    return "\n".join(lines) + "\n"


def contents(*folders: Path) -> dict[str, tuple[int, object]]:
    """Everything below some folders: modes, bytes, the targets of links."""
    found: dict[str, tuple[int, object]] = {}
    for folder in folders:
        for place, folders_in, files in os.walk(folder):
            for name in (*folders_in, *files):
                path = Path(place, name)
                mode = path.lstat().st_mode
                content = (
                    path.read_bytes() if stat.S_ISREG(mode) else str(path.readlink()) if stat.S_ISLNK(mode) else ""
                )
                found[str(path)] = (mode, content)
    return found
