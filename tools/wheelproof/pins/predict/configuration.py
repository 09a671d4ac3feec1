"""The configuration of an installer: its changes to the request, and the settings that are not understood."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from wheel_checks.errors import SourceError
from wheel_checks.model import NotUnderstood
from wheel_checks.sources.installers.files import TRUE, pip_sections
from wheel_checks.sources.installers.options import FALSE, effect_of_pip, effect_of_variable
from wheel_checks.sources.trust import Trust
from wheel_checks.sources.uv.user_settings import uv_settings
from wheelproof.pins.installers import PIP, UV
from wheelproof.pins.predict.model import PredictRequest
from wheelproof.pins.predict.step import Verb

# Effects of the user's variables and of pip's files: a dry run has them, or the request does.
_APPLIED = {
    *("builds", "chosen", "constraints", "excludes", "index", "managed", "network", "none", "overrides", "pre"),
    *("prefix", "reaching", "reinstall", "search", "target", "upgrade", "user"),
}
_ALL, _NONE = ":all:", ":none:"
_OF_A_PROJECT = (Verb.SYNC, Verb.ADD, Verb.RUN)


@dataclass(frozen=True, slots=True)
class _Setting:
    name: str  # the variable itself for uv, the option of pip
    value: str
    effect: str
    origin: NotUnderstood  # what is shown if its effect is unknown

    @property
    def is_true(self) -> bool:
        return self.value.strip().lower() in TRUE


def configured(
    installer: str, request: PredictRequest, trust: Trust
) -> tuple[PredictRequest, tuple[NotUnderstood, ...]]:
    """The request with the configuration of its installer, and the settings that are not understood.

    Raises SourceError for a place that is not followed, UsageError for files that cannot be read.
    """
    found = list(_variables(installer, request))
    unknown: list[NotUnderstood] = []
    if installer == UV:
        of_project = request.step is not None and request.step.verb in _OF_A_PROJECT
        folder = request.step.project if request.step and of_project else Path.cwd()
        settings = uv_settings(request.variables, folder, trust, build=request.build)
        unknown = [one for one in settings.not_understood if not (of_project and one.name.startswith("pip."))]
        request = replace(
            request,
            wheels_only=request.wheels_only or settings.wheels_only,
            may_change_managed=settings.may_change_managed,
        )
    elif installer == PIP:
        known = {one.name for one in found}
        found += [one for one in _of_pip_files(request) if one.name not in known]
        request = _placed(request, {one.name: one.value for one in found})
    unknown += [one.origin for one in found if not _is_followed(one, request)]
    of_files = request.requested.declared.wheel_options
    unknown += [one for one in of_files if one.name.partition(" ")[2] not in (_ALL, _NONE)]
    is_all = any(one.name.endswith(_ALL) for one in of_files)
    request = replace(
        request,
        wheels_only=request.wheels_only or is_all or any(one.effect == "wheels" and _is_all(one) for one in found),
        may_change_managed=request.may_change_managed or any(one.effect == "managed" and one.is_true for one in found),
    )
    return request, tuple(unknown)


def _variables(installer: str, request: PredictRequest) -> Iterator[_Setting]:
    prefix = f"{installer.upper()}_"
    for name, value in request.variables.items():
        if name.startswith(prefix) and value:
            key = name if installer == UV else name.removeprefix(prefix).lower().replace("_", "-")
            yield _Setting(key, value, effect_of_variable(name), NotUnderstood(name, "an environment variable"))


def _of_pip_files(request: PredictRequest) -> Iterator[_Setting]:
    """The settings in the files of pip, which reads one of the environment that it works on."""
    prefix = request.place.interior.prefix
    sections = pip_sections({**request.variables, **({"VIRTUAL_ENV": prefix} if prefix else {})}, Path.cwd())
    for key, (value, where) in {**sections["global"], **sections["install"]}.items():
        name = key.removeprefix("--")
        yield _Setting(name, value, effect_of_pip(name), NotUnderstood(name, where))


def _placed(request: PredictRequest, values: dict[str, str]) -> PredictRequest:
    """The request with pip's configured place to install. Raises SourceError for an unsupported place."""
    for key in ("prefix", "root"):
        if values.get(key):
            raise SourceError(f"pip is configured to install into {values[key]} (--{key}), which is not followed")
    to_user = request.to_user or values.get("user", "").strip().lower() in TRUE
    return replace(request, to_user=to_user, folder=request.folder or values.get("target", ""))


def _is_followed(setting: _Setting, request: PredictRequest) -> bool:
    """Whether a prediction has the effect of a value that is configured."""
    text = setting.value.strip()
    if setting.effect in _APPLIED or text.lower() in FALSE or text == _NONE:
        return True
    if setting.effect == "wheels":
        return _is_all(setting)
    return setting.effect in ("place", "python") and _is_here(setting, request)


def _is_all(setting: _Setting) -> bool:
    return setting.is_true or setting.value.strip() == _ALL


def _is_here(setting: _Setting, request: PredictRequest) -> bool:
    """Whether the environment that a setting names is the one that is predicted."""
    place = request.place
    if place.described or not place.python:
        return True
    if setting.is_true:  # the Python of the system
        return place.is_named or not place.interior.is_virtual
    named = Path(setting.value.strip())
    is_same = named.is_absolute() and _prefix(named) in (place.interior.prefix, _prefix(Path(place.python)))
    return is_same or (place.is_named and "pip" not in place.packages)


def _prefix(path: Path) -> str:
    return os.path.normpath(path.parent.parent if path.is_file() else path)
