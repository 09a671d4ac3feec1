"""Finds offload bundles in a part of a library of which the place is unknown, and not every byte."""

from collections import Counter

from wheel_checks.errors import FormatError
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.formats.gpu.offload_bundle import MOST_HELD, MoreNeededError, find_bundles, read_bundle
from wheel_checks.formats.gpu.part import Part

_LONGEST_HEADER = 16 * 1024  # bytes of a bundle that is not compressed
_MOST = 1000  # bundles read of one part


def sample_bundles(part: Part) -> GpuCode:
    """The targets of the bundles whose headers are seen in ``part``, as "sampled"; only certain bytes are believed."""
    counts: Counter[str] = Counter()
    containers: Counter[frozenset[str]] = Counter()
    for number, start in enumerate(find_bundles(part.data)):
        if number == _MOST:
            break
        data = part.data[start : start + MOST_HELD]
        known = part.known(start, start + min(len(data), _LONGEST_HEADER)) and part.known(start, start + len(data))
        if known is None:
            continue
        try:
            labels = read_bundle(known).labels
        except (FormatError, MoreNeededError):
            continue
        counts.update(labels)
        if labels:
            containers[frozenset(labels)] += 1
    return GpuCode(dict(counts), "sampled", dict(containers))
