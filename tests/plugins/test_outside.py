"""Plug-ins as their authors ship them: wheels that uv builds, and installs next to wheelproof."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.plugins.outside import FORMAT, PROBE, RULES, Outside, Package, results_of
from tests.support.wheels import WheelBuilder
from wheel_checks import Outcome
from wheelproof.plugins import loading
from wheelproof.plugins.installed import Plugin, find_plugins
from wheelproof.plugins.loading import load_plugins

GOOD = (
    Package("acme-rules", RULES, {"rules": 'acme = "acme_rules"'}),
    Package("acme-format", FORMAT, {"formats": 'acme = "acme_format:render"'}),
    Package("acme-probe", PROBE, {"probes": 'acme = "acme_probe"'}),
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Outside:
    """Rules, a format and a probe that work."""
    outside = Outside(tmp_path_factory.mktemp("good"))
    outside.install(*GOOD)
    WheelBuilder().write(outside.folder)
    WheelBuilder("acme_tool").write(outside.folder)
    return outside


def with_rules(folder: Path, source: str, *more: Package) -> Outside:
    outside = Outside(folder)
    outside.install(Package("acme-rules", source, {"rules": 'acme = "acme_rules"'}), *more)
    WheelBuilder().write(folder)
    return outside


class TestRules:
    def test_they_judge_next_to_ours(self, good: Outside) -> None:
        report = good.report("verify", ".", "--no-index")

        assert results_of(report, "ACME001") == [
            ("pass", "wheels have our prefix"),
            ("fail", "demo does not start with acme"),
        ]
        assert [outcome for outcome, _ in results_of(report, "ACME002")] == ["pass", "pass"]
        assert len(results_of(report, "WHL")) > 40
        assert (report["status"], report["summary"]["verdict"]) == (0, "pass")  # a warning

    def test_they_are_selected_ignored_and_decide(self, good: Outside) -> None:
        only = good.report("verify", ".", "--no-index", "--select", "ACME", "--fail-on", "warning")
        assert only["status"] == 1
        assert results_of(only, "WHL") == []

        without = good.report("verify", ".", "--no-index", "--ignore", "ACME001", "--fail-on", "warning")
        assert results_of(without, "ACME001") == []

    def test_no_plugins(self, good: Outside) -> None:
        report = good.report("verify", ".", "--no-index", "--no-plugins")
        assert results_of(report, "ACME") == []
        assert good.wheelproof("verify", ".", "--no-plugins", "--select", "ACME").returncode == 2

    def test_their_pages(self, good: Outside) -> None:
        page = good.wheelproof("rules", "ACME001").stdout
        assert page.startswith("ACME001: wheels have our prefix\nwarning, judges every wheel, ")
        assert "a rule of acme-rules" in page
        assert "Our index serves nothing else." in page
        assert "https://example.org/policy" in page
        assert "| ACME002 | error | wheels are small |" in good.wheelproof("rules", "--format", "markdown").stdout
        assert good.wheelproof("rules", "acme0", "--no-plugins").returncode == 2

    def test_sarif_describes_them(self, good: Outside) -> None:
        log = json.loads(good.wheelproof("verify", ".", "--no-index", "--format", "sarif").stdout)
        described = {rule["id"]: rule for rule in log["runs"][0]["tool"]["driver"]["rules"]}
        assert described["ACME001"]["fullDescription"]["text"] == "Our index serves nothing else."

    def test_the_api_uses_them(self, good: Outside) -> None:
        options = "wheelproof.Options(select='ACME', fail_on='warning')"
        program = f"import wheelproof; print(wheelproof.verify('.', {options}).exit_code)"
        command = [str(good.python), "-c", program]
        assert subprocess.check_output(command, cwd=good.folder, text=True) == "1\n"


class TestOthers:
    def test_a_format(self, good: Outside) -> None:
        done = good.wheelproof("verify", ".", "--no-index", "--format", "acme", "--also", "json=report.json")
        assert done.stdout == "verify: pass\n- acme_tool-1.0-py3-none-any.whl\n- demo-1.0-py3-none-any.whl\n"
        assert json.loads((good.folder / "report.json").read_text())["command"] == "verify"

    def test_a_format_is_unknown_without_its_plugin(self, good: Outside) -> None:
        done = good.wheelproof("verify", ".", "--format", "acme", "--no-plugins")
        assert done.returncode == 2
        assert "the format acme comes from a plug-in that is not in use" in done.stderr

    def test_a_probe_and_a_rule_about_it(self, good: Outside) -> None:
        report = good.report("doctor", "--expect", "cpu")
        host = next(subject for subject in report["subjects"] if subject["kind"] == "host")
        assert host["facts"]["probes"] == {"acme": {"values": {"engine": "none", "racks": "3"}}}
        assert results_of(report, "ACME003") == [("fail", "no engine")]
        assert report["status"] == 1

    def test_saved_facts_hold_what_a_probe_said(self, good: Outside) -> None:
        good.wheelproof("doctor", "--save-facts", "facts.json")
        report = good.report("doctor", "--facts", "facts.json")
        assert results_of(report, "ACME003") == [("fail", "no engine")]

    def test_the_version_lists_them(self, good: Outside) -> None:
        assert good.wheelproof("--version", "-v").stdout.splitlines()[1:] == [
            "plug-ins:",
            "  formats  acme = acme_format:render  (acme-format 1.0)",
            "  probes   acme = acme_probe  (acme-probe 1.0)",
            "  rules    acme = acme_rules  (acme-rules 1.0)",
        ]

    def test_only_our_own_environment_counts(self, good: Outside, tmp_path: Path) -> None:
        bare = Outside(tmp_path)
        WheelBuilder().write(tmp_path)
        (site,) = good.python.parents[1].glob("lib/python*/site-packages")

        report = bare.report("verify", ".", "--no-index", PYTHONPATH=str(site), VIRTUAL_ENV=str(good.python.parents[1]))

        assert results_of(report, "ACME") == []
        assert bare.wheelproof("--version", "-v", PYTHONPATH=str(site)).stdout.endswith("no plug-in is installed\n")


RULE = '@rule("{id}", "t", why="w", example="e", fix="f", kind="{kind}")\ndef check_{id}(wheel, _):\n    {body}\n'


def rule_source(*rules: tuple[str, str], kind: str = "wheel", before: str = "") -> str:
    source = "".join(RULE.format(id=name, body=body, kind=kind) for name, body in rules)
    return f"{before}\nfrom wheel_checks import Finding, need, rule, Unavailable, WheelproofError\n{source}"


GARBLING = "import os\nfor number in range(3, 20):\n    try: os.write(number, b'x\\n')\n    except OSError: pass"
NAMED = "the plug-in acme (rules of acme-rules 1.0) "


class TestFaultsOfRules:
    """Each is an error with the name of the plug-in; our own results stay."""

    @pytest.mark.parametrize(
        ("source", "sentence"),
        [
            ("import nothing_of_that_name", "cannot be imported: ModuleNotFoundError: No module named 'nothing_of_"),
            ("1/0", "cannot be imported: ZeroDivisionError: division by zero (__init__.py, line 1)"),
            ("raise SystemExit(0)", "cannot be imported: SystemExit: 0 (__init__.py, line 1)"),
            ("import os; os._exit(0)", "described no rule"),
            ("import os; os.abort()", "ended its process with signal 6"),
            (GARBLING, "returned an invalid answer"),
            ("def broken(:", "cannot be imported: SyntaxError: invalid syntax"),
            ("", "registers no rules; expected functions with @wheel_checks.rule in acme_rules"),
            (rule_source(("WHL201", "return ()")), "has a rule WHL201, which has a prefix of wheelproof's own rules"),
            (rule_source(("PLG001", "return ()")), "has a rule PLG001, which has a prefix of wheelproof's own rules"),
            (rule_source(("acme1", "return ()")), "has a rule with the id 'acme1'; expected capital letters and three"),
            (
                rule_source(("ACME001", "return ()"), kind="wheels"),
                "has a rule ACME001 for subjects of the kind 'wheels'",
            ),
        ],
    )
    def test_one_that_cannot_be_loaded(self, tmp_path: Path, source: str, sentence: str) -> None:
        report = with_rules(tmp_path, source).report("verify", ".", "--no-index")

        ((outcome, message),) = results_of(report, "PLG001")
        assert outcome == "error"
        assert message.startswith(NAMED + sentence)
        assert (report["status"], report["summary"]["verdict"]) == (3, "undecided")
        assert len(results_of(report, "WHL")) > 20

    def test_checks_that_crash_hang_end_the_process_or_give_nonsense(self, tmp_path: Path) -> None:
        source = rule_source(
            ("ACME001", "yield Finding('found')"),
            ("ACME002", "raise KeyError('nope')"),
            ("ACME003", "yield 'text'"),
            ("ACME004", "need(Unavailable('not asked'))\n    yield"),
            ("ACME005", "raise WheelproofError('too far', hint='go on')"),
            ("ACME006", "return None"),
            ("ACME007", "while True: pass"),
            ("ACME008", "yield Finding('never said')"),
        )
        outside = with_rules(tmp_path, source)
        WheelBuilder("other").write(tmp_path)

        report = outside.report("verify", "demo-1.0-py3-none-any.whl", "other-1.0-py3-none-any.whl", "--no-index")

        results = {rule: results_of(report, rule) for rule in (f"ACME00{number}" for number in range(1, 9))}
        no_check = f"{NAMED}could not perform this check: "
        assert results["ACME001"][0] == ("fail", "found")
        assert results["ACME002"][0] == ("error", f"{no_check}KeyError: 'nope' (__init__.py, line 8)")
        assert results["ACME003"][0] == ("error", f"{no_check}it gave a str; expected a wheel_checks.Finding")
        assert results["ACME004"][0] == ("skip", "not asked")
        assert results["ACME005"][0] == ("error", "too far")
        assert results["ACME006"][0][0] == "error"
        assert results["ACME007"][0] == ("error", f"{no_check}did not finish within 10 s")
        assert results["ACME008"][0] == ("error", f"{no_check}ACME007, which came before, did not finish within 10 s")
        assert report["status"] == 1
        # The second wheel is judged at the same time, or finds that the plug-in is not asked again.
        assert {outcome for outcome, _ in results["ACME007"]} == {"error"}
        assert report["seconds"] < 60

    def test_a_rule_that_hangs_can_be_ignored(self, tmp_path: Path) -> None:
        source = rule_source(("ACME001", "return ()"), ("ACME002", "while True: pass"))
        report = with_rules(tmp_path, source).report("verify", ".", "--no-index", "--ignore", "ACME002")
        assert report["status"] == 0

    def test_two_with_one_id(self, tmp_path: Path) -> None:
        source = rule_source(("ACME001", "return ()"))
        twin = Package("acme-twin", source, {"rules": 'twin = "acme_twin"'})

        report = with_rules(tmp_path, source, twin).report("verify", ".", "--no-index")

        assert results_of(report, "PLG001") == [
            ("error", "the plug-in twin (rules of acme-twin 1.0) is not used: acme-rules has a rule ACME001, too")
        ]
        assert results_of(report, "ACME001") == [("pass", "t")]

    def test_none_turns_a_fail_into_a_pass(self, tmp_path: Path) -> None:
        """One that rewrites our rules, our registry and our results does so in its own process."""
        before = (
            "import wheel_checks.registry as r, wheel_checks.model as m, wheel_checks.runner as u\n"
            "import wheel_checks.rules.wheel.accelerator\n"
            "r._RULES.clear(); m.Report.verdict = 'pass'; u.run_rules = lambda *_: ()\n"
        )
        outside = with_rules(tmp_path, rule_source(("ACME001", "wheel = None; return ()"), before=before))

        report = outside.report("verify", ".", "--no-index", "--expect", "cuda")

        assert report["status"] == 1
        assert ("fail", "the wheel has no accelerator; expected cuda") in results_of(report, "WHL201")

    def test_rules_warns_of_it(self, tmp_path: Path) -> None:
        done = with_rules(tmp_path, "1/0").wheelproof("rules", "WHL201")
        assert done.returncode == 0
        assert f"wheelproof: {NAMED}cannot be imported: ZeroDivisionError" in done.stderr


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("1/0", "cannot be imported: ZeroDivisionError: division by zero (__init__.py, line 1)"),
        ("render = 3", "has no function render in acme_format"),
        ("def render(report, stream): raise OSError(5, 'no')", "crashed: OSError: [Errno 5] no (__init__.py, line 1)"),
        (
            "def render(report, stream):\n    while True: stream.write('x' * 99999)",
            "writes more than 33,554,432",
        ),
    ],
)
def test_faults_of_a_format(tmp_path: Path, source: str, sentence: str) -> None:
    outside = Outside(tmp_path)
    outside.install(Package("acme-format", source, {"formats": 'acme = "acme_format"'}))
    WheelBuilder().write(tmp_path)

    done = outside.wheelproof("verify", ".", "--no-index", "--format", "acme", "--also", "json=report.json")

    assert done.returncode == 3
    assert f"the plug-in acme (formats of acme-format 1.0) {sentence}" in done.stderr
    assert done.stdout == ""


def test_formats_and_probes_with_a_name_that_is_taken(tmp_path: Path) -> None:
    outside = Outside(tmp_path)
    outside.install(
        Package("acme-format", FORMAT, {"formats": 'json = "acme_format"'}),
        Package("acme-probe", PROBE, {"probes": 'acme = "acme_probe"'}),
        Package("acme-twin", PROBE, {"probes": 'acme = "acme_twin"'}),
    )
    WheelBuilder().write(tmp_path)

    report = outside.report("verify", ".", "--no-index")

    assert results_of(report, "PLG001") == [
        (
            "error",
            "the plug-in json (formats of acme-format 1.0) is not used: wheelproof itself has formats of that name",
        ),
        ("error", "the plug-in acme (probes of acme-twin 1.0) is not used: acme-probe has probes of that name"),
    ]
    assert report["status"] == 3


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("1/0", "cannot be imported: ZeroDivisionError: division by zero (__init__.py, line 1)"),
        ("def probe(): return 3", "gave a int; expected a mapping of names to values"),
        ("def probe(): return {'a': [1]}", "gave 'a' a list; expected text, a number or a truth value"),
        ("def probe(): raise KeyError('x')", "crashed: KeyError: 'x' (__init__.py, line 1)"),
    ],
)
def test_faults_of_a_probe(tmp_path: Path, source: str, sentence: str) -> None:
    outside = Outside(tmp_path)
    outside.install(Package("acme-probe", source, {"probes": 'acme = "acme_probe"'}))

    report = outside.report("doctor", "--expect", "cpu")

    assert results_of(report, "PLG001") == [("error", f"the plug-in acme (probes of acme-probe 1.0) {sentence}")]
    host = next(subject for subject in report["subjects"] if subject["kind"] == "host")
    assert sentence in host["facts"]["probes"]["acme"]["unavailable"]
    assert report["status"] in (1, 3)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"[wheelproof.rules]\nnonsense\n", "cannot be read: entry_points.txt, line 2: 'nonsense' has no value"),
        (b"[wheelproof.rules]\n\xff = x\n", "cannot be read: entry_points.txt, line 2: the line is not UTF-8"),
        (b"[wheelproof.rules]\nacme = no module!\n", "names 'no module!'; expected module or module:object"),
    ],
)
def test_an_entry_point_that_cannot_be_read(tmp_path: Path, text: bytes, sentence: str) -> None:
    folder = tmp_path / "acme_rules-1.0.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_bytes(text)

    (plugin,) = find_plugins([str(tmp_path)])

    assert plugin.fault.startswith(sentence)
    assert (plugin.distribution, plugin.version) == ("acme_rules", "1.0")


def test_what_cannot_be_read_is_an_error_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Plugin("rules", "?", "", "acme-rules", "1.0", "cannot be read: entry_points.txt, line 2")
    monkeypatch.setattr(loading, "find_plugins", lambda: (broken,))

    (subject,) = load_plugins().subjects()

    assert [result.outcome for result in subject.results] == [Outcome.ERROR]
    assert "cannot be read" in subject.results[0].message


def test_extras_of_an_entry_point_are_not_part_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "acme_rules-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.4\nName: acme-rules\nVersion: 1.0.post1\n")
    (folder / "entry_points.txt").write_text("[wheelproof.rules]\nacme = acme.rules : RULES [gpu]\n[console]\na = b\n")

    assert find_plugins([str(tmp_path)]) == (Plugin("rules", "acme", "acme.rules:RULES", "acme-rules", "1.0.post1"),)


ENDLESS = {
    "rules": "while True: pass",
    "formats": "def render(report, stream):\n    while True: pass",
    "probes": "def probe():\n    while True: pass",
}


def test_endless_loops_end_at_the_deadline(tmp_path: Path) -> None:
    def hang(kind: str) -> tuple[int, str]:
        folder = tmp_path / kind
        folder.mkdir()
        outside = Outside(folder)
        outside.install(Package("acme-loop", ENDLESS[kind], {kind: 'acme = "acme_loop"'}))
        command = ("doctor", "--expect", "cpu", "--format", "acme" if kind == "formats" else "markdown")
        done = outside.wheelproof(*command)
        return done.returncode, done.stdout + done.stderr

    with ThreadPoolExecutor() as pool:
        ended = dict(zip(ENDLESS, pool.map(hang, ENDLESS), strict=True))

    for kind, (status, results) in ended.items():
        assert f"the plug-in acme ({kind} of acme-loop 1.0) did not finish within 10 s" in results
        assert status in (1, 3)
