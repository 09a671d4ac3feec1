"""Do the file name, METADATA and WHEEL agree?"""

from __future__ import annotations

from collections.abc import Iterable

from packaging.utils import canonicalize_name

from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.fixes.commands import option, path, run
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.parsing import version_or_none
from wheel_checks.registry import rule

_NATIVE = (".so", ".pyd", ".dll", ".dylib")


@rule(
    "WHL101",
    "the file name follows the wheel file name convention",
    why="Installers select a wheel by its file name before they open it; they skip a name that they cannot parse.",
    example="`torch-2.11.0.whl`, which has no tags",
    fix="Name it {distribution}-{version}(-{build})-{python}-{abi}-{platform}.whl",
)
def file_name(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The name parses."""
    if isinstance(wheel.name, Unavailable):
        fix = Fix("Give the file the name that the build backend gave it.")
        yield Finding(wheel.name.reason, (Evidence("file name", wheel.file_name),), fix)
    elif (tags := wheel.file_name.removesuffix(".whl").split("-", 2)[-1]) != tags.lower():
        fix = Fix("Write the tags in lower case.")
        yield Finding(f"the tags {tags} are not in lower case, so uv does not recognize them", fix=fix, refused_by="uv")


@rule(
    "WHL102",
    "METADATA and the file name state the same name and version",
    why="If they differ, pip fails after the download, and other tools record the wrong version.",
    example="torch-2.11.0-...whl whose METADATA says `Version: 2.10.0`",
    fix="Rebuild the wheel instead of renaming it.",
)
def name_and_version(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Name equal after normalisation, version equal as a version."""
    name, metadata = need(wheel.name), need(wheel.metadata)
    fix = Fix("Rebuild the wheel instead of renaming it.")
    if metadata.name and canonicalize_name(metadata.name) != canonicalize_name(name.distribution):
        evidence = (
            Evidence("file name", name.distribution, wheel.file_name),
            Evidence("Name", metadata.name, "METADATA"),
        )
        yield Finding(f"the file name says {name.distribution}, but METADATA says {metadata.name}", evidence, fix)
    if metadata.version and version_or_none(metadata.version) != name.parsed_version:
        evidence = (
            Evidence("file name", name.version, wheel.file_name),
            Evidence("Version", metadata.version, "METADATA"),
        )
        yield Finding(f"the file name says version {name.version}, but METADATA says {metadata.version}", evidence, fix)


@rule(
    "WHL103",
    "WHEEL and the file name have the same tags",
    Severity.WARNING,
    audience=Audience.PUBLISHER,
    why="The file name decides what is installed, but WHEEL remains on disk: tools that check an environment later "
    "read the wrong platform. A renamed `linux_x86_64` wheel was never checked for manylinux.",
    example="sgl_kernel-...-manylinux2014_x86_64.whl whose WHEEL says `linux_x86_64`",
    fix="Retag with `python -m wheel tags` or repair with auditwheel, which update both.",
)
def tags(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The expanded tag sets are equal."""
    name, file = need(wheel.name), need(wheel.wheel_file)
    if file.tags and file.tags != name.tags:
        only_name = ", ".join(sorted(map(str, name.tags - file.tags))) or "nothing more"
        only_file = ", ".join(sorted(map(str, file.tags - name.tags))) or "nothing more"
        evidence = (
            Evidence("only in the file name", only_name, wheel.file_name),
            Evidence("only in WHEEL", only_file, "WHEEL"),
        )
        fix = Fix(
            "Retag the wheel, which updates both.",
            (run("python", "-m", "wheel", "tags", "--help"), run("auditwheel", "repair", "--help")),
        )
        yield Finding("the tags in the file name and in WHEEL differ", evidence, fix)


@rule(
    "WHL104",
    "WHEEL and the file name have the same build tag",
    Severity.WARNING,
    audience=Audience.PUBLISHER,
    why="Installers rank two files of one release by the build tag in the file name; a different one in WHEEL belongs "
    "to another build.",
    example="torch-2.10.0-3-...whl whose WHEEL has no `Build: 3`",
    fix="Retag with `python -m wheel tags --build N`, which updates both.",
)
def build_tag(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Equal, both empty included."""
    name, file = need(wheel.name), need(wheel.wheel_file)
    if file.build != name.build:
        evidence = (
            Evidence("file name", name.build or "none", wheel.file_name),
            Evidence("Build", file.build or "none", "WHEEL"),
        )
        tag, file_name = option("--build", name.build or file.build), path(wheel.file_name)
        yield Finding(
            f"the file name has build tag {name.build or 'none'}, but WHEEL has {file.build or 'none'}",
            evidence,
            Fix("Retag the wheel, which updates both.", (run("python", "-m", "wheel", "tags", tag, file_name),)),
        )


@rule(
    "WHL105",
    "Root-Is-Purelib matches the tags and the members",
    Severity.NOTE,
    why="`Root-Is-Purelib: true` unpacks into purelib. On distributions whose platlib is another folder, native "
    "libraries are then installed where they are not searched for.",
    example="nvidia_cublas-13...-manylinux_2_27_x86_64.whl with `Root-Is-Purelib: true`",
    fix="Configure the build backend for native code (`has_ext_modules`, or `pure-python = false`).",
)
def purelib(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """A wheel with native libraries is neither pure nor tagged for any platform.

    The latter is a warning: some wheels (debugpy) have libraries for several platforms and choose at run time.
    """
    name, file, archive = need(wheel.name), need(wheel.wheel_file), need(wheel.archive)
    native = next((m.name for m in archive.members if m.name.endswith(_NATIVE) or ".so." in m.name), "")
    any_platform = all(tag.platform == "any" for tag in name.tags)
    fix = Fix("Correct the build configuration, and rebuild the wheel.")
    if native and any_platform:
        evidence = (Evidence("native member", native), Evidence("tags", ", ".join(sorted(map(str, name.tags)))))
        message = f"{native} is native code in a wheel tagged for any platform"
        yield Finding(message, evidence, fix, Location(native), Severity.WARNING)
    elif native and file.root_is_purelib:
        evidence = (Evidence("Root-Is-Purelib", "true", "WHEEL"), Evidence("native member", native))
        message = "the wheel has native libraries, but states Root-Is-Purelib: true"
        yield Finding(message, evidence, fix, audience=Audience.PUBLISHER)
