"""System, PCI, driver, nodes and services, read from fake roots and from this host."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from wheel_checks.facts.host.gpus.devices import KfdGpu, OtherDrivers, PciDevice
from wheel_checks.facts.host.network import InfiniBandPort
from wheel_checks.model import Unavailable
from wheelproof.doctor.probes.driver import read_driver
from wheelproof.doctor.probes.infiniband import read_infiniband
from wheelproof.doctor.probes.nodes import read_nodes
from wheelproof.doctor.probes.other_drivers import read_other_drivers, target_of
from wheelproof.doctor.probes.pci import read_pci
from wheelproof.doctor.probes.services import read_services
from wheelproof.doctor.probes.system import read_system

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.159.04  Release Build  (dvs-builder@U22)\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build\n"
DPKG = """\
Package: nvidia-fabricmanager-580
Status: install ok installed
Priority: optional
Architecture: amd64
Version: 580.159.04-1

Package: zlib1g
Status: install ok installed
Version: 1:1.3
"""


def write(root: Path, path: str, content: str | bytes = "") -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.encode() if isinstance(content, str) else content)


def device(
    root: Path, address: str, vendor: str, number: str, kind: str, driver: str = "", config: bytes = b""
) -> None:
    folder = f"sys/bus/pci/devices/{address}"
    for name, value in (("vendor", vendor), ("device", number), ("class", kind)):
        write(root, f"{folder}/{name}", f"0x{value}\n")
    write(root, f"{folder}/config", config or b"\xde\x10" + bytes(62))
    if driver:
        (root / folder / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")


def devices(root: Path) -> tuple[PciDevice, ...]:
    found = read_pci(str(root))
    assert not isinstance(found, Unavailable)
    return found


def test_gpus_are_found_with_name_and_driver_and_other_devices_are_left_out(tmp_path: Path) -> None:
    device(tmp_path, "0000:18:00.0", "10de", "2335", "030200", "nvidia")
    device(tmp_path, "0000:05:00.0", "10de", "22a3", "068000", "nvidia-nvswitch")
    device(tmp_path, "0000:00:1f.0", "8086", "a1c1", "060100")
    gpu, switch = sorted(devices(tmp_path), key=lambda one: one.class_)
    assert (gpu.name, gpu.driver, gpu.is_nvidia_gpu, gpu.gone) == ("NVIDIA H200", "nvidia", True, False)
    assert switch.is_nvswitch
    assert not switch.is_nvidia_gpu


def test_a_device_that_fell_off_the_bus_reads_ones(tmp_path: Path) -> None:
    device(tmp_path, "0000:18:00.0", "10de", "2330", "030200", "nvidia", b"\xff" * 64)
    assert devices(tmp_path)[0].gone


def test_a_device_beyond_the_table_has_no_name(tmp_path: Path) -> None:
    device(tmp_path, "0000:18:00.0", "10de", "fffe", "030200")
    assert (devices(tmp_path)[0].name, devices(tmp_path)[0].driver) == ("", "")


def test_without_sysfs_nothing_is_known(tmp_path: Path) -> None:
    assert isinstance(read_pci(str(tmp_path)), Unavailable)


@pytest.mark.parametrize(("line", "is_open"), [(OPEN, True), (CLOSED, False)])
def test_the_kernel_module_tells_version_and_kind(tmp_path: Path, line: str, is_open: bool) -> None:
    write(tmp_path, "proc/driver/nvidia/version", line)
    write(tmp_path, "proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nDeviceFileMode: 438\n")
    write(tmp_path, "proc/driver/nvidia/gpus/0000:18:00.0/information")
    write(tmp_path, "proc/devices", "Character devices:\n195 nvidia\n195 nvidiactl\n508 nvidia-uvm\n  1 mem\n")
    (tmp_path / "sys/module/nvidia_uvm").mkdir(parents=True)
    driver = read_driver(str(tmp_path))
    assert (driver.version, driver.open, driver.gpus) == ("580.159.04", is_open, 1)
    assert driver.device_file_mode == "0666"
    assert driver.majors == ("nvidia", "nvidiactl", "nvidia-uvm")
    assert driver.modules == ("nvidia_uvm",)


def test_modules_on_disk_are_listed_by_kernel(tmp_path: Path) -> None:
    write(tmp_path, "lib/modules/6.8.0-1-generic/updates/dkms/nvidia.ko.zst")
    write(tmp_path, "lib/modules/6.8.0-2-generic/kernel/fs/ext4.ko")
    assert read_driver(str(tmp_path)).built_for == ("6.8.0-1-generic",)


def test_the_log_is_read_for_what_concerns_the_gpu(tmp_path: Path) -> None:
    write(
        tmp_path,
        "var/log/kern.log",
        "usb 1-1: new device\nNVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus\n",
    )
    assert read_driver(str(tmp_path)).kernel_messages == ("NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus",)


def test_an_empty_machine_has_no_driver(tmp_path: Path) -> None:
    driver = read_driver(str(tmp_path))
    assert (driver.version, driver.open, driver.modules, driver.kernel_messages) == ("", None, (), ())


def test_nodes_are_opened_and_missing_ones_are_reported_where_a_driver_is(tmp_path: Path) -> None:
    write(tmp_path, "dev/nvidiactl")
    write(tmp_path, "dev/nvidia-caps-imex-channels/channel0")
    nodes = {node.path: node for node in read_nodes(str(tmp_path))}
    assert nodes["/dev/nvidiactl"].error == ""
    assert nodes["/dev/nvidia-uvm"].error == "ENOENT"
    assert nodes["/dev/nvidia-caps-imex-channels/channel0"].error == ""
    assert read_nodes(str(tmp_path / "elsewhere")) == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_node_of_another_user_gives_its_error_and_its_owner(tmp_path: Path) -> None:
    write(tmp_path, "dev/nvidiactl")
    (tmp_path / "dev/nvidiactl").chmod(0o660)
    for folder in (tmp_path, *tmp_path.parents):
        if folder != Path("/") and folder.stat().st_uid == 0 and str(folder).startswith(str(tmp_path.parents[2])):
            folder.chmod(0o755)
    code = (
        "import os, sys; from wheelproof.doctor.probes.nodes import read_nodes; os.setgroups([]); os.setgid(65534);"
        "os.setuid(65534); node = read_nodes(sys.argv[1])[0]; print(node.error, node.mode, node.owner, node.group)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["EACCES", "0660", "root", "root"], done.stderr


def test_services_are_seen_by_process_and_package(tmp_path: Path) -> None:
    write(tmp_path, "proc/17/comm", "nv-fabricmanage\n")
    write(tmp_path, "proc/18/comm", "bash\n")
    write(tmp_path, "var/lib/dpkg/status", DPKG)
    write(tmp_path, "etc/nvidia-imex/nodes_config.cfg", "# nodes\n10.0.0.1\n10.0.0.2\n")
    services = read_services(str(tmp_path))
    assert services.processes == ("nv-fabricmanager",)
    assert services.fabric_manager == "580.159.04"
    assert services.imex_nodes == ("10.0.0.1", "10.0.0.2")


def test_a_removed_package_is_no_installed_one(tmp_path: Path) -> None:
    write(tmp_path, "var/lib/dpkg/status", DPKG.replace("install ok installed", "deinstall ok config-files", 1))
    assert read_services(str(tmp_path)).fabric_manager == ""


def test_the_system_of_a_root_is_known_by_its_files(tmp_path: Path) -> None:
    write(tmp_path, "proc/version", "Linux version 6.8.0-1028-nvidia-64k (buildd@x) (gcc) #1 SMP\n")
    write(tmp_path, "etc/os-release", 'ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\n')
    write(tmp_path, "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", b"\x06\0\0\0\x01")
    write(tmp_path, "sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    write(tmp_path, "etc/nv_tegra_release", "# R38 (release), REVISION: 2.0\n")
    write(tmp_path, "proc/meminfo", "MemTotal:       1024 kB\nCmaFree:  0 kB\n")
    system = read_system(str(tmp_path))
    assert system.kernel == "6.8.0-1028-nvidia-64k"
    assert (system.os_id, system.os_name) == ("ubuntu", "Ubuntu 24.04.3 LTS")
    assert (system.secure_boot, system.lockdown) == (True, "integrity")
    assert system.tegra.startswith("# R38")
    assert (system.memory_bytes, system.cma_free_bytes) == (1048576, 0)


def test_windows_subsystem_is_known_by_its_kernel(tmp_path: Path) -> None:
    write(tmp_path, "proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x)\n")
    assert read_system(str(tmp_path)).wsl


def test_this_machine_is_read_without_a_fault() -> None:
    system = read_system()
    assert system.machine == os.uname().machine
    assert system.kernel == os.uname().release
    assert system.page_size == os.sysconf("SC_PAGESIZE")
    assert system.memory_bytes > 0
    assert system.user == pwd.getpwuid(os.geteuid()).pw_name
    assert read_driver().version_line == "" or read_driver().version
    assert isinstance(read_services().processes, tuple)


def test_the_drivers_of_other_makers(tmp_path: Path) -> None:
    write(tmp_path, "sys/module/amdgpu/version", "6.16.6\n")
    write(tmp_path, "opt/rocm/.info/version", "7.2.0-43\n")
    write(tmp_path, "dev/kfd")
    for name in ("renderD128", "renderD129", "card0"):
        write(tmp_path, f"dev/dri/{name}")
    nodes = "sys/class/kfd/kfd/topology/nodes"
    write(tmp_path, f"{nodes}/0/properties", "cpu_cores_count 64\nsimd_count 0\ngfx_target_version 0\n")
    write(
        tmp_path,
        f"{nodes}/1/properties",
        "simd_count 1216\ngfx_target_version 90402\nvendor_id 4098\ndevice_id 29857\ndrm_render_minor 128\n",
    )
    write(tmp_path, "usr/lib64/libze_loader.so.1")
    found = read_other_drivers(str(tmp_path))

    assert (found.modules, found.amdgpu, found.rocm) == (("amdgpu",), "6.16.6", "7.2.0-43")
    assert [node.path for node in found.nodes] == ["/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129"]
    assert found.gpus == (KfdGpu(1, "gfx942", "/dev/dri/renderD128", "74a1"),)
    assert found.level_zero == {"libze_loader.so.1": "/usr/lib64/libze_loader.so.1"}


def test_a_missing_kfd_is_reported_where_amdgpu_is_loaded(tmp_path: Path) -> None:
    write(tmp_path, "sys/module/amdgpu/version")
    assert [(node.path, node.error) for node in read_other_drivers(str(tmp_path)).nodes] == [("/dev/kfd", "ENOENT")]
    assert read_other_drivers(str(tmp_path / "sys")) == OtherDrivers()


@pytest.mark.parametrize(
    ("version", "target"),
    [
        (90402, "gfx942"),
        (90010, "gfx90a"),
        (90012, "gfx90c"),
        (90500, "gfx950"),
        (100300, "gfx1030"),
        (110501, "gfx1151"),
        (120001, "gfx1201"),
        (0, ""),
        (99, ""),
        (90099, ""),
        (10**9, ""),
    ],
)
def test_the_target_of_a_gpu(version: int, target: str) -> None:
    assert target_of(version) == target


def test_an_instinct_is_a_processing_accelerator(tmp_path: Path) -> None:
    device(tmp_path, "0000:05:00.0", "1002", "74a1", "120000", "amdgpu")
    device(tmp_path, "0000:06:00.0", "8086", "4940", "120000")
    assert [(one.maker, one.driver) for one in devices(tmp_path)] == [("AMD", "amdgpu"), ("", "")]


def test_a_tegra_is_known_by_its_device_tree(tmp_path: Path) -> None:
    write(tmp_path, "proc/device-tree/compatible", b"nvidia,p3737-0000+p3701-0000\0nvidia,tegra234\0")
    assert read_system(str(tmp_path)).tegra == "nvidia,tegra234"
    write(tmp_path, "etc/nv_tegra_release", "# R36 (release), REVISION: 4.3\n")
    assert read_system(str(tmp_path)).tegra == "# R36 (release), REVISION: 4.3"


def port(root: Path, adapter: str, state: str = "4: ACTIVE", rate: str = "400 Gb/sec (4X NDR)") -> None:
    folder = f"sys/class/infiniband/{adapter}"
    for name, value in (("fw_ver", "28.39.1002"), ("board_id", "MT_0000000838")):
        write(root, f"{folder}/{name}", f"{value}\n")
    for name, value in (("state", state), ("rate", rate), ("link_layer", "InfiniBand")):
        write(root, f"{folder}/ports/1/{name}", f"{value}\n")


def test_infiniband_ports(tmp_path: Path) -> None:
    port(tmp_path, "mlx5_0")
    port(tmp_path, "mlx5_1", "1: DOWN", "10 Gb/sec (1X SDR)")
    found = read_infiniband(str(tmp_path))

    active = InfiniBandPort("mlx5_0", 1, "ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand", "28.39.1002", "MT_0000000838")
    assert found == (active, replace(active, adapter="mlx5_1", state="DOWN", rate="10 Gb/sec (1X SDR)"))
    assert read_infiniband(str(tmp_path / "sys")) == Unavailable("there is no /sys", "mount sysfs")


def test_an_adapter_whose_files_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "sys/class/infiniband/mlx5_0/ports/1").mkdir(parents=True)
    assert read_infiniband(str(tmp_path)) == (InfiniBandPort("mlx5_0", 1),)


def test_xids_of_the_log(tmp_path: Path) -> None:
    assert read_driver(str(tmp_path)).xids is None
    write(tmp_path, "var/log/kern.log", "usb 1-1: new device\n")
    assert read_driver(str(tmp_path)).xids == ()
    line = "NVRM: Xid (PCI:0000:18:00): "
    write(tmp_path, "var/log/kern.log", f"{line}94, Contained\n{line}63, Row\n{line}94, Contained\nNVRM: Xid (x): no\n")
    assert read_driver(str(tmp_path)).xids == (63, 94)


def test_the_version_of_the_firmware(tmp_path: Path) -> None:
    write(tmp_path, "sys/class/dmi/id/bios_version", "02.04.07\n")
    assert read_system(str(tmp_path)).firmware == "02.04.07"
