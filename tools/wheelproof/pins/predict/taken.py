"""The wheel that an installer would take, and the accelerator that it is built for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.wheel.facts import Depth
from wheel_checks.formats.index_page import IndexFile, file_from_url
from wheel_checks.model import Unavailable
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.selection import choose
from wheel_checks.targets.target import Target
from wheelproof.wheels.judging import read_planned
from wheelproof.wheels.model import PlannedWheel


@dataclass(frozen=True, slots=True)
class Taken:
    """A wheel by its file name ("" when none was found), and what it is built for."""

    file_name: str
    accelerator: AcceleratorFacts | Unavailable


def read_taken(name: str, version: str, url: str, target: Target, client: HttpClient, index: SimpleIndex) -> Taken:
    """Look into the wheel of ``name`` in ``version``: the one at ``url``, else what the index has for ``target``.

    What cannot be had is Unavailable with the reason.
    """
    try:
        file = file_from_url(url, "") if url else None
        if file is None:
            requirement = Requirement(f"{name}=={version}")
            choice = choose(requirement, index.files(name).files, target, pre=True)
            if choice.chosen is None:
                return Taken("", Unavailable(choice.explanation))
            file = choice.chosen
        facts = read_planned(PlannedWheel(file.file_name, _location(file), file, target), Depth.QUICK, client)
    except (WheelproofError, ValueError) as error:
        return Taken("", Unavailable(str(error)))
    return Taken(file.file_name, facts.accelerator)


def _location(file: IndexFile) -> Path | str:
    return path_of(file.url) if is_file_url(file.url) else file.url
