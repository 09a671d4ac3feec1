"""How the suite of kernels is started: in its own process, which sees nothing else of wheelproof."""

import importlib.util
from pathlib import Path

from wheel_checks.errors import SourceError

# The package says itself how it is loaded from its folder, so that nothing that is installed next to it can be imported
# by the interpreter that is judged; the current folder leaves the search before anything is imported that is not built
# in. Arguments: the folder, the module to run, its arguments.
BOOTSTRAP = (
    "import sys; sys.path[:] = filter(None, sys.path); import runpy; "
    "exec(runpy.run_path(sys.argv[1] + '/suite/start.py')['BOOTSTRAP'])"
)
MODULE = "kernels_smoke.__main__"


def package_folder() -> Path:
    """The folder of kernels_smoke in this installation. Raises SourceError when it is missing."""
    spec = importlib.util.find_spec("kernels_smoke")  # looks for files, and imports nothing
    if spec is None or spec.origin is None:
        raise SourceError("the package kernels_smoke is not installed", hint="install wheelproof again")
    return Path(spec.origin).parent
