"""What the header of a GGUF file is given of a tokenizer; ``_gguf.py`` reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ._errors import TextError
from ._gguf import CONTROL, CUTS, LLAMA, NAMES, OWN, WORDS
from ._tokenizer import Tokenizer

_NORMAL, _UNUSED = 1, 5  # kinds of tokens
_SHORT: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"  # as tokenizer.json has the first part
# "default" and what else cuts as another does come after it.
_BY_CUT: Final = {cut: name for name, cut in reversed(list(CUTS.items())) if name != "default"}
_OUTSIDE: Final = ("chat_template", "huggingface.")  # names that are not llama.cpp's own
# What the pieces may not do beside being merged.
_PLAIN: Final = ("byte_fallback", "continuing_subword_prefix", "dropout", "end_of_word_suffix")


def header_of(tokenizer: Tokenizer, ends: tuple[int, ...], words: int) -> dict[str, Any]:
    """Return what a header says of a tokenizer; that of a GGUF file is as it was there.

    Args:
        tokenizer: whose pieces are bytes that are merged, or one that came in a GGUF file.
        ends: tokens that end a text.
        words: how many tokens the model has; those that the tokenizer lacks are named.

    Raises:
        TextError: for a tokenizer of another kind, or of more tokens than the model has.
    """
    if tokenizer.words > words:
        what, expected = "the tokenizer is of another model", f"at most {words} tokens"
        raise TextError("text", what, got=tokenizer.words, expected=expected)
    if tokenizer.header is not None:
        return {
            f"tokenizer.{'' if name.startswith(_OUTSIDE) else 'ggml.'}{name}": value
            for name, value in tokenizer.header.items()
        }
    told = json.loads(tokenizer.backend.to_str())
    kinds = {each["id"]: CONTROL if each["special"] else OWN for each in told["added_tokens"]}
    named = {place: token for token, place in tokenizer.backend.get_vocab().items()}
    known = range(words)
    around = tokenizer.encode("a")
    special = {short: tokenizer.special.get(name) for short, name in NAMES.items()}
    ids = {short: tokenizer.backend.token_to_id(t) for short, t in special.items() if t}
    about: dict[str, Any] = {
        "model": "gpt2",
        "pre": _cut(told),
        "tokens": [named.get(place, f"[PAD{place}]") for place in known],
        "token_type": [kinds.get(i, _NORMAL if i in named else _UNUSED) for i in known],
        "merges": [
            each if type(each) is str else " ".join(each) for each in told["model"]["merges"]
        ],
        "add_bos_token": around[:1] == [ids.get("bos")],
        "add_eos_token": around[-1:] == [ids.get("eos")],
    }
    about |= {f"{short}_token_id": place for short, place in ids.items() if place is not None}
    for name, place in zip(("eos", "eot", "eom"), ends, strict=False):
        about[f"{name}_token_id"] = place
    found = {f"tokenizer.ggml.{name}": value for name, value in about.items()}
    template = tokenizer.template
    return found if template is None else {**found, "tokenizer.chat_template": template.source}


def _cut(told: Mapping[str, Any]) -> str:
    """The name by which llama.cpp knows how texts are cut before pieces are merged."""
    model, normal = told["model"], told["normalizer"]
    plain = model["type"] == "BPE" and not any(model.get(name) for name in _PLAIN)
    if not plain or (normal is not None and normal["type"] != "NFC"):
        raise _not_written(model["type"], "pieces of bytes that are merged (BPE)")
    form = told["pre_tokenizer"]
    steps = form["pretokenizers"] if form and form["type"] == "Sequence" else [form]
    name = _BY_CUT.get(tuple(part for step in steps for part in _patterns(step)))
    if name is None or bool(model.get("ignore_merges")) != ("llama" in name):
        raise _not_written(f"texts cut by {json.dumps(form)[:200]}", f"as in {', '.join(CUTS)}")
    return name


def _patterns(step: Any) -> tuple[str, ...]:
    """By which patterns a step cuts."""
    match step:
        case {"pattern": {"Regex": cut}, "behavior": "Isolated", "invert": False}:
            return (cut.replace(_SHORT, LLAMA[: LLAMA.index(")") + 1]),)
        case {"type": "Digits", "individual_digits": True}:
            return ("\\p{N}",)
        case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": regular}:
            return (WORDS,) if regular else ()
        case _:
            return ("",)


def _not_written(got: str, expected: str) -> TextError:
    what = "the tokenizer has no place in a GGUF file"
    return TextError("text", what, got=got, expected=expected, hint='model.save("folder")')
