"""Which companion fits which release, by the tables."""

from __future__ import annotations

import pytest

from wheel_checks.facts.pins.fit import fit, partner


@pytest.mark.parametrize(
    ("name", "version", "other", "fits"),
    [
        ("torchaudio", "2.11.0", "2.7.0+cu128", False),
        ("torchaudio", "2.7.0", "2.7.0+cu128", True),
        ("torchaudio", "2.11.0", "2.14.0", True),
        ("torchvision", "0.22.0+cu128", "2.7.0+cu128", True),
        ("torchvision", "0.23.0", "2.7.0", False),
        ("torchvision", "0.22.0", "2.7.0a0+ecf3bae40a.nv25.3", None),  # NVIDIA's own build: no table
        ("torchvision", "0.99.0", "9.9.0", None),
        ("torchcodec", "0.9.1", "2.9.1", True),
        ("torchcodec", "0.1.0", "2.5.0", True),
        ("torchcodec", "0.10.0", "2.9.1", False),
        ("torchcodec", "0.16.0", "2.15.0", True),
        ("torchcodec", "0.99.0", "2.15.0", None),
        ("torchao", "0.18.0", "2.7.0", True),
        ("jax-cuda12-plugin", "0.7.0", "0.7.0", True),
        ("jax-cuda12-plugin", "0.7.0.post1", "0.7.0", True),
        ("jax-cuda13-plugin", "0.7.1", "0.7.0", False),
        ("fbgemm-gpu", "1.0", "2.7.0", None),
    ],
)
def test_fit(name: str, version: str, other: str, fits: bool | None) -> None:
    assert fit(name, version, other).fits is fits


def test_partners() -> None:
    assert partner("torchaudio") == partner("torchcodec") == "torch"
    assert partner("jax-cuda12-plugin") == "jaxlib"
    assert partner("numpy") == ""
