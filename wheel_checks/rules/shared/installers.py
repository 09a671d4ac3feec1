"""What installers and the index make of a fault, from a dated table: evidence of a finding."""

from collections import defaultdict
from functools import cache

from wheel_checks.data import load
from wheel_checks.model import Evidence

_SOURCE = "wheel_checks/data/installers.toml"
_WAYS = {
    "pip_file": "pip {pip}",
    "pip_index": "pip {pip} from an index",
    "uv_file": "uv {uv} from a file",
    "uv_streamed": "uv {uv} while streaming",
    "index": "the index at the upload",
}


@cache
def installer_evidence(case: str) -> tuple[Evidence, ...]:
    """Who refuses a wheel with this fault, what they say, and who takes it; nothing where the table has no such row.

    That the index's check of archives takes a wheel is not said: it has other checks.
    """
    table = load("installers")
    row = next((row for row in table["case"] if row["name"] == case), None)
    if row is None:
        return ()
    said: defaultdict[str, list[str]] = defaultdict(list)
    for way, label in _WAYS.items():
        if way in row and (row[way] or way != "index"):
            said[row[way]].append(label.format_map(table["versions"]))
    taking = said.pop("", [])
    found = [Evidence(", ".join(ways), f"refuse: {answer}", _SOURCE) for answer, ways in said.items()]
    files = ", and write different files" if row["differ"] else ""
    return (*found, *([Evidence(", ".join(taking), f"install it{files}", _SOURCE)] if taking else []))
