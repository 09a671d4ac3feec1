"""The commands of an environment: its installer, its interpreter, and values that others chose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.hosts import (
    healthy,
    package,
    replaced,
    with_packages,
    with_variables,
)
from wheel_checks.facts.host.commands import check_torch, install, remove, uninstall
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.fixes.commands import Command, NoCommand, Step, in_words
from wheel_checks.model import Unavailable

PYTHON, PACKAGES = "/opt/env/bin/python", "/opt/env/lib/python3.12/site-packages"
SYSTEM = {"path": "/usr/bin/python3", "prefix": "/usr", "base_prefix": "/usr", "externally_managed": True}


def lines(*steps: Step) -> list[str]:
    """The steps as they are shown."""
    return [in_words(step) for step in steps]


def installed_by(installer: str) -> HostFacts:
    return with_packages(healthy(), package("torch", "2.11.0", installer=installer))


def of_system(**torch_fields: Any) -> HostFacts:
    """The Python of Debian or Ubuntu, without torch or with this one."""
    facts = replaced(with_packages(healthy(), without=("torch",)), "interpreter", **SYSTEM)
    return with_packages(facts, package("torch", "2.11.0", **torch_fields)) if torch_fields else facts


@pytest.mark.parametrize(
    ("facts", "command"),
    [
        (healthy(), f"{PYTHON} -m pip install triton==3.6.0"),
        (installed_by("uv"), f"uv pip install --python {PYTHON} triton==3.6.0"),
        (replaced(healthy(), "interpreter", has_pip=False), f"uv pip install --python {PYTHON} triton==3.6.0"),
        (installed_by("conda"), "conda install --prefix /opt/env triton=3.6.0"),
        (
            of_system(),
            "uv venv --python /usr/bin/python3 /home/user/torch-env; "
            "uv pip install --python /home/user/torch-env/bin/python triton==3.6.0",
        ),
        (
            of_system(installer="debian"),
            "uv venv --python /usr/bin/python3 /home/user/torch-env; "
            "uv pip install --python /home/user/torch-env/bin/python triton==3.6.0",
        ),
        (
            of_system(installer="pip"),
            "/usr/bin/python3 -m pip install --break-system-packages triton==3.6.0",
        ),
        (
            replaced(healthy(), "interpreter", path="/home/a user/env/bin/python"),
            "'/home/a user/env/bin/python' -m pip install triton==3.6.0",
        ),
        (
            with_variables(of_system(), HOME="/home/a user"),
            "uv venv --python /usr/bin/python3 '/home/a user/torch-env'; "
            "uv pip install --python '/home/a user/torch-env/bin/python' triton==3.6.0",
        ),
        (
            replace(of_system(), variables={}),
            "uv venv --python /usr/bin/python3 torch-env; uv pip install --python torch-env/bin/python triton==3.6.0",
        ),
        (HostFacts(), "python3 -m pip install triton==3.6.0"),
    ],
    ids=[
        "pip",
        "uv",
        "no pip",
        "conda",
        "system",
        "debian",
        "broken system",
        "spaces",
        "home",
        "no home",
        "nothing known",
    ],
)
def test_the_installer_that_was_used_is_used(facts: HostFacts, command: str) -> None:
    if facts != HostFacts():
        facts = with_packages(facts, without=("triton",))

    assert "; ".join(lines(*install(facts, "triton==3.6.0"))) == command


def test_a_package_of_another_installer_than_torch_keeps_its_own() -> None:
    facts = with_packages(installed_by("conda"), package("flash-attn", "2.8.3", installer="uv"))

    assert lines(*install(facts, "flash-attn==2.8.3")) == [f"uv pip install --python {PYTHON} flash-attn==2.8.3"]


def test_options() -> None:
    assert lines(*install(healthy(), "torch==2.11.0", "triton", force=True, no_deps=True)) == [
        f"{PYTHON} -m pip install --force-reinstall --no-deps torch==2.11.0 triton"
    ]
    assert lines(*install(installed_by("uv"), "torch==2.11.0", "triton>=3", force=True, no_deps=True)) == [
        f"uv pip install --python {PYTHON} --reinstall-package=torch --reinstall-package=triton --no-deps "
        "torch==2.11.0 'triton>=3'"
    ]
    assert lines(*install(installed_by("conda"), "torch==2.11.0", force=True, no_deps=True)) == [
        "conda install --prefix /opt/env --force-reinstall --no-deps pytorch=2.11.0"
    ]
    assert lines(*install(healthy(), "demo", cache=False)) == [f"{PYTHON} -m pip install --no-cache-dir demo"]
    assert lines(*install(installed_by("uv"), "demo", cache=False, options=("--no-build-isolation",))) == [
        f"uv pip install --python {PYTHON} --no-cache --no-build-isolation demo"
    ]


@pytest.mark.parametrize(
    "text", ["--index-url=https://example.org", "torch @ https://example.org/t.whl", "torch==$(reboot)", "a b", ""]
)
def test_what_is_no_name_and_version_is_never_installed(text: str) -> None:
    (step,) = install(healthy(), "triton", text)

    assert isinstance(step, NoCommand)


@pytest.mark.parametrize("path", ["rm", "/usr/bin/rm", "python3", "-c", "/opt/env/bin/python; reboot", "/bin/sh"])
def test_a_program_that_is_no_python_by_its_whole_path_is_never_started(path: str) -> None:
    facts = replaced(healthy(), "interpreter", path=path)

    assert isinstance(check_torch(facts), NoCommand)
    assert isinstance(uninstall(facts, "torch"), NoCommand)
    assert all(isinstance(step, NoCommand) for step in install(facts, "torch"))


@pytest.mark.parametrize(
    ("path", "command"),
    [
        (f"{PACKAGES}/~orch", f"rm -r '{PACKAGES}/~orch'"),
        ("/usr/lib/python3/dist-packages/~orch", "rm -r '/usr/lib/python3/dist-packages/~orch'"),
        ("/", ""),
        ("//", ""),
        ("", ""),
        ("~orch", ""),
        ("-rf", ""),
        ("/etc/~orch", ""),
        (f"{PACKAGES}", ""),
        (f"{PACKAGES}/../../~orch", ""),
        (f"{PACKAGES}/", ""),
    ],
)
def test_only_what_lies_in_site_packages_is_deleted(path: str, command: str) -> None:
    step = remove(path, folder=True)

    assert in_words(step) == command if command else isinstance(step, NoCommand)


@pytest.mark.parametrize("prefix", ["env", "git+https://example.org/x.git", "-p", "$CONDA_PREFIX"])
def test_the_environment_of_conda_is_a_whole_path(prefix: str) -> None:
    facts = replaced(installed_by("conda"), "interpreter", prefix=prefix)

    assert isinstance(uninstall(facts, "torch"), NoCommand)


def test_without_an_interpreter_conda_takes_the_environment_that_is_named_or_active() -> None:
    unknown = replace(installed_by("conda"), interpreter=Unavailable("it hangs"), variables={})
    named = with_variables(unknown, CONDA_PREFIX="/opt/conda/envs/a b")

    assert lines(uninstall(named, "torch")) == ["conda remove --prefix '/opt/conda/envs/a b' --force pytorch"]
    assert lines(uninstall(unknown, "torch")) == ["conda remove --force pytorch"]


def test_a_build_of_pytorchs_index_is_named_to_uv_whoever_installed_torch() -> None:
    wanted = f"uv pip install --python {PYTHON} --torch-backend=cu126 torch==2.11.0"

    assert lines(*install(healthy(), "torch==2.11.0", index="cu126")) == [wanted]
    assert lines(*install(installed_by("uv"), "torch==2.11.0", index="cu126")) == [wanted]


def test_an_index_by_its_address() -> None:
    address = "https://index.example.org/simple"

    assert lines(*install(healthy(), "demo", index=address)) == [f"{PYTHON} -m pip install --index-url {address} demo"]


def test_uninstalling() -> None:
    steps = (
        uninstall(healthy(), "triton", "torch"),
        uninstall(installed_by("uv"), "torch"),
        uninstall(installed_by("conda"), "torch"),
        uninstall(of_system(installer="debian"), "torch"),
        uninstall(of_system(installer="pip"), "torch"),
    )

    assert lines(*steps) == [
        f"{PYTHON} -m pip uninstall -y triton torch",
        f"uv pip uninstall --python {PYTHON} torch",
        "conda remove --prefix /opt/env --force pytorch",
        "sudo apt-get remove python3-torch",
        "/usr/bin/python3 -m pip uninstall -y --break-system-packages torch",
    ]


def test_the_check_runs_where_torch_was_installed() -> None:
    own, new = check_torch(healthy()), check_torch(of_system())

    assert isinstance(own, Command)
    assert isinstance(new, Command)
    assert (own.argv[:2], new.argv[:2]) == ((PYTHON, "-c"), ("/home/user/torch-env/bin/python", "-c"))
    assert own.argv[2].startswith("import torch;")
    compile(own.argv[2], "check", "exec")
