"""DOC901: logs without a known text; and the causes that are known only from logs, each by its own example."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.rules.case import ERROR, NOTE, Case
from wheel_checks.catalogue import all_rules
from wheel_checks.data import load
from wheel_checks.facts.host.log.facts import Log, parse_log
from wheel_checks.phrases import joined
from wheel_checks.rules.host.log_texts import HARMLESS, UNRECOGNISED, recognise, rule_of

INNOCENT = {
    "DOC116": "nvidia-cusparse-cu12 12.5.8 is installed, and this project is deprecated",
    "DOC117": "ERROR: No matching distribution found for nvidia_smi_exporter",
    "DOC902": "DeprecationWarning: `np.float` is a deprecated alias, NumPy 1.20",
    "DOC903": "nvcc fatal   : Unknown option '--gpu'",
    "DOC904": "Getting requirements to build wheel ... done\nModuleNotFoundError: No module named 'torchmetrics'",
    "DOC905": "CUDA_HOME=/usr/local/cuda",
    "DOC906": "gcc (Ubuntu 13.3.0) 13.3.0, which is supported",
    "DOC907": "Using Ninja to load C++ extensions",
    "DOC908": "NvMap: nvmap initialised",
    "DOC909": "found a build variant for this system",
    "DOC910": "FlashInfer 0.6.1, GPU sm_75",
    "DOC911": "flash_attn-2.8.3-cp312-cp312-linux_x86_64.whl is a wheel of this platform",
    "DOC912": "No solution found when resolving dependencies: flask==3.0 and werkzeug==1.0",
    "DOC913": "the environment is managed by conda",
    "DOC914": "torch\\lib\\fbgemm.dll was loaded",
    "DOC915": "libtorchcodec was loaded with FFmpeg 7",
    "DOC916": "jax 0.6.0 and jaxlib version 0.6.0 go together",
    "DOC917": "Level Zero loader 1.20",
    "DOC918": "1 active drivers",
    "DOC919": "NET/Plugin: Loaded net plugin AWS Libfabric",
}


ROWS = load("log_texts")["entry"]
OF_ROW = {"layer", "texts", "says", "fix"}
OF_RULE = {"title", "why", "example", "sources"}


def faults_of(row: Mapping[str, Any]) -> Iterator[str]:
    """The missing parts of a row of the table, with advice on where to add them."""
    if not row.keys() & {"rule", "catalogue"}:
        yield f"{row}: add `rule` or `catalogue`"
        return
    if lacking := OF_ROW - row.keys():
        yield f"{rule_of(row)}: add {joined(sorted(lacking))}"
    of_hosts = {rule.id for rule in all_rules() if rule.kind == "host"}
    if rule_of(row) not in of_hosts and (lacking := OF_RULE - row.keys()):
        yield f"{rule_of(row)} is no rule of wheel_checks/rules/host: add {joined(sorted(lacking))}"
    for text in (*row.get("texts", ()), *row.get("with", ()), *row.get("without", ())):
        try:
            re.compile(text, re.MULTILINE)
        except re.error as error:
            yield f"{rule_of(row)}: the text {text!r} is no regular expression: {error}"


FAULTS = [f"wheel_checks/data/log_texts.toml, {fault}" for row in ROWS for fault in faults_of(row)]


def _log(text: str) -> Callable[[], Log]:
    return lambda: parse_log(f"start\n{text}\ndone\n".encode())


def _own() -> Iterator[Case]:
    """Every cause of logs alone: by the example on its page, and in its near miss."""
    for row in ROWS:
        if "title" in row and not list(faults_of(row)):
            rule, log = rule_of(row), _log(row.get("log", row["example"]))
            severity = NOTE if row["says"].startswith(HARMLESS) else ERROR
            yield Case(rule, row["example"][:40], log, _recognised(log()) or (row["says"],), severity)
            if rule in INNOCENT:
                yield Case(rule, INNOCENT[rule][:40], _log(INNOCENT[rule]))


def _recognised(log: Log) -> tuple[str, ...]:
    try:
        return tuple(one.says for one in recognise(log))
    except (KeyError, re.error):  # of a row that FAULTS names: the tests of the other rules must be collected
        return ()


CASES = [
    Case(
        UNRECOGNISED,
        "a failure of something else",
        lambda: parse_log(b"npm ERR! code ERESOLVE\n"),
        ("none of 1 lines contains an error text with a known cause",),
        undecided=True,
    ),
    Case(UNRECOGNISED, "a text of one cause", _log("RuntimeError: CUDA error: CUDA driver is a stub library")),
    Case(UNRECOGNISED, "a warning that means nothing", _log("Found GPU0 NVIDIA GB10 which is of cuda capability 12.1")),
    *_own(),
]
