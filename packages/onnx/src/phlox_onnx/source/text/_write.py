"""Classes, fields and lines as the text of a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, final

from ..._reserved import ATTRIBUTES, CLASSES, LOCALS
from ..trace import _expr as e
from ..trace._expr import Block, Branch, FieldRef, Inner, Line, Ref, Stmt, blocks_of, rendered
from ..trace._layers import DEFAULTS
from ..trace._values import Field
from ._module_paths import Path
from ._nesting import line_refs
from ._structure import Part, Structure
from ._tree import Spaces, Tree
from ._words import Names, field_word, singular, word_of
from ._wrap import COLUMNS, wrapped

_POSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "BatchNorm": ("num_features",),
    "Embedding": ("n_embedding", "d_model"),
    "GroupNorm": ("num_groups", "num_channels"),
    "Gru": ("d_input", "d_hidden"),
    "InstanceNorm": ("num_channels",),
    "LayerNorm": ("d_model",),
    "Linear": ("d_input", "d_output"),
    "Lstm": ("d_input", "d_hidden"),
    "PRelu": ("num_parameters",),
    "RmsNorm": ("d_model",),
    "Rnn": ("d_input", "d_hidden"),
}
_CONV: Final = ("channels_in", "channels_out", "kernel_size")
_POOLS: Final = {
    "Bool": ("mask", "seen", "kept"),
    "Float": ("x", "y", "z", "u", "v", "w", "a", "b", "c", "d"),
    "Int": ("indices", "places"),
}
_OF_MODULE: Final = ATTRIBUTES | {"self"}


@final
class Writer:
    """The text of a divided model."""

    def __init__(
        self,
        structure: Structure,
        kinds: dict[int, str],
        inputs: list[str],
        typed: list[bool],
        title: str,
    ) -> None:
        """Take the classes, the inputs in the file, and whether each output is surely a tensor."""
        self._typed, self._words = typed, _titled(structure)
        self._s, self._kinds, self._title = structure, kinds, title
        self._parts = {p.name: p for p in structure.parts}
        self._columns: dict[str, list[tuple[str, list[Any]]]] = {}
        self._inputs = inputs
        self._homes = {part.name: structure.homes(part) for part in structure.parts}
        self._homes[structure.model.name] = [()]
        every = [*structure.parts, structure.model]
        self._trees = {part.name: self._tree(part) for part in every}
        words = {w for tree in self._trees.values() for path in tree.paths for w in path}
        self._spaces = Spaces({*self._parts, *words, *CLASSES})
        for part in structure.parts:
            self._columns[part.name] = self._differing(part)

    # Fields

    def _tree(self, part: Part) -> Tree:
        """The attributes of a class: by the paths of the file, and beside them what has none."""
        paths = self._relative(part)
        names = Names(_OF_MODULE | {path[0] for path in paths.values()})
        own = part.fields[0]
        kinds = [self._s.fields[f].kind for f in own]
        for i, kind in enumerate(kinds):
            if i in paths:
                continue
            word = field_word(self._s.fields[own[i]])
            alike = [i]
            if kind in self._parts:
                alike = [j for j, k in enumerate(kinds) if k == kind and j not in paths]
                word = kind.lower() if len(alike) == 1 else f"{kind.lower()}s"
                word = self._words.get(kind, word)
            word = names.new(word)
            paths |= {j: (word, str(n)) if len(alike) > 1 else (word,) for n, j in enumerate(alike)}
        return Tree([paths[i] for i in range(len(own))])

    def _relative(self, part: Part) -> dict[int, Path]:
        """Where fields stand in the module of the file that a class is, if it is one."""
        homes = self._homes[part.name]
        found: dict[int, Path] = {}
        for i in range(len(part.fields[0])) if homes else ():
            rests = set()
            for home, own in zip(homes or (), part.fields, strict=True):
                path = self._place(own[i])
                inside = path is not None and path[: len(home)] == home
                rests.add(path[len(home) :] if path is not None and inside else ())
            rest = rests.pop()
            if rest and not rests:
                found[i] = rest
        return found

    def _place(self, number: int) -> Path | None:
        """Where a field stands in the file."""
        made = self._s.fields[number]
        if made.kind not in self._parts:
            return self._s.module_paths.of(number)
        homes = self._homes[made.kind]
        return homes[self._parts[made.kind].fields.index(made.settings[0][1])] if homes else None

    def _path(self, part: Part, position: int) -> str:
        return ".".join(self._trees[part.name].paths[position])

    def arrays(self) -> Iterator[tuple[str, Any, str]]:
        """Every parameter: path, value, role."""
        yield from self._arrays(self._s.model, self._s.model.fields[0], "")

    def _arrays(self, part: Part, own: list[int], prefix: str) -> Iterator[tuple[str, Any, str]]:
        for i, number in enumerate(own):
            made = self._s.fields[number]
            path = prefix + self._path(part, i)
            if made.kind in self._parts:
                yield from self._arrays(self._parts[made.kind], made.settings[0][1], f"{path}.")
                continue
            for name, (array, role) in made.arrays.items():
                yield f"{path}.{name}" if name else path, array, role

    def _differing(self, part: Part) -> list[tuple[str, list[Any]]]:
        """What instances of a class differ in: a parameter of the function that makes them."""
        names = Names({"device"})
        out: list[tuple[str, list[Any]]] = []
        for j in range(len(part.fields[0])):
            for word, values in self._values(part, j):
                if len(set(map(repr, values))) > 1 and values not in [c for _, c in out]:
                    out.append((names.new(word), values))
        return out

    def _values(self, part: Part, j: int) -> Iterator[tuple[str, list[Any]]]:
        """The settings of a field, each over all instances."""
        made = [self._s.fields[own[j]] for own in part.fields]
        kind = made[0].kind
        if kind in self._parts:
            inner = self._parts[kind]
            places = [inner.fields.index(m.settings[0][1]) for m in made]
            for word, column in self._columns[kind]:
                yield word, [column[p] for p in places]
            return
        words = _POSITIONS.get(kind, ("shape",) if kind == "Param" else _CONV)
        for i, (word, _) in enumerate(made[0].settings):
            yield word or words[i], [m.settings[i][1] for m in made]

    # Text

    def source(self, uses_ops: bool, freeze: Sequence[str] = ()) -> str:
        """The whole module; ``freeze`` are paths that ``load`` does not train."""
        body: list[str] = []
        for part in self._s.parts:
            body += ["", "", *self._class(part)]
        body += ["", "", *self._class(self._s.model)]
        for part in self._s.parts:
            body += ["", "", *self._maker(part)]
        body += ["", "", *self._config(freeze)]
        body = [*self._spaces.text(), *body]
        text = "\n".join(body)
        head = [f'"""{self._title}"""', "", "from __future__ import annotations", ""]
        standard = ["import math"] if "math." in text else []
        standard += ["from pathlib import Path", "from typing import Any"]
        head += [*standard, ""]
        head += ["import numpy as np", ""] if "np." in text else []
        head += ["import phlox as px", "from phlox import Tensor, nn"]
        head += ["", "from . import _ops"] if uses_ops else []
        if "_param(" in text:
            head += ["", "", *_PARAM]
        return "\n".join([*head, *body]) + "\n"

    def _class(self, part: Part) -> list[str]:
        own, whole = part.fields[0], part is self._s.model
        title = "The model." if whole else f"One of {len(part.fields)} equal parts."
        out = [f"class {part.name}(nn.Module):", f'    """{title}"""', ""]
        for name, node in self._trees[part.name].root.items():
            kind = self._spaces.kind(node, name, lambda j: self._kind(own[j]))
            out += [f"    {line}" for line in wrapped(f"{name}: {kind}", 4)]
        out += [""] if own else []
        return out + [f"    {line}" if line else "" for line in self._forward(part)]

    def _kind(self, number: int) -> str:
        kind = self._s.fields[number].kind
        return kind if kind in self._parts else f"nn.{kind}"

    def _spelled(
        self, part: Part, own: dict[int, int], names: Mapping[int, str], ref: Ref | FieldRef
    ) -> str:
        if isinstance(ref, Ref):
            return names[ref.value]
        return self._trees[part.name].spelled(own[ref.field])

    def _forward(self, part: Part) -> list[str]:
        whole = part is self._s.model
        inputs, block, given = part.inputs, part.block, self._inputs if whole else None
        typed = self._typed if whole else [True] * len(block.results)
        namer = _Values(inputs, block, self._kinds, given)
        own = {f: i for i, f in enumerate(part.fields[0])}
        name = partial(self._spelled, part, own, namer.names)
        body = _lines(block, namer.names, name)
        texts = [rendered(r, name) for r in block.results]
        kinds = ["Tensor[Any]" if known else "Any" for known in typed]
        kind = kinds[0]
        if len(texts) > 1:
            same = kinds[0] if len(set(kinds)) == 1 else "Any"
            kind = f"tuple[{', '.join(kinds)}]" if len(texts) <= 3 else f"tuple[{same}, ...]"
        arguments = ", ".join(f"{namer.names[i]}: Tensor[Any]" for i in inputs)
        separator = ", " if arguments else ""
        out = wrapped(f"def forward(self{separator}{arguments}) -> {kind}:", 4)
        last = f"return {', '.join(texts)}"
        if len(last) + 8 > COLUMNS and len(texts) > 1:
            last = f"return ({', '.join(texts)})"
        doc = "Return the outputs of the model." if whole else "Return what the lines give."
        body = [f'"""{doc}"""', *body, *wrapped(last, 8)]
        return [*out, *(f"    {line}" for line in body)]

    def _maker(self, part: Part) -> list[str]:
        columns = self._columns[part.name]
        words = "".join(f", {name}: {_type(values)}" for name, values in columns)
        head = f"def _{part.name.lower()}(device: px.Backend | str | None{words}) -> {part.name}:"
        return [*wrapped(head, 0), *(f"    {line}" for line in self._built(part, columns))]

    def _built(self, part: Part, columns: list[tuple[str, list[Any]]]) -> list[str]:
        own, lines = part.fields[0], []
        for name, node in self._trees[part.name].root.items():
            text = self._spaces.made(
                node, name, lambda j: self._kind(own[j]), lambda j: self._made(part, j, columns)
            )
            lines += wrapped(f"{name}={text},", 8)
        return [f"return {part.name}(", *(f"    {line}" for line in lines), ")"]

    def _made(self, part: Part, j: int, columns: list[tuple[str, list[Any]]]) -> str:
        """The call that makes a field."""
        made = self._s.fields[part.fields[0][j]]
        args: list[str] = []
        for word, (_, values) in zip(self._settings(made), self._values(part, j), strict=True):
            known = next((n for n, c in columns if c == values), None)
            if known is None and (word in DEFAULTS and values[0] == DEFAULTS[word]):
                continue
            if known is None and word == "padding" and values[0] == 0:
                continue
            text = known or rendered(e.literal(values[0]), str)
            args.append(f"{word}={text}" if word else text)
        if made.kind in self._parts:
            return f"_{made.kind.lower()}({', '.join(['device', *args])})"
        if made.kind == "Param":
            return f'_param({args[0]}, {args[1].partition("=")[2]}, "{made.arrays[""][1]}", device)'
        return f"nn.{made.kind}({', '.join([*args, 'device=device'])})"

    def _settings(self, made: Field) -> list[str]:
        if made.kind in self._parts:
            return [""] * len(self._columns[made.kind])
        return [word for word, _ in made.settings]

    def _config(self, freeze: Sequence[str]) -> list[str]:
        built = self._built(self._s.model, [])
        words = ", ".join(e.rendered(e.literal(where), str) for where in freeze)
        frozen = f".freeze({words})" if words else ""
        return [
            "class ModelConfig(nn.Config):",
            '    """How the model is made; it has no settings."""',
            "",
            "    def init(self, device: px.Backend | str | None = None) -> Model:",
            '        """Return the model with new parameters."""',
            *(f"        {line}" for line in built),
            "",
            "",
            "def load(device: px.Backend | str | None = None) -> Model:",
            '    """Return the model with the weights of the file beside this one."""',
            '    path = Path(__file__).with_name("weights.mpk")',
            "    record = px.record.NamedMsgpackRecorder().open(path)",
            "    model: Model = ModelConfig().init_with(record, device or px.default_device())",
            *(f"    {line}" for line in wrapped(f"return model{frozen}", 4)),
        ]


_PARAM: Final = '''def _param(
    shape: tuple[int, ...], dtype: px.DType, role: Any, device: px.Backend | str | None
) -> nn.Param:
    """Return a parameter of zeros; integers that the device lacks become its own."""
    target = px.as_device(device)
    found = dtype if dtype in target.dtypes else target.default_int
    return nn.Param(px.zeros(shape, dtype=found, device=target), role=role)'''.splitlines()


def _type(values: list[Any]) -> str:
    kinds = {type(v) for v in values}
    if len(kinds) == 1 and kinds <= {bool, float, int}:
        return kinds.pop().__name__
    return "Any"


@final
class _Values:
    """What the values of a forward are called: a name is free again after its last use."""

    def __init__(
        self, given: list[int], block: Block, kinds: dict[int, str], inputs: list[str] | None
    ) -> None:
        self.names: dict[int, str] = {}
        self._kinds, self._ever = kinds, Names(_RESERVED)
        self._free: dict[str, list[str]] = {}
        for i, value in enumerate(given):
            word = word_of(inputs[i]) if inputs is not None and len(inputs) > 1 else ""
            self.names[value] = self._ever.new(word) if word else self._fresh(value)
        self._walk(block)

    def _fresh(self, value: int, prefer: tuple[str, ...] = ()) -> str:
        kind = self._kinds.get(value, "")
        free = self._free.get(kind, [])
        for word in prefer:
            if word in free:
                free.remove(word)
                return word
        if free and kind:
            return free.pop(0)
        for word in _POOLS.get(kind, ()):
            if word not in self._ever.taken:
                return self._ever.new(word)
        return self._ever.new({"Float": "x", "Bool": "mask", "Int": "indices"}.get(kind, "value"))

    def _walk(self, block: Block) -> None:
        last = _last_uses(block)
        for i, line in enumerate(block.lines):
            if isinstance(line, Stmt):
                order = list(dict.fromkeys(r.value for r in line_refs(line) if isinstance(r, Ref)))
                dying = [v for v in order if last.get(v) == i and v in self.names]
                self._release(dying)
                prefer = tuple(self.names[v] for v in dying)
                for target in line.targets:
                    self.names[target] = self._fresh(target, prefer)
                self._release([t for t in line.targets if t not in last])
                continue
            held, self._free = self._free, {}  # names of blocks inside are their own
            self._inside(line)
            self._free = held

    def _inside(self, line: Line) -> None:
        if isinstance(line, Inner):
            self.names[line.target] = self._ever.new("body")
            for value in line.parameters:
                self.names[value] = self._fresh(value)
        for target in [] if isinstance(line, Inner) else line.targets:
            self.names[target] = self._fresh(target)
        for block in blocks_of(line):
            for each in block.lines:
                self._inside(each)

    def _release(self, values: list[int]) -> None:
        for value in values:
            word = self.names[value]
            kind = self._kinds.get(value, "")
            if kind and word not in self._free.setdefault(kind, []):
                self._free[kind].append(word)


_RESERVED: Final = CLASSES | LOCALS


def _titled(structure: Structure) -> dict[str, str]:
    """Name classes after modules of the file; return what fields of them are called."""
    layers = {made.kind for made in structure.fields} - {part.name for part in structure.parts}
    names = Names(CLASSES | layers | {"Config", "Param"})
    words: dict[str, str] = {}
    for part in structure.parts:
        word, old = structure.title(part), part.name
        title = "".join(piece.capitalize() for piece in singular(word).split("_"))
        part.name = names.new(title or old)
        for made in structure.fields:
            made.kind = part.name if made.kind == old else made.kind
        words |= {part.name: word} if word else {}
    return words


def _last_uses(block: Block) -> dict[int, int]:
    last: dict[int, int] = {}
    waiting: dict[int, set[int]] = {}
    for i, line in enumerate(block.lines):
        refs = {r.value for r in line_refs(line) if isinstance(r, Ref)}
        if isinstance(line, Inner):
            waiting[line.target] = refs
        for ref in list(refs):
            refs |= waiting.get(ref, set())  # what a function reads, it reads where it is called
        last |= dict.fromkeys(refs, i)
    for result in block.results:
        after = [r.value for r in e.references(result) if isinstance(r, Ref)]
        last |= dict.fromkeys(after, len(block.lines))
    return last


def _lines(block: Block, names: Mapping[int, str], name: Any) -> list[str]:
    out: list[str] = []
    for line in block.lines:
        if isinstance(line, Stmt):
            targets = ", ".join(names[t] for t in line.targets)
            out += wrapped(f"{targets} = {rendered(line.expr, name)}", 8)
            continue
        if isinstance(line, Branch):
            one, two = line.blocks
            out.append(f"if {rendered(line.condition, name)}:")
            out += [f"    {t}" for t in _branch(one, line.targets, names, name)]
            out.append("else:")
            out += [f"    {t}" for t in _branch(two, line.targets, names, name)]
            continue
        given = ", ".join(f"{names[p]}: Any" for p in line.parameters)
        out += ["", *wrapped(f"def {names[line.target]}({given}) -> list[Any]:", 8)]
        out += [f"    {t}" for t in _lines(line.block, names, name)]
        results = ", ".join(rendered(r, name) for r in line.block.results)
        out += [*(f"    {t}" for t in wrapped(f"return [{results}]", 12)), ""]
    return out


def _branch(block: Block, targets: list[int], names: Mapping[int, str], name: Any) -> list[str]:
    out = _lines(block, names, name)
    for target, result in zip(targets, block.results, strict=True):
        out += wrapped(f"{names[target]} = {rendered(result, name)}", 12)
    return out or ["pass"]
