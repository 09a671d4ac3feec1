"""Asks uv, as ``pins predict`` does, about the effect of an install before and after a rewriting."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # not for --help
    from wheel_checks.model import Report
    from wheelproof.pins.model import Plan
    from wheelproof.pins.rewrite.effect import Effect, Outcome

SECONDS = 60.0  # for each resolution


def resolved_effects(planned: Plan, python: str) -> list[Effect]:
    """The effects of a plan on the torch of an environment; none without one. Raises WheelproofError."""
    from wheel_checks.errors import NotFoundError
    from wheel_checks.sources.client import HttpClient
    from wheel_checks.sources.environment import find_environment
    from wheel_checks.sources.installers.config import configured_indexes
    from wheel_checks.sources.simple_index import SimpleIndex
    from wheel_checks.sources.uv.own_configuration import private_folder, write_private
    from wheelproof.pins.installers import UV
    from wheelproof.pins.predict.environment import target_of
    from wheelproof.pins.predict.import_order import read_interior
    from wheelproof.pins.predict.model import Destination, PredictRequest
    from wheelproof.pins.predict.prediction import predict
    from wheelproof.pins.rewrite.effect import effects
    from wheelproof.wheels.asked import parse_requested

    try:
        environment = find_environment(python, variables=os.environ)
    except NotFoundError:
        return []
    if not environment.interpreter or not planned.changed:
        return []
    target = target_of(environment)
    place = Destination(target, read_interior(environment, os.environ), str(Path(environment.interpreter).absolute()))
    packages = place.packages
    if "torch" not in packages:
        return []
    with HttpClient(None) as client, private_folder() as folder:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))

        numbers = count()

        def ask(requirements: Sequence[str], constraints: Sequence[str]) -> Outcome:
            place_of = folder / f"{next(numbers)}"
            place_of.mkdir()
            write_private(place_of / "constraints.txt", "".join(f"{line}\n" for line in constraints))
            lines = [*requirements, "-c constraints.txt"]
            file = write_private(place_of / "requirements.txt", "".join(f"{line}\n" for line in lines))
            with contextlib.chdir(place_of):  # settings of the tree are in the lines, as they are or become
                requested = parse_requested([], [file])
                report = predict(PredictRequest(requested, place, (UV,), timeout=SECONDS), client, index)
            return _outcome(report, str(packages["torch"].version))

        return list(effects(planned, ask, [target]))


def _outcome(report: Report, installed: str) -> Outcome:
    """The outcome for torch of a prediction."""
    from wheel_checks.model import Outcome as Result
    from wheelproof.pins.rewrite.effect import Fate, Outcome

    for subject in report.subjects:
        faults = [result for result in subject.results if result.outcome is Result.ERROR]
        if faults:
            return Outcome(Fate.UNKNOWN, faults[0].message)
        for result in subject.results:
            if result.outcome is Result.FAIL and result.rule == "PIN313":
                return Outcome(Fate.CONFLICT, result.message)
        if subject.facts.get("name") == "torch":
            if subject.facts.get("fate") == "kept":
                return Outcome(Fate.KEPT, f"an install keeps torch {installed}")
            message = next((r.message for r in subject.results if r.outcome is Result.FAIL), subject.headline)
            return Outcome(Fate.REPLACED, message)
    return Outcome(Fate.UNKNOWN, "the prediction does not mention torch")
