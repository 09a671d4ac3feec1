"""The services next to the driver: fabric manager, IMEX, NVLink subnet manager, MPS."""

from pathlib import Path

from wheel_checks.facts.host.gpu import Services
from wheelproof.doctor.probes.files import first_line, found_in, names_in, text_of

# The kernel keeps 15 characters of a process's name (TASK_COMM_LEN).
_PROCESSES = {
    "nv-fabricmanage": "nv-fabricmanager",
    "nvidia-imex": "nvidia-imex",
    "nvlsm": "nvlsm",
    "nvidia-cuda-mps": "nvidia-cuda-mps-control",
    "nvidia-persiste": "nvidia-persistenced",
}
_DPKG = "var/lib/dpkg/status"
_LARGEST_STATUS = 16 << 20  # bytes: a desktop has five
_MPS = "tmp/nvidia-mps/control"
_IMEX_NODES = "etc/nvidia-imex/nodes_config.cfg"


def read_services(root: str = "/") -> Services:
    """Which of them run, and what their files say. Only processes of this PID namespace are seen."""
    top = Path(root)
    nodes = text_of(top / _IMEX_NODES, 65536).splitlines()
    return Services(
        processes=tuple(sorted(_running(top))),
        fabric_manager=_fabric_manager(top),
        imex_nodes=tuple(line.strip() for line in nodes if line.strip() and not line.startswith("#")),
        mps_control=f"/{_MPS}" if (top / _MPS).exists() else "",
    )


def _running(top: Path) -> set[str]:
    names = (first_line(top / "proc" / pid / "comm") for pid in names_in(top / "proc", 100_000) if pid.isdigit())
    return {_PROCESSES[name] for name in names if name in _PROCESSES}


def _fabric_manager(top: Path) -> str:
    """The version of the installed package, without Debian's revision; "" if none exists."""
    package = r"^Package: nvidia-fabricmanager(?:-\d+)?\nStatus: install ok installed\n"
    return found_in(text_of(top / _DPKG, _LARGEST_STATUS), rf"{package}(?:.+\n)*?Version: (?:\d+:)?([\d.]+)")
