"""Which GPUs CUDA_VISIBLE_DEVICES selects, read as CUDA reads it.

The list ends before its first invalid entry, and a repeated entry makes it empty. An entry is a number (as strtoul
reads it: "1gpu" is 1), or the beginning of a UUID that is true of one GPU only. Sources: CUDA programming guide, "CUDA
environment variables"; ``_parse_visible_devices`` and ``_transform_uuid_to_ordinals`` of torch.cuda (2.13).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wheel_checks.facts.host.probes import NvmlProbe
from wheel_checks.model import Unavailable

VARIABLE = "CUDA_VISIBLE_DEVICES"

_NUMBER = re.compile(r"\s*\+?(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a value of CUDA_VISIBLE_DEVICES selects.

    ``asked`` are its entries, ``chosen`` how many of them CUDA takes. ``invalid`` is the entry that ends the list (""
    for none), and ``why`` what is wrong with it.
    """

    asked: tuple[str, ...]
    chosen: int
    invalid: str = ""
    why: str = ""


def read_selection(value: str, uuids: Sequence[str]) -> Selection:
    """What ``value`` selects of the GPUs with these UUIDs. MIG devices, which the list does not hold, are believed."""
    asked = tuple(entry.strip() for entry in value.split(",")) if value.strip() else ()
    taken: list[object] = []
    for entry in asked:
        device, why = _device(entry, uuids)
        if device is None:
            return Selection(asked, len(taken), entry, why)
        if device in taken:
            return Selection(asked, 0, entry, f'"{entry}" occurs twice, which makes the list invalid')
        taken.append(device)
    return Selection(asked, len(taken))


def expected_devices(nvml: NvmlProbe | Unavailable, variables: Mapping[str, str]) -> int:
    """How many devices the user means CUDA to see: those of NVML, or those that CUDA_VISIBLE_DEVICES asks for."""
    there = 0 if isinstance(nvml, Unavailable) else len(nvml.gpus)
    value = variables.get(VARIABLE)
    return there if value is None else min(there, len(read_selection(value, ()).asked))


def _device(entry: str, uuids: Sequence[str]) -> tuple[object, str]:
    """The device that an entry means, or None and what is wrong."""
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
