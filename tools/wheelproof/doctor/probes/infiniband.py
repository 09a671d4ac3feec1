"""The ports of InfiniBand and RoCE adapters, as sysfs shows: no driver is queried, so nothing can hang."""

from collections.abc import Iterator
from pathlib import Path

from wheel_checks.facts.host.network import InfiniBandPort
from wheel_checks.model import Unavailable
from wheelproof.doctor.probes.files import first_line, names_in

_ADAPTERS = "sys/class/infiniband"
_MOST = 128  # adapters, and ports of one


def read_infiniband(root: str = "/") -> tuple[InfiniBandPort, ...] | Unavailable:
    """All ports, in order of the names of their adapters. A machine without such adapters has none."""
    if not Path(root, "sys").is_dir():
        return Unavailable("there is no /sys", "mount sysfs")
    top = Path(root, _ADAPTERS)
    return tuple(port for name in names_in(top, _MOST) for port in _ports(top / name))


def _ports(adapter: Path) -> Iterator[InfiniBandPort]:
    """The ports of an adapter; the kernel's Documentation/ABI/stable/sysfs-class-infiniband names the files."""
    for number in names_in(adapter / "ports", _MOST):
        folder = adapter / "ports" / number
        yield InfiniBandPort(
            adapter=adapter.name,
            port=int(number) if number.isdecimal() else 0,
            state=first_line(folder / "state").partition(":")[2].strip(),
            rate=first_line(folder / "rate"),
            layer=first_line(folder / "link_layer"),
            firmware=first_line(adapter / "fw_ver"),
            board=first_line(adapter / "board_id"),
        )
