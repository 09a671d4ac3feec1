"""Kernels that are broken on purpose: proof that the suite distinguishes a crash, a hang and a wrong result.

They run only when they are asked for by name (``--only faults``), and every one of them must be found.
"""
