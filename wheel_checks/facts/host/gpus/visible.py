"""Which GPUs CUDA_VISIBLE_DEVICES selects, read as CUDA reads it.

The list ends before its first invalid entry, and a repeated entry makes it empty. An entry is a number (as strtoul
reads it: "1gpu" is 1), or the beginning of a UUID that is true of one GPU only. Sources: CUDA programming guide, "CUDA
environment variables"; ``_parse_visible_devices`` and ``_transform_uuid_to_ordinals`` of torch.cuda (2.13).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wheel_checks.facts.host.probes import NvmlProbe
from wheel_checks.model import Unavailable

VARIABLE = "CUDA_VISIBLE_DEVICES"

_NUMBER = re.compile(r"\s*\+?(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Selection:
    """The devices that a value of CUDA_VISIBLE_DEVICES selects.

    ``entries`` are its entries, ``chosen`` how many of them CUDA takes. ``invalid`` is the entry that ends the list (""
    for none), and ``why`` its fault.
    """

    entries: tuple[str, ...]
    chosen: int
    invalid: str = ""
    why: str = ""


def read_selection(value: str, uuids: Sequence[str]) -> Selection:
    """The GPUs that ``value`` selects among these UUIDs. MIG devices, which the list lacks, are trusted."""
    entries = tuple(entry.strip() for entry in value.split(",")) if value.strip() else ()
    taken: list[object] = []
    for entry in entries:
        device, why = _device(entry, uuids)
        if device is None:
            return Selection(entries, len(taken), entry, why)
        if device in taken:
            return Selection(entries, 0, entry, f'"{entry}" occurs twice, which makes the list invalid')
        taken.append(device)
    return Selection(entries, len(taken))


def expected_devices(nvml: NvmlProbe | Unavailable, variables: Mapping[str, str]) -> int:
    """How many devices CUDA should see: those of NVML, or those that CUDA_VISIBLE_DEVICES lists."""
    there = 0 if isinstance(nvml, Unavailable) else len(nvml.gpus)
    value = variables.get(VARIABLE)
    return there if value is None else min(there, len(read_selection(value, ()).entries))


def _device(entry: str, uuids: Sequence[str]) -> tuple[object, str]:
    """The device that an entry means, or None and the fault."""
    if entry.startswith("MIG-"):
        return entry, ""
    if entry.startswith("GPU-"):
        matching = [uuid for uuid in uuids if uuid.startswith(entry)]
        if len(matching) == 1:
            return matching[0], ""
        return None, f"{'several GPUs have' if matching else 'no GPU has'} such a UUID"
    number = _NUMBER.match(entry)
    if number is None:
        return None, f'"{entry}" is neither the number nor the UUID of a GPU'
    if int(number[1]) >= len(uuids):
        return None, f"GPU {number[1]} does not exist" + (
            f", only 0 to {len(uuids) - 1} do" if len(uuids) > 1 else ", only 0 does"
        )
    return uuids[int(number[1])] or int(number[1]), ""
