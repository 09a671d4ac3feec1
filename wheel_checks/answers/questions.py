"""Which rules answer which question, and how a finding of each is put as a reason."""

from __future__ import annotations

# Each must have passed, on every subject of the kind, before a question is answered with yes.
OF_THE_STACK = ("STK104", "STK105", "STK106", "STK107")
OF_A_PACKAGE = ("STK101", "STK102", "STK103", "STK124")
# Faults of a lock, or of expectations. Elsewhere these rules are skipped, and leave nothing open.
OF_A_LOCK = ("STK110", "STK111", "STK112", "STK113", "STK114", "STK115", "STK120", "STK121", "STK122")
OF_LIBRARIES = ("WHL506", "WHL521", "WHL522")  # of each wheel whose libraries were read
OF_A_MANYLINUX_TAG = ("WHL503",)
OF_THE_STABLE_ABI = ("WHL530",)  # of a wheel whose symbols for it were read
OF_SYMBOLS = ("WHL526",)  # of a wheel with torch or a whole stack next to it
OF_A_RANGE_OF_TORCH = ("WHL543",)  # that a release must load with
OF_UNREAD_LIBRARIES = ("WHL521",)  # says why they were not read
TORCH = "torch"  # its own symbols are known by a table
OF_A_GPU = ("WHL601",)
OF_A_DRIVER = ("WHL605",)
OF_A_DRIVER_AND_A_GPU = ("WHL606", "WHL607")
OF_NO_DRIVER = ("WHL608",)
OF_AN_EXPECTATION = ("WHL201",)
OF_AN_INSTALLED_EXPECTATION = ("WHL715",)
OF_INSTALLED_GPU_CODE = ("WHL731",)
OF_A_RELEASE = ("REL101", "REL108", "REL109")
OF_PARITY = ("REL110",)  # if the expectation requires it
OF_A_RELEASED_ACCELERATOR = ("REL103",)  # of a file for whose platform one is expected

OF_PROVENANCE = ("WHL421", "WHL422")  # that were requested: of each file

OF_A_CHANGED_PACKAGE = ("PIN311", "PIN314", "PIN315")
OF_AN_INSTALL = ("PIN316",)  # that is predicted

# What two wheels of one release are compared in, and the rules that judge it; the last two need a deeper look.
LIBRARIES, GPU_CODE = "libraries", "GPU code"
OF_A_PAIR = {
    "accelerator": ("REL201",),
    "requirements": ("REL204",),
    "files": ("REL202", "REL203", "REL206"),
    LIBRARIES: ("REL207",),
    GPU_CODE: ("REL205",),
}
OF_TWO_SETS = ("REL208",)

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


def of_gpu_and_driver(gpu: object, driver: object, without_driver: object) -> tuple[str, ...]:
    """The rules that say whether a wheel runs on a GPU, and with or without a driver, of those that were requested."""
    return (
        *(OF_A_GPU if gpu else ()),
        *(of_driver(gpu) if driver else ()),
        *(OF_NO_DRIVER if without_driver else ()),
    )


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

# Findings that decide nothing for an installer, in few words, about one package ("runs code") or several ("run code").
ASIDES = {
    "SEC001": "run{s} code at start-up",
    "SEC002": "replace{s} sitecustomize or usercustomize",
    "SEC003": "add{s} folders outside the environment to the search path",
    "SEC005": "install{s} files into a package of another project",
    "SEC006": "install{s} files into Python itself",
    "SEC007": "resemble{s} another project by name",
    "SEC008": "install{s} scripts with the names of other programs",
    "SEC009": "register{s} entry points that refer to no object",
    "SEC010": "contain{s} native code with the name of data",
    "SEC011": "look{s} for libraries where others can write",
    "SEC013": "run{s} code at start-up",
    "SEC014": "contain{s} programs in place of pip, uv or Python",
    "WHL018": "fit{s} only one of pip and uv",
    "WHL020": "hinder{s} pip later",
    "WHL101": "fit{s} only one of pip and uv",
    "WHL106": "state{s} metadata that not every installer reads",
    "WHL107": "state{s} requirements that not every installer reads",
    "WHL125": "fit{s} only one of pip and uv",
}
