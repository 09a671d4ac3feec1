"""NVIDIA's GPUs by PCI device id: ``data/pci.toml``, read once."""

from wheel_checks.data import load


def name_of(device: str) -> str:
    """The product of a device id such as ``2335``; "" for one that the table does not have."""
    return str(load("pci")["devices"].get(device.lower(), ""))


def needs_open_modules(device: str) -> bool:
    """Whether only the open kernel modules drive this device."""
    rule = load("pci")["open_modules"]
    try:
        return device.lower() in rule["devices"] or int(device, 16) >= int(rule["from"], 16)
    except ValueError:
        return False


def needs_subnet_manager(device: str) -> bool:
    """Whether this device sits behind NVSwitches that need nvlsm."""
    return device.lower() in load("pci")["subnet_manager"]["devices"]
