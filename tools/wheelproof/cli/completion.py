"""``wheelproof completion SHELL``: the script with which a shell completes commands, options and their values."""

import argparse
from importlib.resources import files

from wheelproof.cli.options import open_output

CONFIGURABLE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof completion``."""
    parser.add_argument(
        "shell",
        choices=("bash", "zsh", "fish"),
        metavar="SHELL",
        help='bash: eval "$(wheelproof completion bash)" in ~/.bashrc; zsh: the same for zsh in ~/.zshrc, after '
        "compinit; fish: wheelproof completion fish | source in ~/.config/fish/config.fish",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the script. Raises WheelproofError when it cannot be written."""
    script = files("wheelproof.cli").joinpath("completions", f"wheelproof.{arguments.shell}")
    with open_output("-") as stream:
        stream.write(script.read_text(encoding="utf-8"))
    return 0
