"""Which tests a change can reach, and how closely: read from the source, so that no run has to come first.

The graph has a node for each file of the product and, on the side of the tests, for each top-level name: a test reaches
the uses of its own function, helpers and fixtures, not of its neighbours. An edge is an import, or a name of a module
in a string: a row of a table that is dispatched on (``"verify"`` of the commands, a rule's id, a kernel's name), a
module's dotted name, a path, a table of ``wheel_checks/data``. So lazy imports, and modules that only a child process
runs, have edges too. Closeness is the length of the shortest path.

Only the standard library is imported here.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from ci.source import Uses, read

PACKAGES = {"tools/wheelproof": "wheelproof", "wheel_checks": "wheel_checks", "kernels_smoke": "kernels_smoke"}
FOLDERS = ("benchmarks", "ci", "docker", "tests")  # also imported, from the root of the repository
IMPORT, HUB, PACKAGE, CONFTEST = 1.0, 4.0, 3.0, 2.0
FEW = 3  # a module that dispatches on more names than these is a hub: tests say which of its names they use
CHILD = 0.75  # a child process comes later: it is slower, and shows less of the cause
MIRRORED, NAMESAKE = 1.5, 0.5

# Edges that the source does not show (November 2026): tests that read files by a walk through folders, or run
# generators.
EXTRA = {
    "docs/*": ("tests/docs/*",),
    "*.md": ("tests/docs/*", "tests/adopters/*"),
    "mkdocs.yml": ("tests/docs/test_site.py",),
    "action.yml": ("tests/adopters/*",),
    ".github/*": ("tests/adopters/*",),
    "wheel_checks/rules/*": ("tests/docs/test_reference.py", "tests/cli/test_rules.py", "tests/manual/*"),
    "wheel_checks/data/*.toml": ("tests/docs/test_reference.py", "tests/manual/*"),
    "tools/wheelproof/cli/*": ("tests/docs/test_commands.py", "tests/docs/test_reference.py", "tests/manual/*"),
    "ci/reference/*": ("tests/docs/*",),
    "pyproject.toml": ("tests/ci/*", "tests/adopters/*"),
}
# Dynamic imports that lead to none of our modules, or to any (November 2026).
FOREIGN = {
    "kernels_smoke/suite/probes/compiler.py": "triton, and a module that it compiles",
    "kernels_smoke/suite/correctness/mutants.py": "a kernel's module, which its family's cases name",
    "kernels_smoke/suite/speed/rates.py": "a kernel's module, which its family's cases name",
    "kernels_smoke/suite/compiling/ahead_of_time.py": "as above",
    "kernels_smoke/suite/correctness/judge.py": "as above",
    "kernels_smoke/suite/own/tasks.py": "as above",
    "kernels_smoke/suite/sanitizer/program.py": "as above",
    "wheel_checks/formats/gpu/offload_bundle.py": "zstd, of Python 3.14 or of the extra rocm",
    "wheel_checks/facts/provenance/attestations.py": "pypi-attestations and sigstore, of the extra provenance",
    "tools/wheelproof/matrix/inside/import_modules.py": "modules of the wheel that is tested, in its cell",
    "tools/wheelproof/plugins/child.py": "a plug-in of another package",
}
OWN = {
    "ci/reach.py",
    "ci/seeded_mistakes.py",
    "tests/ci/test_reach.py",
}  # their strings name files that they do not use
Node = tuple[str, str]  # a file, and a top-level name in it: "" for all of it


class Graph:
    """The files of a repository, and their edges."""

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self.files = sorted(set(files))
        self.modules = {name: path for path in self.files if (name := module_name(path))}
        self.paths = set(self.files)
        self.inside: dict[str, set[str]] = defaultdict(set)  # other files, by folder
        for path in self.files:
            for place in (place for place, letter in enumerate(path) if letter == "/" and not path.endswith(".py")):
                self.inside[path[:place]].add(path)
        self.sources = {
            path: read(root / path, name, by_name=path.startswith("tests/"))
            for name, path in self.modules.items()
            if (root / path).exists()
        }
        self.users: dict[Node, dict[Node, float]] = defaultdict(dict)  # of a node, and how far away they are
        self.names: dict[str, set[str]] = defaultdict(set)  # names for files: a command, a rule's id, a kernel
        self._find_names()
        for path in self.sources:
            self._link(path)
        self._link_programs()

    def _find_names(self) -> None:
        for path, source in self.sources.items():
            if path.startswith("tests/"):
                continue
            for name in source.own:
                self.names[name].add(path)
            for key, value in source.pairs:
                self.names[key].update(self._modules_of(value, path))

    def _link(self, path: str) -> None:
        source, tests = self.sources[path], path.startswith("tests/")
        for name, uses in source.definitions.items():
            node = (path, name)
            for used in uses.names:
                if tests and used in source.definitions and used != name:
                    self._add(node, (path, used), 0)
                elif tests and used not in source.imports and (fixture := self._fixture(path, used)):
                    self._add(node, fixture, 0)
                for dotted in source.imports.get(used, ()):
                    self._import(node, dotted)
            if not tests:
                for dotted in {one for names in source.imports.values() for one in names}:
                    self._import(node, dotted)
            self._link_strings(node, uses)

    def _import(self, node: Node, dotted: str) -> None:
        found, rest = self._resolve(dotted)
        if not found:
            return
        if found.startswith("tests/"):
            known = self.sources[found].definitions if found in self.sources else {}
            names = [rest] if rest and rest in known else list(known)
            for name in names:
                self._add(node, (found, name), 0)
            return
        self._add(node, (found, ""), IMPORT)
        package = dotted.rpartition(".")[0]
        while package:
            if self.modules.get(package, "").endswith("__init__.py"):
                self._add(node, (self.modules[package], ""), PACKAGE)
            package = package.rpartition(".")[0]

    def _link_strings(self, node: Node, uses: Uses) -> None:
        path, tests = node[0], node[0].startswith("tests/")
        targets: set[str] = set()
        for text in uses.strings if path not in OWN else ():
            targets |= self._modules_of(text, path) | self._paths_of(text, path)
            if tests:
                targets |= self.names.get(text, set())
        weight = IMPORT if tests or len(targets) <= FEW else HUB
        for target in targets - {path}:
            self._add(node, (target, ""), IMPORT if not target.endswith(".py") else weight)

    def _modules_of(self, text: str, path: str) -> set[str]:
        """The modules that a string of ``path`` names: with dots, by a template of an import, or to be run by -m."""
        if not re.fullmatch(r"[A-Za-z_][\w.]*(:\w+)?", text):
            return set()
        source, text = self.sources[path], text.partition(":")[0] if ":" in text else text
        candidates = [f"{text}.__main__", text] if "." in text or text in PACKAGES.values() else []
        package = (module_name(path) or "").split(".")
        candidates += [".".join([*package[:length], text]) for length in range(1, len(package)) if "." in text]
        templates = {one for uses in source.definitions.values() for one in uses.templates}
        candidates += [template.replace("{}", text) for template in templates]
        if any("suite" in part for part in package):
            candidates.append(f"kernels_smoke.suite.{text}")
        return {self.modules[name] for name in candidates if name in self.modules}

    def _paths_of(self, text: str, path: str) -> set[str]:
        """The files that a string of ``path`` names, itself or by their folder."""
        if len(text) < 3 or " " in text or text.startswith(("/", ".")):
            return set()
        text, found = text.rstrip("/"), set()
        wholes = [text, f"tests/data/{text}", f"tests/{text}", f"{path.rpartition('/')[0]}/{text}"]
        for whole in (*wholes, f"wheel_checks/data/{text}.toml"):
            if whole in self.inside:
                found |= self.inside[whole]
            elif whole in self.paths:
                found.add(whole)
        return found

    def _link_programs(self) -> None:
        """Link a module that none imports to modules with its file name in a string."""
        for path in self.programs():
            stem, package = Path(path).stem, path.split("/")[0]
            for other, source in self.sources.items():
                strings = {text for uses in source.definitions.values() for text in uses.strings}
                if other.split("/")[0] == package and strings & {stem, f"{stem}.py"}:
                    self._add((other, ""), (path, ""), IMPORT)

    def programs(self) -> list[str]:
        """The modules of the product to which no edge leads."""
        own = [path for path in self.sources if path.startswith(tuple(PACKAGES)) and not path.endswith("__init__.py")]
        return [path for path in own if not any(user.startswith(tuple(PACKAGES)) for user, _ in self.users[path, ""])]

    def dispatched(self, path: str) -> set[str]:
        """The modules that a file of the product names in strings."""
        uses = self.sources[path].definitions.values()
        return {module for one in uses for text in one.strings for module in self._modules_of(text, path)} - {path}

    def _fixture(self, path: str, name: str) -> Node | None:
        for folder in Path(path).parents:
            conftest = str(folder / "conftest.py")
            if conftest in self.sources and name in self.sources[conftest].definitions:
                return conftest, name
        return None

    def _resolve(self, dotted: str) -> tuple[str, str]:
        name, rest = dotted, ""
        while name and name not in self.modules:
            name, _, last = name.rpartition(".")
            rest = last if not rest else f"{last}.{rest}"
        return self.modules.get(name, ""), rest

    def _add(self, user: Node, used: Node, weight: float) -> None:
        users = self.users[used]
        users[user] = min(weight, users.get(user, weight))

    def closeness(self, changed: Iterable[str]) -> dict[Node, float]:
        """The distance of the tests' top-level names from the change: 0 for the change itself."""
        changed = set(changed)
        distances: dict[Node, float] = {}
        waiting = [(0.0, (path, name)) for path in changed for name in {"", *self._definitions(path)}]
        waiting += [(IMPORT, node) for path in changed for node in self._extra(path)]
        waiting += [(CONFTEST, node) for path in changed if path.endswith("conftest.py") for node in self._below(path)]
        heapq.heapify(waiting)
        while waiting:
            distance, node = heapq.heappop(waiting)
            if node in distances:
                continue
            distances[node] = distance
            for user, weight in self.users.get(node, {}).items():
                heapq.heappush(waiting, (distance + weight, user))
        return distances

    def tests(self, changed: Iterable[str]) -> dict[Node, float]:
        """The tests that a change can reach, and how closely."""
        changed, infinite = set(changed), float("inf")
        distances, found = self.closeness(changed), {}
        for path in filter(is_test, self.sources):
            mirrored = min((_mirrored(path, one) for one in changed), default=infinite)
            for name in self.sources[path].definitions:
                near = min(distances.get((path, name), infinite), mirrored)
                if name.startswith(("test_", "Test")) and near < infinite:
                    child = CHILD if path not in changed and self._starts_children((path, name), set()) else 0
                    found[path, name] = near + child
        return found

    def named(self, changed: Iterable[str]) -> set[str]:
        """The names of the changed files in ids of cases: rules, kernels."""
        changed = set(changed)
        return {name for name, paths in self.names.items() if paths & changed}

    def _starts_children(self, node: Node, seen: set[Node]) -> bool:
        path, name = node
        if node in seen or path not in self.sources or name not in self.sources[path].definitions:
            return False
        seen.add(node)
        names = self.sources[path].definitions[name].names
        if "subprocess" in names:
            return True
        return any(self._starts_children((path, used), seen) for used in names) or any(
            self._starts_children(self._target(dotted), seen)
            for used in names
            for dotted in self.sources[path].imports.get(used, ())
            if dotted.startswith("tests.")
        )

    def _target(self, dotted: str) -> Node:
        return self._resolve(dotted)

    def _definitions(self, path: str) -> Iterable[str]:
        return self.sources[path].definitions if path in self.sources else ()

    def _extra(self, path: str) -> Iterator[Node]:
        patterns = [one for pattern, tests in EXTRA.items() if fnmatch(path, pattern) for one in tests]
        for test in self.sources:
            if any(fnmatch(test, pattern) for pattern in patterns):
                yield from ((test, name) for name in self._definitions(test))

    def _below(self, conftest: str) -> Iterator[Node]:
        folder = conftest.rpartition("/")[0] + "/"
        for path in self.sources:
            if path.startswith(folder):
                yield from ((path, name) for name in self._definitions(path))


def module_name(path: str) -> str:
    """``wheelproof.cli.main`` of ``tools/wheelproof/cli/main.py``; "" if it cannot be imported."""
    if not path.endswith(".py") or path.startswith("tests/data/"):
        return ""
    for folder, package in (*PACKAGES.items(), *((folder, folder) for folder in FOLDERS)):
        if path.startswith(f"{folder}/"):
            parts = [package, *path[len(folder) + 1 : -3].split("/")]
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return ""


def is_test(path: str) -> bool:
    """True of a file in which pytest looks for tests."""
    return path.startswith("tests/") and Path(path).name.startswith("test_") and path.endswith(".py")


def _mirrored(test: str, changed: str) -> float:
    """A test in the folder that mirrors the changed file's is near, and its namesake is nearer; else infinite."""
    parts = Path(changed.removeprefix("tools/")).parts
    folder = (*(["kernels"] if parts[0] == "kernels_smoke" else []), *parts[1:-1])
    if is_test(test) and parts[0] == "kernels_smoke" and len(parts) > 2 and parts[-2] in Path(test).stem:
        return NAMESAKE  # tests/kernels/test_norm.py
    if not is_test(test) or Path(test).parts[1:-1] != folder:
        return float("inf")
    return NAMESAKE if Path(test).stem == f"test_{Path(changed).stem}" else MIRRORED
