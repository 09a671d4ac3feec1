"""Where the hosts are, as ``--topology`` says it: a pattern for their names, or a file; else what the names say."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.facts.fleet.topology import Topology, by_pattern, from_slurm, from_table, guessed
from wheel_checks.formats.documents import parse_toml
from wheel_checks.sources.regular_file import names_file, read_whole

_LARGEST = 4 << 20  # bytes: of a topology.conf of 100,000 nodes one by one


def place_reader(option: str) -> Callable[[Sequence[str]], Topology]:
    """A function that gives the places of hosts; without an ``option`` ("") by what their names say.

    Raises UsageError and FormatError.
    """
    if not option:
        return guessed
    if not names_file(option):
        by_pattern(option, ())
        return partial(by_pattern, option)
    topology = _read(option)
    return lambda _: topology


def _read(option: str) -> Topology:
    try:
        data = read_whole(option, _LARGEST, given=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"--topology {option} cannot be read: {error}") from error
    if option.endswith(".toml"):
        return from_table(_table(parse_toml(data, option, _LARGEST), option), option)
    return from_slurm(data.decode(errors="replace"), option)


def _table(content: Mapping[str, Any], source: str) -> Mapping[str, Mapping[str, str]]:
    """``{"switch": {"3": "node[048-063]"}}``, checked."""
    for dimension, groups in content.items():
        if not isinstance(groups, dict) or not all(isinstance(hosts, str) for hosts in groups.values()):
            raise FormatError(
                f"{source}: [{dimension[:80]}] is not a table of hosts", expected='lines such as "3" = "node[048-063]"'
            )
    return content
