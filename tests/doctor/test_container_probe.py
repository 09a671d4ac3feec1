"""Facts from the files and the sandbox of a container, on fake roots and a real one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wheelproof.doctor.probes.container import read_container
from wheelproof.doctor.probes.limits import read_limits


def write(root: Path, path: str, text: str = "") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        (".dockerenv", "", "docker"),
        ("run/.containerenv", "", "podman"),
        (".singularity.d/env/01-base.sh", "", "apptainer"),
        ("proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope\n", "kubernetes"),
        ("proc/1/cgroup", "12:devices:/docker/0123456789abcdef\n", "docker"),
        ("proc/self/mountinfo", "1 2 0:5 / / rw - overlay overlay lowerdir=/var/lib/docker/overlay2/l/X\n", "docker"),
        ("proc/1/cgroup", "0::/init.scope\n", ""),
        ("proc/self/mountinfo", "1 2 8:1 / /data rw - ext4 /var/lib/docker/x rw\n", ""),
    ],
)
def test_a_container_is_known_by_its_marks(tmp_path: Path, path: str, text: str, kind: str) -> None:
    write(tmp_path, path, text)
    found = read_container(str(tmp_path), {})
    assert found.kind == kind
    assert bool(found.marks) == bool(kind)


@pytest.mark.parametrize(
    ("environ", "kind"),
    [
        ({"KUBERNETES_SERVICE_HOST": "x"}, "kubernetes"),
        ({"container": "podman"}, "podman"),
        ({"container": "oci"}, "lxc"),
    ],
)
def test_a_container_is_known_by_its_variables(tmp_path: Path, environ: dict[str, str], kind: str) -> None:
    assert read_container(str(tmp_path), environ).kind == kind


def test_a_cdi_specification_is_read_in_both_formats(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/libcuda.so.580.1")
    specification = {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "devices": [{"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}}],
        "containerEdits": {
            "mounts": [
                {"hostPath": "/usr/lib/libcuda.so.580.1", "containerPath": "/usr/lib/libcuda.so.580.1"},
                {"hostPath": "/usr/lib/libcuda.so.570.1", "containerPath": "/usr/lib/libcuda.so.570.1"},
            ]
        },
    }
    write(tmp_path, "etc/cdi/nvidia.json", json.dumps(specification))
    yaml = (
        "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n"
        '- containerEdits:\n    deviceNodes:\n    - path: /dev/nvidia0\n  name: "0"\n'
        "containerEdits:\n  mounts:\n  - containerPath: /usr/lib/libcuda.so.570.1\n"
        "    hostPath: /usr/lib/libcuda.so.570.1\n  - hostPath: /usr/lib/libcuda.so.580.1\n"
    )
    write(tmp_path, "run/cdi/nvidia.yaml", yaml)
    first, second = read_container(str(tmp_path), {}).cdi
    assert (first.path, second.path) == ("/etc/cdi/nvidia.json", "/run/cdi/nvidia.yaml")
    for found in (first, second):
        assert found.devices == ("0",)
        assert set(found.missing) == {"/dev/nvidia0", "/usr/lib/libcuda.so.570.1"}


def test_a_broken_specification_is_no_traceback(tmp_path: Path) -> None:
    write(tmp_path, "etc/cdi/nvidia.json", '{"devices": [')
    write(tmp_path, "etc/nvidia-container-runtime/config.toml", "[nvidia-container-cli\n")
    found = read_container(str(tmp_path), {})
    assert found.cdi[0].devices == ()
    assert found.runtime_options is not None
    assert "is not valid TOML" in found.runtime_options["config"]


def test_a_named_pipe_in_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "proc/1").mkdir(parents=True)
    os.mkfifo(tmp_path / "proc/1/cgroup")
    assert read_container(str(tmp_path), {}).kind == ""


def test_the_setting_that_leaves_cgroups_alone_is_found_with_its_line(tmp_path: Path) -> None:
    write(
        tmp_path, "etc/nvidia-container-runtime/config.toml", "[nvidia-container-cli]\n# comment\nno-cgroups = true\n"
    )
    options = read_container(str(tmp_path), {}).runtime_options
    assert options == {"no-cgroups": "true (/etc/nvidia-container-runtime/config.toml:3)"}


def test_here_nothing_that_cuda_needs_is_denied() -> None:
    assert read_container().denied == {}


SECCOMP = """
import ctypes, errno, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
number, action = {"x86_64": 319, "aarch64": 279}[__import__("platform").machine()], int(sys.argv[1], 0)
# load the number of the call; if it is memfd_create: the action, else allow (linux/filter.h, linux/seccomp.h)
program = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, action), (0x06, 0, 0, 0x7FFF0000)]
code = b"".join(struct.pack("HBBI", *step) for step in program)
buffer = ctypes.create_string_buffer(code)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
filter_ = Program(len(program), ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, ctypes.byref(filter_), 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
from wheelproof.doctor.probes.container import read_container
found = read_container()
print(found.seccomp, sorted(found.denied.items()))
"""


@pytest.mark.parametrize(
    ("action", "says"),
    [("0x00050001", "2 [('memfd_create', 'EPERM')]"), ("0x00030000", "2 [('memfd_create', 'SIGSYS')]")],
    ids=["errno", "trap"],
)
def test_a_real_seccomp_filter_is_seen(action: str, says: str) -> None:
    done = subprocess.run([sys.executable, "-c", SECCOMP, action], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == says, done.stderr


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="mounting needs root and unshare")
def test_a_small_shared_memory_is_seen() -> None:
    code = "from wheelproof.doctor.probes.limits import read_limits; print(read_limits().shm_bytes)"
    script = f'mount -t tmpfs -o size=65536 none /dev/shm && "{sys.executable}" -c "{code}"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if "permission denied" in done.stderr.lower():
        pytest.skip("mounting is not allowed here")
    assert done.stdout.strip() == "65536", done.stderr


def test_the_limit_of_locked_memory_is_seen() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536));"
        "from wheelproof.doctor.probes.limits import read_limits; print(read_limits().memlock_bytes)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "65536"


def test_a_root_without_shared_memory_has_none(tmp_path: Path) -> None:
    limits = read_limits(str(tmp_path))
    assert getattr(limits, "shm_bytes", None) == 0
