"""Decoders out of the files of llama.cpp, and back: its names, its settings, its order of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from math import isclose, sqrt
from pathlib import Path
from typing import Any, Final, NamedTuple

from phlox_record import GgufRecorder, TensorEntry, gguf_metadata
from phlox_tensor import Numpy, RecordError, Tensor, arange, asarray
from phlox_tensor.names import some

from ..layers.position import RotaryScalingConfig
from ._llama import Llama, LlamaConfig

Values = Mapping[str, Any]
Found = dict[str, Any]

# Names of parts here -> in those files; those of Gemma 2 and 3 differ where there are more norms.
_PARTS: Final = {
    "input_layernorm": "attn_norm",
    "mlp.down_proj": "ffn_down",
    "mlp.gate_proj": "ffn_gate",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.up_proj": "ffn_up",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.k_proj": "attn_k",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.v_proj": "attn_v",
}
_MORE_NORMS: Final = {
    "post_attention_layernorm": "post_attention_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "pre_feedforward_layernorm": "ffn_norm",
}
_ENDS: Final = {
    "lm_head": "output",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
}
_TABLE: Final = "token_embd.weight"
_FACTORS: Final = "rope_freqs.weight"  # of Llama 3
_LONG: Final = ("rope_factors_short.weight", "rope_factors_long.weight")  # of Phi-3
_USUAL_WINDOW: Final = 4096  # of Gemma 2, whose files did not say it at first


def name_there(path: str, config: LlamaConfig) -> str:
    """Return what a parameter is called in those files."""
    owner, _, kind = path.rpartition(".")
    if owner in _ENDS:
        return f"{_ENDS[owner]}.{kind}"
    _, _, number, part = owner.split(".", 3)
    parts = _PARTS | _MORE_NORMS if config.both_norms else _PARTS
    return f"blk.{number}.{parts[part]}.{kind}"


class GgufFile(NamedTuple):
    """A file of llama.cpp, its tensors unread."""

    kind: str
    config: LlamaConfig
    found: Found

    @classmethod
    def open(cls, path: Path) -> GgufFile:
        """Read the header.

        Raises:
            RecordError: for an architecture or a setting that is not built.
        """
        values = gguf_metadata(path)
        found = dict(_flat(GgufRecorder().open(path)))
        config = _config(values, found)
        return cls(values["general.architecture"], config, found)

    def record(self, paths: Iterable[str]) -> Found:
        """Return tensors by the names of here, and by their own those that are none of here."""
        record: Found = {}
        rest = {name: e for name, e in self.found.items() if name not in {_FACTORS, *_LONG}}
        for ours in paths:
            entry = rest.pop(name_there(ours, self.config), None)
            if entry is not None:
                record[ours] = _Turned(ours, self.kind, self.config).here(entry)
        return record | rest


def _flat(record: Any) -> Iterator[tuple[str, Any]]:
    """Tensors by dotted name."""
    work: list[tuple[str, Any]] = [("", record)]
    while work:
        path, node = work.pop()
        if isinstance(node, Mapping):
            work += [(f"{path}.{key}" if path else key, node[key]) for key in reversed(list(node))]
        elif isinstance(node, list):
            work += [(f"{path}.{i}", each) for i, each in enumerate(node)]
        else:
            yield path, node


class _Turned(NamedTuple):
    """How a tensor lies there: rows of queries and keys in pairs, norms of Gemma from 0 on."""

    path: str
    kind: str
    config: LlamaConfig

    @property
    def heads(self) -> int:
        """Heads whose rows are in another order there; 0 for none."""
        s, name = self.config, self.path.rpartition(".")[0].rpartition(".")[2]
        queries = {"k_proj": s.n_heads_kv or s.n_heads, "q_proj": s.n_heads}
        return queries.get(name, 0) if self.kind == "llama" else 0

    @property
    def shift(self) -> float:
        """What is added to norms there."""
        return 1.0 if self.config.from_one and "norm." in self.path else 0.0

    def here(self, entry: TensorEntry) -> TensorEntry:
        """The tensor as it lies here."""
        return self._changed(entry, self.rows_here, -self.shift)

    def there(self, entry: Any) -> Any:
        """The tensor as it lies there."""
        return self._changed(entry, self.rows_there, self.shift)

    def rows_here(self, x: Any) -> Any:
        """Rows of which neighbors are turned together, as those of two halves."""
        heads = self.heads
        return x.reshape(heads, -1, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)

    def rows_there(self, x: Any) -> Any:
        """The way back."""
        heads = self.heads
        return x.reshape(heads, 2, -1, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)

    def _changed(self, entry: Any, turn: Callable[[Any], Any], shift: float) -> Any:
        heads = self.heads
        if heads and entry.shape[0] % (2 * heads):
            expected = f"rows of {heads} heads"
            raise RecordError("load", f"shape of {self.path}", got=entry.shape, expected=expected)
        if not heads and not shift:
            return entry

        def read() -> Any:
            x = entry.numpy()
            return turn(x) if heads else x + x.dtype.type(shift)

        unread = entry if isinstance(entry, TensorEntry) else None
        raw = None if unread is None or shift else unread.stored
        if raw is not None:
            rows, blocks = entry.shape[0], raw.read
            raw = raw._replace(read=lambda: turn(blocks().reshape(rows, -1)))
        return TensorEntry(
            entry.shape,
            entry.dtype,
            read,
            drop=None if unread is None else unread.drop,
            layout=None if unread is None else unread.layout,
            stored=raw,
        )


class _Says:
    """Reads settings of an architecture out of a header."""

    def __init__(self, values: Values) -> None:
        self.values: Final = values
        self.kind: Final = values.get("general.architecture")

    def number(self, name: str, other: Any = None) -> Any:
        """A number of a setting; the other, where the header does not say it."""
        value = self.values.get(f"{self.kind}.{name}", other)
        if value is None:
            known = some([k for k in self.values if k.startswith(f"{self.kind}.")])
            raise RecordError("load", f"the header has no {self.kind}.{name}", got=known)
        if type(value) not in (int, float):
            got = some([repr(value)])
            what = f"{self.kind}.{name} is not built"
            raise RecordError("load", what, got=got, expected="one number for all layers")
        return float(f"{value:.7g}") if type(value) is float else value  # of float32 there

    def optional(self, name: str) -> Any:
        """A number, or None."""
        return self.number(name) if f"{self.kind}.{name}" in self.values else None


def _config(values: Values, found: Found) -> LlamaConfig:
    says = _Says(values)
    if says.kind not in _OWN:
        expected = ", ".join(sorted(_OWN))
        raise RecordError(
            "load", "an architecture that is not built", got=repr(says.kind), expected=expected
        )
    merge = "llama-gguf-split --merge model-00001-of-00003.gguf model.gguf"
    for key, most, hint in (("split.count", 1, merge), (f"{says.kind}.expert_count", 0, None)):
        count = values.get(key, 0)
        if type(count) is not int or count > most:
            what = f"{key} is not built"
            raise RecordError("load", what, got=repr(count)[:60], expected=most, hint=hint)
    if _TABLE not in found or len(found[_TABLE].shape) != 2:
        raise RecordError("load", f"there is no {_TABLE}", got=some(list(found)) or "no tensors")
    if says.number("block_count") > len(found):
        what, got = "the header says more layers than there are tensors", len(found)
        raise RecordError("load", what, got=says.number("block_count"), expected=f"at most {got}")
    heads, d_model = says.number("attention.head_count"), says.number("embedding_length")
    head = says.number("attention.key_length", d_model // max(heads, 1))
    turned = says.number("rope.dimension_count", head)
    config = LlamaConfig(
        words=found[_TABLE].shape[0],
        positions=says.number("context_length"),
        d_model=d_model,
        n_layers=says.number("block_count"),
        n_heads=heads,
        n_heads_kv=says.number("attention.head_count_kv", heads),
        d_head=head,
        d_ff=says.number("feed_forward_length"),
        epsilon=says.number("attention.layer_norm_rms_epsilon"),
        theta=float(says.number("rope.freq_base", 10000.0)),
        rotary_share=turned / head,
        bias="blk.0.attn_q.bias" in found or "blk.0.attn_qkv.bias" in found,
        output_bias="blk.0.attn_output.bias" in found,
        d_ff_bias="blk.0.ffn_down.bias" in found,
        tied="output.weight" not in found,
        window=says.optional("attention.sliding_window"),
        logit_cap=says.optional("final_logit_softcapping"),
        score_cap=says.optional("attn_logit_softcapping"),
    )
    return config.replace(**_scaling(says, found), **_OWN[says.kind](says, config))


def _scaling(says: _Says, found: Found) -> dict[str, Any]:
    """How rates of rotation are slowed down: by a word, or by a tensor of factors."""
    if _FACTORS in found:
        return {"scaling": _by(found[_FACTORS])}
    if _LONG[0] in found and _LONG[1] in found:
        before = says.number("rope.scaling.original_context_length")
        amplitude = float(says.number("rope.scaling.attn_factor", 1.0))
        short, long = (
            _by(found[name]).replace(original_length=before, amplitude=amplitude) for name in _LONG
        )
        return {"scaling": short, "long_scaling": long}
    word = says.values.get(f"{says.kind}.rope.scaling.type", "none")
    if word not in _WORDS:
        expected = " or ".join(_WORDS)
        raise RecordError(
            "load", "rope.scaling.type is not built", got=repr(word), expected=expected
        )
    factor = float(says.number("rope.scaling.factor", 1.0))
    return {"scaling": RotaryScalingConfig(factor)} if _WORDS[word] and factor != 1.0 else {}


_WORDS: Final = {"linear": True, "none": False}


def _by(factors: TensorEntry) -> RotaryScalingConfig:
    return RotaryScalingConfig(1.0, factors=tuple(factors.numpy().reshape(-1).tolist()))


def _none(says: _Says, config: LlamaConfig) -> dict[str, Any]:
    return {}


def _gemma(says: _Says, config: LlamaConfig) -> dict[str, Any]:
    return {
        "activation": "gelu_tanh",
        "embedding_scale": sqrt(config.d_model),
        "from_one": True,
    }


def _gemma2(says: _Says, config: LlamaConfig) -> dict[str, Any]:
    large = config.n_layers in _LARGE
    scaled = config.d_model // config.n_heads if large else config.head
    said = says.optional("attention.scale")
    return {
        **_gemma(says, config),
        "both_norms": True,
        "query_scale": scaled**-0.5 if said is None else said,
        "sliding": tuple(i % 2 == 0 for i in range(config.n_layers)),
        "window": config.window or _USUAL_WINDOW,
    }


# Settings that files say in another way, by a tensor or where they follow from others.
_OTHERWISE: Final = ("d_head", "long_scaling", "n_heads_kv", "query_scale", "scaling")
# Layers of the largest of Gemma 2 and 3, whose scores are scaled otherwise, as llama.cpp has it.
_LARGE: Final = (46, 62)


def _gemma3(says: _Says, config: LlamaConfig) -> dict[str, Any]:
    every = says.number("attention.sliding_window_pattern", 6)
    return {
        **_gemma2(says, config),
        "head_norms": True,
        "local_theta": float(says.number("rope.freq_base_swa", 10000.0)),
        "sliding": tuple((i + 1) % every != 0 for i in range(config.n_layers)),
    }


_OWN: Final[Mapping[Any, Callable[[_Says, LlamaConfig], dict[str, Any]]]] = {
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "llama": _none,
    "phi3": lambda says, config: {"fused": True},
    "qwen2": _none,
    "qwen3": lambda says, config: {"head_norms": True},
}


def _architecture_of(config: LlamaConfig) -> str:
    """Return what llama.cpp calls a decoder of such settings."""
    if config.from_one:
        more = "3" if config.head_norms else "2" if config.both_norms else ""
        return f"gemma{more}"
    if config.fused:
        return "phi3"
    if config.head_norms:
        return "qwen3"
    return "qwen2" if config.bias and not config.output_bias else "llama"


def save_gguf(
    model: Llama,
    path: str | Path,
    *,
    blocks: str | Mapping[str, str] | None = None,
    header: Values | None = None,
) -> Path:
    """Write a decoder of the Llama family to a file of llama.cpp, and return its path.

    Args:
        model: which; weights that are stored as integers are not written, see
            ``nn.dequantize_weights``.
        path: the extension is added when absent.
        blocks: the form of all matrices, such as ``"Q8_0"``, or forms by pattern of llama.cpp's
            names; None for the element types that they have.
        header: what else the header says, such as the tokenizer of another file:
            ``{k: v for k, v in px.record.gguf_metadata(file).items() if k[:10] == "tokenizer."}``.

    Raises:
        RecordError: for a form that is not written, or that does not divide the rows; for settings
            that the format has no place for, such as windows of some layers.

    Example:
        >>> import tempfile
        >>> from phlox_nn import models
        >>> model = models.LlamaConfig(9, 32, 32, 1, 2, d_ff=64).init()
        >>> path = models.save_gguf(model, tempfile.mkdtemp() + "/small", blocks="Q8_0")
        >>> type(models.load(path)).__name__
        'Llama'
    """
    config = model.settings
    if config.experts:
        got = f"{config.experts} experts"
        raise RecordError("save_gguf", "experts are not written", got=got, expected="none")
    kind = _architecture_of(config)
    tensors: Found = {}
    for ours, entry in _flat(model.into_record(layout="pytorch")):
        tensor = entry.tensor if hasattr(entry, "tensor") else entry
        tensors[name_there(ours, config)] = _Turned(ours, kind, config).there(tensor)
    tensors |= _factors(config)
    values = _values(kind, config)
    _check_said(config, _config(values, tensors))
    chosen = {"*": blocks} if isinstance(blocks, str) else blocks
    recorder = GgufRecorder(blocks=chosen, header={**values, **(header or {})})
    return recorder.record(tensors, path)


def _factors(config: LlamaConfig) -> Found:
    """The tensors of factors of rotation."""
    short, long = config.scaling, config.long_scaling
    if short is None:
        return {}
    if long is not None:
        return {name: _as_tensor(each) for name, each in zip(_LONG, (short, long), strict=True)}
    if short.factors is None and short.original_length is None:
        return {}
    if short.factors is not None:
        return {_FACTORS: _as_tensor(short)}
    device, pairs = Numpy(float="float64"), int(config.head * config.rotary_share) // 2
    rates = config.theta ** -(arange(pairs, dtype="float64", device=device) / pairs)
    return {_FACTORS: (rates / short.scaled(rates)).astype("float32")}


def _as_tensor(scaling: RotaryScalingConfig) -> Tensor[Any]:
    return asarray(scaling.factors or (), dtype="float32", device=Numpy())


def _check_said(config: LlamaConfig, again: LlamaConfig) -> None:
    """Refuse settings that would be others when the file is read."""
    scaling = config.scaling
    if scaling and config.long_scaling is None and scaling.amplitude != 1.0:
        what = "the format has no place for the amplitude of a scaling"
        raise RecordError("save_gguf", what, got=scaling.amplitude, expected=1.0)
    for field in fields(config):
        name = "windows" if field.name == "sliding" else field.name
        ours, theirs = getattr(config, name), getattr(again, name)
        near = type(ours) is type(theirs) is float and isclose(ours, theirs, rel_tol=1e-6)
        if name not in _OTHERWISE and ours != theirs and not near:
            what = f"the format has no place for {name}"
            raise RecordError("save_gguf", what, got=ours, expected=theirs)


def _values(kind: str, s: LlamaConfig) -> dict[str, Any]:
    """What the header says of settings."""
    long = s.long_scaling
    linear = (
        s.scaling if s.scaling and not (s.scaling.factors or s.scaling.original_length) else None
    )
    every = next((i + 1 for i, each in enumerate(s.windows) if not each), None)
    rows = {
        "attention.head_count": s.n_heads,
        "attention.head_count_kv": s.n_heads_kv or s.n_heads,
        "attention.key_length": s.head,
        "attention.layer_norm_rms_epsilon": s.epsilon,
        "attention.scale": s.query_scale,
        "attention.sliding_window": s.window,
        "attention.sliding_window_pattern": every if s.local_theta else None,
        "attention.value_length": s.head,
        "attn_logit_softcapping": s.score_cap,
        "block_count": s.n_layers,
        "context_length": s.positions,
        "embedding_length": s.d_model,
        "feed_forward_length": s.d_ff,
        "final_logit_softcapping": s.logit_cap,
        "rope.dimension_count": int(s.head * s.rotary_share),
        "rope.freq_base": s.theta,
        "rope.freq_base_swa": s.local_theta,
        "rope.scaling.attn_factor": long.amplitude if long else None,
        "rope.scaling.factor": linear.factor if linear else None,
        "rope.scaling.original_context_length": long.original_length if long else None,
        "rope.scaling.type": "linear" if linear else None,
        "vocab_size": s.words,
    }
    own = {f"{kind}.{name}": value for name, value in rows.items() if value is not None}
    return {"general.architecture": kind, **own}
