"""Write the completion scripts that ``wheelproof completion`` prints, with shtab, from the parsers of the commands.

``--check`` writes nothing and exits 1 when a script is stale.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

import shtab

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only modules in its own folder

from ci.command_line import one_parser, read_commands, value_name  # noqa: E402  # found by the line above
from wheel_checks.catalogue import all_rules  # noqa: E402  # as above
from wheel_checks.data import load  # noqa: E402  # as above
from wheel_checks.facts.gpu.targets import products  # noqa: E402  # as above
from wheel_checks.report import FORMATS  # noqa: E402  # as above
from wheelproof.cli.options.output import ListAction  # noqa: E402  # as above

FOLDER = ROOT / "tools/wheelproof/cli/completion"


def _rules() -> list[str]:
    """The groups of rules, then every rule."""
    ids = [rule.id for rule in all_rules()]
    return [*dict.fromkeys(name.rstrip("0123456789") for name in ids), *ids]


# Values with a name in the help, and their completions in a shell. A test knows every name in use.
WORDS: dict[str, Callable[[], list[str]]] = {
    "PREFIX": _rules,
    "RULE": _rules,
    "GPU": lambda: [product.name.replace(" ", "-") for product in products()],  # one word, which is understood too
    "CPU": lambda: [row["name"] for row in load("variant_machines")["cpu"]],
    "PLATFORM": lambda: ["x86_64", "aarch64", "all"],
    "FORMAT=FILE": lambda: list(FORMATS),
}
FILES = {"FILE", "PATH", "PLACE", "TARGET", "WHEEL", "PACKAGE", "PATH|VERSION", "REF|FILE", "PATTERN|FILE"}
FILES |= {"FILE.py|MODULE"}
FOLDERS = {"FOLDER"}
NOTHING = {"EXTRA", "FOLDERS", "GLOB", "GROUP", "HOST", "HOSTS", "ID", "KEY=LABEL", "LABEL", "N", "NAME"}
NOTHING |= {"NAME==VERSION", "REQUIREMENT", "SECONDS", "SIZE", "SONAME", "SPEC", "TEXT", "URL", "VERSION", "WHAT"}

# The functions that shtab lacks: values separated by commas, and FORMAT=FILE.
LIST = {
    "bash": """
_wheelproof_{name}() {{
    local prefix=; [[ $1 == *,* ]] && prefix=${{1%,*}},
    compgen -P "$prefix" -W '{words}' -- "${{1##*,}}"
}}
""",
    "zsh": "_wheelproof_{name}() {{ _sequence compadd - {words} }}\n",
    "fish": """
function _wheelproof_{name}
    __fish_complete_list , 'string split " " "{words}"'
end
""",
}
PAIR = {
    "bash": """
_wheelproof_{name}() {{
    compopt -o nospace
    compgen -S = -W '{words}' -- "$1"
}}
""",
    "zsh": "_wheelproof_{name}() {{ if compset -P '*='; then _files; else compadd -S = -- {words}; fi }}\n",
    "fish": """
function _wheelproof_{name}
    if string match -qr '^(?<format>[a-z]+)=(?<start>.*)$' -- (commandline -ct)
        printf "$format=%s\\n" (__fish_complete_path $start)
    else
        printf '%s=\\n' {words}
    end
end
""",
}
# Replacements in the output of shtab that complete more: each of several arguments; files after --output=, below ~ and
# with spaces.
REPLACED: dict[str, dict[str, str]] = {
    "bash": {},
    "zsh": {'"(*)::': '"*:', '"(*):': '"*:'},
    "fish": {f'-xka "{shtab.FILE["fish"]}"': "-rF", f'-ka "{shtab.FILE["fish"]}"': "-F"},
}
# readline splits --depth=links at "=", shtab's function expects --depth links
SPLIT = """
_wheelproof() {
    local at last=$COMP_CWORD words=()
    for at in "${!COMP_WORDS[@]}"; do
        if [[ ${COMP_WORDS[at]} != = || ${COMP_WORDS[at-1]} != --* ]]; then
            words+=("${COMP_WORDS[at]}")
        elif (( at == last )); then
            words+=("")
        elif (( at < last )); then
            (( COMP_CWORD-- ))
        fi
    done
    COMP_WORDS=("${words[@]}")
    _shtab_wheelproof
}
complete -o bashdefault -F _wheelproof wheelproof
"""


def script(shell: str) -> str:
    """The completion script of a shell."""
    commands = read_commands()
    functions: dict[str, str] = {}
    for command in commands:
        command.parser.description = _first_clause(command.summary)
        if any(other.name.startswith(f"{command.name} ") for other in commands):
            for argument in command.arguments:  # shtab offers either these or the commands below
                command.parser._remove_action(argument)  # noqa: SLF001  # argparse has no public way
        for action in command.parser._actions:  # noqa: SLF001  # as above
            action.help = _first_clause(action.help or "")
            if action.nargs != 0:
                _prepare(action, shell, functions)
    text = shtab.complete(one_parser(commands), shell, preamble="".join(functions.values()))
    for written, better in REPLACED[shell].items():
        if written not in text:
            raise SystemExit(f"shtab {shtab.__version__} no longer writes {written}: is the replacement still needed?")
        text = text.replace(written, better)
    return text.rstrip("\n") + "\n" + (SPLIT if shell == "bash" else "")


def _prepare(action: argparse.Action, shell: str, functions: dict[str, str]) -> None:
    """Say how shtab completes the value of an option or argument; adds the functions that it needs to ``functions``."""
    name = value_name(action)
    if action.choices is not None:
        action.choices = list(action.choices)
    elif name in FILES:
        action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
    elif name in FOLDERS:
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # as above
    elif name in WORDS and not isinstance(action, ListAction):
        action.choices = WORDS[name]()
    elif name in WORDS:
        function = re.sub(r"\W.*", "", name.lower())
        template = (PAIR if "=" in name else LIST)[shell]
        functions[function] = template.format(name=function, words=" ".join(WORDS[name]()))
        call = f"(_wheelproof_{function})" if shell == "fish" else f"_wheelproof_{function}"
        action.complete = {shell: call}  # type: ignore[attr-defined]  # as above
    elif shell == "zsh":
        action.complete = {shell: " "}  # type: ignore[attr-defined]  # as above; without it zsh offers files
    if shell == "zsh":
        action.option_strings = [f"{flag}=" if flag.startswith("--") else flag for flag in action.option_strings]
        if isinstance(action, ListAction):  # may be repeated, which shtab supports only for its own actions
            action.__class__ = argparse._AppendAction  # type: ignore[assignment]  # noqa: SLF001


def _first_clause(text: str) -> str:
    """The first clause of a help or a summary, as a shell shows it next to a word: "the index to use"."""
    return re.split(r" \(|; ", text, maxsplit=1)[0].strip()


def main() -> int:
    """Write or check the scripts; 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    wanted = {FOLDER / f"wheelproof.{shell}": script(shell) for shell in ("bash", "fish", "zsh")}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if check:
        if stale:
            names = ", ".join(path.name for path in stale)
            sys.stderr.write(f"{names}: stale; run `python ci/update_completions.py`\n")
        return bool(stale)
    FOLDER.mkdir(exist_ok=True)
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
    print(f"{len(wanted)} scripts, {len(stale)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
