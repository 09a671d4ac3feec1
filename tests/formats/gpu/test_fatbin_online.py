"""Real libraries from the package index: our list is that of cuobjdump, which comes from the index too."""

from __future__ import annotations

import io
import platform
import re
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from elftools.elf.elffile import ELFFile

from tests.support.online import configured_index
from wheel_checks.formats.gpu.fatbin import SECTIONS, FatbinScanner, GpuCode, find_declared
from wheel_checks.formats.zip.directory import read_directory
from wheel_checks.formats.zip.end_record import MAX_TAIL, find_end_record
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import inflate_stream
from wheel_checks.sources.byte_source import ByteSource
from wheel_checks.sources.client import HttpClient

LIBRARIES = [
    ("torchaudio-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl", "torchaudio/lib/libtorchaudio.abi3.so"),
    ("torchaudio-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl", "torchaudio/lib/torchaudio_prefixctc.abi3.so"),
]
CUOBJDUMP = "nvidia_cuda_cuobjdump-13.5.37-py3-none-manylinux"


def open_wheel(client: HttpClient, wheel: str, machine: str = "") -> ByteSource:
    """The file on the index whose name starts with ``wheel`` and is for ``machine``."""
    index = configured_index()
    project = wheel.partition("-")[0].replace("_", "-")
    page = client.get_page(f"{index}/{project}/", {"Accept": "text/html"})
    link = re.search(rf'href="([^"]*/{re.escape(wheel)}[^"]*{machine}[^"]*)"', page.body.decode())
    assert link is not None
    return client.open(urljoin(page.final_url, link[1]))


def fetch(wheel: str, machine: str = "") -> zipfile.ZipFile:
    """A whole wheel."""
    with HttpClient() as client:
        source = open_wheel(client, wheel, machine)
        return zipfile.ZipFile(io.BytesIO(b"".join(source.stream(0, source.read_tail(22)[0]))))


def stream(source: ByteSource, name: str) -> Iterator[bytes]:
    """A member of a remote wheel, inflated in chunks."""
    size, tail = source.read_tail(MAX_TAIL)
    end = find_end_record(tail, size)
    members, _ = read_directory(source.read(end.directory_offset, end.directory_size), end)
    member = next(member for member in members if member.name == name)
    header = read_local_header(source.read(member.header_offset, 512))
    return inflate_stream(member, source.stream(member.header_offset + header.header_size, member.compressed_size))


def exact(library: bytes) -> GpuCode:
    """The GPU code of a library, its sections found by pyelftools."""
    code = GpuCode({}, "exact", {})
    elf = ELFFile(io.BytesIO(library))
    for section in filter(None, map(elf.get_section_by_name, SECTIONS)):
        scanner = FatbinScanner()
        for start in range(0, section.data_size, 100_003):
            scanner.feed(section.data()[start : start + 100_003])
        code += scanner.finish()
    return code


def listed(cuobjdump: Path, library: Path) -> Counter[str]:
    """How many of each label cuobjdump lists in all sections."""
    labels: Counter[str] = Counter()
    for option, prefix in (("--list-elf", "sm"), ("--list-ptx", "compute")):
        command = [str(cuobjdump), "--all-fatbin", option, str(library)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        labels.update(f"{prefix}_{sm}" for sm in re.findall(r"\.sm_(\w+)\.(?:cubin|ptx)$", output, re.MULTILINE))
    return labels


@pytest.mark.online
@pytest.mark.skipif(platform.system() != "Linux", reason="the cuobjdump on the index that we use is for Linux")
def test_real_libraries_count_as_cuobjdump_counts_them(tmp_path: Path) -> None:
    cuobjdump = tmp_path / "cuobjdump"
    with fetch(CUOBJDUMP, platform.machine()) as wheel:
        cuobjdump.write_bytes(wheel.read("nvidia/cu13/bin/cuobjdump"))
    cuobjdump.chmod(0o755)
    for wheel_name, member in LIBRARIES:
        with fetch(wheel_name) as wheel:
            library = wheel.read(member)
        path = tmp_path / Path(member).name
        path.write_bytes(library)
        code = exact(library)
        # cuobjdump does not print the f of machine code; none of these libraries has two that differ only in it
        assert Counter({label.rstrip("f"): count for label, count in code.counts.items()}) == listed(cuobjdump, path)
        assert "sm_100" in code.sass


@pytest.mark.online
@pytest.mark.parametrize(
    ("machine", "labels"),
    [("aarch64", "sm_80 sm_90 sm_100 sm_110 sm_120"), ("x86_64", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120")],
)
def test_torch_declares_what_it_is_built_for(machine: str, labels: str) -> None:
    with HttpClient() as client:
        wheel = open_wheel(client, "torch-2.11.0-cp312-cp312-manylinux_2_28", machine)
        declared = find_declared(stream(wheel, "torch/lib/libtorch_python.so"))
    assert declared is not None
    assert " ".join(declared.sass) == labels
    assert declared.ptx == ()
