"""Facts of Triton: on fake roots, with real programs, and of the Tritons on this host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.hosts import healthy, kernel_fails
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Finding
from wheel_checks.rules.host.triton.ptxas import ptxas_not_executable
from wheelproof.doctor.children import Budget
from wheelproof.doctor.probes.triton import cache_folder, mount_of, read_triton

SITE = "/env/lib/python3.12/site-packages"
COMPILERS = {
    "3.6.0": "def get_ptxas(arch: int):\n    return knobs.blackwell if arch >= 100 else knobs.ptxas\n\n\nx = 1\n",
    "3.9.0": "def get_ptxas(arch: int):\n    if arch < 90:\n        return knobs.ptxas\n    return knobs.blackwell\n",
}


def write(root: Path, path: str, text: str = "", mode: int = 0o644) -> Path:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(mode)
    return place


def fake(root: Path, version: str = "3.6.0", *owners: str) -> Path:
    write(root, f"{SITE}/triton/__init__.py", f'"""Triton"""\n__version__ = \'{version}\'\n')
    write(root, f"{SITE}/triton/backends/nvidia/compiler.py", COMPILERS.get(version, ""))
    write(root, f"{SITE}/triton/backends/nvidia/bin/ptxas", "", 0o755)
    for owner in owners or ("triton",):
        write(root, f"{SITE}/{owner}-{version}.dist-info/RECORD", "triton/__init__.py,sha256=x,1\n")
    return root


def read(root: Path, **environ: str):  # type: ignore[no-untyped-def]  # as read_triton
    found = read_triton(str(root), search_path=("", "/nowhere", SITE), environ=environ)
    assert found is not None
    return found


def test_without_triton_there_is_none(tmp_path: Path) -> None:
    assert read_triton(str(tmp_path), search_path=(SITE,), environ={}) is None


def test_version_owners_and_threshold_come_from_files(tmp_path: Path) -> None:
    found = read(fake(tmp_path, "3.6.0", "triton", "pytorch_triton"))
    assert (found.version, found.folder, found.blackwell_from) == ("3.6.0", f"{SITE}/triton", 100)
    assert set(found.owners) == {"triton", "pytorch-triton"}


@pytest.mark.parametrize(
    ("source", "threshold"),
    [
        (COMPILERS["3.6.0"], 100),
        (COMPILERS["3.9.0"], 90),
        ("def _path_to_binary(binary): ...\n", 0),
        ("from elsewhere import ptxas_blackwell\n", -1),
    ],
)
def test_the_threshold_is_what_the_source_says(tmp_path: Path, source: str, threshold: int) -> None:
    write(fake(tmp_path), f"{SITE}/triton/backends/nvidia/compiler.py", source)
    assert read(tmp_path).blackwell_from == threshold


def test_a_ptxas_without_its_executable_bit_is_seen_on_another_root(tmp_path: Path) -> None:
    (fake(tmp_path) / f".{SITE}/triton/backends/nvidia/bin/ptxas").chmod(0o644)
    (ptxas,) = read(tmp_path).ptxas
    assert (ptxas.version, ptxas.error) == ("", "Permission denied")


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"TRITON_CACHE_DIR": "/c", "TRITON_HOME": "/t", "HOME": "/h"}, "/c"),
        ({"TRITON_HOME": "/t", "HOME": "/h"}, "/t/.triton/cache"),
        ({"HOME": "/h/"}, "/h/.triton/cache"),
        ({"HOME": "/"}, "/.triton/cache"),
        ({"HOME": ""}, "/.triton/cache"),
    ],
)
def test_the_cache_is_where_triton_has_it(environ: dict[str, str], folder: str) -> None:
    assert cache_folder(environ) == folder


def test_the_compiler_is_gcc_before_clang_in_the_folders_of_path(tmp_path: Path) -> None:
    write(fake(tmp_path), "/a/clang", "", 0o755)
    assert read(tmp_path, PATH="/a:/b").compiler == "/a/clang"
    write(tmp_path, "/b/gcc", "", 0o755)
    assert read(tmp_path, PATH="/a:/b").compiler == "/b/gcc"
    assert read(tmp_path, PATH="/c").compiler == ""


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("/opt/cc", "it is a folder"),
        ("/opt/none", "there is no such program"),
        ("/opt/text", "it is not executable"),
        ("ccache gcc", "it contains options, but Triton takes the whole value as a program name"),
        ("icx", "there is no such program"),
        ("", "it is empty"),
        ("gcc", ""),
        ("/bin/gcc", ""),
    ],
)
def test_what_is_wrong_with_cc_is_reported(tmp_path: Path, value: str, fault: str) -> None:
    fake(tmp_path)
    (tmp_path / "opt/cc").mkdir(parents=True)
    write(tmp_path, "/opt/text")
    for name in ("gcc", "ccache"):
        write(tmp_path, f"/bin/{name}", "", 0o755)
    found = read(tmp_path, CC=value, PATH="/bin")
    assert (found.compiler, found.compiler_fault) == (value, fault)


MOUNTS = """\
1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw
2 1 0:9 / /home rw,noexec - nfs4 server:/home rw,vers=4.2
3 1 0:8 / /my\\040data ro - xfs /dev/sdb1 rw
4 1 0:7 / /tmp rw,nosuid,noexec - tmpfs tmpfs rw
"""


def test_the_mount_of_the_cache_is_reported(tmp_path: Path) -> None:
    write(fake(tmp_path), "/proc/self/mountinfo", MOUNTS)
    (tmp_path / "home/user").mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "my data").mkdir()
    found = read(tmp_path, HOME="/home/user")
    assert (found.cache_type, found.cache_noexec, found.cache_error, found.temporary_noexec) == ("nfs4", True, "", True)
    found = read(tmp_path, TRITON_CACHE_DIR="/my data/cache", TMPDIR="/env")
    assert "read-only file system (/my data, xfs)" in found.cache_error
    assert not found.temporary_noexec


def test_a_later_mount_covers_an_earlier_one(tmp_path: Path) -> None:
    lines = "1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /m rw - ext4 b rw\n3 1 8:3 / /m rw - nfs c rw\nbroken\n"
    write(tmp_path, "/proc/self/mountinfo", lines)
    mount = mount_of(tmp_path, str(tmp_path / "m/x"))
    assert mount is not None
    assert mount.type == "nfs"


def test_a_file_in_the_way_of_the_cache_is_reported(tmp_path: Path) -> None:
    write(fake(tmp_path), "/home/.triton", "")
    assert read(tmp_path, HOME="/home").cache_error.endswith("/.triton is a file")


def test_cached_targets_are_read_from_metadata_and_rubbish_is_passed_over(tmp_path: Path) -> None:
    fake(tmp_path)
    for number, target in enumerate(({"backend": "cuda", "arch": 90}, {"backend": "hip", "arch": "gfx942"}, 7)):
        write(tmp_path, f"/c/{number}/kernel.json", json.dumps({"target": target}))
    write(tmp_path, "/c/4/kernel.json", '{"target": {')
    write(tmp_path, "/c/5/kernel.json", "[]")
    assert read(tmp_path, TRITON_CACHE_DIR="/c").cached_targets == ("sm_90",)


# Here and now

PTXAS = """#!/bin/sh
case "$1" in
--version) echo "Cuda compilation tools, release 12.8, V12.8.93";;
--help) echo "--gpu-name <gpu name>  Allowed values for this option:  'compute_90','sm_90',"
    echo "'sm_90a'. Default value: 'sm_75'";;
esac
"""


def here(tmp_path: Path, **environ: str):  # type: ignore[no-untyped-def]  # as read_triton
    fake(tmp_path)
    entry = f"{tmp_path}{SITE}"
    write(tmp_path, f"{SITE}/triton/backends/nvidia/bin/ptxas", PTXAS, 0o755)
    found = read_triton(search_path=(entry,), environ={"PATH": os.environ["PATH"], **environ}, budget=Budget(20))
    assert found is not None
    return found


def test_a_real_program_is_queried_for_its_version_and_gpus(tmp_path: Path) -> None:
    (ptxas,) = here(tmp_path).ptxas
    assert (ptxas.version, ptxas.knows, ptxas.error) == ("12.8.93", ("sm_90", "sm_90a"), "")


def test_the_ptxas_that_variables_name_are_queried_too(tmp_path: Path) -> None:
    silent = write(tmp_path, "silent", "#!/bin/sh\nexit 3\n", 0o755)
    found = here(tmp_path, TRITON_PTXAS_PATH=str(silent), TRITON_PTXAS_BLACKWELL_PATH="/nowhere/ptxas").ptxas
    assert [p.role for p in found] == ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "ptxas"]
    assert found[0].error == "it does not report its version"
    assert "No such file" in found[1].error


def test_a_ptxas_that_hangs_costs_its_deadline(tmp_path: Path) -> None:
    sleeper = write(tmp_path, "sleeper", "#!/bin/sh\nexec sleep 60\n", 0o755)
    fake(tmp_path)
    environ = {"PATH": os.environ["PATH"], "TRITON_PTXAS_PATH": str(sleeper)}
    found = read_triton(search_path=(f"{tmp_path}{SITE}",), environ=environ, budget=Budget(0.5))
    assert found is not None
    assert found.ptxas[0].error.startswith("it did not answer within")


def test_the_fix_for_a_lost_executable_bit_works(tmp_path: Path) -> None:
    here(tmp_path)
    (tmp_path / f".{SITE}/triton/backends/nvidia/bin/ptxas").chmod(0o644)

    def findings() -> list[Finding]:
        entry = f"{tmp_path}{SITE}"
        triton = read_triton(search_path=(entry,), environ={"PATH": os.environ["PATH"]}, budget=Budget(20))
        message = "PermissionError: [Errno 13] Permission denied: ptxas"
        return list(ptxas_not_executable(kernel_fails(healthy(triton=triton), message), Expectations()))

    (finding,) = findings()
    assert finding.fix is not None
    subprocess.run(finding.fix.lines[0], shell=True, check=True)
    assert findings() == []


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="mounting needs root and unshare")
@pytest.mark.parametrize(("options", "says"), [("noexec", "'' True"), ("ro", "read-only"), ("rw", "'' False")])
def test_a_real_mount_is_seen(tmp_path: Path, options: str, says: str) -> None:
    fake(tmp_path)
    place = tmp_path / "cache"
    place.mkdir()
    code = (
        "from wheelproof.doctor.probes.triton import read_triton;"
        f"f = read_triton(search_path=('{tmp_path}{SITE}',), environ={{'TRITON_CACHE_DIR': '{place}/x'}});"
        "print(repr(f.cache_error), f.cache_noexec)"
    )
    script = f'mount -t tmpfs -o {options} none "{place}" && exec "{sys.executable}" -c "{code}"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if "permission denied" in done.stderr.lower():
        pytest.skip("mounting is not allowed here")
    assert says in done.stdout, done.stderr


def real_tritons() -> list[Path]:
    """The site-packages of the environment of kernels, when it is present."""
    return sorted(Path(__file__).parents[2].glob(".venv-kernels/lib/python3*/site-packages"))


@pytest.mark.skipif(not real_tritons(), reason="needs .venv-kernels with a real Triton")
def test_what_the_help_of_a_real_ptxas_lists_is_what_it_accepts(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    found = read_triton(search_path=(str(real_tritons()[0]),), environ=environ)
    assert found is not None
    assert found.owners == ("triton",)
    assert found.blackwell_from in {90, 100}
    assert found.cache_error == ""
    empty = write(tmp_path, "empty.ptx", ".version 6.0\n.target sm_50\n.address_size 64\n")
    for ptxas in found.ptxas:
        assert ptxas.version
        for name in ("sm_80", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_121a", "sm_999"):
            command = [ptxas.path, f"--gpu-name={name}", str(empty), "-o", "/dev/null"]
            trial = subprocess.run(command, capture_output=True, check=False)
            assert (trial.returncode == 0) == (name in ptxas.knows), (ptxas.path, name)
