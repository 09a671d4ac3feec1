"""pip's own evaluators as the oracle: on generated listings, ``choose`` takes the file that pip takes.

pip evaluates version specifiers by the packaging that it carries; the constraints pin a pip whose copy treats
pre-releases as PEP 440 and today's packaging do.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from pip._internal.index.package_finder import CandidateEvaluator, LinkEvaluator, LinkType
from pip._internal.models.candidate import InstallationCandidate
from pip._internal.models.link import Link
from pip._internal.models.target_python import TargetPython
from pip._vendor.packaging.specifiers import SpecifierSet as PipsSpecifierSet
from pip._vendor.packaging.utils import canonicalize_name

from wheel_checks.formats.index.page import IndexFile
from wheel_checks.targets.selection import choose
from wheel_checks.targets.target import Target, this_machine

GRACE = Target((3, 12), "aarch64", (2, 34))


def pips_target(target: Target) -> TargetPython:
    """The same target in pip's words: what ``--platform``, ``--python-version``, ``--abi`` would say."""
    platforms = list(dict.fromkeys(tag.platform for tag in target.supported_tags() if tag.platform != "any"))
    version = tuple(map(int, target.python_full_version.split(".")))
    return TargetPython(platforms=platforms, py_version_info=version, abis=[target.interpreter], implementation="cp")


def pips_choice(requirement: Requirement, files: list[IndexFile], target: TargetPython) -> str | None:
    """The first choice of pip's resolver, from its own evaluators and its rule for yanked files."""
    formats = frozenset({"binary", "source"})
    links = LinkEvaluator(requirement.name, canonicalize_name(requirement.name), formats, target, allow_yanked=True)
    candidates = []
    for file in files:
        link = Link(file.url, requires_python=file.requires_python or None, yanked_reason=file.yanked)
        kind, version = links.evaluate_link(link)
        if kind is LinkType.candidate:
            candidates.append(InstallationCandidate(requirement.name, link=link, version=version))
    specifier = requirement.specifier
    pips_specifier = PipsSpecifierSet(str(specifier))
    evaluator = CandidateEvaluator.create(requirement.name, target_python=target, specifier=pips_specifier)
    applicable = evaluator.get_applicable_candidates(candidates)
    # pip._internal.resolution.resolvelib.factory: yanked candidates are for pins that nothing else satisfies
    pinned = any(s.operator == "===" or (s.operator == "==" and not s.version.endswith(".*")) for s in specifier)
    if not (pinned and all(candidate.link.is_yanked for candidate in applicable)):
        applicable = [candidate for candidate in applicable if not candidate.link.is_yanked]
    return applicable[-1].link.filename if applicable else None


@dataclass(frozen=True)
class Words:
    """The parts of generated file names."""

    interpreters: tuple[str, ...]
    platforms: tuple[str, ...]


def listings(words: Words) -> st.SearchStrategy[list[IndexFile]]:
    part = st.sampled_from(words.interpreters)
    platforms = st.lists(st.sampled_from(words.platforms), min_size=1, max_size=2, unique=True).map(".".join)
    build = st.sampled_from(["", "", "-1", "-2b", "-10"])
    version = st.sampled_from(VERSIONS)
    wheel = st.builds("foo-{}{}-{}-{}.whl".format, version, build, part, platforms)
    archive = st.builds("foo-{}{}".format, version, st.sampled_from([".tar.gz", ".zip"]))
    name = st.one_of(wheel, wheel, wheel, archive, st.sampled_from(["foo-1.0.exe", "bar-9.0-py3-none-any.whl"]))
    one = st.builds(
        lambda name, requires_python, yanked: IndexFile(
            name, f"https://files.example.org/{name}", requires_python=requires_python, yanked=yanked
        ),
        name,
        st.sampled_from(["", "", ">=3.9", "<3.11", ">=3.14", "not a specifier"]),
        st.sampled_from([None, None, None, "broken"]),
    )
    return st.lists(one, max_size=8, unique_by=lambda file: file.file_name)


VERSIONS = ["0.9", "1.0", "1.0.0", "1.0+cu130", "1.0+cpu", "1.0.post1", "1.1", "2!0.1", "1.1rc1", "2.0.dev1", "1.0a1"]
SPECIFIERS = [
    *("", "==1.0", "===1.0", "==1.0+cpu", ">=1.0", "~=1.0", "!=1.0", "<1.1", ">1.0", "==1.*", "==1.1rc1", ">=1.1rc1"),
    *(">=0.9,<2", ">=1.0,!=1.1", "!=1.0,!=1.1", "==1.0,!=1.0+cpu"),
]

GRACE_WORDS = Words(
    ("cp312-cp312", "cp313-cp313t", "cp312-abi3", "cp39-abi3", "cp312-none", "py3-none", "py2.py3-none"),
    ("manylinux_2_17_aarch64", "manylinux2014_aarch64", "manylinux_2_34_aarch64", "manylinux_2_35_aarch64", "any"),
)


@settings(max_examples=150)
@given(files=listings(GRACE_WORDS), specifier=st.sampled_from(SPECIFIERS))
def test_as_pip_for_another_machine(files: list[IndexFile], specifier: str) -> None:
    assert_same_choice(Requirement(f"foo{specifier}"), files, GRACE, pips_target(GRACE))


HERE = this_machine().target
HOST_WORDS = Words(
    (f"{HERE.interpreter}-{HERE.interpreter}", f"{HERE.interpreter}-abi3", "cp38-abi3", "py3-none", "cp27-cp27mu"),
    (f"manylinux_2_17_{HERE.machine}", f"manylinux2014_{HERE.machine}", "manylinux_2_17_riscv64", "any"),
)


@pytest.mark.skipif(this_machine().note != "", reason="this host is not a target")
@settings(max_examples=150)
@given(files=listings(HOST_WORDS), specifier=st.sampled_from(SPECIFIERS))
def test_as_pip_for_this_machine(files: list[IndexFile], specifier: str) -> None:
    assert_same_choice(Requirement(f"foo{specifier}"), files, HERE, TargetPython())


def assert_same_choice(requirement: Requirement, files: list[IndexFile], target: Target, pips: TargetPython) -> None:
    choice = choose(requirement, files, target)
    taken = choice.chosen or choice.sdist
    assert (taken.file_name if taken else None) == pips_choice(requirement, files, pips)
    assert len(choice.rejected) + (taken is not None) == len(files)
