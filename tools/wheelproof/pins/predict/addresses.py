"""The indexes that a command names: the user's, and those of a tree if it is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from wheel_checks.formats.secrets import redact_text
from wheel_checks.sources.file_urls import is_file_url
from wheel_checks.sources.installers.config import FIRST_INDEX, IndexConfig
from wheel_checks.sources.installers.options import effect_of_variable
from wheel_checks.sources.trust import Address, UntrustedAddressError
from wheelproof.pins.documents.commands.lexer import UNKNOWN
from wheelproof.pins.predict.command_line import ADDRESS_OPTIONS
from wheelproof.pins.predict.step import Step

_MAIN = {"--index-url", "--default-index", "PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"}
_LINKS = {"--find-links", "PIP_FIND_LINKS", "UV_FIND_LINKS"}
_OF_INSTALLERS = ("PIP_", "UV_")
_MORE = {"--extra-index-url", "--index", "PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX"}
# Effects of variables that reach the installer, and of those that matter to none of a command's installs.
_PASSED = {"chosen", "managed", "pre", "reinstall", "upgrade"}
_WITHOUT_EFFECT = {"builds", "none", "place", "reaching"}
_PLACES = {"VIRTUAL_ENV", "PYTHONUSERBASE"}  # of an image: it has one environment


def unknown_variables(step: Step) -> tuple[str, ...]:
    """The variables of a command whose effect on its installs is unknown here."""
    others = {"PIP": "UV_", "UV": "PIP_"}  # variables of one installer mean nothing to the other
    installer = step.installers[0].upper() if step.installers else ""
    foreign = others.get(installer, "-")
    unknown = (
        name
        for name, value in step.variables.items()
        if not _has_no_effect(name) and (UNKNOWN in value or not _is_known(name))
    )
    return tuple(sorted(name for name in unknown if not name.startswith(foreign)))


def _has_no_effect(name: str) -> bool:
    return name in _PLACES or (name.startswith(_OF_INSTALLERS) and effect_of_variable(name) in _WITHOUT_EFFECT)


def _is_known(name: str) -> bool:
    return name in {*_MAIN, *_LINKS, *_MORE} or _is_passed(name)


def _is_passed(name: str) -> bool:
    return name.startswith(_OF_INSTALLERS) and effect_of_variable(name) in _PASSED


def passed_variables(step: Step) -> dict[str, str]:
    """The variables of a command that reach the installer."""
    return {name: value for name, value in step.variables.items() if _is_passed(name)}


def step_config(step: Step, config: IndexConfig) -> tuple[IndexConfig, tuple[str, ...]]:
    """The indexes of a step, and the options for the indexes of its variables.

    Raises UntrustedAddressError for an index that only a file of the tree names.
    """
    pairs = list(_of_options(step.options))
    more = [(name, value) for name, values in _addresses(step.variables).items() for value in values]
    refused: list[Address] = []
    main, extra, links = "", list[str](), list[str]()
    for name, value in (*more, *pairs):
        url = value.partition("=")[2] if name in ("--index", "UV_INDEX") and "=" in value.partition("://")[0] else value
        if not step.trusted and not is_file_url(url) and config.trust.allowed(url) is None:
            refused.append(Address(url, redact_text(step.text)[:80], "find-links page" if name in _LINKS else "index"))
        elif name in _MAIN:
            main = url
        elif name in _LINKS:
            links.append(url if "://" in url else Path(url).absolute().as_uri())
        else:
            extra.append(url)
    if refused:
        raise UntrustedAddressError(redact_text(step.text)[:80], refused)
    if "--no-index" in step.options:
        return replace(config, indexes=(), find_links=(*config.find_links, *links)), _as_options(more)
    is_first = config.strategy == FIRST_INDEX
    known = config.indexes[-1:] if is_first else config.indexes[:1]
    others = config.indexes[:-1] if is_first else config.indexes[1:]
    first = (main,) if main else known
    indexes = (*extra, *others, *first) if is_first else (*first, *extra, *others)
    changed = replace(config, indexes=tuple(dict.fromkeys(indexes)), find_links=(*config.find_links, *links))
    return changed, _as_options(more)


def _of_options(options: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, options[at + 1]) for at, name in enumerate(options[:-1]) if name in ADDRESS_OPTIONS]


def _addresses(variables: Mapping[str, str]) -> dict[str, list[str]]:
    return {name: variables[name].split() for name in variables if name in {*_MAIN, *_LINKS, *_MORE}}


def _as_options(pairs: list[tuple[str, str]]) -> tuple[str, ...]:
    kinds = {name: "--index-url" if name in _MAIN else "--find-links" for name in {*_MAIN, *_LINKS}}
    return tuple(part for name, value in pairs for part in (kinds.get(name, "--extra-index-url"), value))
