"""Programs that run in children, each its own file, for Python 3.8 and later and with its standard library alone.

None of them is imported by the doctor. They print one JSON object in each line that starts with ``wheelproof: ``, since
loaded libraries may print, too; each step is named before it starts, to locate a hang or a crash.
"""
