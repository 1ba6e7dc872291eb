"""The tokenizer that a GGUF file brings, by the pieces, merges and kinds in its header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from phlox_record import gguf_metadata
from phlox_tensor import RecordError

from ._errors import TextError

WORDS: Final = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
LLAMA: Final = (
    "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
)
# How texts are cut before pieces are merged, by the names that llama.cpp gives; files without a
# name are older than these, and of models that cut as GPT-2 does.
CUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "default": (WORDS,),
    "gpt-2": (WORDS,),
    "llama-bpe": (LLAMA,),
    "llama3": (LLAMA,),
    "mpt": (WORDS,),
    "olmo": (WORDS,),
    "phi-2": (WORDS,),
    "qwen2": (LLAMA.replace("{1,3}", ""),),
    "refact": ("\\p{N}", WORDS),
    "smollm": ("\\p{N}", WORDS),
    "stablelm2": (LLAMA.replace("{1,3}", ""),),
    "starcoder": ("\\p{N}", WORDS),
}
_UNKNOWN, CONTROL, OWN = 2, 3, 4  # kinds of tokens
NAMES: Final = {
    "bos": "bos_token",
    "eos": "eos_token",
    "padding": "pad_token",
    "unknown": "unk_token",
}
_MOST: Final = 2_000_000


def read_gguf(file: Path) -> dict[str, Any]:
    """Return what the header of a file says of its tokenizer, by names without their beginning.

    Raises:
        TextError: for a file that cannot be read.
    """
    try:
        found = gguf_metadata(file)
    except (RecordError, OSError) as error:
        raise TextError("tokenizer", f"{file} cannot be read", got=error) from None
    named = {name: value for name, value in found.items() if name.startswith("tokenizer.")}
    return {name.removeprefix("tokenizer.").removeprefix("ggml."): named[name] for name in named}


def tokenizer_of(about: Mapping[str, Any], file: Path) -> tokenizers.Tokenizer:
    """Return the tokenizer that a header describes.

    Raises:
        TextError: for a kind that is not built, and for lists that do not go together.
    """
    kind, tokens = about.get("model"), about.get("tokens")
    if not isinstance(tokens, list) or not tokens or not all(isinstance(t, str) for t in tokens):
        got = type(tokens).__name__
        raise TextError("tokenizer", f"{file} has no tokens", got=got, expected="a list of texts")
    kinds = about.get("token_type") or [1] * len(tokens)
    if len(kinds) != len(tokens) or len(tokens) > _MOST:
        got = f"{len(kinds)} kinds of {len(tokens)} tokens"
        raise TextError("tokenizer", f"{file} is damaged", got=got, expected="one for each")
    if kind == "gpt2":
        made = _of_bytes(about, tokens, file)
    elif kind == "llama":
        made = _of_scores(about, tokens, kinds, file)
    else:
        raise TextError(
            "tokenizer",
            f"{file} has a kind of tokens that is not built",
            got=kind,
            expected="gpt2 or llama",
            hint='text.LanguageModel(model, text.Tokenizer.load("tokenizer.json"))',
        )
    added = [
        AddedToken(token, special=kind != OWN, normalized=False)
        for token, kind in zip(tokens, kinds, strict=True)
        if kind in (CONTROL, OWN)
    ]
    made.add_tokens(added)
    _begin_and_end(made, about, tokens)
    return made


def special_of(about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names in templates and texts of special tokens."""
    for short, name in NAMES.items():
        token = _at(about, f"{short}_token_id")
        if token is not None:
            yield name, token


def ends_of(about: Mapping[str, Any]) -> tuple[int, ...]:
    """Tokens that end a text or a turn."""
    found = (about.get(name) for name in ("eos_token_id", "eot_token_id", "eom_token_id"))
    return tuple(dict.fromkeys(each for each in found if type(each) is int))


def _at(about: Mapping[str, Any], name: str) -> str | None:
    place, tokens = about.get(name), about["tokens"]
    known = type(place) is int and 0 <= place < len(tokens)
    return tokens[place] if known else None


def _of_bytes(about: Mapping[str, Any], tokens: list[str], file: Path) -> tokenizers.Tokenizer:
    """Pieces of bytes that are merged in the order of a list."""
    cut = about.get("pre", "default")
    if cut not in CUTS:
        known = ", ".join(CUTS)
        what = f"{file} cuts texts in a way that is not built"
        raise TextError("tokenizer", what, got=cut, expected=f"one of {known}")
    pairs: Any = [
        tuple(each.split(" ")) for each in about.get("merges") or () if isinstance(each, str)
    ]
    if not all(len(pair) == 2 for pair in pairs):
        raise TextError("tokenizer", f"{file} is damaged", expected="merges of two pieces each")
    vocabulary = {token: place for place, token in enumerate(tokens)}
    made = _built(lambda: models.BPE(vocabulary, pairs, ignore_merges="llama" in cut), file)
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in CUTS[cut]),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    return made


def _of_scores(
    about: Mapping[str, Any], tokens: list[str], kinds: list[int], file: Path
) -> tokenizers.Tokenizer:
    """Pieces of letters, of which those are merged that make the piece of the highest score."""
    scores = about.get("scores") or []
    if len(scores) != len(tokens):
        got = f"{len(scores)} scores of {len(tokens)} tokens"
        raise TextError("tokenizer", f"{file} is damaged", got=got, expected="one for each")
    vocabulary = {token: place for place, token in enumerate(tokens)}
    pairs = []
    for token, score in zip(tokens, scores, strict=True):
        splits = [(token[:at], token[at:]) for at in range(1, len(token))]
        known = [(a, b) for a, b in splits if a in vocabulary and b in vocabulary]
        known.sort(key=lambda pair: (vocabulary[pair[0]], vocabulary[pair[1]]))
        pairs += [(score, pair) for pair in known]
    pairs.sort(key=lambda each: -each[0])
    unknown = _at(about, "unknown_token_id") or next(
        (token for token, kind in zip(tokens, kinds, strict=True) if kind == _UNKNOWN), None
    )
    merges = [pair for _, pair in pairs]
    made = _built(
        lambda: models.BPE(
            vocabulary, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True
        ),
        file,
    )
    first = bool(about.get("add_space_prefix", True))
    steps: list[Any] = [normalizers.Prepend("▁")] if first else []
    made.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    parts: list[Any] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence([*parts, *([decoders.Strip(" ", 1, 0)] if first else [])])
    return made


def _built(make: Any, file: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer(make())
    except Exception as error:
        raise TextError("tokenizer", f"{file} is no tokenizer", got=error) from None


def _begin_and_end(made: tokenizers.Tokenizer, about: Mapping[str, Any], tokens: list[str]) -> None:
    """Let texts begin and end with the tokens that the header says."""
    begins = about.get("model") == "llama" or "llama" in str(about.get("pre"))
    first = _at(about, "bos_token_id") if about.get("add_bos_token", begins) else None
    last = _at(about, "eos_token_id") if about.get("add_eos_token", False) else None
    around = [token for token in (first, last) if token is not None]
    if around:
        form = [*([first] if first else []), "$A", *([last] if last else [])]
        known = [(token, tokens.index(token)) for token in dict.fromkeys(around)]
        made.post_processor = processors.TemplateProcessing(form, special_tokens=known)
