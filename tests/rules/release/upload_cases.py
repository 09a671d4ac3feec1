"""REL301 to REL314: refusals of the public index at upload."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.rules.case import WARNING, Case
from tests.support.releases import first, release
from tests.support.wheel_facts import facts_of, listed
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.release.facts import ReleaseFile
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Unavailable

LINUX = "cp312-cp312-linux_x86_64"
RST_TABLE = "Title\n=====\n\n==  ==\na   b\n==  ==\ntoo wide for the column\n==  ==\n"


def upload(wheel: WheelBuilder, **request: Any) -> WheelFacts:
    """The facts of a wheel that is to be uploaded."""
    return facts_of(wheel, upload=True, **request)


def stating(*fields: str, **metadata: Any) -> WheelFacts:
    """A wheel whose METADATA has these lines."""
    return upload(WheelBuilder().metadata(*fields, **metadata))


def described(text: str, content_type: str = "") -> WheelFacts:
    fields = [f"Description-Content-Type: {content_type}"] if content_type else []
    return stating(*fields, "", text)


def uploaded(wheel: WheelBuilder, day: str) -> WheelFacts:
    """A wheel that an index has since that day."""
    return upload(wheel, listing=listed(wheel.file_name, upload_time=f"{day}T10:00:00.000000Z"))


def of_size(size: int, **request: Any) -> WheelFacts:
    """A wheel that has so many bytes."""
    return replace(upload(WheelBuilder(), **request), size=size)


def entry_points(text: str) -> WheelFacts:
    return upload(WheelBuilder().dist_info_file("entry_points.txt", text))


def without_lists(facts: WheelFacts, **missing: str) -> WheelFacts:
    """The facts if a library of the extra `release` is not installed."""
    assert not isinstance(facts.upload, Unavailable)
    gone = {name: Unavailable(f"{library} is not installed") for name, library in missing.items()}
    return replace(facts, upload=replace(facts.upload, **gone))  # type: ignore[arg-type]  # each is a fact that may be missing


LICENCE = WheelBuilder().metadata("License-Expression: MIT", "License-File: LICENSE")
OSI = "Classifier: License :: OSI Approved :: MIT License"

CASES = [
    Case(
        "REL301",
        "a wheel that was not repaired",
        lambda: upload(WheelBuilder(tags=LINUX)),
        ("the index rejects the platform tag linux_x86_64",),
        evidence=("2015-08-04",),
    ),
    Case(
        "REL301",
        "a minor version of macOS 11, and one tag of two",
        lambda: upload(WheelBuilder(tags="cp312-cp312-macosx_11_3_arm64.macosx_11_0_arm64")),
        ("the index rejects the platform tag macosx_11_3_arm64",),
    ),
    Case(
        "REL301",
        "a macOS that is newer than the table",
        lambda: upload(WheelBuilder(tags="cp312-cp312-macosx_27_0_arm64")),
        ("not proven that the index accepts the file: macosx_27_0_arm64 is newer than the table of 2026-11",),
        undecided=True,
    ),
    *(
        Case("REL301", f"{platform}", lambda platform=platform: upload(WheelBuilder(tags=f"cp312-cp312-{platform}")))  # type: ignore[misc]
        for platform in (
            "manylinux_2_28_aarch64",
            "manylinux2014_x86_64.manylinux_2_17_x86_64",
            "musllinux_1_2_x86_64",
            "win_amd64",
            "macosx_10_9_universal2",
            "linux_armv7l",
            "any",
        )
    ),
    Case(
        "REL302",
        "a name with capitals and a dot",
        lambda: upload(WheelBuilder("Demo.Pkg", dist_info="demo_pkg-1.0.dist-info")),
        (
            "the file name starts with Demo.Pkg; the index expects demo_pkg",
            "the wheel has no folder Demo.Pkg-1.0.dist-info",
        ),
    ),
    Case(
        "REL302",
        "such a name from before the rule",
        lambda: uploaded(WheelBuilder("Demo"), "2025-10-22"),
        ("the file name starts with Demo; the index expects demo",),
        WARNING,
    ),
    Case(
        "REL302",
        "a version with leading zeros",
        lambda: upload(WheelBuilder(version="2026.01")),
        ("the version 2026.01 in the file name is not normalized; expected 2026.1",),
        WARNING,
    ),
    Case("REL302", "underscores", lambda: upload(WheelBuilder("demo_pkg"))),
    Case(
        "REL303",
        "a build for one CUDA",
        lambda: upload(WheelBuilder(version="1.0+cu130")),
        ("the index rejects the local version 1.0+cu130",),
    ),
    Case("REL303", "a post-release", lambda: upload(WheelBuilder(version="1.0.post1"))),
    Case(
        "REL304",
        "a private package",
        lambda: stating("Classifier: Private :: Do Not Upload"),
        ("the classifier 'Private :: Do Not Upload' keeps the wheel off the index",),
    ),
    Case(
        "REL304",
        "an unknown and a deprecated one",
        lambda: stating("Classifier: Topic :: Wheels", "Classifier: Natural Language :: Ukranian"),
        (
            "the index has no classifier 'Topic :: Wheels'",
            "the classifier 'Natural Language :: Ukranian' is deprecated: use Natural Language :: Ukrainian",
        ),
    ),
    Case(
        "REL304",
        "no list to compare with",
        lambda: without_lists(stating("Classifier: Typing :: Typed"), classifier_faults="trove-classifiers"),
        ("not proven that the index accepts the file: trove-classifiers is not installed",),
        undecided=True,
    ),
    Case("REL304", "known ones", lambda: stating("Classifier: Typing :: Typed", OSI)),
    Case(
        "REL305",
        "a licence file that is not there",
        lambda: upload(LICENCE),
        ("License-File LICENSE is not in the wheel, in demo-1.0.dist-info/licenses/",),
    ),
    Case(
        "REL305",
        "License and a classifier next to License-Expression",
        lambda: stating("License-Expression: MIT", "License: MIT", OSI),
        (
            "METADATA has License and License-Expression; the index accepts only one of them",
            "METADATA has the classifier 'License :: OSI Approved :: MIT License' as well as License-Expression (PEP "
            "639)",
        ),
    ),
    Case(
        "REL305",
        "a classifier that the index took",
        lambda: uploaded(WheelBuilder().metadata("License-Expression: MIT", OSI), "2026-08-01"),
        (
            "METADATA has the classifier 'License :: OSI Approved :: MIT License' as well as License-Expression (PEP "
            "639)",
        ),
        WARNING,
    ),
    Case(
        "REL305",
        "License-File as setuptools wrote it before 2.4",
        lambda: stating("License-File: LICENSE", metadata_version="2.1"),
    ),
    Case(
        "REL305",
        "the file where it belongs",
        lambda: upload(
            WheelBuilder()
            .metadata("License-Expression: MIT", "License-File: LICENSE")
            .add("demo-1.0.dist-info/licenses/LICENSE", b"MIT")
        ),
    ),
    Case(
        "REL306",
        "two summaries",
        lambda: stating("Summary: one", "Summary: two"),
        ("packaging cannot read Summary, which METADATA has 2 times",),
        evidence=("one, two",),
    ),
    Case(
        "REL306",
        "a field of no specification, and two links with one label",
        lambda: stating(
            "Home-Url: https://example.org",
            "Project-URL: Docs, https://example.org/1",
            "Project-URL: Docs, https://example.org/2",
        ),
        (
            "packaging cannot read Home-Url, which METADATA has once",
            "packaging cannot read Project-Url, which METADATA has 2 times",
        ),
    ),
    Case(
        "REL306",
        "a description as a field and as a body",
        lambda: stating("Description: one", "", "two"),
        ("packaging cannot read Description, which METADATA has 2 times",),
    ),
    Case(
        "REL306",
        "two summaries in a file that the index has",
        lambda: uploaded(WheelBuilder().metadata("Summary: one", "Summary: two"), "2026-01-20"),
        ("packaging cannot read Summary, which METADATA has 2 times",),
        WARNING,
    ),
    Case("REL306", "two classifiers", lambda: stating("Classifier: Typing :: Typed", OSI)),
    Case(
        "REL306",
        "License-File as setuptools wrote it before 2.4",
        lambda: stating("License-File: LICENSE", metadata_version="2.1"),
    ),
    Case(
        "REL307",
        "a table that is too narrow, in the default format",
        lambda: described(RST_TABLE),
        ("the description does not render as reStructuredText, the default: line 7: (ERROR/3) Malformed table.",),
    ),
    Case("REL307", "the same as Markdown", lambda: described(RST_TABLE, "text/markdown")),
    Case(
        "REL307",
        "the default format in a field of several lines",
        lambda: stating(
            "Description: A", "        ==", "        =", "Description-Content-Type: text/x-rst;", " charset=UTF-8"
        ),
    ),
    Case("REL307", "a sound one", lambda: described("Title\n=====\n\nText.\n", "text/x-rst; charset=UTF-8")),
    Case(
        "REL307",
        "nothing to render it with",
        lambda: without_lists(described("text"), render_fault="readme_renderer"),
        ("not proven that the index accepts the file: readme_renderer is not installed",),
        undecided=True,
    ),
    Case(
        "REL307",
        "metadata that is newer than the table",
        lambda: stating(metadata_version="2.6"),
        (
            "not proven that the index accepts the file: it accepted Metadata-Version up to 2.5 in 2026-11, but this "
            "is 2.6",
        ),
        undecided=True,
    ),
    Case(
        "REL308",
        "a direct reference",
        lambda: stating(requires=["torch @ https://example.org/torch-2.11.0-py3-none-any.whl"]),
        ("the index rejects the direct reference to torch",),
    ),
    Case(
        "REL308",
        "an obsolete project with a URL",
        lambda: stating("Obsoletes-Dist: old @ https://example.org/old.zip"),
        ("Obsoletes-Dist 'old @ https://example.org/old.zip' is a direct reference",),
    ),
    Case("REL308", "a marker with a slash", lambda: stating(requires=["torch; platform_version != 'https://x'"])),
    Case(
        "REL309",
        "links of every wrong form",
        lambda: stating(
            "Project-URL: https://example.org",
            f"Project-URL: {'long' * 9}, https://example.org",
            "Project-URL: Docs, example.org/docs",
            "Project-URL: Mail, mailto:jane@example.org",
            "Home-Page: www.example.org",
            "Author-Email: Jane <jane at example.org>",
            "Maintainer-Email: john@example.org.",
        ),
        (
            "Project-URL 'https://example.org' is not `label, address`",
            f"the label '{'long' * 9}' of a Project-URL has 36 characters; the limit is 32",
            "the address 'example.org/docs' of a Project-URL is not an http or https URL",
            "the address 'mailto:jane@example.org' of a Project-URL is not an http or https URL",
            "Home-Page 'www.example.org' is not an http or https URL",
            "Author-Email: 'jane at example.org' is not an e-mail address",
            "Maintainer-Email: 'john@example.org.' is not an e-mail address",
        ),
    ),
    Case(
        "REL309",
        "unusual ones that are right",
        lambda: stating(
            "Project-URL: Bug Tracker, https://example.org/issues?q=is%3Aopen#all open",
            "Home-Page: HTTP://example.org:8080/~demo/(x)",
            "Author-Email: Jane Doe <jane@example.org>, John <john@example.org>",
            "Download-URL: https://example.org/a b",
        ),
    ),
    Case(
        "REL309",
        "setuptools' placeholder, which the index ignores",
        lambda: stating("Home-Page: UNKNOWN", "Author-Email: UNKNOWN"),
    ),
    Case(
        "REL310",
        "one character too many",
        lambda: stating(f"Summary: {'x' * 513}"),
        ("the summary has 513 characters; the limit is 512",),
    ),
    Case("REL310", "as many as allowed", lambda: stating(f"Summary: {'x' * 512}")),
    Case(
        "REL311",
        "more than the index grants",
        lambda: of_size(2**30 + 1),
        ("the file is larger than 1,073,741,824 bytes, the highest limit that the index grants a project",),
        expectations={"max_size": 2**31},
    ),
    Case(
        "REL311",
        "no limit stated above the default",
        lambda: of_size(2**28),
        (
            "not proven that the index accepts the file: it has 268,435,456 bytes; the usual limit is 104,857,600, "
            "and max-size is not set",
        ),
        undecided=True,
    ),
    Case("REL311", "a stated limit", lambda: of_size(2**28), expectations={"max_size": 2**29}),
    Case(
        "REL311",
        "a member that is all zeros",
        lambda: upload(WheelBuilder().add("demo/zeros.bin", bytes(65 << 20))),
        ("the unpacked contents are more than 50 times as large as the file",),
    ),
    Case(
        "REL312",
        "a script that climbs",
        lambda: entry_points("[console_scripts]\n../demo = demo:main\n"),
        ("the index rejects the script name '../demo'",),
    ),
    Case("REL312", "names with a space in another group", lambda: entry_points("[demo.plugins]\na b = demo:a\n")),
    Case(
        "REL314",
        "capitals and a zip file",
        lambda: first(release(ReleaseFile("Demo-1.0.zip"), sdist=True)),
        ("the index rejects the name Demo-1.0.zip",),
        evidence=("demo-1.0.tar.gz",),
    ),
    Case("REL314", "the right name", lambda: first(release(ReleaseFile("demo-1.0.tar.gz"), sdist=True))),
]
