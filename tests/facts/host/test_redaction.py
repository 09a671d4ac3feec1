"""Facts that leave the machine hold no secrets, and still the same diagnosis."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hosts import healthy, replaced, torch_import_fails, with_variables
from wheel_checks.facts.host.codec import from_json, to_json
from wheel_checks.facts.host.machine import System
from wheel_checks.facts.host.probes import NvmlProbe
from wheel_checks.facts.host.redaction import redact
from wheel_checks.facts.host.software import IndexSetting, Installed

UUID = "GPU-7f3a9c21-1111-4222-8333-0123456789ab"
OTHER = "GPU-7f3a9c21-1111-4222-8333-0123456789ac"


def text_of(*arguments: str, **variables: str) -> str:
    facts = with_variables(healthy(), **variables)
    return json.dumps(to_json(redact(facts, users=("mallory",), hosts=("gpu-box-17",))))


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("/home/alice/models", "alice"),
        ("/home/bob.smith/.cache:/opt", "bob.smith"),
        ("run as mallory on gpu-box-17", "mallory"),
        ("run as mallory on gpu-box-17", "gpu-box-17"),
        ("https://me:hunter2@example.org/simple", "hunter2"),
        ("HF_TOKEN=hf_abcdefghijklmnopqrstuvwx", "hf_abcdefghijklmnopqrstuvwx"),
        ("password: tr0ub4dor", "tr0ub4dor"),
        ("Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30", "eyJhbGciOiJIUzI1NiJ9"),
        ("tcp://10.20.30.40:29500", "10.20.30.40"),
        ("aa:bb:cc:dd:ee:ff", "aa:bb:cc:dd:ee:ff"),
        (UUID, UUID),
    ],
)
def test_a_secret_is_gone(value: str, secret: str) -> None:
    assert secret not in text_of(NCCL_DEBUG_FILE=value)


@pytest.mark.parametrize("user", ["alice", "bo", "user"])
def test_the_user_of_the_system_is_not_saved(user: str) -> None:
    facts = with_variables(replaced(healthy(), "system", user=user), NCCL_DEBUG_FILE="/scratch/alice/nccl.log")
    clean = redact(facts)

    assert isinstance(clean.system, System)
    assert clean.system.user == ""
    assert clean.variables["NCCL_DEBUG_FILE"] == (
        "/scratch/USER/nccl.log" if user == "alice" else "/scratch/alice/nccl.log"
    )


@pytest.mark.parametrize(
    "value",
    [
        "/opt/env/lib/python3.12/site-packages/torch",
        "driver 580.159.04, cuda 13.0",
        "version 9.19.0.56",
        "nvidia-cudnn-cu13==9.19.0.56",
        "cuInit 803",
        "/root/.triton/cache",
        "127.0.0.1:29500",
    ],
)
def test_what_a_diagnosis_needs_stays(value: str) -> None:
    assert value in text_of(NCCL_DEBUG_FILE=value)


def test_a_version_of_four_numbers_is_no_address() -> None:
    facts = healthy()
    assert isinstance(facts.installed, Installed)
    cudnn = replace(facts.installed.packages[0], name="nvidia-cudnn-cu13", version="9.19.0.56")
    redacted = redact(replaced(facts, "installed", packages=(cudnn,)))
    assert isinstance(redacted.installed, Installed)
    assert redacted.installed.packages[0].version == "9.19.0.56"


def test_one_user_is_the_same_word_everywhere() -> None:
    facts = with_variables(healthy(), HOME="/home/alice", NCCL_DEBUG_FILE="log of alice")
    facts = torch_import_fails(facts, "OSError: /home/alice/lib.so: cannot open shared object file")
    text = json.dumps(to_json(redact(facts)))
    assert "alice" not in text
    assert "log of USER" in text
    assert "/home/USER/lib.so: cannot open shared object file" in text


def test_gpus_lose_their_identity_and_stay_distinct() -> None:
    facts = healthy()
    assert isinstance(facts.nvml, NvmlProbe)
    first = facts.nvml.gpus[0]
    gpus = (replace(first, uuid=UUID), replace(first, index=1, uuid=OTHER))
    facts = with_variables(replaced(facts, "nvml", gpus=gpus), CUDA_VISIBLE_DEVICES=OTHER)
    redacted = redact(facts)
    assert isinstance(redacted.nvml, NvmlProbe)
    assert redacted.nvml.gpus[0].uuid != redacted.nvml.gpus[1].uuid
    assert redacted.variables["CUDA_VISIBLE_DEVICES"] == redacted.nvml.gpus[1].uuid


def test_redacted_facts_are_read_again() -> None:
    redacted = redact(healthy())
    assert from_json(json.loads(json.dumps(to_json(redacted)))) == redacted


@given(st.text(alphabet=st.characters(codec="ascii", categories=("L", "N")), min_size=4, max_size=20))
def test_no_home_survives_wherever_it_stands(name: str) -> None:
    facts = with_variables(healthy(), PYTHONPATH=f"/home/{name}/src:/home/{name}/lib", CC=f"/home/{name}")
    assert f"/home/{name}/" not in json.dumps(to_json(redact(facts))) or name == "USER"


def test_the_host_of_a_private_index_is_one_word_everywhere() -> None:
    facts = with_variables(
        healthy(),
        PIP_EXTRA_INDEX_URL="https://me:hunter2@pypi.corp.test:8443/team/whl/cu128 https://other.corp.test/simple",
        PIP_TRUSTED_HOST="pypi.corp.test",
        NCCL_DEBUG_FILE="from https://PyPI.corp.test/x, see https://docs.nvidia.com/cuda",
    )
    indexes = (
        IndexSetting("pip", "extra-index-url", "https://pypi.corp.test:8443/team/whl/cu128", "PIP_EXTRA_INDEX_URL"),
        IndexSetting("uv", "index-url", "https://default.test/simple", "the default of uv"),
    )
    shared = redact(replace(facts, indexes=indexes), servers=True)
    text = json.dumps(to_json(shared))
    assert "corp.test" not in text.lower()
    assert shared.variables["PIP_TRUSTED_HOST"] in shared.variables["PIP_EXTRA_INDEX_URL"]
    assert isinstance(shared.indexes, tuple)
    host = shared.variables["PIP_TRUSTED_HOST"]
    assert [one.value for one in shared.indexes] == [
        f"https://{host}:8443/team/whl/cu128",  # the path, by which a diagnosis goes
        "https://default.test/simple",
    ]
    assert "https://docs.nvidia.com/cuda" in text
    assert redact(shared, servers=True) == shared
