"""How a module of this package is started in its own process, wherever the package is.

The package is loaded from its own folder and nothing next to it becomes importable: when it judges the torch of another
environment, the packages that are installed next to it must not leak into that environment.
"""

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]

# Arguments: the package's folder, the module to run, its arguments. The current folder must not shadow torch, nor the
# standard library, so it goes before anything is imported that is not built in.
BOOTSTRAP = """\
import sys
sys.path[:] = [entry for entry in sys.path if entry]
import importlib.util, runpy
folder, module, *rest = sys.argv[1:]
spec = importlib.util.spec_from_file_location(
    "kernels_smoke", folder + "/__init__.py", submodule_search_locations=[folder]
)
package = importlib.util.module_from_spec(spec)
sys.modules["kernels_smoke"] = package
spec.loader.exec_module(package)
sys.argv = [module, *rest]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def command(module: str, *arguments: str, python: str = sys.executable) -> list[str]:
    """The command that runs ``kernels_smoke.<module>`` as a program under the interpreter ``python``."""
    return [python, "-c", BOOTSTRAP, str(PACKAGE), f"kernels_smoke.{module}", *arguments]
