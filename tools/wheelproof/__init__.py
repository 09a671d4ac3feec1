"""The command line of wheelproof, its applications, and the functions with which a program uses them.

The names in ``__all__`` are the public API (``docs/api.md``), imported when they are first used; with
:mod:`wheelproof.doctor` and :mod:`wheelproof.pins` they are all that other programs may rely on.
"""

__version__ = "0.1.0"  # the build reads it, too

TYPE_CHECKING = False  # as in typing, which takes longer to import than --help does

if TYPE_CHECKING:
    from wheelproof.api import Options, stack, verify

__all__ = ["Options", "__version__", "stack", "verify"]

if not TYPE_CHECKING:  # a checker of types sees the import above, and no name that is not present

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'wheelproof' has no attribute {name!r}")
        import importlib  # noqa: PLC0415  # the command and its --help need none of it

        value = globals()[name] = getattr(importlib.import_module("wheelproof.api"), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
