"""Addresses that only a tree names are not contacted, in any form, by any command."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.elf import AARCH64, Elf
from tests.support.fake_torch import World
from tests.support.matrix import MatrixWorld, steps_of, torch_wheel
from tests.support.range_server import RangeServer, Resource
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder

WHEEL = "demo-9.0-py3-none-any.whl"
OURS = simple_index(WheelBuilder("demo", "1.0"), WheelBuilder("base", "1.0"))
THEIRS = simple_index(WheelBuilder("demo", "9.0"))
THEIRS["/requirements.txt"] = b"demo\n"
THEIRS["/links.html"] = Resource(f'<a href="files/{WHEEL}">{WHEEL}</a>'.encode(), content_type="text/html")
PROJECT = '[project]\nname = "mine"\nversion = "1"\ndependencies = ["base", "demo"]\n'
INDEX = '[[tool.uv.index]]\nname = "theirs"\nurl = "{url}/simple"\n'

# Lines of a requirements file: {url} is the server that the tree names, {host} the same without its scheme.
LINES = {
    "index-url": "--index-url {url}/simple\ndemo\n",
    "index-url=": "--index-url={url}/simple\ndemo\n",
    "-i": "-i {url}/simple\ndemo\n",
    "-iURL": "-i{url}/simple\ndemo\n",
    "extra-index-url": "--extra-index-url {url}/simple\ndemo\n",
    "continued": "--extra-index-url \\\n    {url}/simple\ndemo\n",
    "find-links": "--find-links {url}/links.html\ndemo\n",
    "-f": "-f {url}/links.html\ndemo\n",
    "credentials": "--index-url http://user:hunter2@{host}/simple\ndemo\n",
    "variable": "--index-url http://${{PWD}}@{host}/simple\ndemo\n",
    "direct": "demo @ {url}/files/" + WHEEL + "\n",
    "direct with a marker": "demo @ {url}/files/" + WHEEL + " ; python_version > '3'\n",
    "bare": "{url}/files/" + WHEEL + "\n",
    "bare source": "{url}/files/demo-9.0.tar.gz\n",
    "egg": "{url}/files/demo-9.0.tar.gz#egg=demo\n",
    "editable": "-e {url}/files/demo#egg=demo\n",
    "git": "git+{url}/demo.git#egg=demo\n",
    "git without a name": "git+{url}/demo.git\n",
    "named git": "demo @ git+{url}/demo.git@v1\n",
    "include": "-r {url}/requirements.txt\n",
    "constraint": "-c {url}/requirements.txt\ndemo\n",
    "constrained": "-c bounds.txt\ndemo\n",
    "below": "-r more/deep.txt\n",
    "of a project": "-e ./lib\n",
}
# Contents of the pyproject.toml that is requested.
PROJECTS = {
    "source index": PROJECT + '[tool.uv.sources]\ndemo = {{ index = "theirs" }}\n' + INDEX + "explicit = true\n",
    "source list": PROJECT
    + "[tool.uv.sources]\ndemo = [{{ index = 'theirs', marker = \"sys_platform == 'linux'\" }}]\n"
    + INDEX
    + "explicit = true\n",
    "source url": PROJECT + '[tool.uv.sources]\ndemo = {{ url = "{url}/files/' + WHEEL + '" }}\n',
    "source git": PROJECT + '[tool.uv.sources]\ndemo = {{ git = "{url}/demo.git" }}\n',
    "direct": '[project]\nname = "mine"\nversion = "1"\ndependencies = ["demo @ {url}/files/' + WHEEL + '"]\n',
    "index": PROJECT + INDEX,
    "default index": PROJECT + INDEX + "default = true\n",
}
# Contents of a uv.toml of the current folder or above it.
SETTINGS = {
    "index-url": 'index-url = "{url}/simple"\n',
    "extra-index-url": 'extra-index-url = ["{url}/simple"]\n',
    "find-links": 'find-links = ["{url}/links.html"]\n',
    "index": '[[index]]\nurl = "{url}/simple"\n',
    "default index": '[[index]]\nurl = "{url}/simple"\ndefault = true\n',
    "flat index": '[[index]]\nurl = "{url}/links.html"\nformat = "flat"\n',
    "named as the user's": '[[index]]\nname = "mine"\nurl = "{url}/simple"\n',
    "pip": '[pip]\nextra-index-url = ["{url}/simple"]\n',
}


@dataclass
class Servers:
    """The user's own index, and the server that only the tree names."""

    mine: RangeServer
    theirs: RangeServer

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.theirs.port}"

    def fill(self, text: str) -> str:
        return text.format(url=f"http://{self.host}", host=self.host)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    with RangeServer(OURS) as mine, RangeServer(THEIRS) as theirs:
        configured = Path.home() / ".config" / "uv" / "uv.toml"
        configured.parent.mkdir(parents=True)
        configured.write_text(f'index-url = "{mine.url("/simple")}"\n')
        monkeypatch.setenv("UV_INDEX_MINE_USERNAME", "me")
        monkeypatch.setenv("UV_INDEX_MINE_PASSWORD", "hunter2")
        yield Servers(mine, theirs)


def write_tree(servers: Servers, text: str, name: str = "requirements.txt") -> None:
    for path, content in {
        name: text,
        "bounds.txt": "demo @ {url}/files/" + WHEEL + "\n",
        "more/deep.txt": "-r ../last.txt\n",
        "last.txt": "--extra-index-url {url}/simple\ndemo\n",
        "lib/pyproject.toml": PROJECTS["source url"],
    }.items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(servers.fill(content))


def undecided(run: Run, servers: Servers) -> None:
    assert servers.theirs.requests == []
    assert run.status == 3, run.out + run.err
    assert "hunter2" not in run.out + run.err
    assert not run.out.startswith("PASS")


STACK = ("stack", "--platform", platform.machine(), "--python", "3.12")
PREDICT = ("pins", "predict", "--installed", "torch==2.9.0", "--platform", "aarch64", "--python", "3.12")


@pytest.mark.parametrize("command", [STACK, PREDICT], ids=["stack", "predict"])
@pytest.mark.parametrize("form", LINES)
def test_a_line_of_a_requirements_file(
    servers: Servers, wheelproof: Wheelproof, form: str, command: tuple[str, ...]
) -> None:
    write_tree(servers, LINES[form])
    undecided(wheelproof(*command, "-r", "requirements.txt"), servers)


@pytest.mark.parametrize("command", [STACK, PREDICT], ids=["stack", "predict"])
@pytest.mark.parametrize("form", PROJECTS)
def test_a_project(servers: Servers, wheelproof: Wheelproof, form: str, command: tuple[str, ...]) -> None:
    write_tree(servers, PROJECTS[form], "pyproject.toml")
    undecided(wheelproof(*command, "-r", "pyproject.toml"), servers)


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("form", SETTINGS)
@pytest.mark.parametrize(
    "command",
    [(*STACK, "demo"), (*PREDICT, "demo"), ("verify", "demo"), ("diff", "demo==1.0", "demo==9.0"), ("release", "demo")],
    ids=["stack", "predict", "verify", "diff", "release"],
)
def test_settings_of_uv(
    servers: Servers, wheelproof: Wheelproof, form: str, command: tuple[str, ...], above: bool
) -> None:
    Path("uv.toml").write_text(servers.fill(SETTINGS[form]))
    if above:
        Path("below").mkdir()
        os.chdir("below")
    if command[0] == "release":
        Path("expected.toml").write_text(
            'project = "demo"\npythons = ["3.12"]\n[[platform]]\nname = "any"\ntags = ["any"]\n'
        )
        command = (*command, "--expect", "expected.toml")
    run = wheelproof(*command)
    assert servers.theirs.requests == []
    assert run.status == 3, run.out + run.err
    assert f"--trust-index http://{servers.host}" in run.out + run.err


# With the flag it is contacted


LOOKED_AT = ("index-url", "-i", "extra-index-url", "continued", "find-links", "credentials", "direct", "bare", "below")


@pytest.mark.parametrize("form", LOOKED_AT)
def test_a_trusted_line_is_followed(servers: Servers, wheelproof: Wheelproof, form: str) -> None:
    write_tree(servers, LINES[form].replace("9.0.tar.gz", "9.0-py3-none-any.whl"))
    run = wheelproof(*STACK, "-r", "requirements.txt", "--trust-index", servers.host, "-v")
    assert (run.status, WHEEL in run.out) == (0, True), run.out + run.err
    assert servers.theirs.requests
    assert not [request for request in servers.theirs.requests if "Authorization" in request.headers]


@pytest.mark.parametrize("form", ["source index", "source list", "source url", "direct"])
def test_a_trusted_source_gives_its_package_alone(servers: Servers, wheelproof: Wheelproof, form: str) -> None:
    write_tree(servers, PROJECTS[form], "pyproject.toml")
    run = wheelproof(*STACK, "pyproject.toml", "--trust-index", f"http://{servers.host}", "-v")
    assert (run.status, WHEEL in run.out) == (0, True), run.out + run.err
    assert {request.path for request in servers.theirs.requests} <= {"/simple/demo/", f"/files/{WHEEL}"}


@pytest.mark.parametrize("form", SETTINGS)
def test_trusted_settings_count(servers: Servers, wheelproof: Wheelproof, form: str) -> None:
    Path("uv.toml").write_text(servers.fill(SETTINGS[form]))
    run = wheelproof("verify", "demo", "--trust-index", servers.host)
    assert (run.status, WHEEL in run.out) == (0, True), run.out + run.err
    assert not [request for request in servers.theirs.requests if "Authorization" in request.headers]


def test_the_environment_trusts_and_a_tree_does_not(
    servers: Servers, wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("uv.toml").write_text(servers.fill(SETTINGS["index"]))
    monkeypatch.setenv("WHEELPROOF_TRUST_INDEX", f"other.example,{servers.host}")
    assert wheelproof("verify", "demo").status == 0
    monkeypatch.delenv("WHEELPROOF_TRUST_INDEX")
    servers.theirs.requests.clear()
    Path("wheelproof.toml").write_text(f'trust-index = ["{servers.host}"]\n')
    assert wheelproof("verify", "demo").status != 0
    assert servers.theirs.requests == []


@pytest.mark.parametrize(
    "trusted", ["127.0.0.1", "127.0.0.1:1", "https://{host}", "http://{host}/simple/other", "*.0.0.1"]
)
def test_another_host_is_not_trusted(servers: Servers, wheelproof: Wheelproof, trusted: str) -> None:
    write_tree(servers, LINES["index-url"])
    undecided(wheelproof(*STACK, "-r", "requirements.txt", "--trust-index", trusted.format(host=servers.host)), servers)


def test_the_configured_index_is_trusted_and_other_paths_of_its_host_are_not(
    servers: Servers, wheelproof: Wheelproof
) -> None:
    Path("requirements.txt").write_text(f"--index-url {servers.mine.url('/simple/')}\nbase\n")
    assert wheelproof(*STACK, "-r", "requirements.txt").status == 0
    before = len(servers.mine.requests)
    for path in ("/other", "/simple/../other", "/simpler", "/simple/%2e%2e/other"):
        Path("requirements.txt").write_text(f"--index-url {servers.mine.url(path)}\nbase\n")
        assert wheelproof(*STACK, "-r", "requirements.txt").status == 3, path
    assert len(servers.mine.requests) == before


def test_what_does_not_depend_on_it_is_judged(servers: Servers, wheelproof: Wheelproof) -> None:
    write_tree(servers, PROJECTS["source index"], "pyproject.toml")
    run = wheelproof(*STACK, "pyproject.toml", "-v")
    undecided(run, servers)
    assert "base-1.0-py3-none-any.whl" in run.out
    assert "2 packages, 1 not looked at" in run.out
    assert "demo needs the index" in run.out
    assert '(pyproject.toml, index "theirs"); only the tree names it' in run.out


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        (SETTINGS["index"], "the index http://"),
        ('torch-backend = "cu130"\n', "the choice of index torch-backend cu130"),
    ],
)
def test_uv_would_also_count_what_a_tree_adds_to_the_users_variables(
    servers: Servers, wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch, text: str, needs: str
) -> None:
    monkeypatch.setenv("UV_INDEX", servers.mine.url("/simple"))
    Path("uv.toml").write_text(servers.fill(text))
    run = wheelproof(*PREDICT, "demo")
    undecided(run, servers)
    assert f"demo needs {needs}" in run.out


def test_a_url_of_the_command_line_is_the_users(servers: Servers, wheelproof: Wheelproof) -> None:
    url = servers.fill("{url}/files/" + WHEEL)
    assert wheelproof("verify", url).status == 0
    assert wheelproof(*STACK, f"demo @ {url}").status == 0


# Other commands, and executed programs


@pytest.mark.parametrize("url", ["{url}/files/" + WHEEL, "git+{url}/demo.git", "file://{folder}/" + WHEEL])
def test_a_direct_url_in_metadata_is_not_followed(servers: Servers, wheelproof: Wheelproof, url: str) -> None:
    library = Elf(machine=AARCH64, alignment=0x10000, soname="libdemo.so").build().data
    WheelBuilder("demo", "9.0").add("demo.libs/libdemo.so", library).write(Path.cwd())
    wheel = WheelBuilder("own", "1.0", "cp312-cp312-manylinux_2_28_aarch64")
    wheel.add("own/_c.so", Elf(machine=AARCH64, alignment=0x10000, needed=("libdemo.so",)).build().data)
    text = "demo @ " + servers.fill(url.replace("{folder}", str(Path.cwd())))
    wheel.metadata(requires=["base", text, f"{text} ; sys_platform == 'win32'"])
    run = wheelproof("verify", str(wheel.write(Path.cwd())), "--depth", "links", "--python", "3.12")
    undecided(run, servers)
    assert "(METADATA of the wheel); only the tree names it" in run.out


EVIL = "from pathlib import Path\nPath({marker!r}).touch()\n"


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A world whose project has code that must not be executed; the file that it would leave."""
    world = World.create(tmp_path / "world")
    for name, value in world.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(world.project)
    marker, evil = tmp_path / "executed", EVIL.format(marker=str(tmp_path / "executed"))
    for name in ("pip.py", "backend.py", "setup.py", "sitecustomize.py", "wheelproof.py", "runpy.py", "uv.py"):
        Path(name).write_text(evil)
    for name in ("evil", "uv", "git", "python3.12"):
        Path(name).write_text(f"#!/bin/sh\ntouch {marker}\n")
        Path(name).chmod(0o755)
    Path(".python-version").write_text("./evil\n")
    Path("pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        "[project]\nname = 'mine'\nversion = '1'\ndynamic = ['dependencies']\n"
        "[tool.uv]\npython-preference = 'only-system'\ncache-dir = './cache-of-the-tree'\n"
        "keyring-provider = 'subprocess'\npython-install-mirror = 'http://127.0.0.1:9/'\n"
    )
    return marker


@pytest.mark.parametrize(
    "text",
    ["-e .\n", ".\n", "./\n", "mine @ .\n", "--no-binary :all:\nextension\n", "--no-binary extension\nextension\n"],
)
@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_predicting_executes_nothing_of_a_tree(
    marker: Path, wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch, installer: str, text: str
) -> None:
    monkeypatch.chdir(os.environ["VIRTUAL_ENV"] + "/../project")
    Path("requirements.txt").write_text(text)
    run = wheelproof("pins", "predict", "-r", "requirements.txt", "--installer", installer)
    assert run.status == 3, run.out + run.err
    assert not marker.exists()
    assert not Path("cache-of-the-tree").exists()


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("pins", "predict", "needs-any", "--installer", "both"), 0),
        (("pins", "predict", "."), 3),
        (("pins", "predict", "-e", "."), 3),
        (("pins", "predict", "uv", "sync"), 3),
        (("pins", "predict", "uv", "add", "needs-any"), 3),
        (("pins", "predict", "uv", "run", "--with", "needs-any", "python"), 3),
        (("pins", "predict", "pip install ./ && uv pip install -e ."), 3),
        (("pins", "guard", "--check"), 1),
        (("pins", "check"), 0),
        ((*STACK, "needs-any", "--no-index"), 1),
        ((*STACK, "-r", "pyproject.toml"), 3),
        ((*STACK, "-r", "setup.py"), 3),
    ],
)
def test_no_command_executes_what_lies_in_the_current_folder(
    marker: Path, wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], status: int
) -> None:
    monkeypatch.chdir(os.environ["VIRTUAL_ENV"] + "/../project")
    run = wheelproof(*command)
    assert run.status == status, run.out + run.err
    assert not marker.exists()
    assert not Path("cache-of-the-tree").exists()


def test_the_users_own_configuration_trusts(servers: Servers, wheelproof: Wheelproof) -> None:
    Path("uv.toml").write_text(servers.fill(SETTINGS["index"]))
    own = Path.home() / ".config" / "wheelproof" / "wheelproof.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'trust-index = ["http://{servers.host}"]\n')
    assert wheelproof("verify", "demo").status == 0
    assert wheelproof("verify", "demo", "--config", os.devnull).status == 3


@pytest.mark.parametrize("form", ["a URL of the matrix", "an index of the tree"])
def test_a_cell_of_a_matrix(tmp_path: Path, form: str) -> None:
    ours = simple_index(torch_wheel("cpu"), WheelBuilder("demo", "1.0"))
    with RangeServer(ours) as mine, RangeServer(THEIRS) as theirs:
        servers = Servers(mine, theirs)
        world = MatrixWorld.create(tmp_path, mine)
        direct = form == "a URL of the matrix"
        package = servers.fill("demo @ {url}/files/" + WHEEL) if direct else "demo"
        world.write(f"accelerator = 'cpu'\npackages = ['{package}']")
        if not direct:
            (tmp_path / "uv.toml").write_text(servers.fill(SETTINGS["index"]))
        report = world.run(status=3)
        assert servers.theirs.requests == []
        assert f"--trust-index http://{servers.host}" in json.dumps(report)
        steps = steps_of(world.run("--trust-index", servers.host, status=3 if direct else 0))  # demo has no module
        assert "failure" not in steps["resolve"]
        assert f"/files/{WHEEL}" in {request.path for request in servers.theirs.requests}


@pytest.mark.parametrize("command", [("doctor", "--python", sys.executable), ("pins", "check"), ("pins", "explain")])
def test_commands_that_only_look(servers: Servers, wheelproof: Wheelproof, command: tuple[str, ...]) -> None:
    for text in (SETTINGS["index"], SETTINGS["find-links"]):
        Path("uv.toml").write_text(servers.fill(text))
        write_tree(servers, LINES["extra-index-url"] + LINES["direct"])
        wheelproof(*command)
        assert servers.theirs.requests == []
