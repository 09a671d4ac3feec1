"""Each claim of each command can be left open by itself, and each of its obligations can leave it open."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.attestations import provenance, stand_in
from tests.support.elf import Symbol
from tests.support.environments import Installed, library
from tests.support.fake_torch import World
from tests.support.fatbin import fat_binary, section
from tests.support.hosts import hgx
from tests.support.range_server import RangeServer, Resource, fail
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder
from wheel_checks.answers.evidence import JUDGED
from wheel_checks.facts.host.codec import to_json
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.model import Answer, Claim, Outcome, Subject, Verdict

MACHINES = ("x86_64", "aarch64")
NAMES = ("demo", "free", "blind", "lost", "opener", "vague")
CODE = {".nv_fatbin": section(fat_binary("sm_90", "sm_100"))}
TARGET = "--platform aarch64 --python 3.12 --gpu GB200"
UNREADABLE = b"\x50\xed\x55\xba" + b"\xff" * 60

# In each of these every claim is proven.
COMMANDS = {
    "verify": f"verify demo==1.0 {TARGET} --driver 580 --expect cuda --depth links --provenance INDEX",
    "installed": "verify --installed --python env-demo --gpu GB200 --expect cuda",
    "stack": f"stack demo==1.0 {TARGET} --driver 580 INDEX",
    "release": "release demo==1.0 --expect demo.toml --require-attestations INDEX",
    "diff": "diff demo==1.0 --platform aarch64,x86_64 --python 3.12 --depth gpu INDEX",
    "predict": "pins predict needs-any --installer uv --python PYTHON",
    "doctor": "doctor --facts computed-8.json",
}

# Changes to the command that leave a single claim open; the rule of the open obligation, and the option that closes it.
OPEN = [
    ("verify", "is a build", {"demo": "vague", "--expect cuda": "--expect cuda==12.8"}, "WHL201", ""),
    ("verify", "has code", {"demo": "blind", "--driver 580": ""}, "WHL601", ""),
    ("verify", "driver", {"580": "700"}, "WHL605", ""),
    ("verify", "loads", {"demo": "opener"}, "WHL521", ""),
    ("verify", "attested", {"demo": "lost"}, "WHL421", ""),
    ("installed", "is a build", {"env-demo": "env-demo --ignore WHL715"}, "WHL715", ""),
    ("installed", "has code", {"demo": "blind"}, "WHL731", ""),
    ("stack", "installs", {"INDEX": "INDEX --ignore STK105"}, "STK105", ""),
    ("stack", "loads", {"INDEX": "INDEX --depth quick"}, "WHL521", "--depth links"),
    ("stack", "has code", {"demo": "blind", "--driver 580": ""}, "WHL601", ""),
    ("stack", "driver", {"580": "700"}, "WHL605", ""),
    ("release", "complete", {"INDEX": "INDEX --ignore REL108"}, "REL108", ""),
    ("release", "loads", {"demo.toml --require-attestations": "quick.toml"}, "WHL521", "--depth links"),
    ("release", "loads", {"demo==1.0": "dist", "--require-attestations INDEX": "--no-index"}, "no index", ""),
    ("release", "is a build", {"demo": "vague"}, "REL103", ""),
    ("release", "has code", {"demo": "blind"}, "WHL601", ""),
    ("release", "attested", {"demo": "lost"}, "WHL421", ""),
    ("release", "loads with every torch", {"demo": "free", "INDEX": "INDEX --ignore WHL543"}, "WHL543", ""),
    ("diff", "agrees", {"demo": "blind"}, "REL205", "--depth full"),
    ("predict", "keeps torch", {"needs-any": "needs-any --ignore PIN315"}, "PIN315", ""),
    ("doctor", "computes", {"computed-8": "computed-3"}, "computed on 3 of 8", ""),
]


def wheel(name: str, machine: str) -> WheelBuilder:
    """A CUDA build whose extension module needs a symbol of torch, and what makes it special, by its name."""
    built = WheelBuilder(name, "1.0", f"cp312-cp312-manylinux_2_28_{machine}").metadata(requires=["torch==2.11.0"])
    built.add(f"{name}/__init__.py", "import ctypes, os\nctypes.CDLL(os.environ['HELP'])\n" * (name == "opener"))
    needed = ["libc10.so", *{"opener": ["libhelp.so"], "vague": ["libcudart.so.12"]}.get(name, [])]
    if name == "opener":
        built.add("opener/elsewhere/libhelp.so", library("libhelp.so", machine=machine, alignment=0x10000))
    if name == "vague":  # shows the CUDA version by the runtime alone
        built.add(f"{name}/libcudart.so.12", library("libcudart.so.12", machine=machine, alignment=0x10000))
    else:
        built.add(f"{name}/version.py", "__version__ = '1.0+cu130'\ncuda = '13.0'\n")
    contents = {".nv_fatbin": UNREADABLE} if name == "blind" else CODE
    symbols = [Symbol("PyInit__C"), *[Symbol("_ZN3c104hereEv", defined=False)] * (name != "free")]
    options: dict[str, Any] = {"alignment": 0x10000, "rpath": "$ORIGIN/../torch/lib:$ORIGIN", "symbols": symbols}
    file = library("", needed, machine, contents=contents, **options)
    return built.add(f"{name}/_C.cpython-312-{machine}-linux-gnu.so", file)


def torch(machine: str) -> WheelBuilder:
    built = WheelBuilder("torch", "2.11.0", f"cp312-cp312-manylinux_2_28_{machine}")
    built.add("torch/__init__.py").add("torch/version.py", "__version__ = '2.11.0+cu130'\ncuda = '13.0'\n")
    extension = library("", ["libc10.so"], machine, rpath="$ORIGIN/lib", alignment=0x10000)
    exported = [Symbol("_ZN3c104hereEv")]
    c10 = library("libc10.so", machine=machine, symbols=exported, contents=CODE, alignment=0x10000)
    return built.add(f"torch/_C.cpython-312-{machine}-linux-gnu.so", extension).add("torch/lib/libc10.so", c10)


def expectation(project: str, more: str = "") -> str:
    accelerator = "cuda==12.8" if project == "vague" else "cuda"
    rows = [
        f'[[platform]]\nname = "{machine}"\ntags = ["manylinux_2_28_{machine}"]\naccelerator = "{accelerator}"\n'
        'gpus = ["GB200"]\n'
        for machine in MACHINES
    ]
    parity = '[[parity]]\nplatforms = ["x86_64", "aarch64"]\n'
    return f'project = "{project}"\npythons = ["3.12"]\n{more}{"".join(rows)}{parity}'


Runner = Callable[[str, Mapping[str, str]], tuple[int, dict[str, dict[str, Any]]]]


@pytest.fixture
def run(wheelproof: Wheelproof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    """Runs a command, next to all that it needs: the exit code, and the claims by name."""
    builds = [torch(machine) for machine in MACHINES]
    builds += [wheel(name, machine) for machine in MACHINES for name in NAMES]
    pages = simple_index(*builds, attributes={b.file_name: f'data-provenance="/{b.file_name}.json"' for b in builds})
    for one in builds:
        page: Resource | bytes = provenance({"sha256": sha256(one.build()).hexdigest()})
        pages[f"/{one.file_name}.json"] = Resource(behave=[fail(503)] * 9) if one.name == "lost" else page
    for name in NAMES:
        Installed(Path(f"env-{name}")).install(torch("aarch64")).install(wheel(name, "aarch64"))
        Path(f"{name}.toml").write_text(expectation(name, 'torch-abi = ">=2.9"\n' * (name == "free")))
    Path("quick.toml").write_text(expectation("demo", 'depth = "quick"\n'))
    Path("dist").mkdir()
    for machine in MACHINES:
        wheel("demo", machine).write(Path("dist"))
    host = hgx()
    assert isinstance(host.torch, TorchProbe)
    for count in (8, 3):
        saved = to_json(replace(host, torch=replace(host.torch, computed=count)))
        Path(f"computed-{count}.json").write_text(json.dumps(saved))

    def run_command(name: str, changes: Mapping[str, str]) -> tuple[int, dict[str, dict[str, Any]]]:
        command = COMMANDS[name]
        for old, new in (*changes.items(), ("INDEX", f"--index-url {server.url('/simple')}")):
            command = command.replace(old, new)
        if "PYTHON" in command:
            world = World(tmp_path / "world") if worlds else World.create(tmp_path / "world")
            worlds.append(world)
            for variable, value in world.variables.items():
                monkeypatch.setenv(variable, value)
            command = command.replace("PYTHON", str(world.python))
        run = wheelproof(*command.split(), "--format", "json")
        assert run.out, run.err
        (answer,) = json.loads(run.out)["summary"]["answers"]
        return run.status, {claim["name"]: claim for claim in answer["claims"]}

    worlds: list[World] = []
    with stand_in(tmp_path), RangeServer(pages) as server:
        yield run_command


@pytest.mark.parametrize(
    ("command", "name", "changes", "reason", "option"), OPEN, ids=[f"{row[0]} {row[1]}" for row in OPEN]
)
def test_one_claim_is_open(
    run: Runner, command: str, name: str, changes: dict[str, str], reason: str, option: str
) -> None:
    status, claims = run(command, changes)
    shown = {key: value["verdict"] for key, value in claims.items()}
    assert (status, shown) == (3, dict.fromkeys(claims, "pass") | {name: "undecided"}), claims
    assert any(reason in text for text in claims[name]["open"]), claims[name]
    assert claims[name]["command"] == option


@pytest.mark.parametrize("command", COMMANDS)
def test_each_obligation_that_is_skipped_leaves_its_claim_open(
    run: Runner, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the subjects of a real run one result after the other is replaced by a skip."""
    run(command, {})  # imports everything
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    for module in [module for name, module in sys.modules.items() if name.startswith("wheelproof.")]:
        for name, function in vars(module).copy().items():
            if getattr(function, "__module__", "").startswith("wheel_checks.answers.") and name.startswith("answer_"):
                monkeypatch.setattr(module, name, recorded(function, calls))
    status, claims = run(command, {})
    assert (status, set(claims) - {row[1] for row in OPEN if row[0] == command}) == (0, set())
    for function, arguments in calls:
        for claim in claims_of(function(*arguments)):
            for subject, rule in dict.fromkeys(discharged(arguments, claim)):
                found = function(*without(arguments, subject, rule))
                (now,) = [one for one in claims_of(found) if one.name == claim.name]
                assert now.verdict is Verdict.UNDECIDED, (claim.name, subject, rule)


def recorded(
    function: Callable[..., Any], calls: list[tuple[Callable[..., Any], tuple[Any, ...]]]
) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        calls.append((function, arguments))
        return function(*arguments)

    return call


def claims_of(answers: Answer | tuple[Answer, ...]) -> list[Claim]:
    found = answers if isinstance(answers, tuple) else (answers,)
    return [claim for answer in found for claim in answer.claims]


def discharged(value: Any, claim: Claim) -> Iterator[tuple[str, str]]:
    """The subjects in ``value``, and the obligations of the claim that they discharge."""
    if isinstance(value, Subject):
        yield from ((value.id, r.rule) for r in value.results if r.rule in claim.obligations and r.outcome in JUDGED)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from discharged(item, claim)


def without(value: Any, subject: str, rule: str) -> Any:
    """``value`` with skips in place of the results of a rule about a subject."""
    if isinstance(value, Subject) and value.id == subject:
        results = [replace(r, outcome=Outcome.SKIP) if r.rule == rule else r for r in value.results]
        return replace(value, results=tuple(results))
    return type(value)(without(item, subject, rule) for item in value) if isinstance(value, list | tuple) else value
