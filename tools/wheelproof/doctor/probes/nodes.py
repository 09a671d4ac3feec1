"""The device nodes of NVIDIA's driver, and whether this process can open them."""

import errno
import os
import pwd
import stat
from pathlib import Path

from wheel_checks.facts.host.gpu import DeviceNode
from wheelproof.doctor.probes.files import group_name, names_in

_WANTED = ("nvidiactl", "nvidia-uvm")  # named also when they are missing
_FOLDERS = ("nvidia-caps-imex-channels",)
_MOST = 64


def read_nodes(root: str = "/") -> tuple[DeviceNode, ...]:
    """Every /dev/nvidia* below ``root``, opened for reading and writing as CUDA does; what is missing has ENOENT.

    Opening a node loads no module and starts no work. On a fake root the nodes are ordinary files.
    """
    dev = Path(root, "dev")
    names = [name for name in names_in(dev) if name.startswith("nvidia") and name not in _FOLDERS][:_MOST]
    for folder in _FOLDERS:
        names += [f"{folder}/{name}" for name in names_in(dev / folder, _MOST)]
    names = sorted(name for name in names if not (dev / name).is_dir())
    if names or Path(root, "proc/driver/nvidia/version").exists():
        names = [*names, *(name for name in _WANTED if name not in names)]
    return tuple(read_node(dev / name, f"/dev/{name}") for name in names)


def read_node(path: Path, shown: str) -> DeviceNode:
    """The node ``path``, which messages call ``shown``, and what opening it gives."""
    try:
        about = path.stat()
    except OSError as error:
        return DeviceNode(shown, "", "", "", _name(error))
    mode = f"0{stat.S_IMODE(about.st_mode):o}"
    return DeviceNode(shown, mode, _user(about.st_uid), group_name(about.st_gid), _opening(path))


def _opening(path: Path) -> str:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return _name(error)
    return ""


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error.errno))


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
