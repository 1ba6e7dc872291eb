"""The rooms of the Rust crate import only from rooms below, and no files in a circle."""

import re
from collections.abc import Callable, Iterator

import pytest

from tools.shell import ROOT

SOURCE = ROOT / "kernels-rs" / "src"

# Each room with the rooms that it may import from.
BELOW: dict[str, set[str]] = {
    "error": set(),
    "dtype": {"error"},
    "math": set(),
    "machine": {"dtype", "error", "math"},
    "memory": {"dtype", "error", "machine", "math"},
    "array": {"dtype", "error", "machine", "math", "memory"},
    "ops": {"array", "dtype", "error", "machine", "math", "memory"},
    "py": {"array", "dtype", "error", "machine", "math", "memory", "ops"},
}
# What the root of the crate exports, by the room that has it.
EXPORTS = {
    "Array": "array",
    "BF16": "dtype",
    "DType": "dtype",
    "Element": "dtype",
    "F16": "dtype",
    "Float": "dtype",
    "Kind": "dtype",
    "Error": "error",
    "Result": "error",
    "dispatch": "dtype",
    "vectorize": "machine",
}

_PATH = re.compile(r"\bcrate::([A-Za-z_0-9]+(?:::[A-Za-z_0-9]+)*)(?:::\{([^{}]*)\})?")
_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{.*?^\}\n", re.MULTILINE | re.DOTALL)
_SUPER = re.compile(r"(?<![:\w])(?:super::)+")
_COMMENT = re.compile(r"//[^\n]*")


def code(text: str) -> str:
    """The text without comments and test modules, which may import from anywhere."""
    return _COMMENT.sub("", _TESTS.sub("", text))


def paths(text: str, module: str = "") -> Iterator[str]:
    """Every path of the crate that a module names, one for each item of a group in braces."""

    def spelled_out(found: re.Match[str]) -> str:
        return "::".join(["crate", *module.split("::")[: -found[0].count("::")], ""])

    for found in _PATH.finditer(_SUPER.sub(spelled_out, code(text))):
        for item in (found[2] or "").split(","):
            name = item.strip().split(" ")[0]
            yield found[1] if name in ("", "self") else f"{found[1]}::{name}"


def read() -> dict[str, list[str]]:
    """Each module of the crate, as `room::file`, with the paths that it names."""
    only_tests = {"tests", "samples", "reference"}
    files = {
        "::".join(file.relative_to(SOURCE).with_suffix("").parts): file
        for file in sorted(SOURCE.rglob("*.rs"))
        if file.stem not in only_tests and file.name != "lib.rs"
    }
    return {name: sorted(set(paths(file.read_text(), name))) for name, file in files.items()}


def target(path: str, modules: dict[str, list[str]]) -> str | None:
    """The module that a path leads to, or nothing for a room that has only exports."""
    parts = path.split("::")
    parts[0] = EXPORTS.get(parts[0], parts[0])
    for end in range(len(parts), 0, -1):
        if (name := "::".join(parts[:end])) in modules:
            return name
    return parts[0] if parts[0] in BELOW else None


def circles(arrows: dict[str, set[str]]) -> list[str]:
    """Each arrow that closes a circle, as text."""
    found: list[str] = []
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> None:
        if name in way:
            found.append(" -> ".join([*way[way.index(name) :], name]))
        elif name not in done:
            for other in sorted(arrows.get(name, ())):
                visit(other, [*way, name])
            done.add(name)

    for name in sorted(arrows):
        visit(name, [])
    return found


def room(module: str) -> str:
    return module.split("::", maxsplit=1)[0]


def family(module: str) -> str:
    """A file of a lower room or of the binding, a family of ops."""
    return "::".join(module.split("::")[:2])


def file(module: str) -> str:
    """A file of any room."""
    return module


def arrows(modules: dict[str, list[str]], unit: Callable[[str], str]) -> dict[str, set[str]]:
    """Which units import which others."""
    found: dict[str, set[str]] = {}
    for module, named in modules.items():
        for path in named:
            to = target(path, modules)
            # A room's own file stands for the type that its files are about.
            if to is not None and unit(to) != unit(module) and "::" in to and "::" in module:
                found.setdefault(unit(module), set()).add(unit(to))
    return found


def test_rooms_import_only_from_rooms_below() -> None:
    modules = read()
    found = [
        f"kernels-rs/src/{module.replace('::', '/')}.rs: crate::{path}"
        for module, named in modules.items()
        for path in named
        if (to := target(path, modules)) is not None
        and room(to) != room(module)
        and room(to) not in BELOW[room(module)]
    ]
    assert not found, "\n".join([*found, "hint: what both need belongs in the lower room"])


@pytest.mark.parametrize("unit", [family, file])
def test_no_two_families_or_files_import_each_other(unit: Callable[[str], str]) -> None:
    imports = arrows(read(), unit)
    found = circles(imports)
    assert imports
    assert not found, "\n".join([*found, "hint: what both need belongs in a file of its own"])


def test_a_circle_inside_a_family_is_one_of_files() -> None:
    modules = {"ops::a::b": ["ops::a::c::d"], "ops::a::c": ["ops::a::b::e"], "ops::a": []}
    assert arrows(modules, family) == {}
    assert circles(arrows(modules, file)) == ["ops::a::b -> ops::a::c -> ops::a::b"]


def test_every_room_was_read_and_imports_are_seen() -> None:
    """A moved folder or another way to write imports would make the tests above pass on nothing."""
    modules = read()
    assert {room(module) for module in modules} == set(BELOW)
    assert sum(map(len, modules.values())) > 300
    text = (
        "use crate::a::b;\nuse crate::c::{d, self, e as f};\n// use crate::g;\n"
        "fn h() -> crate::i::J { crate::k() }\nuse super::m;\nuse super::super::n;\n"
        "#[cfg(test)]\nmod tests {\n    use crate::l;\n}\n"
    )
    seen = sorted(paths(text, "x::y::z"))
    assert seen == ["a::b", "c", "c::d", "c::e", "i::J", "k", "x::n", "x::y::m"]


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a -> b -> c -> a"]


def test_the_binding_names_every_family_of_kernels() -> None:
    families = {file.stem for file in (SOURCE / "ops").glob("*.rs")} - {"parts", "samples"}
    bound = {path.split("::")[1] for path in paths_of_binding() if path.startswith("ops::")}
    assert bound == families


def paths_of_binding() -> set[str]:
    return {path for name, named in read().items() if room(name) == "py" for path in named}
