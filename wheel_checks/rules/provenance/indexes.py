"""May the indexes of this run be asked together, and do they lead where they may? Judges all projects of a run."""

from collections import defaultdict
from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.provenance.indexes import Higher, IndexUse, find_higher
from wheel_checks.formats.remote_links import Refused
from wheel_checks.model import Evidence, Finding, Fix, Severity
from wheel_checks.phrases import abbreviated, summarised
from wheel_checks.registry import rules_of
from wheel_checks.sources.installer_config import FIRST_INDEX, MERGE

rule = rules_of("indexes")

_SHOWN = 20


@rule(
    "WHL403",
    "no other index has a higher version of a project than the first index with the project",
    Severity.WARNING,
    why="Dependency confusion: an attacker who may upload to one index uploads a higher version of a project from "
    "another. pip selects the highest version of all indexes, uv the first index that has the project. A mirror of "
    "older releases before a full index looks the same: only you know which index is the project's. Another local "
    "version (2.11.0+cu130) is another build of the same version, and a version specified by a requirement is selected "
    "on purpose.",
    example="version 99.0 of an internal project on the index of `--extra-index-url`, 1.4 on that of `--index-url`",
    fix="Use one index for each project (uv: `explicit = true` and `[tool.uv.sources]`), or pin the version.",
)
def confusion(use: IndexUse, _: Expectations) -> Iterable[Finding]:
    """One finding for two indexes, with all projects of which the second has more; a note where it is passed over."""
    found: dict[tuple[str, str, bool], dict[str, Higher]] = defaultdict(dict)
    for project in use.projects:
        for higher in find_higher(project):
            found[higher.first.index, higher.extra.index, higher.is_taken].setdefault(project.name, higher)
    for (first, extra, is_taken), several in found.items():
        evidence = [
            Evidence(name, f"{higher.extra.version} on {extra}, {higher.best} on {first}", higher.extra.file_name)
            for name, higher in several.items()
        ]
        names = summarised(list(several), 3, grouping="")
        taken = f"{names}: selected from {extra}, which has a higher version than {first}, although {first} comes first"
        passed_over = f"{names}: {extra} has a higher version than {first}, which comes first; it is not selected"
        yield Finding(
            taken if is_taken else passed_over,
            (*evidence[:_SHOWN], Evidence("strategy", _STRATEGIES[use.strategy])),
            Fix(f"Make sure that the project on {extra} is yours; otherwise use one index, or pin the version."),
            severity=Severity.WARNING if is_taken else Severity.NOTE,
        )


_STRATEGIES = {
    MERGE: "the highest version of all indexes, as pip and uv's unsafe-best-match do; uv would use the first index",
    FIRST_INDEX: "the first index that has the project, as uv does; pip would select the highest version of all",
}


@rule(
    "WHL404",
    "links on a remote index page lead to servers",
    why="pip and uv install the file that a page links to, even a local file or a response of a service on this host. "
    "Such a link is a mistake or an attack. wheelproof does not follow it, so the file behind it is not checked.",
    example='`<a href="file:///tmp/demo-9.0-py3-none-any.whl">` on an index that is read over https',
    fix="Do not use the index before its page is fixed.",
)
def refused_links(use: IndexUse, _: Expectations) -> Iterable[Finding]:
    """No file, no loopback and no link-local address. A warning for kinds of addresses that no installer follows."""
    found: dict[tuple[str, bool], dict[str, Refused]] = defaultdict(dict)
    for project in use.projects:
        for link in project.refused:
            found[link.listed_by, link.followed].setdefault(link.file_name, link)
    for (index, followed), links in found.items():
        rows = [Evidence(abbreviated(n), f"{abbreviated(link.url, 200)} {link.why}") for n, link in links.items()]
        names = summarised([abbreviated(name) for name in links], 3, grouping="")
        yield Finding(
            f"{index} has links that must not be followed: {names}",
            tuple(rows[:_SHOWN]),
            Fix("Do not use this index before its page is fixed; these links were not followed."),
            severity=None if followed else Severity.WARNING,
        )
