"""``wheelproof matrix github``: the cells for ``strategy.matrix`` of a GitHub workflow."""

import argparse

from wheel_checks.errors import UsageError
from wheelproof.cli.matrix.options import add_matrix_options, chosen_cells
from wheelproof.cli.options import open_output

CONFIGURABLE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof matrix github``."""
    add_matrix_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one line of JSON. Raises UsageError for a cell that no runner is configured for, and WheelproofError."""
    from wheel_checks.report.wording import plain_json
    from wheelproof.matrix.listing import as_github
    from wheelproof.matrix.model import GPU_RUNNER

    cells = chosen_cells(arguments)
    homeless = next((cell for cell in cells if not cell.runner), None)
    if homeless is not None:
        key = GPU_RUNNER if homeless.needs_gpu else homeless.platform
        raise UsageError(f"no runner is configured for {homeless.id}", expected=f'{key} = ["LABEL", ...] in [runners]')
    with open_output("-") as stream:
        stream.write(plain_json(as_github(cells)))
    return 0
