"""Collects what `wheelproof doctor` knows of this host, where wheelproof cannot be installed.

    python3 collect.py > facts.json         # on the machine in question; Python 3.6 or newer
    wheelproof doctor --facts facts.json    # anywhere

Nothing is installed and nothing is sent. torch is imported, and tried, in a process of the interpreter in question;
--no-trial leaves that out, and then the diagnosis cannot be that torch works. Names of users and hosts, tokens,
addresses and identifiers of GPUs are replaced: look at the facts before you pass them on.
"""

import os
import sys

# Before anything else is imported: nothing that is next to this file, or in the current folder, is meant.
if sys.path and sys.path[0] in ("", os.path.dirname(os.path.abspath(sys.argv[0]))):
    del sys.path[0]

import argparse
import contextlib
import shutil
import signal
import tempfile

OLDEST = (3, 6)
LONGEST = 86400.0  # seconds


def arguments():
    """What the command line says."""
    parser = argparse.ArgumentParser(
        prog="collect.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        default="",
        help="the interpreter or environment to inspect (default: the active environment, else the first python3 on "
        "PATH)",
    )
    parser.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="SECONDS", help="stop reading after SECONDS (default: 60)"
    )
    parser.add_argument("--no-trial", action="store_true", help="do not import torch")
    return parser.parse_args()


def seconds(text):
    """A time to wait."""
    value = float(text)
    if not 0 < value <= LONGEST:
        raise argparse.ArgumentTypeError("expected a number of seconds above 0, at most a day")
    return value


def unpack(folder, files):
    """Write the carried files below a folder, and have Python import them from there, whatever it has imported."""
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text.encode("utf-8"))
    carried = {name.partition("/")[0] for name in files}
    for name in [name for name in sys.modules if name.partition(".")[0] in carried]:
        del sys.modules[name]
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)


def collect(files):
    """Print the facts of this host; the exit code."""
    if sys.version_info < OLDEST:
        sys.stderr.write("collect.py needs Python 3.6 or newer, and this is %s\n" % sys.version.split()[0])
        return 2
    asked = arguments()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # after the folder is removed
    try:
        folder = tempfile.mkdtemp(prefix="wheelproof-collect-")  # only this user can read it
    except OSError as error:
        sys.stderr.write("no temporary folder can be made (%s); TMPDIR can name one\n" % error)
        return 3
    try:
        unpack(folder, files)
        from wheelproof.doctor.facts_file import facts_text
        from wheelproof.doctor.reading import Request, read_host

        sys.stderr.write("reading this host, for at most %g seconds\n" % asked.timeout)
        request = Request(asked.python, timeout=asked.timeout, trial=not asked.no_trial)
        text = facts_text(read_host(request, os.environ))
        sys.stdout.write(text)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except OSError as error:  # standard output cannot be written, or the temporary folder
        sys.stderr.write("the facts cannot be written: %s\n" % error)
        with contextlib.suppress(OSError):
            sys.stdout.close()
        return 3
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stderr.write("review the facts before you share them; wheelproof doctor --facts FILE reads them\n")
    return 0
