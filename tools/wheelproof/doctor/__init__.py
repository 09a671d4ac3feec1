"""The doctor: probes read the facts of a host, rules judge them, and a diagnosis names the one root cause.

:func:`diagnose` and :class:`Diagnosis` are public; the modules of this package are not.
"""

TYPE_CHECKING = False  # as in typing, which takes longer to import than --help does

if TYPE_CHECKING:
    from wheelproof.doctor.diagnosing import diagnose
    from wheelproof.doctor.diagnosis import Diagnosis

__all__ = ["Diagnosis", "diagnose"]

if not TYPE_CHECKING:  # a checker of types sees the imports above, and no name that is not present

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'wheelproof.doctor' has no attribute {name!r}")
        import importlib  # noqa: PLC0415  # probes and the command begin without the rules

        module = importlib.import_module(f"wheelproof.doctor.diagnos{'ing' if name == 'diagnose' else 'is'}")
        value = globals()[name] = getattr(module, name)
        return value
