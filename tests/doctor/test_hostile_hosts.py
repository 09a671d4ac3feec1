"""Every saved host and every log, with hostile names, paths and versions in every field that its rule does not use.

For each scenario it is learnt which texts of the facts can be others while the rule still fires; each of these then
contains a hostile text at once. `python -m tests.doctor.test_hostile_hosts` tries all texts on all hosts (some
minutes); here it is a few for each.
"""

from __future__ import annotations

import json
import posixpath
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from tests.doctor.test_explain import FRAGMENTS
from tests.support.hostile import HEAD, HOSTILE, TAIL, faults, texts_of, vectors, with_texts
from tests.support.hosts import (
    cuda_fails,
    healthy,
    hgx,
    kernel_fails,
    replaced,
    torch_import_fails,
    with_variables,
)
from tests.support.scenarios import scenarios
from wheel_checks.catalogue import select_rules
from wheel_checks.data import load
from wheel_checks.facts.host.codec import from_json, to_json
from wheel_checks.facts.host.commands import NEW_ENVIRONMENT
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.log.facts import parse_log
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.fixes.commands import Command, Export, NoCommand, Options, Pipe, Step, Unset, WriteFile
from wheel_checks.model import CheckResult, Outcome
from wheel_checks.report.wording import fix_lines
from wheel_checks.rules.host.cause import KIND, rule_id
from wheel_checks.rules.host.log_texts import recognise, steps_of
from wheel_checks.runner import run_rules
from wheelproof.doctor.report import examine

SAMPLE = 3  # hostile texts for each host
MARK = f"{HEAD}x{TAIL}"
PLACES: dict[str, Callable[[str], str]] = {
    "behind": lambda text: text + MARK,
    "before": lambda text: MARK + text,
    "in a part of a path": lambda text: text.replace("/", f"/{MARK}", 1) if "/" in text else text + MARK,
    "in the last part of a path": lambda text: posixpath.join(posixpath.dirname(text), MARK + posixpath.basename(text)),
    "instead": lambda text: MARK,
}

# Programs that a fix of the doctor starts, except the interpreter.
PROGRAMS = {
    *("add-apt-repository", "apt", "apt-cache", "apt-get", "cat", "chmod", "conda", "df", "dkms", "dmesg", "dnf"),
    *("docker", "dracut", "find", "findmnt", "getconf", "grep", "grubby", "ldconfig", "ldd", "ln", "ls", "lspci"),
    "mktemp",
    *("modprobe", "mokutil", "mv", "nvidia-ctk", "nvidia-cuda-mps-control", "nvidia-modprobe", "nvidia-smi", "podman"),
    *("apptainer", "printenv", "printf", "ps", "python", "python3", "reboot", "rm", "rmmod", "setsebool", "srun"),
    *("sudoedit", "systemctl", "tee", "ulimit", "update-initramfs", "usermod", "uv", "wheelproof"),
}
_INTERPRETER = re.compile(r"/(?:.*/)?(?:python|pypy)[\w.-]*", re.DOTALL)
_OWN_PLACES = re.compile(r"/(?:.*/)?(?:(?:site|dist)-packages/.+|\.triton/cache)", re.DOTALL)
_LOADED = {"LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH"}


@dataclass(frozen=True)
class Host:
    """Facts, and the rule that must still fire with values chosen by strangers; "" if none."""

    name: str
    rule: str
    facts: HostFacts


def hosts() -> list[Host]:
    """Every saved host, and one for each rule that none of them shows."""
    found = []
    for scenario in scenarios():
        rules = (rule_id(scenario.catalogue), scenario.expected.root or "")
        rule = next((rule for rule in rules if fires(rule, scenario.facts)), "")
        found.append(Host(scenario.file, rule, scenario.facts))
    crashing = replaced(healthy(), "interpreter", fault="it was killed by SIGSEGV")
    found.append(Host("DOC200", "DOC200", with_variables(crashing, PYTHONPATH="/opt/a:/opt/b")))
    found.append(Host("DOC200-without-variables", "DOC200", crashing))
    no_manager = replaced(cuda_fails(hgx(), 802), "services", processes=(), fabric_manager="")
    found.append(Host("DOC401-without-the-package", "DOC401", no_manager))
    return [*found, Host("DOC002", "DOC002", replaced(healthy(), "installed", torch=None))]


def hostile_host(host: Host, place: str) -> tuple[HostFacts, int]:
    """The host with the mark wherever its rule allows it, and how many of its texts have it."""
    change = PLACES[place]
    kept: set[str] = set()
    left = [[text for text in dict.fromkeys(texts_of(host.facts)) if text.strip() and change(text) != text]]
    while left:
        chunk = left.pop()
        if not host.rule or fires(host.rule, marked(host.facts, kept | set(chunk), change)):
            kept |= set(chunk)
        elif len(chunk) > 1:
            left += [chunk[: len(chunk) // 2], chunk[len(chunk) // 2 :]]
    return marked(host.facts, kept, change), len(kept)


def marked(facts: HostFacts, texts: set[str], change: Callable[[str], str]) -> HostFacts:
    host: HostFacts = with_texts(facts, lambda text: change(text) if text in texts else text)
    return host


def filled(facts: HostFacts, hostile: str) -> HostFacts:
    host: HostFacts = with_texts(facts, lambda text: text.replace(MARK, hostile))
    return host


def fires(rule: str, facts: HostFacts) -> bool:
    chosen = [one for one in select_rules(KIND) if one.id == rule]
    return any(result.outcome is Outcome.FAIL for result in run_rules(chosen, facts, Expectations()))


def dangers(step: Step, hostile: str) -> Iterator[str]:
    """Properties that no step may have, for any host."""
    for fault in faults(step, hostile):
        if "/" not in hostile or not fault.endswith("has a part of a value"):  # a folder is a part of a path
            yield fault
    for argv in vectors(step):
        program = next(word for word in argv if word not in {"sudo", "env"} and not word.startswith("CONDA_OVERRIDE"))
        if program not in {*PROGRAMS, f"{NEW_ENVIRONMENT}/bin/python"} and not _INTERPRETER.fullmatch(program):
            yield f"{program!r} of {argv} is a program of a stranger's"
        deleted = argv[argv.index("rm") + 1 :] if "rm" in argv else argv[2:] if argv[:2] == ("chmod", "+x") else ()
        for word in deleted:
            if not word.startswith("-") and not (_OWN_PLACES.fullmatch(word) and posixpath.normpath(word) == word):
                yield f"{argv} changes what is not its tool's"
        if argv[0] == "sudo" and any(HEAD in word and re.search(r"[^\w./+:=~-]", word) for word in argv):
            yield f"{argv} gives root what is not a plain name"
    if isinstance(step, WriteFile) and HEAD in "".join((step.path, *step.lines)):
        yield f"{step} writes what a stranger chose"


def words_of(step: Step) -> list[str]:
    """The words of a step's vectors, and the value of a variable."""
    words = [word for argv in vectors(step) for word in argv]
    return [*words, step.value] if isinstance(step, Export) and isinstance(step.value, str) else words


def judge(results: tuple[CheckResult, ...], hostile: str, seen: Counter[str]) -> list[str]:
    found = []
    for result in results:
        if result.outcome is not Outcome.FAIL:
            if "crashed" in result.message:
                found.append(f"{result.rule}: {result.message}")
            continue
        seen[result.rule] += 1
        for step in result.fix.commands if result.fix else ():
            if not isinstance(step, Command | Export | NoCommand | Options | Pipe | Unset | WriteFile):
                found.append(f"{result.rule}: {step!r} is not a step")
                continue
            seen["steps"] += 1
            seen["steps with a hostile value"] += any(HEAD in word for word in words_of(step))
            found += [f"{result.rule}: {fault}" for fault in dangers(step, hostile)]
        for line in fix_lines(result.fix) if result.fix else ():
            if not line.text.isprintable():
                found.append(f"{result.rule}: {line.text!r} is shown")
    return found


def attack(host: Host, chosen: list[tuple[str, str]], seen: Counter[str]) -> list[str]:
    """The dangers of one host; ``chosen`` are places and kinds of hostile texts."""
    found = []
    marked_hosts = {place: hostile_host(host, place) for place in dict.fromkeys(place for place, _ in chosen)}
    for place, kind in chosen:
        facts, texts = marked_hosts[place]
        hostile = HOSTILE[kind]
        facts = filled(facts, hostile)
        seen["hosts"] += 1
        seen["hostile texts"] += texts
        found += [f"{host.name}, {kind} {place}: {one}" for one in judge(examine(facts).results, hostile, seen)]
    return found


HOSTS = hosts()


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_no_host_turns_its_fixes_against_the_reader(host: Host) -> None:
    chosen, seen = random.Random(host.name), Counter[str]()
    place = chosen.choice(list(PLACES))

    found = attack(host, [(place, kind) for kind in chosen.sample(list(HOSTILE), SAMPLE)], seen)

    assert not found, found[0]
    assert seen[host.rule] or not host.rule, "the rule no longer fires"


def test_every_rule_fires_on_one_of_these_hosts() -> None:
    """So each is attacked above: by the host that is named after it, or whose cause it is."""
    # A section that was not read fails nothing; DOC003 answers only to --expect; DOC004 has no command.
    without_a_fix = {"DOC001", "DOC003", "DOC004"}

    assert {rule.id for rule in select_rules(KIND)} - without_a_fix == {host.rule for host in HOSTS if host.rule}


def test_facts_that_came_by_a_file_are_judged_alike() -> None:
    """Values of a file pass the decoder and the rules unchanged; a path to delete is the plainest danger."""
    facts, _ = hostile_host(next(host for host in HOSTS if host.rule == "DOC209"), "behind")
    facts = filled(facts, "/../../../home")
    again = from_json(json.loads(json.dumps(to_json(facts))))

    assert judge(examine(again).results, MARK, Counter()) == []
    steps = [
        step
        for result in examine(again).results
        if result.rule == "DOC209" and result.fix
        for step in result.fix.commands
    ]
    assert any(isinstance(step, NoCommand) for step in steps)


@pytest.mark.parametrize("word", ["x", "ImportError: ", "version `GLIBCXX_3' ", "/a.so: cannot allocate ", " \n"])
def test_what_a_child_said_costs_its_length_and_not_the_square_of_it(word: str) -> None:
    """A megabyte, with which the patterns that were square in it took hours."""
    text = word * ((1 << 20) // len(word))

    for facts in (torch_import_fails(healthy(), text), kernel_fails(healthy(), text)):
        results = examine(replaced(facts, "loader", error=text)).results
        assert not [result for result in results if "crashed" in result.message]


PTXAS = "/opt/env/lib/python3.12/site-packages/triton/backends/nvidia/bin/ptxas"
LIBGOMP = "/opt/env/lib/python3.12/site-packages/torch/lib/libgomp-d22c30c5.so.1.0.0"
LIBCUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
CACHE = "/home/user/.triton/cache"
CDI = "/etc/cdi/nvidia.yaml"

CONFINED = [
    ("DOC503", CDI, ("/etc/passwd", "/etc/cdi/../passwd", "/etc/cdi/../nvidia.yaml", "/etc/cdi/-o.yaml", "n.yaml")),
    ("DOC812", PTXAS, ("/etc/shadow", f"{PTXAS}/../../../../../../../../../../etc/shadow", "ptxas", "-R")),
    ("DOC817", CACHE, ("/", "/home/user", f"{CACHE}/../..", "~/.triton/cache", "", "/x/.triton/cache/")),
    ("DOC818", LIBCUDA, ("/usr/lib/../../etc/libcuda.so.1", "libcuda.so.1", "-f/libcuda.so.1", "//x/libcuda.so.1")),
    ("DOC217", LIBGOMP, ("/tmp/evil.so", "evil.so", "/opt/env/../../tmp/a.so", "/usr/lib/a.so:/tmp/a.so", "/x.py")),
    ("DOC209", "~orch", ("numpy", "x/../numpy")),
    ("DOC315", "video", ("-R", "root,video", "a b", "$(id)")),
    ("DOC305", "6.8.0-63-generic", ("-6.8", "../6.8", "6.8;id", "6.8 x")),
    ("DOC402", "580.159.04", ("580.159.04;id", "-580", "580.159.04 x", "580.x")),
]
"""For each rule: text in its fix, and text that must not replace it."""


@pytest.mark.parametrize(("rule", "own", "strange"), CONFINED, ids=[rule for rule, _, _ in CONFINED])
def test_what_root_writes_or_a_fix_deletes_is_confined(rule: str, own: str, strange: tuple[str, ...]) -> None:
    host = next(
        host for host in HOSTS if host.rule == rule and own.removesuffix(".1") in " ".join(named(host.facts, rule))
    )

    for other in strange:
        facts: HostFacts = with_texts(host.facts, partial(exchanged, own, other))
        assert fires(rule, facts)
        assert not [word for word in named(facts, rule) if (other or "/") in word and not word.startswith("--tmpdir")]


def exchanged(own: str, other: str, text: str) -> str:
    return text.replace(own, other)


def named(facts: HostFacts, rule: str) -> list[str]:
    """Every word of the steps of a rule's fixes."""
    results = run_rules([one for one in select_rules(KIND) if one.id == rule], facts, Expectations())
    steps = [step for result in results if result.fix for step in result.fix.commands]
    return [word for step in steps for word in words_of(step)]


# Logs


def hostile_logs(text: str, hostile: str) -> Iterator[str]:
    """The log with the hostile text after, before and in place of each word, and within each path and version."""
    for word in re.finditer(r"\S+", text):
        for new in (word[0] + hostile, hostile + word[0], hostile):
            yield text[: word.start()] + new + text[word.end() :]
    for inner in re.finditer(r"(?<=/)[\w.-]+|\d[\d.]*", text):
        yield text[: inner.start()] + hostile + text[inner.end() :]


def explained(log: str, seen: Counter[str]) -> list[str]:
    """The steps that are no row of the table, of one log."""
    found = recognise(parse_log(log.encode(errors="surrogatepass")))
    seen["logs"] += 1
    seen["recognised"] += bool(found)
    seen["steps"] += sum(len(one.fix.commands) for one in found)
    return [f"{log!r}: {step}" for one in found for step in one.fix.commands if step not in OF_TABLE]


OF_TABLE = {step for entry in load("log_texts")["entry"] for row in entry.get("commands", ()) for step in steps_of(row)}


@pytest.mark.parametrize(("catalogue", "text"), FRAGMENTS, ids=lambda value: value[:40])
def test_no_log_chooses_a_word_of_a_command(catalogue: str, text: str) -> None:
    chosen, seen = random.Random(catalogue + text), Counter[str]()
    logs = [chosen.choice(list(hostile_logs(text, hostile))) for hostile in HOSTILE.values()]

    assert [fault for log in logs for fault in explained(log, seen)] == []
    assert seen["recognised"]


def test_no_log_leads_to_a_command_that_destroys() -> None:
    destroying = {"rm", "rmdir", "mv", "dd", "shred", "truncate", "chmod", "chown", "ln", "kill", "find -delete"}
    for step in OF_TABLE:
        for argv in vectors(step):
            assert destroying.isdisjoint(argv), argv
            assert not {"-delete", "-exec", "remove", "purge", "uninstall"}.intersection(argv), argv


# Everything


def main() -> int:
    """All texts in all places of all hosts and logs, with figures."""
    hosts_seen, logs_seen = Counter[str](), Counter[str]()
    everywhere = [(place, kind) for place in PLACES for kind in HOSTILE]
    found = [one for host in HOSTS for one in attack(host, everywhere, hosts_seen)]
    for _, text in FRAGMENTS:
        for hostile in HOSTILE.values():
            found += [one for log in hostile_logs(text, hostile) for one in explained(log, logs_seen)]
    rules = {name for name in hosts_seen if name.startswith("DOC")}
    counts = {name: count for name, count in hosts_seen.items() if name not in rules}
    sys.stdout.write(f"{len(rules)} rules fired; hosts: {counts}; logs: {dict(logs_seen)}\n")
    sys.stdout.write("".join(f"{one}\n" for one in sorted(set(found))))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
