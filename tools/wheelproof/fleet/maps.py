"""Heat maps of a fleet: the hosts by place or by name, and the rates of hosts that are slow."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from wheel_checks.facts.fleet.hosts import FleetFacts
from wheel_checks.facts.fleet.topology import grid
from wheel_checks.model import HeatMap, Severity, Table, Verdict
from wheel_checks.phrases import plural

_SIGNS = {"x": "fails", "?": "undecided", "!": "few have this", "s": "slow", ".": "neither"}
_STATES: dict[str, Verdict | Severity] = {
    "x": Verdict.FAIL,
    "?": Verdict.UNDECIDED,
    "!": Severity.WARNING,
    "s": Severity.WARNING,
    ".": Verdict.PASS,
}
_MOST_ROWS, _MOST_COLUMNS = 200, 72
_FEW = 12  # hosts that need no map
_IN_A_ROW = 40  # hosts whose place is unknown


def place_map(fleet: FleetFacts, verdicts: Mapping[str, Verdict]) -> Iterator[HeatMap]:
    """The hosts by place, where two dimensions of the topology give each host a cell: racks as rows, trays as columns.

    So what is wrong at one place shows as a line or a block.
    """
    found = grid(fleet.named_places, list(verdicts), str)
    if not found or len(found[2]) > _MOST_COLUMNS:
        return
    row_name, column_name, columns, lines = found
    heading = f"Hosts by {row_name} and {column_name}"
    headings = (row_name, *(f"{column_name} {name}" for name in columns))
    yield _map(heading, headings, lines, _sign_of(fleet, verdicts))


def name_map(fleet: FleetFacts, verdicts: Mapping[str, Verdict]) -> Iterator[HeatMap]:
    """Many hosts in the order of their names, where no place of theirs is known."""
    if len(verdicts) > _FEW and not any(place_map(fleet, verdicts)):
        hosts = list(verdicts)
        lines = {hosts[start]: hosts[start : start + _IN_A_ROW] for start in range(0, len(hosts), _IN_A_ROW)}
        columns = ("from", *map(str, range(1, min(_IN_A_ROW, len(verdicts)) + 1)))
        yield _map("Hosts in the order of their names", columns, lines, _sign_of(fleet, verdicts))


def rate_table(fleet: FleetFacts) -> Iterator[Table]:
    """The hosts that are slow by what was measured: the lowest rate of each kind, in percent of what is usual."""
    slow = {(host, group.usual.kind) for group in fleet.rates.groups for host in group.hosts}
    usual = {(one.kind, one.product): one for one in fleet.rates.compared}
    names = {one.host for one in fleet.rates.slow} | {host for host, _ in slow}
    lowest: dict[str, dict[str, float]] = defaultdict(dict)
    for one in fleet.measured if names else ():
        if one.host in names and (among := usual.get((one.kind, one.product))):
            share = one.rate / among.median
            lowest[one.host][one.kind] = min(lowest[one.host].get(one.kind, share), share)
            if among.is_low(one.rate):
                slow.add((one.host, one.kind))
    if not lowest:
        return
    kinds = tuple(dict.fromkeys(kind for shares in lowest.values() for kind in shares))
    worst = {
        host: min(share for kind, share in shares.items() if (host, kind) in slow) for host, shares in lowest.items()
    }
    shown = sorted(worst, key=lambda host: worst[host])[:_MOST_ROWS]
    rows = tuple((host, *(_percent(lowest[host].get(kind), (host, kind) in slow) for kind in kinds)) for host in shown)
    states = {
        (row, column): Severity.WARNING
        for row, host in enumerate(shown)
        for column, kind in enumerate(kinds, 1)
        if (host, kind) in slow
    }
    title = f"Hosts that are slow: their lowest rates, in percent of the median{_left_out(len(lowest))}"
    yield Table(title, ("host", *kinds), rows, frozenset(kinds), states)


def _percent(share: float | None, is_slow: bool) -> str:
    return "" if share is None else f"{'! ' * is_slow}{100 * share:.1f}"


def _sign_of(fleet: FleetFacts, verdicts: Mapping[str, Verdict]) -> Callable[[str], str]:
    """The sign of a host. Only what is wrong has one that catches the eye."""
    deviating = frozenset[str]().union(*(difference.deviating for difference in fleet.differences))
    slow = {one.host for one in fleet.rates.slow}.union(*(one.hosts for one in fleet.rates.groups))

    def sign(host: str) -> str:
        if verdicts[host] is not Verdict.PASS:
            return "x" if verdicts[host] is Verdict.FAIL else "?"
        return "!" if host in deviating else "s" if host in slow else "."

    return sign


def _map(
    heading: str, columns: tuple[str, ...], lines: Mapping[str, Sequence[str]], sign: Callable[[str], str]
) -> HeatMap:
    """The map of ``lines``: the hosts of each row by its name, "" where there is none."""
    shown = dict(islice(lines.items(), _MOST_ROWS))
    hosts = {
        (row, column): host for row, names in enumerate(shown.values()) for column, host in enumerate(names, 1) if host
    }
    signs = {place: sign(host) for place, host in hosts.items()}
    rows = tuple(
        (name, *(signs.get((row, column), "") for column in range(1, len(columns)))) for row, name in enumerate(shown)
    )
    key = ", ".join(f"{sign} {meaning}" for sign, meaning in _SIGNS.items())
    left = _left_out(len(lines))
    return HeatMap(
        f"{heading} ({key}{left})",
        columns,
        rows,
        states={place: _STATES[sign] for place, sign in signs.items()},
        heading=f"{heading}{left}",
        signs=_SIGNS,
        subjects=hosts,
    )


def _left_out(rows: int) -> str:
    return (
        f"; {plural(rows - _MOST_ROWS, 'more row')} {'is' if rows == _MOST_ROWS + 1 else 'are'} left out"
        if rows > _MOST_ROWS
        else ""
    )
