"""``wheelproof report merge``: the reports of many hosts as one report, or of the cells of a matrix."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.sources.regular_file import names_file, read_whole
from wheelproof.cli.options.output import OutputOptions, add_output_options, emit
from wheelproof.cli.progress import Progress

if TYPE_CHECKING:  # not for --help
    from wheel_checks.facts.fleet.nodes import Nodes
    from wheelproof.fleet.inputs import Document

_HOSTS_IN_FILE = 1_000_000  # bytes: of a list with more, something is wrong


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof report merge``."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="JSON reports of any command, folders of them, or - for standard input; a file may contain many documents",
    )
    parser.add_argument(
        "--expect-hosts",
        action="append",
        default=[],
        metavar="HOSTS",
        help="the hosts expected to report: names and ranges such as rack[01-18]-tray[00-17],login1, or a file "
        "with one per line (repeatable)",
    )
    parser.add_argument(
        "--expect",
        default="",
        metavar="FILE",
        help="the expected state of nodes, in TOML: GPUs, driver, page size, links, rates, per group of hosts",
    )
    parser.add_argument(
        "--topology",
        default="",
        metavar="PATTERN|FILE",
        help="how to locate hosts: a regular expression with named groups such as "
        "'rack(?P<rack>\\d+)-tray(?P<tray>\\d+)', "
        "Slurm's topology.conf, or a TOML file (default: derived from the "
        "names)",
    )
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, compare, and print the merged report. Raises WheelproofError."""
    from wheelproof.fleet.inputs import find_inputs
    from wheelproof.fleet.merging import merge as merge_hosts
    from wheelproof.matrix.run.merge import merge as merge_cells

    output = OutputOptions.from_arguments(arguments)
    expected = expected_hosts(arguments.expect_hosts)
    tables = _tables(arguments.expect) if arguments.expect else ()
    inputs = find_inputs(arguments.paths, may_be_empty=bool(expected))
    of_hosts = bool(expected or tables or arguments.topology)
    with reading(inputs, quiet=output.quiet) as read:
        cells, documents = ([], read) if of_hosts else _only_of_cells(read)
        if cells:
            report = merge_cells(cells, output)
        else:
            report = merge_hosts(documents, expected, output, arguments.topology, tables)
    return emit(report, output)


@contextlib.contextmanager
def reading(inputs: Sequence[str], *, quiet: bool) -> Iterator[Iterator[Document]]:
    """The documents of all inputs, one after another, with their progress."""
    from wheelproof.fleet.inputs import read_inputs, size_of

    with Progress("reading reports:", unit="reports", size=size_of(inputs), quiet=quiet) as progress:

        def counted(documents: Iterable[Document]) -> Iterator[Document]:
            for document in documents:
                progress.advance()
                yield document

        yield counted(read_inputs(inputs, progress.read))


def _only_of_cells(documents: Iterator[Document]) -> tuple[list[tuple[str, Any]], Iterator[Document]]:
    """The documents with their sources when all are reports of cells (what cannot be read may be one); else none, and
    the documents as they were.
    """
    from wheelproof.matrix.run.merge import is_of_cells

    taken: list[Document] = []
    for document in documents:
        taken.append(document)
        if not (isinstance(document.content, FormatError) or is_of_cells(document.content)):
            return [], itertools.chain(taken, documents)
    cells = [(document.source, document.content) for document in taken]
    return (cells if any(is_of_cells(content) for _, content in cells) else []), iter(taken)


def expected_hosts(named: Sequence[str]) -> list[str]:
    """The names of the hosts. Raises UsageError for an invalid name or range, and for an unreadable file."""
    from wheel_checks.facts.fleet.host_list import expand

    names: list[str] = []
    for entry in named:
        if names_file(entry):
            names += expand(_names_in(entry))
        elif "/" in entry.partition("[")[0]:
            raise UsageError(f"--expect-hosts {entry}: no such file", expected="names, ranges or a file")
        else:
            names += expand(entry)
    return list(dict.fromkeys(names))


def _tables(file: str) -> Sequence[Nodes]:
    from wheel_checks.facts.fleet.nodes import read_nodes
    from wheel_checks.formats.documents import LARGEST

    try:
        data = read_whole(file, LARGEST, given=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"--expect {file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return read_nodes(data, file)


def _names_in(file: str) -> str:
    try:
        text = read_whole(file, _HOSTS_IN_FILE, given=True).decode()
    except (OSError, ValueError) as error:
        raise UsageError(f"--expect-hosts {file} cannot be read: {error}") from error
    names = [line for line in (re.sub(r"#.*", "", line).strip() for line in text.splitlines()) if line]
    if not names or any(re.search(r"\s", name) for name in names):
        raise UsageError(f"--expect-hosts {file} is not a host list", expected="a name or range per line")
    return ",".join(names)
