"""Builders of small real wheels, and of wheels with exactly one thing broken.

WheelBuilder().add("demo/__init__.py", b"").build()
WheelBuilder().add("../evil", b"x").build()
WheelBuilder().add("demo/a.py", b"x", directory={"size": 9}).record_row("demo/a.py", None).write(tmp_path)
torch_like("cpu", "2.10.0", machine="aarch64").write(tmp_path)
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.elf import Elf
from tests.support.zips import ZipEntry, write_zip

ELF_MACHINES = {"x86_64": 62, "aarch64": 183}


class WheelBuilder:
    """Collects members and builds a wheel; METADATA, WHEEL and RECORD are written unless the wheel says otherwise.

    ``tags`` is the compressed tag set of the file name (``cp312-cp312-manylinux_2_28_aarch64``); ``name`` and
    ``version`` are used as they are in the file name, the dist-info folder and METADATA.
    """

    def __init__(
        self, name: str = "demo", version: str = "1.0", tags: str = "py3-none-any", build: str = "", dist_info: str = ""
    ) -> None:
        self.name, self.version, self.tags, self.build_tag = name, version, tags, build
        self.dist_info = dist_info or f"{name}-{version}.dist-info"
        self._entries: list[ZipEntry] = []
        self._unrecorded: set[int] = set()
        self._rows: dict[str, str | None] = {}
        self._extra_rows: list[str] = []
        self._dist_info_texts: dict[str, str | bytes | None] = {}

    @property
    def file_name(self) -> str:
        """The wheel's file name, from name, version, build and tags."""
        return "-".join(filter(None, (self.name, self.version, self.build_tag, self.tags))) + ".whl"

    def add(self, path: str | bytes, data: bytes | str = b"", *, record: bool = True, **options: Any) -> Self:
        """Add a member (the same path twice makes a duplicate). ``record=False`` leaves it out of RECORD.

        ``options`` are those of :class:`ZipEntry`: method, flags, mode, zip64, payload, local, directory, ...
        """
        if not record:
            self._unrecorded.add(len(self._entries))
        self._entries.append(ZipEntry(path, data.encode() if isinstance(data, str) else data, **options))
        return self

    def symlink(self, path: str, target: str) -> Self:
        """Add a symbolic link."""
        return self.add(path, target, method=0, mode=0o120777)

    def encrypted(self, path: str, data: bytes = b"secret") -> Self:
        """Add a member whose headers say that it is encrypted."""
        return self.add(path, data, flags=0x1)

    def metadata(
        self,
        *fields: str,
        requires: Sequence[str] = (),
        requires_python: str = "",
        metadata_version: str = "2.4",
        name: str | None = None,
        version: str | None = None,
    ) -> Self:
        """Say what METADATA holds; ``fields`` are more lines (``Provides-Extra: all``). "" leaves a field out."""
        lines = {
            "Metadata-Version": metadata_version,
            "Name": self.name if name is None else name,
            "Version": self.version if version is None else version,
            "Requires-Python": requires_python,
        }
        text = [f"{field}: {value}" for field, value in lines.items() if value]
        text += [*fields, *(f"Requires-Dist: {requirement}" for requirement in requires)]
        return self.dist_info_file("METADATA", "\n".join(text) + "\n")

    def wheel(
        self,
        *fields: str,
        tags: Sequence[str] | None = None,
        root_is_purelib: str | None = None,
        wheel_version: str = "1.0",
        build: str | None = None,
    ) -> Self:
        """Say what WHEEL holds; ``tags`` are the Tag lines. By default all of it agrees with the file name."""
        purelib = ("true" if self.tags.endswith("-any") else "false") if root_is_purelib is None else root_is_purelib
        build_tag = self.build_tag if build is None else build
        text = [f"Wheel-Version: {wheel_version}", "Generator: tests (1.0)"]
        text += [f"Root-Is-Purelib: {purelib}"] if purelib else []
        text += [f"Build: {build_tag}"] if build_tag else []
        text += [*(f"Tag: {tag}" for tag in (expand_tags(self.tags) if tags is None else tags)), *fields]
        return self.dist_info_file("WHEEL", "\n".join(text) + "\n")

    def dist_info_file(self, name: str, content: str | bytes | None) -> Self:
        """Set a file of the dist-info folder (METADATA, WHEEL, RECORD, entry_points.txt); None leaves it out."""
        self._dist_info_texts[name] = content
        return self

    def record_row(self, path: str, row: str | None) -> Self:
        """Replace the RECORD row of ``path`` by the line ``row``, or leave it out (None)."""
        self._rows[path] = row
        return self

    def record_extra(self, row: str) -> Self:
        """Add a line to RECORD, for instance of a member that does not exist."""
        self._extra_rows.append(row)
        return self

    def build(
        self,
        *,
        record: bool = True,
        comment: bytes = b"",
        prefix: bytes = b"",
        suffix: bytes = b"",
        before_directory: bytes = b"",
        zip64: bool = False,
        end: Mapping[str, int] | None = None,
    ) -> bytes:
        """The wheel's bytes. ``record=False`` leaves RECORD out; the other options are those of :func:`write_zip`."""
        for name, set_default in (("METADATA", self.metadata), ("WHEEL", self.wheel)):
            if name not in self._dist_info_texts:
                set_default()
        entries = list(self._entries)
        for name, content in self._dist_info_texts.items():
            if content is not None:
                data = content.encode() if isinstance(content, str) else content
                entries.append(ZipEntry(f"{self.dist_info}/{name}", data))
        if record and "RECORD" not in self._dist_info_texts:
            entries.append(ZipEntry(f"{self.dist_info}/RECORD", self._record_text(entries).encode()))
        around = {"comment": comment, "prefix": prefix, "suffix": suffix, "before_directory": before_directory}
        return write_zip(entries, **around, zip64=zip64, end=end)

    def write(self, folder: Path, file_name: str = "", **options: Any) -> Path:
        """Write the wheel into ``folder`` under its own name, or ``file_name``, and return its path."""
        path = folder / (file_name or self.file_name)
        path.write_bytes(self.build(**options))
        return path

    def _record_text(self, entries: Sequence[ZipEntry]) -> str:
        rows = []
        for number, entry in enumerate(entries):
            path = entry.raw_name.decode("utf-8", "replace")
            if number in self._unrecorded or path.endswith("/"):
                continue
            row = self._rows.get(path, record_row(path, entry.data))
            rows += [] if row is None else [row]
        own = f"{self.dist_info}/RECORD"
        own_row = self._rows.get(own, f"{own},,")
        return "".join(f"{row}\n" for row in [*rows, *self._extra_rows, *([] if own_row is None else [own_row])])


def record_row(path: str, data: bytes) -> str:
    """The line of RECORD for a member, quoted as CSV when its path needs that."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    quoted = '"' + path.replace('"', '""') + '"' if set(path) & set(',"\r\n') else path
    return f"{quoted},sha256={digest},{len(data)}"


def expand_tags(compressed: str) -> list[str]:
    """The single tags of a compressed tag set, as WHEEL lists them: ``py2.py3-none-any`` gives two."""
    pythons, abis, platforms = (part.split(".") for part in compressed.split("-"))
    return [f"{p}-{a}-{m}" for p in pythons for a in abis for m in platforms]


def elf_stub(machine: str = "x86_64") -> bytes:
    """The 64-byte header of a 64-bit little-endian shared object for ``machine``, and some filling."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 3, ELF_MACHINES[machine], 1, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0)
    return ident + header + bytes(192)


def gpu_library(machine: str = "x86_64", needed: Sequence[str] = (), *, section: str = ".nv_fatbin") -> bytes:
    """A shared library that contains something in ``section`` ("" if none) and needs the libraries ``needed``."""
    contents = {section: bytes(16)} if section else {}
    return Elf(machine=ELF_MACHINES[machine], needed=needed, contents=contents, alignment=0x10000).build().data


def torch_like(
    accelerator: str = "cuda",
    version: str = "2.11.0",
    machine: str = "aarch64",
    python: str = "cp312",
    build: str = "",
) -> WheelBuilder:
    """A small wheel in the shape of torch's: ``accelerator`` is cuda, cpu, rocm or xpu.

    ``version`` is that of METADATA and the file name, 2.10.x for CUDA 12.8 and requirements limited to x86_64 (the CPU
    wheel for aarch64 has the same METADATA), anything else for CUDA 13.0 and requirements for all of Linux. A local
    part in ``version`` (``2.11.0+cpu``) is kept; only ``torch/version.py`` names the accelerator otherwise.
    """
    old = version.startswith("2.10.")
    cuda = "12.8" if old else "13.0"
    local = {"cuda": "cu" + cuda.replace(".", ""), "cpu": "cpu", "rocm": "rocm7.1", "xpu": "xpu"}[accelerator]
    libraries = ["libtorch", "libtorch_cpu", "libtorch_python", "libc10", "libshm"]
    libraries += {"cuda": ["libtorch_cuda", "libc10_cuda"], "rocm": ["libtorch_hip", "libc10_hip"]}.get(accelerator, [])
    libraries += ["libtorch_xpu", "libc10_xpu"] if accelerator == "xpu" else []
    requires = ["filelock", "typing-extensions>=4.10.0", "sympy>=1.13.3", 'optree>=0.13.0; extra == "optree"']
    requires += _nvidia_requirements(old) if accelerator == "cuda" or old else []
    wheel = WheelBuilder("torch", version, f"{python}-{python}-manylinux_2_28_{machine}", build)
    wheel.add("torch/__init__.py", "from .version import __version__\n")
    wheel.add(
        "torch/version.py",
        "from typing import Optional\n\n"
        "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']\n"
        f"__version__ = '{version.partition('+')[0]}+{local}'\n"
        "debug = False\n"
        f"cuda: Optional[str] = {cuda if accelerator == 'cuda' else None!r}\n"
        "git_version = '449b1768410104d3ed79d3bcfe4ba1d65c7f22c0'\n"
        f"hip: Optional[str] = {'7.1.25424' if accelerator == 'rocm' else None!r}\n"
        f"rocm: Optional[str] = {'7.1.0' if accelerator == 'rocm' else None!r}\n"
        f"xpu: Optional[str] = {'20250301' if accelerator == 'xpu' else None!r}\n",
    )
    for library in libraries:
        wheel.add(f"torch/lib/{library}.so", _torch_library(library, machine))
    wheel.metadata("Provides-Extra: optree", requires=requires, requires_python=">=3.10", metadata_version="2.1")
    return wheel


_SECTIONS = {"cuda": ".nv_fatbin", "hip": ".hip_fatbin", "xpu": "__CLANG_OFFLOAD_BUNDLE__sycl-spir64"}


def _torch_library(name: str, machine: str) -> bytes:
    """As torch builds it: the library of an accelerator has code for it."""
    section = _SECTIONS.get(name.rpartition("_")[2])
    return gpu_library(machine, section=section) if section else elf_stub(machine)


def _nvidia_requirements(old: bool) -> list[str]:
    if not old:
        everywhere = 'platform_system == "Linux"'
        return [
            f"cuda-toolkit[cublas,cudart,cufft,curand,cusolver,cusparse,nvjitlink,nvrtc]==13.0.2; {everywhere}",
            f"cuda-bindings<14,>=13.0.3; {everywhere}",
            f"nvidia-cudnn-cu13==9.19.0.56; {everywhere}",
            f"nvidia-nccl-cu13==2.28.9; {everywhere}",
            f"triton==3.6.0; {everywhere}",
        ]
    only_x86_64 = 'platform_system == "Linux" and platform_machine == "x86_64"'
    return [
        f"nvidia-cuda-runtime-cu12==12.8.90; {only_x86_64}",
        f"nvidia-cublas-cu12==12.8.4.1; {only_x86_64}",
        f"nvidia-cudnn-cu12==9.10.2.21; {only_x86_64}",
        f"nvidia-nccl-cu12==2.27.5; {only_x86_64}",
        f"triton==3.6.0; {only_x86_64}",
    ]
