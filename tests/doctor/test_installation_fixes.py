"""Installations that real installers made and broke: the cause, and a fix that works when it is run.

The fixes are run as they are printed. They install from the configured indexes of pip and uv; here these are folders of
wheels.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.environments import library
from tests.support.hosts import healthy, torch_import_fails
from tests.support.installation import compile_library, fix_of, found, installed, loader, look
from tests.support.patients import MACHINE, NCCL, RPATH
from tests.support.probing import probe
from tests.support.real_environment import RealEnvironment
from tests.support.stub_driver import build, variables
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.host.facts import HostFacts

CUDA = 'cuda = "13.0"\nhip = None\nxpu = None\n'
TORCH_CODE = """
import ctypes, os
ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib", "libtorch_cuda.so"), mode=os.RTLD_NOW)
from torch.version import __version__
"""
HEADER = "nvidia/nccl/include/nccl.h"


class Machine(RealEnvironment):
    """A real environment, and its own index that pip and uv use; torch really loads NCCL when it is imported."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.build = root / "build"
        self.offer(self.torch_wheel(), self.nccl(), self.nccl("nvidia_nccl_cu12", "2.27.3"))

    def offer(self, *wheels: WheelBuilder) -> None:
        """Put wheels into the index that pip and uv use."""
        url = self.index("simple", *wheels)
        self.variables |= {"PIP_INDEX_URL": url, "UV_DEFAULT_INDEX": url}

    def nccl(self, name: str = "nvidia_nccl_cu13", version: str = "2.28.9") -> WheelBuilder:
        """NCCL with its own function; the packages for CUDA 12 and 13 have the same paths."""
        number = version.replace(".", "")
        code = f"int nccl{number}(void) {{ return {number}; }}\nchar filling[{number}] = {{1}};\n"  # of another size
        file = compile_library(self.build / version / "libnccl.so.2", code)
        return WheelBuilder(name, version).metadata().add(NCCL, file.read_bytes()).add(HEADER, f"// {version}")

    def torch_wheel(self, version: str = "2.11.0", nccl: str = "2.28.9") -> WheelBuilder:
        """torch, whose library needs a symbol of exactly that NCCL."""
        self.nccl(version=nccl)
        number, linked = nccl.replace(".", ""), self.build / nccl / "libnccl.so.2"
        code = f"int nccl{number}(void); int use(void) {{ return nccl{number}(); }}"
        file = compile_library(self.build / f"torch-{version}/libtorch_cuda.so", code, needed=[linked], rpath=RPATH)
        wheel = WheelBuilder("torch", version).metadata(requires=[f"nvidia-nccl-cu13=={nccl}"])
        wheel.add("torch/__init__.py", TORCH_CODE).add("torch/version.py", f"__version__ = '{version}+cu130'\n{CUDA}")
        return wheel.add("torch/lib/libtorch_cuda.so", file.read_bytes())

    def install(self, *requirements: str) -> None:
        """As the user did, by uv, which takes a twentieth of pip's time."""
        self.run(f"uv pip install -q --python {self.python} {' '.join(requirements)}")

    def install_by_pip(self, *requirements: str) -> None:
        """As the user did, where it is pip's behaviour that matters."""
        self.run(f"{self.pip} install -q {' '.join(requirements)}")

    def look(self, **variables: str) -> HostFacts:
        return look(self.python, **variables)

    def imports(self, **variables: str) -> str:
        """What ``import torch`` says, "" when it works."""
        before = " ".join(f"{name}={value}" for name, value in variables.items())
        script = "import torch\\ntry: torch.version\\nexcept Exception: raise"
        output = self.run(f"cd / && {before} {self.python} -c $'{script}' 2>&1 || true")
        return output.strip().rpartition("\n")[2]

    def mend(self, rule: str, **variables: str) -> None:
        """Run the fix that the rule prints."""
        for command in fix_of(self.look(**variables), rule):
            self.run(command)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.install("torch==2.11.0")
    assert made.imports() == ""
    assert found(made.look()) == {}
    return made


def test_an_uninstall_takes_the_files_of_the_package_that_shares_its_paths(machine: Machine) -> None:
    """B01."""
    machine.install_by_pip("nvidia-nccl-cu12==2.27.3")
    machine.install_by_pip("--force-reinstall --no-deps nvidia-nccl-cu13==2.28.9")
    machine.run(f"{machine.pip} uninstall -q -y nvidia-nccl-cu12")
    assert "libnccl.so.2: cannot open shared object file" in machine.imports()
    assert "already satisfied" in machine.run(f"{machine.pip} install nvidia-nccl-cu13==2.28.9")

    assert list(found(machine.look())) == ["DOC201"]
    machine.mend("DOC201")

    assert machine.imports() == ""
    assert found(machine.look()) == {}


def test_a_deleted_library(machine: Machine) -> None:
    """B02."""
    (machine.site_packages / NCCL).unlink()
    assert "libnccl.so.2: cannot open shared object file" in machine.imports()

    assert list(found(machine.look())) == ["DOC202"]
    machine.mend("DOC202")

    assert machine.imports() == ""
    assert found(machine.look()) == {}


def test_a_library_of_another_release(machine: Machine) -> None:
    """B03: it is a fault as soon as the import fails."""
    machine.offer(machine.nccl(version="2.27.5"))
    machine.install("nvidia-nccl-cu13==2.27.5")
    output = machine.imports()
    assert "undefined symbol: nccl2289" in output

    facts = torch_import_fails(machine.look(), output)
    assert list(found(facts)) == ["DOC203"]
    for command in fix_of(facts, "DOC203"):
        machine.run(command)

    assert machine.imports() == ""


def test_a_library_that_was_never_installed(tmp_path: Path) -> None:
    """B03, of an installation without dependencies."""
    machine = Machine(tmp_path)
    machine.install("--no-deps torch==2.11.0")
    assert "libnccl.so.2: cannot open shared object file" in machine.imports()

    assert found(machine.look()) == {
        "DOC203": "torch 2.11.0 requires nvidia-nccl-cu13==2.28.9, but no version is installed"
    }
    machine.mend("DOC203")

    assert machine.imports() == ""
    assert found(machine.look()) == {}


def test_two_packages_have_overwritten_one_another(machine: Machine) -> None:
    """B04."""
    machine.install_by_pip("nvidia-nccl-cu12==2.27.3")
    assert "undefined symbol: nccl2289" in machine.imports()

    assert list(found(machine.look())) == ["DOC204"]
    machine.mend("DOC204")

    assert machine.imports() == ""
    assert found(machine.look()) == {}


@pytest.mark.parametrize("length", [300, 5_000])
def test_a_library_that_was_cut_off(machine: Machine, length: int) -> None:
    """B06."""
    path = machine.site_packages / NCCL
    whole = path.read_bytes()
    path.unlink()
    path.write_bytes(whole[:length])
    assert "libnccl.so.2" in machine.imports() or not machine.imports()  # it may be killed by SIGBUS without a word

    assert list(found(machine.look())) == ["DOC206"]
    machine.mend("DOC206")

    assert machine.imports() == ""
    assert found(machine.look()) == {}


def test_a_torch_on_pythonpath_hides_that_of_the_environment(machine: Machine, tmp_path: Path) -> None:
    """B07."""
    other = tmp_path / "shared"
    machine.offer(machine.torch_wheel("2.5.1"))
    machine.run(f"{sys.executable} -m pip install -q --no-deps --target {other} torch==2.5.1")
    variables = {"PYTHONPATH": str(other)}

    assert list(found(machine.look(**variables))) == ["DOC207"]
    assert fix_of(machine.look(**variables), "DOC207") == ("unset PYTHONPATH",)
    assert found(machine.look()) == {}


def test_a_torch_that_a_pth_file_names_comes_after(machine: Machine, tmp_path: Path) -> None:
    """B07, its near miss: .pth files append."""
    (tmp_path / "shared/torch").mkdir(parents=True)
    (tmp_path / "shared/torch/__init__.py").write_text("")
    (machine.site_packages / "shared.pth").write_text(str(tmp_path / "shared"))

    assert len([one for one in installed(machine.look()).modules if one.name == "torch"]) == 2
    assert found(machine.look()) == {}


def test_a_file_of_the_working_directory(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B08."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "torch.py").write_text("")
    monkeypatch.chdir(folder)
    here = machine.run(f"cd {folder} && {machine.python} -c 'import torch; print(torch.__file__)'").strip()

    assert here == str(folder / "torch.py")
    assert list(found(machine.look())) == ["DOC208"]
    (command,) = fix_of(machine.look(), "DOC208")
    machine.run(command)


def test_an_uninstall_that_was_interrupted(machine: Machine) -> None:
    """B09: pip's own warning, and torch that is gone."""
    for folder in machine.site_packages.glob("torch*"):
        folder.rename(folder.with_name(f"~{folder.name[1:]}"))
    assert "distribution ~orch" in machine.run(f"{machine.pip} list 2>&1")  # invalid, or incompletely removed

    assert list(found(machine.look())) == ["DOC209"]
    machine.mend("DOC209")

    assert machine.imports() == ""
    assert "~orch" not in machine.run(f"{machine.pip} list 2>&1")


def test_metadata_of_two_releases(machine: Machine) -> None:
    """B10."""
    old = machine.site_packages / "torch-2.10.0.dist-info"
    old.mkdir()
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.10.0\n")

    assert list(found(machine.look())) == ["DOC210"]
    machine.mend("DOC210")

    assert found(machine.look()) == {}
    assert installed(machine.look()).named("torch") is not None


def test_lib64_that_is_a_folder_of_its_own(machine: Machine) -> None:
    """B11: seen by the real loader; the fix makes another environment."""
    (machine.folder / "lib64").unlink(missing_ok=True)
    split = Path(str(machine.site_packages).replace("/lib/", "/lib64/"))
    split.mkdir(parents=True)
    for path in [*machine.site_packages.glob("nvidia*")]:
        path.rename(split / path.name)
    (machine.site_packages / "lib64.pth").write_text(str(split))
    output = machine.imports()
    assert "libnccl.so.2: cannot open shared object file" in output

    facts = torch_import_fails(machine.look(), output)
    assert loader(facts).resolved["libnccl.so.2"] == ""
    assert list(found(facts)) == ["DOC211"]
    assert fix_of(facts, "DOC211")[0].startswith("uv venv --python ")


def test_a_folder_for_each_distribution(machine: Machine, tmp_path: Path) -> None:
    """B12."""
    other = tmp_path / "bazel/nvidia_nccl_cu13/site-packages"
    other.mkdir(parents=True)
    for path in [*machine.site_packages.glob("nvidia*")]:
        path.rename(other / path.name)
    (machine.site_packages / "bazel.pth").write_text(str(other))
    output = machine.imports()
    assert "libnccl.so.2: cannot open shared object file" in output

    facts = torch_import_fails(machine.look(), output)
    assert list(found(facts)) == ["DOC212"]
    for command in fix_of(facts, "DOC212"):
        machine.run(command)

    assert machine.imports() == ""
    assert found(machine.look()) == {}


def test_torchvision_of_another_torch(machine: Machine) -> None:
    """B13."""
    visions = [
        WheelBuilder("torchvision", version).metadata(requires=[f"torch=={torch}"]).add("torchvision/__init__.py", "")
        for version, torch in (("0.25.0", "2.10.0"), ("0.26.0", "2.11.0"))
    ]
    machine.offer(*visions)
    machine.install("--no-deps torchvision==0.25.0")

    assert list(found(machine.look())) == ["DOC213"]
    machine.mend("DOC213")

    vision = installed(machine.look()).named("torchvision")
    assert vision is not None
    assert vision.version == "0.26.0"
    assert found(machine.look()) == {}


def test_an_extension_for_another_cuda(machine: Machine) -> None:
    """B05: the fix depends on the authors' offers; the wheel offered here is the fix."""
    module = f"flash_attn_2_cuda.cpython-{sys.version_info.major}{sys.version_info.minor}-{MACHINE}-linux-gnu.so"
    for version, soname in (("2.8.3", "libcudart.so.12"), ("2.8.4", "libnccl.so.2")):
        code = library("", [soname], MACHINE, rpath="$ORIGIN/nvidia/nccl/lib")
        machine.offer(WheelBuilder("flash_attn", version).metadata(requires=["torch"]).add(module, code))
    machine.install("--no-deps flash-attn==2.8.3")

    assert list(found(machine.look())) == ["DOC205"]
    machine.install("--no-deps flash-attn==2.8.4")

    assert found(machine.look()) == {}


def test_a_library_that_torch_does_not_declare(machine: Machine) -> None:
    """B23."""
    machine.offer(
        WheelBuilder("nvpl_lapack", "0.3").add("torch/lib/libnvpl_lapack_lp64_gomp.so.0", library("", machine=MACHINE))
    )
    needs = library("libtorch_cpu.so", ["libnvpl_lapack_lp64_gomp.so.0"], MACHINE, rpath="$ORIGIN")
    extension = library("", ["libtorch_cpu.so"], MACHINE, rpath="$ORIGIN/lib")
    record = machine.site_packages / "torch-2.11.0.dist-info/RECORD"
    for path, data in {"torch/lib/libtorch_cpu.so": needs, "torch/_C.abi3.so": extension}.items():
        (machine.site_packages / path).write_bytes(data)
        record.write_text(f"{record.read_text()}{path},,\n")

    assert list(found(machine.look())) == ["DOC223"]
    machine.mend("DOC223")

    assert found(machine.look()) == {}


def test_variables_of_another_python(machine: Machine) -> None:
    """DOC200."""
    assert "No module named 'encodings'" in found(machine.look(PYTHONHOME="/nowhere"))["DOC200"]
    assert fix_of(machine.look(PYTHONHOME="/nowhere"), "DOC200") == ("unset PYTHONHOME", f"{machine.python} -c pass")


def test_a_preloaded_library_that_ends_every_program(machine: Machine, tmp_path: Path) -> None:
    """B18, with a library that says what jemalloc says."""
    code = """
    #include <stdio.h>
    #include <stdlib.h>
    __attribute__((constructor)) static void start(void) {
        fputs("<jemalloc>: Unsupported system page size\\n", stderr);
        abort();
    }
    """
    library = compile_library(tmp_path / "libjemalloc.so.2", code)
    facts = machine.look(LD_PRELOAD=str(library))

    assert found(facts) == {"DOC218": "jemalloc is built for smaller pages than the kernel has"}
    assert fix_of(facts, "DOC218") == ("unset LD_PRELOAD",)
    assert found(machine.look()) == {}


def test_a_preloaded_hook_that_breaks_cuda(tmp_path: Path) -> None:
    """B22: the experiment without the variable is the proof."""
    code = """
    #include <string.h>
    extern char **environ;
    char *getenv(const char *name) {
        for (char **one = environ; *one; one++)
            if (!strncmp(*one, name, strlen(name)) && (*one)[strlen(name)] == '=')
                return *one + strlen(name) + 1;
        return strcmp(name, "STUB_CUINIT") ? 0 : "999";
    }
    """
    hook = compile_library(tmp_path / "libhook.so", code)
    environ = variables(build(tmp_path / "driver"), LD_PRELOAD=str(hook))
    answers = probe(environ)
    facts = replace(healthy(), variables=environ, cuda=answers.cuda, counterfactuals=answers.counterfactuals)

    assert found(facts)["DOC222"] == f"LD_PRELOAD loads {hook} into every program; CUDA works without it"
    assert fix_of(facts, "DOC222") == ("unset LD_PRELOAD",)
    assert "DOC222" not in found(replace(facts, cuda=probe(variables(tmp_path / "driver")).cuda, counterfactuals=()))
