"""torch 2.11.0 ships, on the real index; that 2.10.0 stops is shown, and run, in docs/how-to/ship-or-stop.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Wheelproof

pytestmark = pytest.mark.online

EXPECT = str(Path(__file__).parents[2] / "ci" / "release" / "torch.toml")


def test_torch_2_11_ships(wheelproof: Wheelproof) -> None:
    run = wheelproof("release", "torch==2.11.0", "--expect", EXPECT)

    assert run.status == 0, run.out
    answer, shipped, *_ = run.out.splitlines()
    assert answer == "may be uploaded; loading on macosx_11_0_arm64 and win_amd64 was not checked"
    assert shipped == "SHIP  torch 2.11.0: 28 of 28 cells filled by 28 files"
