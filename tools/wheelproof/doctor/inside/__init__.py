"""Programs that run in children, each its own file, for Python 3.8 and later and with its standard library alone.

None of them is imported by the doctor. They print one JSON object in each line that starts with ``wheelproof: ``, since
what they load may print, too; a step is named before it is taken, so that a hang or a crash has a place.
"""
