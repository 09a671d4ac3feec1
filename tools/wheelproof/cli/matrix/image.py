"""``wheelproof matrix image``: makes the container images that the cells of a matrix need, from Debian's packages."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from wheel_checks.errors import UsageError
from wheelproof.cli.matrix.options import add_matrix_options, chosen_cells
from wheelproof.cli.options.output import add_list, note, open_output

if TYPE_CHECKING:  # not for --help
    from wheelproof.matrix.executors.docker.image import Image

CONFIGURABLE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof matrix image``."""
    add_matrix_options(parser)
    add_list(
        parser,
        "--platform",
        "NAME",
        "the platform to build images for, x86_64 or aarch64, instead of those of a matrix (with --python)",
    )
    add_list(parser, "--python", "VERSION", "the Python versions to build images for (with --platform)")
    add_list(parser, "--system-package", "NAME", "an additional Debian package for these images (with --platform)")
    parser.add_argument("--force", action="store_true", help="rebuild existing images, from the current packages")


def run(arguments: argparse.Namespace) -> int:
    """Make the images and print a line for each. Raises UsageError, and SourceError when one cannot be made."""
    from wheelproof.matrix.executors.docker.image import build

    if bool(arguments.platform) != bool(arguments.python):
        raise UsageError("--platform and --python must be given together", expected="both, or neither")
    if arguments.system_package and not arguments.platform:
        raise UsageError("--system-package requires --platform and --python", expected="these, too")
    images = _named(arguments) if arguments.platform else _of_cells(arguments)
    with open_output("-") as stream:
        for image in images:
            stream.write(f"{build(image, force=arguments.force)}\n")
            stream.flush()
    return 0


def _named(arguments: argparse.Namespace) -> list[Image]:
    from wheelproof.matrix.definition.keys import debian_package
    from wheelproof.matrix.executors.docker.emulation import DOCKER_NAMES
    from wheelproof.matrix.executors.docker.image import SUITES, Image

    for flag, values, known in (
        ("--platform", arguments.platform, DOCKER_NAMES),
        ("--python", arguments.python, SUITES),
    ):
        if unknown := next((value for value in values if value not in known), None):
            raise UsageError(f"no image can be built for {flag} {unknown}", expected=f"one of {', '.join(known)}")
    more = tuple(map(debian_package, arguments.system_package))
    return [Image(python, DOCKER_NAMES[machine], more) for python in arguments.python for machine in arguments.platform]


def _of_cells(arguments: argparse.Namespace) -> list[Image]:
    """The images of the chosen cells, each once. Raises UsageError when none of them needs one of Debian."""
    from wheelproof.matrix.executors.docker.executor import debian_image

    cells = chosen_cells(arguments)
    for cell in cells:
        if cell.image:
            note(f"{cell.id} uses its own image, {cell.image}: fetch it with `docker pull`", quiet=False)
        elif debian_image(cell) is None:
            note(f"{cell.id}: no Debian release has Python {cell.python}; name an image that has it", quiet=False)
    images = [image for cell in cells if not cell.image and (image := debian_image(cell))]
    if not images:
        raise UsageError("no cell needs an image that can be built from Debian packages")
    return list(dict.fromkeys(images))
