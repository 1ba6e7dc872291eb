"""The tokenizer in the header of a GGUF file beside the one that it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from phlox_record import GgufRecorder
from phlox_text import TextError, Tokenizer

TEXT = (
    "To be, or not to be: that is the question. It's 1999; naïve Weltschmerz!  Don't  pay 25 €\n\n"
)
TEXTS = [
    TEXT,
    "don't",
    "  two spaces ",
    "12345 67",
    "日本🙂\n\n x",
    "<|end|>to<|end|>",
    "\t",
    "",
    "İ'S",
]
SPECIAL = ["<unk>", "<s>", "<|end|>"]


def of_bytes(cuts: Any) -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=cuts is not None)
    made.pre_tokenizer = pre_tokenizers.Sequence([*(cuts or []), byte_level])
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([TEXT] * 4, trainer)
    return made


def of_letters() -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    made.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=380, special_tokens=[*SPECIAL, *bytes_], show_progress=False
    )
    made.train_from_iterator(TEXT.split("."), trainer)
    return made


def header(made: tokenizers.Tokenizer, kind: str, **more: Any) -> dict[str, Any]:
    """What llama.cpp writes of a tokenizer."""
    import json

    told = json.loads(made.to_str())["model"]
    tokens = sorted(told["vocab"], key=told["vocab"].__getitem__)
    merges = [each if isinstance(each, str) else " ".join(each) for each in told["merges"]]
    found: dict[str, Any] = {"model": kind, "tokens": tokens, "bos_token_id": 1, "eos_token_id": 2}
    kinds = {0: 2, 1: 3, 2: 3}
    is_byte = kind == "llama"
    found["token_type"] = [
        kinds.get(place, 6 if is_byte and token.startswith("<0x") else 1)
        for place, token in enumerate(tokens)
    ]
    if kind == "gpt2":
        found["merges"] = merges
    else:
        ranks = {each.replace(" ", ""): -float(rank) for rank, each in enumerate(merges)}
        found["scores"] = [ranks.get(token, -1e6) for token in tokens]
        found["unknown_token_id"] = 0
    return {f"tokenizer.ggml.{name}": value for name, value in {**found, **more}.items()}


def written(folder: Path, about: dict[str, Any]) -> Path:
    return GgufRecorder(header=about).record({}, folder / "model")


SPLIT = pre_tokenizers.Digits(individual_digits=True)


@pytest.mark.parametrize(
    ("cuts", "pre"), [([], "gpt-2"), ([SPLIT], "smollm"), ([SPLIT], "starcoder")]
)
def test_pieces_of_bytes_are_those_of_the_tokenizer(tmp_path: Path, cuts: Any, pre: str) -> None:
    made = of_bytes(cuts)
    file = written(tmp_path, header(made, "gpt2", pre=pre))
    found = Tokenizer.load(file)
    assert found.words == made.get_vocab_size()
    assert found.special == {"bos_token": "<s>", "eos_token": "<|end|>"}
    assert found.ends == (2,)
    for text in TEXTS:
        tokens = found.encode(text)
        assert tokens == made.encode(text).ids
        assert found.decode(tokens, special=True) == text
    assert Tokenizer.load(tmp_path).encode("to be") == found.encode("to be")


@pytest.mark.parametrize("pre", ["llama-bpe", "qwen2"])
def test_cuts_of_newer_models_are_theirs(tmp_path: Path, pre: str) -> None:
    made = of_bytes(None)
    found = Tokenizer.load(written(tmp_path, header(made, "gpt2", pre=pre, add_bos_token=False)))
    cut: Any = found.backend.pre_tokenizer
    pieces = [piece for piece, _ in cut.pre_tokenize_str("Don'T pay 12345 (now)\n\n  ok ")]
    shown: Any = {"Ġ": " ", "Ċ": "\n"}
    plain = ["".join(shown.get(letter, letter) for letter in piece) for piece in pieces]
    numbers = ["123", "45"] if pre == "llama-bpe" else list("12345")
    head = ["Don", "'T", " pay", " ", *numbers, " (", "now", ")\n\n", " ", " ok", " "]
    assert plain == head


def test_pieces_of_letters_are_merged_by_their_scores(tmp_path: Path) -> None:
    made = of_letters()
    about = header(made, "llama", add_eos_token=True)
    found = Tokenizer.load(written(tmp_path, about))
    for text in TEXTS:
        assert found.encode(text, special=False) == made.encode(text).ids
        assert found.encode(text) == [1, *made.encode(text).ids, 2]
        if "<|end|>" not in text:
            assert found.decode(found.encode(text)) == text
    bare = {**about, "tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_eos_token": False}
    bare["tokenizer.ggml.add_space_prefix"] = False
    bare["tokenizer.chat_template"] = "{{ bos_token }}{{ messages[0].content }}"
    again = Tokenizer.load(written(tmp_path, bare))
    assert again.encode("to be") != found.encode("to be", special=False)
    assert again.decode(again.encode("to be")) == "to be"
    assert again.template is not None
    assert again.template.render([{"role": "user", "content": "Hi"}]) == "<s>Hi"


def test_headers_that_are_no_tokenizer_are_refused(tmp_path: Path) -> None:
    good = header(of_bytes([]), "gpt2")
    for name, value, said in (
        ("model", "bert", "a kind of tokens that is not built: got bert"),
        ("pre", "nobody", "cuts texts in a way that is not built: got nobody"),
        ("tokens", ["a", "b"], "kinds of 2 tokens"),
        ("merges", ["a b c"], "is damaged"),
        ("merges", ["zz qq"], "is no tokenizer"),
        ("model", "llama", "0 scores of"),
    ):
        file = written(tmp_path, {**good, f"tokenizer.ggml.{name}": value})
        with pytest.raises(TextError, match=said):
            Tokenizer.load(file)
    with pytest.raises(TextError, match="has no tokens"):
        Tokenizer.load(written(tmp_path, {"general.name": "x"}))
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + bytes(30))
    with pytest.raises(TextError, match="cannot be read"):
        Tokenizer.load(tmp_path)
