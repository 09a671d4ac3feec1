"""Plans, and reasons against one: small real environments, indexes in folders, a healthy H200 server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.hosts import replaced
from tests.support.real_environment import RealEnvironment
from tests.support.repairs import World, companion, cudnn, nccl, packages, plain, torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Interpreter
from wheel_checks.fixes.goal import Goal
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import IndexConfig, configured_indexes
from wheelproof.doctor.probes.python import read_interpreter
from wheelproof.doctor.repair.builds import TorchBuilds
from wheelproof.doctor.repair.graph import Graph
from wheelproof.doctor.repair.installed import read_contents
from wheelproof.doctor.repair.offers import Offers
from wheelproof.doctor.repair.plan import Plan
from wheelproof.doctor.repair.planner import Planner
from wheelproof.doctor.repair.solving import NoPlanError

FITTING = Goal(fitting_torch=True)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@contextmanager
def planner(
    world: World, environment: RealEnvironment, index: str, facts: HostFacts | None = None
) -> Iterator[Planner]:
    """A planner for the environment, with this index as the configured one."""
    interpreter = read_interpreter(python=environment.python, environ=world.variables())
    assert isinstance(interpreter, Interpreter)
    variables = world.variables(UV_DEFAULT_INDEX=index)
    host = facts or environment.facts()
    with HttpClient(offline=True) as client:
        offers = Offers(client, configured_indexes(variables, world.folder), interpreter)
        contents = read_contents(interpreter)
        graph = Graph(contents.own, offers.target.markers())
        yield Planner(replace(host, interpreter=interpreter), contents, graph, offers, variables)


def planned(world: World, environment: RealEnvironment, index: str, goal: Goal = FITTING) -> Plan:
    with planner(world, environment, index) as one:
        return one.plan(goal)


def stopped(world: World, environment: RealEnvironment, index: str, goal: Goal = FITTING) -> tuple[str, ...]:
    """Why there is no plan."""
    with planner(world, environment, index) as one, pytest.raises(NoPlanError) as error:
        one.plan(goal)
    return (error.value.what, *error.value.reasons)


def changes(plan: Plan) -> dict[str, str]:
    return {one.name: one.version for one in plan.coming}


def test_the_pinned_release_comes_with_its_companion_and_nothing_else_moves(world: World) -> None:
    environment = world.make()
    world.install(environment, "vllm torch==2.11.0+cpu torchvision==0.26.0+cpu numpy==2.3.4", world.cpu)
    plan = planned(world, environment, world.good)

    assert changes(plan) == {
        "nvidia-cudnn-cu13": "9.19.0.56",
        "nvidia-nccl-cu13": "2.28.9",
        "torch": "2.11.0",
        "torchvision": "0.26.0",
        "triton": "3.6.0",
    }
    torch_line = next(one.requirement for one in plan.coming if one.name == "torch")
    assert torch_line == "torch==2.11.0,!=2.11.0+cu128,!=2.11.0+cpu"
    lines = list(plan.lines())
    assert any(line.startswith("  ~ torch 2.11.0+cpu -> 2.11.0  (file:///") for line in lines)
    assert "5 others stay" in lines[5]
    assert plan.download == sum(one.size or 0 for one in plan.coming) > 0
    assert plan.document()["stays"] == 5


def test_a_release_that_needs_another_version_moves_just_that(world: World) -> None:
    environment = world.make()
    world.install(environment, "vllm torch==2.11.0+cpu torchvision==0.26.0+cpu numpy==2.3.4", world.cpu)
    world.install(environment, "sympy==1.12.0", options="--no-deps")

    assert changes(planned(world, environment, world.good))["sympy"] == "1.14.0"


def test_two_pins_that_exclude_one_another_are_both_named(world: World) -> None:
    environment = world.make()
    environment.index("base", plain("pinner", "1", "torch==2.10.0"))
    world.install(environment, "vllm torch==2.11.0+cpu torchvision==0.26.0+cpu numpy==2.3.4", world.cpu)
    world.install(environment, "pinner", options="--no-deps")

    _, *reasons = stopped(world, environment, world.good)
    assert "pinner 1 requires torch==2.10.0" in reasons
    assert "vllm 0.20.0 requires torch==2.11.0" in reasons


def test_an_index_with_builds_for_the_cpu_alone_is_no_reason_to_ask_another(world: World) -> None:
    environment = world.make()
    world.install(environment, "lightning torch==2.11.0+cpu", world.cpu)

    what, *reasons = stopped(world, environment, world.cpu)
    assert what == "no torch build on the configured index can be installed here"
    assert "torch 2.13.0 on the index is not built for CUDA" in reasons


def test_the_cudnn_of_jax_is_not_overwritten(world: World) -> None:
    environment = world.make()
    world.install(environment, "'jax[cuda12]' torch==2.11.0+cpu", world.cpu)

    plan = planned(world, environment, world.good)
    assert changes(plan)["torch"] == "2.11.0+cu128"
    assert "nvidia-cudnn-cu12" not in changes(plan)
    assert "torch 2.11.0 overwrites files of nvidia-cudnn-cu12, which jax-cuda12-plugin 0.9.0 requires" in stopped(
        world, environment, world.base
    )


def test_an_orphan_that_nothing_requires_makes_room(world: World) -> None:
    """cuDNN for CUDA 12 is left from another torch; that for CUDA 13 would overwrite it."""
    environment = world.make()
    world.install(environment, "lightning torch==2.11.0+cpu", world.cpu)
    world.install(environment, "nvidia-cudnn-cu12")

    assert planned(world, environment, world.base).gone == ("nvidia-cudnn-cu12",)


def test_what_another_distribution_requires_never_goes(world: World) -> None:
    environment = world.make()
    world.install(environment, "'jax[cuda12]' torch==2.11.0+cu128", world.good)

    goal = Goal(intact=("torch",), gone=("nvidia-cudnn-cu12",))
    what, *reasons = stopped(world, environment, world.good, goal)
    assert what == "nvidia-cudnn-cu12 cannot go"
    assert set(reasons) == {
        "torch 2.11.0+cu128 requires nvidia-cudnn-cu12",
        "jax-cuda12-plugin 0.9.0 requires nvidia-cudnn-cu12",
    }


def test_an_old_driver_gets_a_build_that_it_can_run(world: World) -> None:
    environment = world.make()
    world.install(environment, "lightning torch==2.13.0")
    facts = replaced(environment.facts(), "cuda", driver_cuda=12060)
    with planner(world, environment, world.good, facts) as one:
        assert changes(one.plan(FITTING))["torch"] == "2.13.0+cu126"
    unknown = replaced(replaced(facts, "cuda", driver_cuda=0), "driver", version="")
    unknown = replaced(replaced(unknown, "nvml", driver_version=""), "loader", cuda_libraries=())
    with planner(world, environment, world.good, unknown) as one, pytest.raises(NoPlanError) as error:
        one.plan(FITTING)
    assert error.value.reasons == ("the CUDA version that the driver supports is unknown",)


# The very wheel


INTACT = Goal(intact=("torch",))


def test_the_same_version_of_another_build_is_not_taken_for_it(world: World) -> None:
    environment = world.make()
    world.install(environment, "lightning torch==2.11.0")
    other = environment.index("other", torch("2.11.0", "12.8"), *packages())

    plan = planned(world, environment, world.base, INTACT)
    assert changes(plan) == {"torch": "2.11.0"}
    assert set(plan.intact) == {"torch"}
    assert plan.fresh
    (what,) = stopped(world, environment, other, INTACT)
    assert "another build of torch 2.11.0 than the one that was installed (RECORD: 2 files differ" in what
    assert "where that one came from is not recorded" in what


def test_what_no_index_has_is_reported(world: World) -> None:
    environment = world.make()
    world.install(environment, "lightning torch==2.11.0+cpu", world.cpu)

    (what,) = stopped(world, environment, world.base, INTACT)
    assert what.startswith("where torch 2.11.0+cpu came from is not recorded, and file://")


def test_a_wheel_that_was_named_by_its_address_comes_from_there(world: World, tmp_path: Path) -> None:
    environment = world.make()
    wheel = torch("2.11.0").write(tmp_path)
    world.install(environment, f"lightning {wheel}")

    (one,) = planned(world, environment, world.cpu, INTACT).coming
    assert one.requirement == f"torch @ {wheel.as_uri()}"
    wheel.rename(tmp_path / "moved")
    assert "which no longer exists" in stopped(world, environment, world.base, INTACT)[0]


@pytest.mark.parametrize(
    ("origin", "says"),
    [
        ({"url": "file:///src/torch", "dir_info": {"editable": True}}, "which is not a wheel"),
        ({"url": "https://example.org/torch.git", "vcs_info": {"vcs": "git"}}, "which is not a wheel"),
        ({"url": "https://example.org/torch-2.11.0.tar.gz", "archive_info": {}}, "only its source is there"),
    ],
)
def test_what_was_built_from_source_is_not_built_again(world: World, origin: dict[str, object], says: str) -> None:
    environment = world.make()
    world.install(environment, "torch==2.11.0", options="--no-deps")
    (environment.site_packages / "torch-2.11.0.dist-info/direct_url.json").write_text(json.dumps(origin))

    assert says in stopped(world, environment, world.base, INTACT)[0]


@pytest.mark.parametrize(
    ("file", "content", "says"), [("RECORD", "", "has no RECORD"), ("INSTALLER", "conda", "conda")]
)
def test_what_uv_cannot_replace_is_left(world: World, file: str, content: str, says: str) -> None:
    environment = world.make()
    world.install(environment, "torch==2.11.0", options="--no-deps")
    (environment.site_packages / "torch-2.11.0.dist-info" / file).write_text(content)

    assert says in stopped(world, environment, world.base, INTACT)[0]
    assert stopped(world, environment, world.base, Goal(intact=("absent",)))[0].startswith("absent is not installed")


@pytest.mark.parametrize("path", ["/etc/passwd", "{site}/../../../outside", "{site}"])
def test_leftovers_outside_of_the_environment_stay(world: World, path: str) -> None:
    environment = world.make()
    world.install(environment, "sympy")

    goal = Goal(remains=(path.format(site=environment.site_packages),))
    assert stopped(world, environment, world.base, goal)[0].endswith("is not in this environment")


# Requirements


def test_a_requirement_that_was_broken_before_and_cannot_be_met_stays(world: World) -> None:
    environment = world.make()
    world.install(environment, "lightning torch==2.11.0")
    environment.index("extra", plain("foo", "1", "bar>=2"))
    world.install(environment, "foo", (environment.root / "extra").as_uri(), "--no-deps")

    plan = planned(world, environment, world.base, INTACT)
    assert changes(plan) == {"torch": "2.11.0"}
    assert plan.notes == ("stays as it was: foo 1 requires bar>=2, and it is not installed",)


def test_a_requirement_by_address_and_an_empty_dist_info_stop_nothing(world: World) -> None:
    environment = world.make()
    world.install(environment, "lightning torch==2.11.0+cpu", world.cpu)
    environment.index(
        "extra", plain("by-address", "1", "numpy @ https://example.org/numpy.tar.gz", "gone @ file:///gone")
    )
    world.install(environment, "by-address", (environment.root / "extra").as_uri(), "--no-deps")
    (environment.site_packages / "rest-1.0.dist-info").mkdir()

    assert changes(planned(world, environment, world.base))["torch"] == "2.11.0"


def test_a_requirement_that_was_broken_before_is_met_where_it_can_be(world: World) -> None:
    environment = world.make()
    world.install(environment, "lightning torch==2.11.0")
    world.install(environment, "numpy==2.4.0 vllm", options="--no-deps")

    plan = planned(world, environment, world.base, INTACT)
    assert {"torch", "numpy", "transformers", "torchvision"} <= changes(plan).keys()
    assert changes(plan)["numpy"] == "2.3.4"


def test_what_is_wanted_against_a_pin_is_refused_with_the_pin(world: World) -> None:
    environment = world.make()
    world.install(environment, "lightning torch==2.11.0")

    message = " ".join(stopped(world, environment, world.base, Goal(wanted=("nvidia-nccl-cu13==2.27.5",))))
    assert "depends on nvidia-nccl-cu13==2.28.9 and the plan requires torch==2.11.0" in message


def test_extras_count_where_all_that_they_require_is_there(world: World) -> None:
    environment = world.make()
    world.install(environment, "'jax[cuda12]' transformers")
    environment.index(
        "extra",
        plain("loops", "1", 'loops[b]; extra == "a"', 'absent; extra == "b"', 'loops[a]; extra == "c"'),
    )
    world.install(environment, "loops", (environment.root / "extra").as_uri(), "--no-deps")
    with planner(world, environment, world.base) as one:
        extras = one.graph.extras()

    assert (extras["jax"], extras["jax-cuda12-plugin"]) == ({"cuda12"}, {"with-cuda"})
    assert (extras["transformers"], extras["loops"]) == (set(), set())


def test_a_companion_of_the_same_build_is_found(world: World) -> None:
    environment = world.make()
    world.install(environment, "vllm torch==2.11.0 torchvision==0.26.0")
    only_cuda_12 = environment.index(
        "old", *packages(), torch("2.11.0"), companion("torchvision", "0.26.0+cu128", "2.11.0", "12.8")
    )

    goal = Goal(companions=("torchvision",))
    assert stopped(world, environment, world.base, goal)[0].startswith("everything is already installed")
    assert "no torchvision that requires torch 2.11.0" in stopped(world, environment, only_cuda_12, goal)[1]


def test_two_libraries_that_overwrite_one_another_do_not_both_come(world: World) -> None:
    environment = world.make()
    both = environment.index(
        "both", *packages(), torch("2.11.0", "13.0", "nvidia-cudnn-cu12"), nccl(), cudnn(), cudnn("cu12")
    )
    world.install(environment, "lightning torch==2.11.0+cpu", world.cpu)

    assert "nvidia-cudnn-cu12 and nvidia-cudnn-cu13 would overwrite each other" in stopped(world, environment, both)


def test_pytorchs_own_index_is_named_where_the_default_one_has_no_build(world: World) -> None:
    """And only there: an index that is configured is all that is asked."""
    environment = world.make()
    world.install(environment, "vllm torch==2.11.0+cpu torchvision==0.26.0+cpu numpy==2.3.4", world.cpu)
    facts = replaced(environment.facts(), "cuda", driver_cuda=12080)
    with planner(world, environment, world.cpu, facts) as one:
        assert isinstance(one.facts.interpreter, Interpreter)
        default = IndexConfig((world.cpu,), origin={world.cpu: "the default of uv"})
        for config, backends in ((one.offers.config, []), (default, ["cu128", "cu126"])):
            offers = Offers(HttpClient(offline=True), config, one.facts.interpreter)
            found = list(TorchBuilds(one.facts, one.graph, offers).candidates())
            assert [candidate.backend for candidate in found] == backends
    assert found[0].pins == {"torch": "==2.11.0", "torchvision": "==0.26.0"}


def test_where_no_index_is_queried_there_is_no_plan(world: World) -> None:
    environment = world.make()
    world.install(environment, "lightning torch==2.11.0+cpu", world.cpu)
    with planner(world, environment, world.good) as one:
        nowhere = IndexConfig((), (environment.index("empty", plain("other", "1")),))
        assert isinstance(one.facts.interpreter, Interpreter)
        offers = Offers(HttpClient(offline=True), nowhere, one.facts.interpreter)
        with pytest.raises(NoPlanError, match="no torch build on the configured index"):
            replace(one, offers=offers).plan(FITTING)
