"""Which rules answer which question, and how a finding of each is put as a reason."""

from __future__ import annotations

# Each must have passed, on every subject of the kind, before a question is answered with yes.
OF_THE_STACK = ("STK104", "STK105", "STK106", "STK107")
OF_A_PACKAGE = ("STK101", "STK102", "STK103", "STK124")
# Faults of a lock, or of expectations. Elsewhere these rules are skipped, and leave nothing open.
OF_A_LOCK = ("STK110", "STK111", "STK112", "STK113", "STK114", "STK115", "STK120", "STK121", "STK122")
OF_LOADING = ("WHL503", "WHL506", "WHL521", "WHL522", "WHL526", "WHL530")  # of each wheel whose libraries were read
TORCH = "torch"  # its own symbols are known by a table
OF_A_GPU = ("WHL601",)
OF_A_DRIVER = ("WHL605",)
OF_A_DRIVER_AND_A_GPU = ("WHL606", "WHL607")
OF_AN_EXPECTATION = ("WHL201",)
OF_AN_INSTALLED_EXPECTATION = ("WHL715",)
OF_INSTALLED_GPU_CODE = ("WHL731",)
OF_A_RELEASE = ("REL101", "REL108", "REL109")
OF_PARITY = ("REL110",)  # if the expectation requires it
OF_A_RELEASED_ACCELERATOR = ("REL103",)  # of a file for whose platform one is expected

OF_PROVENANCE = ("WHL421", "WHL422")  # that were requested: of each file

# The rules about code that a wheel runs, and paths that it writes.
OF_WHAT_RUNS = "SEC"
OF_FOREIGN_FILES = "SEC005"  # denies that a stack installs if the package is another one's of the stack

# A warning of these leaves the question open: nothing is proven of a version that is unknown.
OPEN_BY_A_WARNING = frozenset({"WHL201"})

# An error of these says that the packages do not fit together, though each can be installed.
OF_FITTING = frozenset({"STK101", "STK104", "STK106", "WHL521", "WHL522", "WHL526"})

# An error of these is about one GPU; the facts of the wheel say about which.
OF_ONE_GPU = frozenset({"WHL601", "WHL602"})


def of_driver(gpu: object) -> tuple[str, ...]:
    """The rules that say whether a wheel runs with a driver, on a GPU if one was requested."""
    return (*OF_A_DRIVER, *(OF_A_DRIVER_AND_A_GPU if gpu else ()))


def of_gpu_and_driver(gpu: object, driver: object) -> tuple[str, ...]:
    """The rules that say whether a wheel runs on a GPU, with a driver; without those that were not requested."""
    return (*(OF_A_GPU if gpu else ()), *(of_driver(gpu) if driver else ()))


# A finding as a reason, in few words.
# One form is for one package, the other for several; the reasons of a rule without a form are its messages.
REASONS = {
    "STK101": ("{} is a CPU build", "{} are CPU builds"),
    "STK102": ("{} would be built on the target from source", "{} would be built on the target from source"),
    "STK103": ("{} has no file for it", "{} have no file for it"),
    "WHL601": ("{} has no code for it", "{} have no code for it"),
}

# These follow from another finding about the same package, which is shown in their place.
FOLLOWS_FROM = {
    "WHL203": ("STK101",),
    "WHL601": ("STK101",),
    "WHL602": ("WHL601",),
    "STK101": ("STK102", "STK103"),
    "WHL422": ("WHL421",),
}

# Findings that decide nothing for an installer, in few words: of one package, and of several.
ASIDES = {
    "SEC001": ("{} runs code at start-up", "{} packages run code at start-up"),
    "SEC002": ("{} replaces sitecustomize or usercustomize", "{} packages replace sitecustomize or usercustomize"),
    "SEC003": (
        "{} adds a folder outside the environment to the search path",
        "{} packages add folders outside the environment to the search path",
    ),
    "SEC005": (
        "{} installs files into a package of another project",
        "{} packages install files into packages of other projects",
    ),
    "SEC006": ("{} installs files into Python itself", "{} packages install files into Python itself"),
    "SEC007": ("the name of {} resembles that of another project", "the names of {} packages resemble those of others"),
    "SEC008": (
        "{} installs a script with the name of another program",
        "{} packages install scripts with the names of other programs",
    ),
    "SEC009": (
        "an entry point of {} is no reference to an object",
        "entry points of {} packages are no references to objects",
    ),
    "SEC010": ("{} has native code with the name of data", "{} packages have native code with the name of data"),
    "SEC011": (
        "{} looks for libraries where others can write",
        "{} packages look for libraries where others can write",
    ),
    "SEC013": ("{} runs code at start-up", "{} files run code at start-up"),
    "SEC014": ("{} has a program in place of pip, uv or Python", "{} programs are in place of pip, uv or Python"),
    "WHL106": ("{} has invalid metadata", "{} packages have invalid metadata"),
    "WHL107": (
        "{} has a requirement that not every installer reads",
        "{} packages have requirements that not every installer reads",
    ),
}
