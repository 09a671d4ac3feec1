"""Kills `pins rewrite` and `pins restore` at any moment, alone and several at once: is anything ever lost?

usage: python ci/pins_kills.py [--rounds N] [--seconds S] [--seed N] [--folder FOLDER]     (default: 2000 rounds)

Each round starts from a small tree, and has one to four runs in it, each in a separate process. A process is killed
(SIGKILL) at the n-th of its calls that open, write, sync, rename or remove, in the middle of a write; or after a random
time; or not at all. Runs of one round may be one after another or at once.

After each run every file must be as one of the plans makes it, whole. After the round `pins restore` must give back
every byte that was present, and leave nothing else in the tree or in the state folder. Prints one JSON object; the exit
code is 1 when something was lost, and the trees of those rounds are kept.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import mmap
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wheelproof.cli.main import main as wheelproof
from wheelproof.pins import Policy, plan
from wheelproof.pins.policy import Mode, NameSet

FILES = {
    "requirements.txt": b"six\ntorch==2.8.0\nnvidia-cudnn-cu12==9.1\n-r docker/requirements.txt\n",
    "docker/requirements.txt": b"torch>=2.7\r\n# end",
    "docker/constraints.txt": b"\xef\xbb\xbftorchvision==0.22\nnumpy\n",
    "pyproject.toml": b'[project]\nname = "demo"\nversion = "1"\ndependencies = ["torch", "six", "triton"]\n',
    "long-requirements.txt": b"torch\n" + b"# a comment that is long enough\n" * 3000,
}
LINK = ("linked-requirements.txt", "docker/requirements.txt")  # inside the tree
RUNS = (  # possible commands; those that change something come first
    ("rewrite",),
    ("rewrite", "--set", "wide"),
    ("rewrite", "--mode", "unpin"),
    ("rewrite", "docker/requirements.txt", "requirements.txt"),
    ("restore",),
    ("restore", "docker"),
)
STEPS = ("open", "write", "fsync", "fchmod", "close", "replace", "unlink", "mkdir")
LONGEST_DELAY = 0.1  # seconds until a kill that comes from outside
DIED_AT = mmap.mmap(-1, 16)  # shared with the children: at which call each was killed, 1 for the first of STEPS


@dataclass
class Figures:
    """The results of all rounds."""

    rounds: int = 0
    runs: int = 0
    at_once: int = 0  # rounds with several runs at a time
    killed: Counter[str] = field(default_factory=Counter)  # by the call, or "from outside"
    steps: dict[str, int] = field(default_factory=dict)  # the calls of a run that nothing disturbs, by command
    ended: Counter[str] = field(default_factory=Counter)  # exit codes of the others, by command
    lost: list[str] = field(default_factory=list)

    def as_json(self, seconds: float) -> str:
        """One object."""
        return json.dumps(
            {
                "rounds": self.rounds,
                "seconds": round(seconds, 1),
                "runs": self.runs,
                "rounds_at_once": self.at_once,
                "calls_of_a_run": self.steps,
                "killed": dict(sorted(self.killed.items())),
                "ended": dict(sorted(self.ended.items())),
                "lost": self.lost,
            },
            indent=1,
        )


def make_tree(folder: Path) -> None:
    """The tree with which each round begins."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / ".git").mkdir(parents=True)
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    (folder / LINK[0]).symlink_to(LINK[1])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; of a link where it leads."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or path.is_file():
            data = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(folder))] = data
    return found


def states(folder: Path) -> dict[str, set[bytes]]:
    """The possible contents of each file: after any plan, and any further plan."""
    policies = [Policy(), Policy(names=NameSet.WIDE), Policy(Mode.UNPIN)]
    found = {name: {data} for name, data in FILES.items()}
    for _ in policies:
        for name, known in found.items():
            for data in list(known):
                (folder / name).write_bytes(data)
                known |= {
                    file.rewritten
                    for policy in policies
                    for file in plan([folder / name], policy).files
                    if file.target == folder / name
                }
            (folder / name).write_bytes(FILES[name])
    return found


def start(work: Callable[[], int], step: int, slot: int = 0) -> int:
    """Run ``work`` in a child that is killed at its ``step``-th call (0: not so); its process id."""
    DIED_AT[slot] = 0
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        left = step

        def reached(name: str, write_half: Callable[[], object]) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                write_half()
                DIED_AT[slot] = STEPS.index(name) + 1
                os.kill(os.getpid(), signal.SIGKILL)

        watch(reached)
        status = work()
    finally:
        os._exit(status)


def watch(reached: Callable[[str, Callable[[], object]], None]) -> None:
    """Have ``reached`` called before each system call, with a function that writes half of the data of a write."""

    def watched(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def watched_call(*arguments: Any, **options: Any) -> Any:
            half = (lambda: call(arguments[0], arguments[1][: len(arguments[1]) // 2])) if name == "write" else int
            reached(name, half)
            return call(*arguments, **options)

        return watched_call

    for name in STEPS:
        setattr(os, name, watched(getattr(os, name), name))


def count_steps(folder: Path, arguments: tuple[str, ...]) -> int:
    """The number of calls of an undisturbed run, in this process, which also imports its modules."""
    calls = {name: getattr(os, name) for name in STEPS}
    count = 0

    def reached(_name: str, _half: Callable[[], object]) -> None:
        nonlocal count
        count += 1

    watch(reached)
    try:
        status = run_in(folder, arguments)()
    finally:
        for name, call in calls.items():
            setattr(os, name, call)
    if status:
        raise RuntimeError(f"{' '.join(arguments)} ended with {status}")
    return count


def run_in(folder: Path, arguments: tuple[str, ...]) -> Callable[[], int]:
    """The command line, from a random folder of the tree as a user would: its exit code."""

    def work() -> int:
        os.chdir(folder)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as words:
            status = wheelproof(["pins", *arguments])
        return 71 if "internal error" in words.getvalue() else status

    return work


def one_round(folder: Path, known: dict[str, set[bytes]], chance: random.Random, figures: Figures) -> Iterator[str]:
    """One round in a new tree; yields faults."""
    make_tree(folder)
    count = chance.choice((1, 1, 2, 2, 3, 4))
    at_once = count > 1 and chance.random() < 0.7
    figures.at_once += at_once
    children: list[tuple[int, tuple[str, ...], bool]] = []
    for number in range(count):
        arguments = chance.choice(RUNS[:4] if number == 0 else RUNS)
        manner = chance.choice(("at a call", "at a call", "from outside", "not"))
        step = chance.randint(1, figures.steps[arguments[0]]) if manner == "at a call" else 0
        child = start(run_in(folder, arguments), step, number)
        children.append((child, arguments, manner == "from outside"))
        if not at_once:
            yield from _end(children, chance, figures)
            yield from _whole(folder, known)
    yield from _end(children, chance, figures)
    yield from _whole(folder, known)
    yield from _recover(folder, chance, figures)


def _end(children: list[tuple[int, tuple[str, ...], bool]], chance: random.Random, figures: Figures) -> Iterator[str]:
    """Kill the chosen children from outside, and wait for all."""
    for child, _, from_outside in children:
        if from_outside:
            time.sleep(chance.random() * LONGEST_DELAY)
            os.kill(child, signal.SIGKILL)  # not reaped yet, so the number is still its own
    for slot, (child, arguments, from_outside) in enumerate(children):
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        figures.runs += 1
        if code == -signal.SIGKILL:
            figures.killed["from outside" if from_outside else f"at {STEPS[DIED_AT[slot] - 1]}"] += 1
        else:
            figures.ended[f"{arguments[0]} {code}"] += 1
            if code not in (0, 3):  # 3: no journal to restore
                yield f"{' '.join(arguments)} ended with {code}"
    children.clear()


def _whole(folder: Path, known: dict[str, set[bytes]]) -> Iterator[str]:
    """The faults: files that are missing or partly written."""
    found = contents(folder)
    for name, allowed in known.items():
        if found.get(name) not in allowed:
            yield f"{name} holds {found.get(name, b'nothing')[:60]!r}"


def _recover(folder: Path, chance: random.Random, figures: Figures) -> Iterator[str]:
    """Recover as a user would: restore, which may be killed, too; then everything must be unchanged."""
    if chance.random() < 0.4:
        child = start(run_in(folder, ("restore",)), chance.randint(1, figures.steps["restore"]))
        yield from _end([(child, ("restore",), False)], chance, figures)
    child = start(run_in(folder, ("restore", chance.choice((".", "docker")))), 0)
    yield from _end([(child, ("restore",), False)], chance, figures)
    expected = {**FILES, LINK[0]: LINK[1].encode()}
    found = contents(folder)
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            yield f"after the restoration {name} holds {found.get(name, b'nothing')[:60]!r}"
    state = Path(os.environ["XDG_STATE_HOME"], "wheelproof/pins")
    if left := [path.name for path in state.glob("*") if path.name != "lock"]:
        yield f"the state folder still holds {left}"


def run(rounds: int, seconds: float, seed: int, top: Path) -> Figures:
    """As many rounds as the bounds allow (0: no bound), in folders below ``top``."""
    os.environ["XDG_STATE_HOME"] = str(top / "state")
    figures = Figures()
    end = time.monotonic() + seconds if seconds else float("inf")
    make_tree(top / "tree")
    known = states(top / "tree")
    figures.steps = {command: count_steps(top / "tree", (command,)) for command in ("rewrite", "restore")}
    while (not rounds or figures.rounds < rounds) and time.monotonic() < end:
        chance = random.Random(f"{seed} {figures.rounds}")  # noqa: S311  # a failure must come again
        faults = list(one_round(top / "tree", known, chance, figures))
        if faults:
            kept = top / f"lost-{figures.rounds}"
            shutil.copytree(top, kept, symlinks=True, ignore=shutil.ignore_patterns("lost-*"))
            figures.lost.append(f"round {figures.rounds}: {'; '.join(faults)} (kept in {kept})")
            shutil.rmtree(top / "state", ignore_errors=True)
        figures.rounds += 1
    return figures


def main() -> int:
    """Run the rounds, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    memory = Path("/dev/shm")  # noqa: S108  # a file system in memory: thousands of calls of fsync wait for no disk
    top = Path(
        tempfile.mkdtemp(prefix="pins-kills-", dir=arguments.folder or (memory if os.access(memory, os.W_OK) else None))
    )
    began = time.monotonic()
    figures = run(arguments.rounds, arguments.seconds, arguments.seed, top)
    print(figures.as_json(time.monotonic() - began))
    if figures.lost:
        return 1
    shutil.rmtree(top)
    return 0


if __name__ == "__main__":
    sys.exit(main())
