"""The page of limits states the program's limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheel_checks.facts.accelerator import pe_libraries, shown
from wheel_checks.facts.archive import inflation
from wheel_checks.facts.elf import exports, named_imports, symbols
from wheel_checks.facts.installed import symbols as installed_symbols
from wheel_checks.facts.provenance import attestations
from wheel_checks.facts.security import startup
from wheel_checks.facts.wheel import module_sources, native_heads, neighbours, upload
from wheel_checks.formats import cxx_names, documents
from wheel_checks.formats.index import page as index_page
from wheel_checks.formats.lock import tables, yaml_values
from wheel_checks.formats.pe import header as pe_header
from wheel_checks.formats.pe import imports as pe_imports
from wheel_checks.formats.wheel import (
    core_metadata,
    entry_points,
    python_expressions,
    python_source,
    record,
    startup_file,
    wheel_file,
    wheel_name,
)
from wheel_checks.formats.zip import directory, end_record
from wheel_checks.runner import MAX_FINDINGS
from wheel_checks.sources import git_files, requirement_files
from wheel_checks.sources.http import cache_database, download, pace, pages
from wheelproof.stacks import locked, other_side

MIB = 1 << 20
TEXT = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")

STATED = {
    "a whole status line": [f"{pace.LARGEST_HEAD >> 10} KiB"],
    "a body": [f"{pace.SLOWEST * 20 >> 10} KiB in every 20 s"],
    "an index page |": [f"{pages.LARGEST_PAGE // MIB} MiB unpacked", f"{index_page.MOST_FILES:,} files"],
    "one entry, its": [
        f"{index_page._LONGEST_ENTRY >> 10} KiB",
        f"{index_page._LONGEST_CONDITION} characters",
        f"{index_page._MOST_CONDITIONS:,} different",
    ],
    "METADATA served with a wheel": [f"{core_metadata.MAX_SIZE // MIB} MiB"],
    "a download": [f"{download.LARGEST_DOWNLOAD // 10**9} GB", f"{download._SPARE // MIB} MiB"],
    "a locked cache": [f"{cache_database._LOCK_TIMEOUT:g} s in a run"],
    "members, central directory": [f"{directory.MAX_ENTRIES:,}", f"{end_record.MAX_DIRECTORY_SIZE // MIB} MiB"],
    "one member that is larger than": [f"{inflation.ALONE_SIZE // MIB} MiB", f"{inflation.ALONE_RATIO} times"],
    "members that inflate by more than": [f"{inflation.TOGETHER_RATIO},", f"{inflation.TOGETHER_SIZE // MIB} MiB"],
    "a size that deflate": [f"{directory.DEFLATE_LIMIT} times"],
    "METADATA, WHEEL, RECORD": [
        ", ".join(str(size // MIB) for size in (core_metadata.MAX_SIZE, wheel_file.MAX_SIZE, record.MAX_SIZE)) + " MiB"
    ],
    "lines, kinds of fields": [f"{core_metadata._MAX_HEADER_LINES:,}; {core_metadata._MAX_FIELDS}"],
    "a `.pth` or `.start` file": [
        f"{startup_file.MAX_SIZE >> 10} KiB; {startup.MOST_FILES}; {startup_file.MAX_LINES:,}"
    ],
    "attestations of one file": [f"{attestations.LARGEST // MIB} MiB, {attestations.MOST}"],
    "entry_points.txt": [f"{entry_points.MAX_SIZE // MIB} MiB, {entry_points.MAX_ENTRIES:,} entry points"],
    "a description": [f"{upload.LONGEST:,} characters, {upload.DEADLINE:g} s"],
    "native members of which": [f"{native_heads.MOST}"],
    "one requirement, all": [f"{core_metadata._MAX_REQUIREMENT:,}; {core_metadata.MAX_REQUIREMENTS:,} characters"],
    "head and tail of one library of Windows": [
        f"{pe_libraries.EFFORT // MIB} MiB, {pe_libraries.EFFORT_WITH_CODE / MIB:g} MiB when",
        f"{shown.QUICK // MIB} MiB in all ({shown.REQUESTED // MIB} MiB",
    ],
    "sections, imported DLLs": [f"{pe_header._MOST_SECTIONS:,}; {pe_imports.MOST_IMPORTS - 1:,}"],
    "a file at a commit": [
        f"{other_side.LARGEST_LOCK // MIB} MiB",
        f"{requirement_files.LARGEST // MIB} MiB",
        f"{git_files.DEADLINE:g} s",
    ],
    "head and tail of one library, for the symbols": [
        f"{symbols.EFFORT.parts // MIB} MiB; one of {symbols.STREAMED // MIB} MiB",
        f"{exports.EFFORT.parts / MIB:.1f} MiB, {neighbours.MOST_LIBRARIES} of them; of installed ones "
        f"{installed_symbols.MOST_LIBRARIES:,}",
    ],
    "parts of a dotted TOML key": [f"{documents.MOST_KEY_PARTS}; {documents.MOST_LONG_KEYS:,}"],
    "a lock file": [f"{tables.MAX_SIZE // MIB} MiB"],
    "packages; files": [f"{tables.MOST_PACKAGES:,}; {tables.MOST_FILES:,}; {tables.MOST_DEPENDENCIES:,}"],
    "one marker of a lock": [f"{tables.LONGEST_MARKER:,} characters"],
    "collections of YAML": [f"{yaml_values.DEEPEST}; none"],
    "a source archive that is read whole": [f"{locked._WHOLE // MIB} MiB"],
    "what an index lists of locked": [f"{locked.REUSED:,.0f} s"],
    "rows of RECORD": [f"{record.MAX_ROWS:,}"],
    "tags": [f"{wheel_name.MAX_TAGS:,}"],
    "Python modules of one wheel": [
        f"{module_sources.MOST_FILES}, {module_sources.MOST_NEAR} more next to",
        f"{module_sources.MOST_OF_OTHERS} of a required wheel",
        f"{module_sources.MOST_BYTES // 1000} kB packed",
        f"{python_source.MAX_SIZE // MIB} MiB each",
        f"{python_expressions.MOST_STEPS:,} steps",
    ],
    "libraries whose undefined symbols": [
        f"{named_imports._MOST}, the smallest first, of {named_imports._LARGEST_OF_OTHERS // MIB} MiB each",
        f"{named_imports._LARGEST // MIB} MiB when",
    ],
    "a C++ name": [f"{cxx_names.LONGEST} characters each"],
    "findings of one rule": [f"{MAX_FINDINGS},"],
}


@pytest.mark.parametrize("what", STATED)
def test_a_limit_is_stated_as_it_is(what: str) -> None:
    (row,) = [line for line in TEXT.splitlines() if line.startswith(f"| {what}")]
    assert [stated for stated in STATED[what] if stated not in row] == []
