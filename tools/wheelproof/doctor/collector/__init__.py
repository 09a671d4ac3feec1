"""Makes the collector: the doctor's reader as one file for Python 3.6 and later, with the standard library alone.

The probes are not written twice: their own source code is carried, in the syntax of Python 3.6.
"""
