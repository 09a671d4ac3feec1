"""The devices on the PCI bus, as sysfs shows: no driver is queried, so nothing can hang."""

import os
from pathlib import Path

from wheel_checks.facts.host.gpu import PciDevice
from wheel_checks.facts.host.pci_names import name_of
from wheel_checks.model import Unavailable
from wheel_checks.sources.regular_file import read_start
from wheelproof.doctor.probes.files import first_line, names_in

_DEVICES = "sys/bus/pci/devices"
_NVIDIA, _OTHERS = "10de", ("0300", "0302", "0380", "1200")  # of other vendors only what displays or computes


def read_pci(root: str = "/") -> tuple[PciDevice, ...] | Unavailable:
    """All devices of NVIDIA's, and the GPUs of others. A machine without PCI (Tegra) has none."""
    top = Path(root, _DEVICES)
    if not Path(root, "sys").is_dir():
        return Unavailable("there is no /sys", "mount sysfs")
    found = (_device(top / name) for name in names_in(top))
    return tuple(one for one in found if one.vendor == _NVIDIA or one.class_.startswith(_OTHERS))


def _device(folder: Path) -> PciDevice:
    vendor, device, kind = (first_line(folder / name).removeprefix("0x") for name in ("vendor", "device", "class"))
    try:
        driver = os.path.basename(os.readlink(folder / "driver"))  # noqa: PTH115, PTH119  # text of a link, no path
    except OSError:
        driver = ""
    try:
        head = read_start(folder / "config", 64)
    except OSError:
        head = b""
    return PciDevice(
        address=folder.name,
        vendor=vendor,
        device=device,
        class_=kind,
        driver=driver,
        # The configuration space reads all ones when a device no longer answers.
        gone=bool(head) and head == b"\xff" * len(head),
        name=name_of(device) if vendor == _NVIDIA else "",
    )
