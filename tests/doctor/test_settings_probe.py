"""Variables and the configuration of installers."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheel_checks.facts.host.software import IndexSetting
from wheelproof.doctor.probes.indexes import read_indexes
from wheelproof.doctor.probes.variables import HIDDEN, read_variables

URL = "https://packages.example.org/simple"


@pytest.mark.parametrize(
    "name", ["CUDA_VISIBLE_DEVICES", "LD_PRELOAD", "TRITON_CACHE_DIR", "SLURM_JOB_ID", "UV_TORCH_BACKEND", "PYTHONPATH"]
)
def test_what_matters_is_kept_also_when_it_is_empty(name: str) -> None:
    assert read_variables({name: ""}) == {name: ""}


@pytest.mark.parametrize("name", ["EDITOR", "LANG", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "SSH_AUTH_SOCK"])
def test_what_does_not_matter_is_left_out(name: str) -> None:
    assert read_variables({name: "x"}) == {}


@pytest.mark.parametrize("name", ["UV_PUBLISH_TOKEN", "NVIDIA_API_KEY", "PIP_PASSWORD", "TORCH_AUTH"])
def test_secrets_are_hidden(name: str) -> None:
    assert read_variables({name: "hunter2"}) == {name: HIDDEN}


def test_logins_in_addresses_are_hidden() -> None:
    (value,) = read_variables({"PIP_INDEX_URL": "https://me:hunter2@example.org/simple"}).values()
    assert "hunter2" not in value
    assert "example.org" in value


def settings(environ: dict[str, str], folder: Path) -> dict[str, IndexSetting]:
    found = read_indexes({"HOME": str(folder), "XDG_CONFIG_HOME": str(folder)} | environ, folder)
    assert isinstance(found, tuple)
    return {setting.name: setting for setting in found}


def test_without_configuration_there_is_no_setting(tmp_path: Path) -> None:
    assert settings({}, tmp_path) == {}


def test_an_index_is_reported_with_the_variable_that_sets_it(tmp_path: Path) -> None:
    found = settings({"PIP_INDEX_URL": URL}, tmp_path)["index"]
    assert (found.tool, found.value, found.source) == ("pip", URL, "PIP_INDEX_URL")


def test_extra_indexes_are_distinguished_from_the_index(tmp_path: Path) -> None:
    found = settings({"PIP_INDEX_URL": URL, "PIP_EXTRA_INDEX_URL": f"{URL}/extra"}, tmp_path)
    assert found["index"].value == URL
    assert found["extra-index"].value == f"{URL}/extra"
    assert found["strategy"].value == "merge"


def test_the_backend_of_uv_is_reported_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n\n[tool.uv.pip]\ntorch-backend = "cpu"\n')
    (tmp_path / "below").mkdir()
    found = settings({}, tmp_path / "below")["torch-backend"]
    assert (found.value, found.source) == ("cpu", f"{tmp_path}/pyproject.toml:5")
    assert settings({"UV_TORCH_BACKEND": "cu130"}, tmp_path)["torch-backend"].value in {"cu130", "cpu"}


def test_a_broken_configuration_is_unavailable_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "uv.toml").write_text("[[[")
    found = read_indexes({"HOME": str(tmp_path)}, tmp_path)
    assert not isinstance(found, tuple)
    assert "uv.toml" in found.reason
