"""The MCP server, started as a client starts it and asked by the SDK's own client."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.conftest import Wheelproof
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like

DOCS = Path(__file__).parents[2] / "docs"
Call = Callable[..., Awaitable[tuple[bool, Any]]]


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """A folder that the user allowed, with a wheel, facts of a host, and links that lead out of it."""
    folder, outside = tmp_path / "allowed", tmp_path / "outside"
    (folder / "dist").mkdir(parents=True)
    outside.mkdir()
    WheelBuilder().write(folder / "dist")
    secret = WheelBuilder("secret").write(outside)
    (folder / "link-1.0-py3-none-any.whl").symlink_to(secret)
    (folder / "away").symlink_to(outside)
    (folder / "loop").symlink_to(folder / "loop")
    shutil.copy(DOCS / "files/grace.json", folder)
    shutil.copy(DOCS / "files/grace.json", outside)
    return folder


def ask(allowed: Path, questions: Callable[[Call], Awaitable[None]], *options: str) -> None:
    """Start the server and let ``questions`` call its tools: each gives whether it failed, and the answer."""

    async def session() -> None:
        arguments = ["-m", "wheelproof", "mcp", "--allow", str(allowed), *options]
        async with Client(StdioServerParameters(command=sys.executable, args=arguments, cwd=allowed)) as client:

            async def call(tool: str, **named: Any) -> tuple[bool, Any]:
                result = await client.call_tool(tool, named)
                text = result.content[0].text if result.content else ""  # type: ignore[union-attr]  # all are texts
                return bool(result.is_error), text if result.is_error else json.loads(text)

            call.client = client  # type: ignore[attr-defined]  # for the listing of tools
            await questions(call)

    anyio.run(session)


def test_the_tools_are_read_only_ones(allowed: Path) -> None:
    async def questions(call: Any) -> None:
        tools = (await call.client.list_tools()).tools
        assert {tool.name for tool in tools} == {"verify", "stack", "explain", "rules", "doctor", "doctor_facts"}
        assert all(tool.description for tool in tools)
        every = {name for tool in tools for name in tool.input_schema["properties"]}
        assert every.isdisjoint({"command", "fix", "index_url", "interpreter", "output", "root"})

    ask(allowed, questions)


def test_wheels_logs_rules_and_saved_facts(allowed: Path) -> None:
    async def questions(call: Call) -> None:
        failed, report = await call("verify", targets=["dist"], expect="cuda")
        assert not failed
        assert report["verdict"] == "fail"
        assert report["findings"][0]["rule"] == "WHL201"

        log = "AssertionError: Torch not compiled with CUDA enabled"
        _, explained = await call("explain", log=log)
        assert explained["verdict"] == "fail"
        assert explained["findings"][0]["rule"].startswith("DOC")

        _, page = await call("rules", names=["WHL201"])
        assert page["rules"][0]["why"]

        _, diagnosis = await call("doctor_facts", file="grace.json")
        assert (diagnosis["root"], diagnosis["verdict"]) == ("DOC101", "fail")
        assert diagnosis["findings"][0]["commands_for_the_user"]

    ask(allowed, questions, "--offline")


def test_a_stack_on_the_configured_index(allowed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RangeServer(simple_index(torch_like("cpu", "2.10.0", "aarch64"))) as server:
        # the client hands on few variables, so the index is configured as a user configures it
        configured = allowed.parent / "home/.config/uv/uv.toml"
        configured.parent.mkdir(parents=True)
        configured.write_text(f'[[index]]\nurl = "{server.url("/simple")}"\ndefault = true\n')

        async def questions(call: Call) -> None:
            failed, report = await call(
                "stack", requirements=["torch==2.10.0"], platform="aarch64", python="3.12", gpu="GB200"
            )
            assert not failed, report
            assert report["answers"][0].startswith("does not run on GB200")

        ask(allowed, questions)


def test_paths_urls_and_sizes_that_are_refused(allowed: Path) -> None:
    outside = allowed.parent / "outside"
    not_below = "is not below a folder that was allowed, or does not exist"
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("verify", {"targets": [str(outside / "secret-1.0-py3-none-any.whl")]}, not_below),
        ("verify", {"targets": ["../outside/secret-1.0-py3-none-any.whl"]}, not_below),
        ("verify", {"targets": ["link-1.0-py3-none-any.whl"]}, not_below),
        ("verify", {"targets": ["away"]}, not_below),
        ("verify", {"targets": ["away/"]}, not_below),
        ("verify", {"targets": ["."]}, not_below),  # its link leads out
        ("verify", {"targets": ["https://example.org/demo-1.0-py3-none-any.whl"]}, not_below),
        ("verify", {"targets": ["file:///etc/demo-1.0-py3-none-any.whl"]}, not_below),
        ("verify", {"targets": ["demo @ https://example.org/demo"]}, not_below),
        ("verify", {"targets": ["dist"] * 51}, "51 were named; expected 1 to 50"),
        ("verify", {"targets": ["dist/"], "depth": "full"}, "'full' is not a depth of this tool"),
        ("verify", {"targets": ["loop/demo.whl"]}, not_below),
        ("verify", {"targets": ["x" * 5000 + ".whl"]}, "xxx..."),  # its name is cut, too
        ("verify", {"targets": ["dist\0/demo.whl"]}, not_below),
        ("stack", {"requirements": ["demo @ file:///etc/passwd"]}, "names a URL"),
        ("stack", {"requirements": ["-r /etc/passwd"]}, "is not a requirement"),
        ("stack", {"requirements": ["/etc/passwd"]}, "is not a requirement"),
        ("doctor_facts", {"file": str(outside / "grace.json")}, not_below),
        ("doctor_facts", {"file": "away/grace.json"}, not_below),
        ("doctor_facts", {"file": "/proc/self/environ"}, not_below),
        ("explain", {"log": "x" * ((1 << 20) + 1)}, "the limit is 1,048,576"),
        ("rules", {"names": ["NOPE"]}, "no rule has the id 'NOPE'"),
    ]

    async def questions(call: Call) -> None:
        for tool, arguments, sentence in refused:
            failed, message = await call(tool, **arguments)
            assert failed, (tool, arguments, message)
            assert sentence in message, (tool, arguments)

    ask(allowed, questions, "--offline")


def test_answers_are_bounded(allowed: Path) -> None:
    for number in range(40):
        WheelBuilder(f"w{number}").metadata(f"Author: {'a' * 5000}").write(allowed / "dist")

    async def questions(call: Call) -> None:
        _, report = await call("verify", targets=["dist/"], expect="cuda")
        assert len(report["findings"]) == 20
        assert report["left_out"] > 0
        assert len(json.dumps(report)) < 100_000

    ask(allowed, questions)


def test_wrong_usage_of_the_command(wheelproof: Wheelproof) -> None:
    run = wheelproof("mcp", "--allow", "nowhere")
    assert run.status == 2
    assert "--allow nowhere is not a folder" in run.err
