"""The program of an installed guard: it is copied into the environment, and runs there without wheelproof.

For Python 3.9 and later, with the standard library alone; imports are relative, since the package has another name in
an environment. Its modules: held packages (``held``), files (``layout``), writing and removing them (``installing``),
written files (``receipt``), the arguments of pip and uv (``pip_front``, ``uv_front``), a command under the tripwire
(``guarded``, ``tripwire``), and an inspection (``inspection``).
"""
