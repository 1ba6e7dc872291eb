"""What others wrote of a wheel of machine code: its list of parts, and their licenses.

Cargo says which crates are linked for a target. Each is in the list (SBOM, CycloneDX), and what its
package holds of licenses is in the file of licenses, with that of Rust's library.
"""

from __future__ import annotations

import html
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools import versions
from tools.shell import fail, read

LICENSES = "LICENSE-third-party.txt"  # by the pattern of `license-files` the wheel takes it
SBOM = "crates.cyclonedx.json"
_NAMES = re.compile(r"(?i)(un)?licen[cs]e|copying|copyright|notice")
_RULE = "=" * 100
_HEAD = """\
What is linked into this package beside its own code, with what each part says of its licenses.
A text that several parts have stands once. Crates of Rust's library are those that it has for all
machines: some are linked for others than this one.
"""


@dataclass(frozen=True)
class Part:
    """A crate that is linked, and the texts of its licenses.

    Attributes:
        number: its version, "" for Rust's library, which has that of the compiler.
        needs: names and versions of the crates that it calls.
    """

    name: str
    number: str
    license: str
    texts: tuple[str, ...]
    needs: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} {self.number}".strip()


def crates(project: versions.Project, triple: str) -> list[Part]:
    """The package, and after it by name all crates that are linked with it for a target."""
    table = tomllib.loads((project.folder / "pyproject.toml").read_text())["tool"]["maturin"]
    features = ",".join(table.get("features", ()))
    words = ("--format-version", "1", "--locked", "--filter-platform", triple)
    said = read("cargo", "metadata", *words, "--features", features, cwd=project.folder)
    whole: dict[str, Any] = json.loads(said)
    packages = {each["id"]: each for each in whole["packages"]}
    nodes = {each["id"]: each["deps"] for each in whole["resolve"]["nodes"]}
    named = {f"{each['name']} {each['version']}": id_ for id_, each in packages.items()}
    todo, found = [f"{project.name} {project.version}"], dict[str, Part]()
    while todo:
        name = todo.pop()
        if name in found:
            continue
        package = packages[named[name]]
        needs = [
            f"{packages[each['pkg']]['name']} {packages[each['pkg']]['version']}"
            for each in nodes[named[name]]
            if _is_linked(each, packages[each["pkg"]])
        ]
        folder = Path(package["manifest_path"]).parent
        texts = tuple(file.read_text() for file in sorted(folder.iterdir()) if _says(file))
        number, license_ = package["version"], package["license"] or "in its text"
        found[name] = Part(package["name"], number, license_, texts, tuple(sorted(needs)))
        todo += needs
    own = found.pop(f"{project.name} {project.version}")
    return [own, *(found[name] for name in sorted(found))]


def _is_linked(need: dict[str, Any], package: dict[str, Any]) -> bool:
    """Whether a crate is more than a part of the build: a script's, a test's, a macro's."""
    macro = any("proc-macro" in each["kind"] for each in package["targets"])
    return not macro and any(each["kind"] is None for each in need["dep_kinds"])


def _says(file: Path) -> bool:
    return file.is_file() and _NAMES.match(file.name) is not None


def library(sysroot: Path) -> Iterator[Part]:
    """Rust's library and the crates in it, by what its compiler brings.

    Raises:
        CommandError: the compiler brings no such file.
    """
    folder = sysroot / "share" / "doc"
    file = folder / "rust" / "COPYRIGHT-library.html"
    if not file.is_file():
        # Debian's Rust has one text of all that its sources hold.
        own = next((each for each in sorted(folder.glob("libstd-rust*/copyright"))), None)
        if own is None:
            hint = "rustup default stable  (on Debian also: apt-get install --reinstall rustc)"
            raise fail(f"the licenses of Rust's library are missing: {file}", hint)
        yield Part("Rust's library", "", "MIT OR Apache-2.0", (own.read_text(),))
        return
    first, *others = re.split(r"<h3>\W*(.*?)</h3>", file.read_text())
    prose = re.sub(r"\s*\n\s*", "\n", html.unescape(re.sub(r"<[^>]+>", "", first)))
    yield Part("Rust's library", "", "MIT OR Apache-2.0", (prose,))
    for name, section in zip(others[::2], others[1::2], strict=True):
        license_ = re.search(r"<b>License:</b>([^<]*)", section)
        texts = tuple(map(html.unescape, re.findall(r"(?s)<pre>(.*?)</pre>", section)))
        crate, number = re.split(r"-(?=\d)", name, maxsplit=1)
        yield Part(crate, number, license_[1].strip() if license_ else "unknown", texts)


def licenses(parts: Iterable[Part]) -> str:
    """The file of licenses: a line for each part, then each text once, under the parts it is of."""
    lines, of = [_HEAD], dict[str, list[str]]()
    texts = dict[str, str]()
    for part in parts:
        lines.append(f"{part}: {part.license}{'' if part.texts else ' (its package has no text)'}")
        for text in part.texts:
            key = " ".join(text.split())
            texts.setdefault(key, text.strip("\n"))
            of.setdefault(key, []).append(str(part))
    for key, names in of.items():
        lines += ["", _RULE, ", ".join(dict.fromkeys(names)), _RULE, "", texts[key]]
    return "\n".join(lines) + "\n"


def sbom(parts: Iterable[Part]) -> str:
    """The list of parts as CycloneDX 1.5 has it; the first part is what the rest is linked into."""

    def component(part: Part, index: str = "cargo") -> dict[str, object]:
        return {
            "type": "library",
            "bom-ref": str(part),
            "name": part.name,
            "version": part.number,
            "licenses": [{"expression": part.license.replace("/", " OR ")}],
            "purl": f"pkg:{index}/{part.name}@{part.number.replace('+', '%2B')}",
        }

    own, *others = parts
    depends = [{"ref": str(each), "dependsOn": list(each.needs)} for each in (own, *others)]
    whole = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(own, "pypi")},
        "components": [component(each) for each in others],
        "dependencies": depends,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
