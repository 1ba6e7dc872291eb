"""Settings of models of sound and images, read from ``config.json`` and written to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from phlox_tensor import RecordError

from ._parts import ModelConfig
from ._published import Json, Published, word
from ._whisper import WhisperConfig


class _Names(NamedTuple):
    """An architecture whose settings have other names there, and the same values.

    Attributes:
        kind: its ``model_type``.
        config: the class of its settings.
        names: of settings there, and here; one that stands here twice must be the same in both.
        fixed: settings that are built for one value alone.
        filler: settings that only the reader there needs.
    """

    kind: str
    config: type[ModelConfig]
    names: Mapping[str, str]
    fixed: Mapping[str, Any]
    filler: Mapping[str, Any]

    def read(self, given: Json) -> ModelConfig:
        """Return the settings of a ``config.json``; what it leaves out is as usual.

        Raises:
            RecordError: for a value that is not built.
        """
        for name, only in self.fixed.items():
            word(name, given.get(name, only), {only: only})
        own: dict[str, Any] = {}
        for theirs, here in self.names.items():
            value = given.get(theirs, own.get(here))
            if here in own and own[here] != value:
                raise RecordError("load", f"{theirs} is not built", got=value, expected=own[here])
            if value is not None:
                own[here] = tuple(value) if isinstance(value, list) else value
        return self.config(**own)

    def write(self, config: ModelConfig) -> dict[str, Any]:
        """Return the settings in the words of ``config.json``."""
        found = {theirs: getattr(config, here) for theirs, here in self.names.items()}
        return {"model_type": self.kind, **self.filler, **self.fixed, **found}


_WHISPER: Final = _Names(
    "whisper",
    WhisperConfig,
    {
        "d_model": "d_model",
        "decoder_attention_heads": "n_heads",
        "decoder_ffn_dim": "d_ff",
        "decoder_layers": "n_layers_decoder",
        "dropout": "dropout",
        "encoder_attention_heads": "n_heads",
        "encoder_ffn_dim": "d_ff",
        "encoder_layers": "n_layers",
        "max_source_positions": "frames",
        "max_target_positions": "positions",
        "num_mel_bins": "mels",
        "vocab_size": "words",
    },
    {"activation_function": "gelu", "scale_embedding": False, "tie_word_embeddings": True},
    dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id")),  # else those of full size
)

_ROWS: Final = {"WhisperForConditionalGeneration": _WHISPER}

MEDIA: Final[Mapping[str, Published]] = {
    "WhisperForConditionalGeneration": Published(
        _WHISPER.read, prefix="model.", unused=r"^proj_out\.weight$"
    ),
}


def described(config: ModelConfig) -> dict[str, Any]:
    """Return the settings of a model as a ``config.json`` has them.

    Raises:
        RecordError: for a model that no published architecture is.
    """
    for architecture, names in _ROWS.items():
        if type(config) is names.config:
            return {"architectures": [architecture], **names.write(config)}
    expected = ", ".join(sorted(names.config.__name__ for names in _ROWS.values()))
    raise RecordError("save", "not built", got=type(config).__name__, expected=expected)
