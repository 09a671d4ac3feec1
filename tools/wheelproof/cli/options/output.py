"""The options that every command shares, and how a report leaves the program."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TextIO

from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.model import FailOn, Report
from wheel_checks.report import FORMATS, render
from wheelproof.cli.help.commands import CommandHelp
from wheelproof.cli.help.listing import examples_of, listed
from wheelproof.cli.options.rights import ADDS, allow_tree, raises
from wheelproof.cli.progress import Progress
from wheelproof.plugins.installed import FORMATS as PLUGIN_FORMATS
from wheelproof.plugins.installed import find_plugins
from wheelproof.plugins.loading import NO_PLUGINS, load_plugins
from wheelproof.reporting import Selection, TreeRules


class CommandParser(argparse.ArgumentParser):
    """The parser of one command: wrong usage raises UsageError and names the nearest option.

    ``configurable`` is False for a command whose options are not set by configuration file or environment.
    """

    configurable = True
    programs: frozenset[str] = frozenset()
    """Programs whose command lines are arguments: options after them are passed on, as after ``--``."""

    def __init__(self, *, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=CommandHelp)

    @property
    def options(self) -> dict[str, argparse.Action]:
        """Every option that takes part in the configuration, by its long name without the dashes."""
        named = {next((o[2:] for o in a.option_strings if o.startswith("--")), ""): a for a in self._actions}
        return {name: action for name, action in named.items() if name not in {"", "help"}}

    @property
    def groups(self) -> list[tuple[str, list[argparse.Action]]]:
        """The groups of the help: titles and options."""
        return [(str(g.title), list(g._group_actions)) for g in self._action_groups]  # noqa: SLF001  # shown by no method

    def forgive_missing_arguments(self) -> None:
        """Accept a command line without its required arguments (for ``--show-config``)."""
        for action in self._actions:
            action.required = False
            if not action.option_strings:
                action.nargs = "?" if action.nargs is None else "*"

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """As ``parse_args`` does, but an unknown option is an error that suggests the nearest one."""
        namespace, unknown = self.parse_known_args(self._separated(arguments))
        if unknown:
            flag = unknown[0].partition("=")[0]
            nearest = get_close_matches(flag, self._option_string_actions, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"see `{self.prog} --help`"
            kind = "option" if flag.startswith("-") else "argument"
            raise UsageError(f"unexpected {kind} {flag} for `{self.prog}`", hint=hint)
        return namespace

    def _separated(self, arguments: Sequence[str]) -> list[str]:
        """The arguments with ``--`` in front of the command line of another program."""
        at = 0
        while at < len(arguments) and arguments[at].startswith("-") and arguments[at] != "--":
            action = self._option_string_actions.get(arguments[at])
            at += 2 if action is not None and action.nargs is None else 1
        is_program = at < len(arguments) and arguments[at].rpartition("/")[2] in self.programs
        return [*arguments[:at], *(["--"] if is_program else []), *arguments[at:]]

    def error(self, message: str) -> NoReturn:
        """Raise UsageError if argparse would print and exit."""
        raise UsageError(message, hint=f"see `{self.prog} --help`")


def make_parser(name: str, summary: str, module: Any) -> CommandParser:
    """The parser of the command ``name``, with the arguments that its module declares."""
    parser = CommandParser(prog=f"wheelproof {name}", description=f"{summary[0].upper()}{summary[1:]}.")
    parser.configurable = getattr(module, "CONFIGURABLE", True)
    module.add_arguments(parser)
    if examples := examples_of(name):
        parser.description = f"{parser.description}\n\nexamples:\n{examples}"
    return parser


class FormatNames(tuple[str, ...]):
    """The names of our formats, and of plug-ins, which are loaded only for a name that is not ours."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or any(p.name == name for p in find_plugins() if p.kind == PLUGIN_FORMATS)


class ListAction(argparse.Action):
    """An option that is repeatable and takes comma separated values: ``-s A,B -s C`` gives ``["A", "B", "C"]``."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Append the values. Raises as ``parser.error`` does if one is empty."""
        parts = [part.strip() for part in str(values).split(",")]
        if not all(parts):
            parser.error(f"argument {option_string}: {values!r} contains an empty value")
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest, None) or []), *parts])


def add_list(parser: argparse._ActionsContainer, flag: str, metavar: str, help: str) -> None:  # noqa: A002  # as argparse
    """Declare an option that is repeatable and takes comma separated values; it is [] when it is not given."""
    parser.add_argument(flag, action=ListAction, default=[], metavar=metavar, help=help)


def add_commands_help(
    parser: argparse.ArgumentParser, commands: Mapping[str, tuple[str, str]], alone: str = ""
) -> None:
    """List the subcommands in the help of a command; ``alone`` describes it without a subcommand."""
    rows = listed({name: summary for name, (_, summary) in commands.items()})
    parser.description = f"{parser.description}\n\n{f'Without a command: {alone} ' if alone else ''}Commands:\n{rows}"


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command shares; :class:`OutputOptions` reads them back."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--format",
        choices=FormatNames(FORMATS),
        default="text",
        help="the report format: one of these, or one from a plug-in (default: text)",
    )
    group.add_argument("--output", metavar="FILE", default="-", help="write the report to FILE (- for standard output)")
    add_list(group, "--also", "FORMAT=FILE", "also write the report to FILE, in that format (repeatable)")
    group.add_argument(
        "--fail-on",
        choices=[str(value) for value in FailOn],
        default=str(FailOn.ERROR),
        help="the lowest severity that sets the exit code to 1 (default: error)",
    )
    add_list(group, "--select", "PREFIX", "enable only rules with this prefix (repeatable)")
    add_list(group, "--ignore", "PREFIX", "disable rules with this prefix (repeatable)")
    group.add_argument("--color", action=argparse.BooleanOptionalAction, default=None, help="color the text report")
    group.add_argument("-q", "--quiet", action="store_true", help="print only the verdict, without progress")
    group.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="print more detail; -vv also prints tracebacks of internal errors",
    )
    allow_tree(parser, raises(FailOn.NEVER, FailOn.ERROR, FailOn.WARNING), "fail-on")
    allow_tree(parser, ADDS, "select", "ignore")
    group = parser.add_argument_group("run")
    group.add_argument(
        "--offline", action="store_true", help="disable network access: use only local files and the cache"
    )
    add_list(
        group, "--trust-index", "HOST", "allow contacting HOST (or *.HOST, or URLs below a URL) if only a file names it"
    )
    group.add_argument("--config", metavar="FILE", help="use FILE as the only configuration file (/dev/null for none)")
    add_list(
        group,
        "--safe-directory",
        "FOLDER",
        "trust the configuration in FOLDER, or below FOLDER/*, whoever owns it; * for all (repeatable)",
    )
    group.add_argument(
        "--no-plugins", action="store_true", help="disable rules, formats and probes from other installed packages"
    )
    group.add_argument("--show-config", action="store_true", help="show the value and origin of every option, and exit")


@dataclass(frozen=True, slots=True)
class OutputOptions(Selection):
    """The shared options of one run. ``color`` is None when the terminal decides; ``output`` is "-" or a path.

    ``also`` contains a format and a path of each further report. ``trust_index`` are the addresses of a tree to
    contact.
    """

    format: str = "text"
    output: str = "-"
    also: tuple[tuple[str, str], ...] = ()
    offline: bool = False
    trust_index: tuple[str, ...] = ()
    quiet: bool = False
    verbose: int = 0
    color: bool | None = None

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> OutputOptions:
        """Read the parsed options. Raises UsageError at once when a report could not be written to its place."""
        also = tuple(map(_format_and_file, arguments.also))
        plugins = NO_PLUGINS if arguments.no_plugins else load_plugins(FORMATS)
        for name in (arguments.format, *(known for known, _ in also)):
            if name not in FORMATS and plugins.named(PLUGIN_FORMATS, name) is None:
                what = f"the format {name} comes from a plug-in that is not in use"
                raise UsageError(what, expected=f"one of {', '.join(FORMATS)}")
        for flag, name in (("--output", arguments.output), *((f"--also {known}", file) for known, file in also)):
            if name != "-":
                check_output(flag, name)
        return cls(
            format=arguments.format,
            output=arguments.output,
            also=also,
            fail_on=FailOn(arguments.fail_on),
            select=tuple(arguments.select),
            ignore=tuple(arguments.ignore),
            tree=getattr(arguments, "tree", TreeRules()),
            plugins=plugins,
            offline=arguments.offline,
            trust_index=tuple(arguments.trust_index),
            quiet=arguments.quiet,
            verbose=arguments.verbose,
            color=arguments.color,
        )

    @property
    def reports(self) -> tuple[tuple[str, str], ...]:
        """The format and the place of each report that is to be written, the main one first."""
        return ((self.format, self.output), *self.also)


def _format_and_file(text: str) -> tuple[str, str]:
    """The two sides of a FORMAT=FILE. Raises UsageError."""
    name, _, file = text.partition("=")
    if name not in FormatNames(FORMATS) or file in {"", "-"}:
        raise UsageError(
            f"--also {text} is not a FORMAT=FILE",
            expected=f"one of {', '.join(FORMATS)}, as in --also json=report.json",
        )
    return name, file


def note(sentence: str, *, quiet: bool) -> None:
    """Write a note to standard error, since standard output belongs to the report; nothing when ``quiet``."""
    if not quiet:
        say(f"note: {sentence}")


def warn(sentences: Iterable[str]) -> None:
    """Write a line to standard error for each."""
    for sentence in sentences:
        say(f"wheelproof: {sentence}")


def say(line: str) -> None:
    """Write a line to standard error: no value shows a secret, breaks it or commands a terminal or GitHub's runner."""
    from wheel_checks.formats.secrets import redact_text  # most runs have nothing to say
    from wheel_checks.report.folding import fold
    from wheel_checks.report.wording import neutral, write

    if sys.stderr is not None:
        Progress.clear()
        text = neutral(redact_text(line))
        is_screen = getattr(sys.stderr, "isatty", lambda: False)()
        lines = fold(text, shutil.get_terminal_size().columns) if is_screen else [text]
        _printed.extend(lines if is_screen else [])
        write(sys.stderr, "".join(f"{line}\n" for line in lines))


_printed: list[str] = []  # on the terminal, above the report


def shown(options: OutputOptions) -> dict[str, Any]:
    """How a report for people is rendered."""
    return {"color": options.color, "quiet": options.quiet, "verbose": options.verbose, "above": len(_printed)}


def emit(report: Report, options: OutputOptions) -> int:
    """Render ``report`` as ``options`` say and return its exit code. Raises WheelproofError when writing fails."""
    for name, output in options.reports:
        with open_output(output) as stream:
            if name in FORMATS:
                render(report, stream, name, **shown(options))
            elif plugin := options.plugins.named(PLUGIN_FORMATS, name):
                from wheelproof.plugins.formats import render as render_by  # few formats are of a plug-in

                render_by(plugin, report, stream)
    return report.exit_code


def check_output(flag: str, name: str) -> None:
    """Raise UsageError when a file could not be written to its place, so that no run is in vain."""
    path = Path(name)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"{flag} {name} cannot be written", expected="a file in an existing folder")
    _check_link(path)


def _real(path: Path) -> Path:
    from wheel_checks.sources.regular_file import real_path  # --help writes no file

    return real_path(path)


def _check_link(path: Path) -> None:
    """Raise UsageError for a link in a repository that leads out of it, since its author chose the target."""
    if not path.is_symlink():
        return
    from wheel_checks.sources.repository import repository_of  # a link is rare

    repository, target = repository_of(_real(path.parent)), _real(path)
    if repository is not None and not target.is_relative_to(repository):
        raise UsageError(
            f"{path} is a link to {target}, outside {repository}: nothing was written",
            expected="a file, or a link within the repository",
            hint=f"to write to {target}, name it directly",
        )


@contextlib.contextmanager
def open_output(output: str) -> Iterator[TextIO]:
    """A UTF-8 text stream to standard output ("-") or to a file, which is replaced in one step.

    Raises WheelproofError when the file cannot be written. Anything but a regular file (a pipe) is written directly.
    """
    path = Path(output)
    try:
        if output == "-":
            Progress.finish()
            if hasattr(sys.stdout, "reconfigure"):  # a stream that a caller put in its place may not have it
                sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
            yield sys.stdout
            sys.stdout.flush()
        elif path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8", errors="backslashreplace") as stream:
                yield stream
        else:
            _check_link(path)
            with _replacing(_real(path)) as stream:
                yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        where = "standard output" if output == "-" else output
        raise WheelproofError(f"the report could not be written to {where}: {error.strerror or error}") from error


_UNFINISHED = ".wheelproof-report"  # temporary file of --output; one left by a killed process is removed by the next


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[TextIO]:
    from wheel_checks.sources.scratch_folder import lock_file, prefix_of, sweep  # --help writes no file

    sweep(_UNFINISHED, path.parent, seconds=60)
    temporary = path.with_name(f"{prefix_of(_UNFINISHED)}{os.urandom(8).hex()}")
    try:
        with temporary.open("x", encoding="utf-8", errors="backslashreplace") as stream:
            lock_file(stream.fileno())
            yield stream
        if path.exists():
            temporary.chmod(path.stat().st_mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def add_max_read(parser: argparse.ArgumentParser) -> None:
    """Declare ``--max-read``, see :func:`max_read`."""
    parser.add_argument(
        "--max-read",
        metavar="SIZE",
        help="the most to read of one wheel for its GPU code, such as 500M or 2G (default: 1G)",
    )


def max_read(arguments: argparse.Namespace) -> int:
    """The bytes that ``--max-read`` allows. Raises UsageError for an invalid size."""
    from wheel_checks.facts.archive.facts import MAX_READ
    from wheel_checks.facts.wheel.expectations import parse_size

    return parse_size(arguments.max_read) if arguments.max_read else MAX_READ


def add_depth(parser: argparse.ArgumentParser, default: str = "quick") -> None:
    """Declare ``--depth``."""
    parser.add_argument(
        "--depth",
        choices=["quick", "links", "gpu", "full"],
        default=default,
        help="what to read; quick: directory and small members; links: also ELF files and their libraries; gpu: also "
        f"GPU code; full: every byte (default: {default})",
    )
