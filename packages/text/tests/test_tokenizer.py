"""Tokens of texts, files of tokenizers, and text that comes in pieces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from phlox_tensor import WrongTypeError
from phlox_text import TextError, Tokenizer
from phlox_text import _files as files
from phlox_text._answer import Writing


def of_bytes() -> tokenizers.Tokenizer:
    """Pieces of bytes, so that characters are cut by tokens."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=letters,
        show_progress=False,
    )
    made.train_from_iterator(["to be or not to be, that is the question"] * 3, trainer)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    return made


def by_words() -> tokenizers.Tokenizer:
    """Pieces with their spaces in front, of which the decoder drops the first, as Llama's does."""
    made = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=["<unk>", *pieces], show_progress=False
    )
    made.train_from_iterator(["to be or not to be, that is the question"] * 3, trainer)
    return made


MADE = {"bytes": Tokenizer(of_bytes()), "words": Tokenizer(by_words())}


@pytest.mark.parametrize("name", MADE)
@given(text=st.text(st.sampled_from("to be or naïve 日本 🙂 é\u200d👩\u200d🚀\n"), max_size=20))
def test_pieces_are_the_text_and_no_character_is_cut(name: str, text: str) -> None:
    tokenizer = MADE[name]
    tokens = tokenizer.encode(text, special=False)
    stream = tokenizer.stream()
    pieces = [stream.add(token) for token in tokens]
    assert not any("\ufffd" in piece for piece in pieces)
    assert "".join([*pieces, stream.rest()]) == tokenizer.decode(tokens)


def test_bytes_that_are_no_character_come_in_the_end() -> None:
    tokenizer = MADE["bytes"]
    tokens = tokenizer.encode("é🙂", special=False)[:-1]
    stream = tokenizer.stream()
    assert "".join(stream.add(token) for token in tokens) == "é"
    assert stream.rest() == "\ufffd"
    assert stream.rest() == ""


def test_a_stream_decodes_a_few_tokens_at_a_time() -> None:
    seen: list[int] = []

    class Counting(Tokenizer):
        def decode(self, tokens: Any, *, special: bool = False) -> str:
            seen.append(len(tokens))
            return super().decode(tokens, special=special)

    stream = Counting(of_bytes()).stream()
    for token in MADE["bytes"].encode("to be or not to be" * 20):
        stream.add(token)
    assert len(seen) > 100
    assert max(seen) <= 3


def test_tokens_of_a_folder_are_those_of_its_files(tmp_path: Path) -> None:
    backend = of_bytes()
    backend.enable_truncation(3)
    backend.enable_padding(length=50)
    backend.save(str(tmp_path / "tokenizer.json"))
    settings = {
        "eos_token": {"content": "</s>"},
        "bos_token": "<s>",
        "chat_template": "{{ bos_token }}",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    found = Tokenizer.load(tmp_path)
    assert found.special == {"bos_token": "<s>", "eos_token": "</s>"}
    assert found.ends == (1,)
    assert found.words == backend.get_vocab_size()
    tokens = found.encode("to be or not to be")
    assert tokens[0] == 0
    assert found.encode("to be or not to be", special=False) == tokens[1:]
    assert found.decode(tokens) == "to be or not to be"
    assert found.decode(tokens, special=True) == "<s>to be or not to be"
    assert found.template is not None
    assert found.template.render([]) == "<s>"
    (tmp_path / "chat_template.jinja").write_text("of a file")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again.template is not None
    assert again.template.render([]) == "of a file"


def test_files_that_are_no_tokenizer_are_refused(tmp_path: Path, monkeypatch: Any) -> None:
    with pytest.raises(TextError, match="there is no tokenizer"):
        Tokenizer.load(tmp_path)
    file = tmp_path / "tokenizer.json"
    for text in ("", "{", "[]", '{"model": {"type": "WordLevel"}}', "\0\1"):
        file.write_text(text)
        with pytest.raises(TextError, match=r"tokenizer.json is no tokenizer"):
            Tokenizer.load(tmp_path)
    of_bytes().save(str(file))
    for text, said in (
        ("[" * 100_000, "is no JSON"),
        ("3", "holds no settings"),
        ("{'", "is no JSON"),
    ):
        (tmp_path / "tokenizer_config.json").write_text(text)
        with pytest.raises(TextError, match=said):
            Tokenizer.load(tmp_path)
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    with pytest.raises(TextError, match="is too large"):
        Tokenizer.load(tmp_path)
    wrong: Any = ["to", "be"]
    with pytest.raises(WrongTypeError, match="not a text: got list"):
        MADE["bytes"].encode(wrong)


def written(text: str, stops: list[str], ends: tuple[int, ...] = ()) -> tuple[list[str], Writing]:
    tokenizer = MADE["bytes"]
    writing = Writing(tokenizer.stream(), ends, stops)
    pieces = []
    for token in tokenizer.encode(text, special=False):
        if writing.reason is None:
            pieces.append(writing.add(token))
    return [*pieces, writing.end()], writing


@pytest.mark.parametrize(
    ("stops", "text", "reason"),
    [
        ([], "xyz to be, to be or not", "length"),
        (["be or"], "xyz to be, to ", "stop"),
        (["z to", "y"], "x", "stop"),
        (["", "not to"], "xyz to be, to be or not", "length"),
        (["nott", "or nit"], "xyz to be, to be or not", "length"),
        (["xyz to be, to be or not"], "", "stop"),
    ],
)
def test_a_text_that_stops_is_no_part_of_the_answer(
    stops: list[str], text: str, reason: str
) -> None:
    pieces, writing = written("xyz to be, to be or not", stops)
    assert "".join(pieces) == writing.text == text
    assert writing.reason == reason


def test_a_token_that_ends_gives_what_was_held_back() -> None:
    end = MADE["bytes"].encode("q", special=False)[0]
    pieces, writing = written("to beq or", ["be!"], (end,))
    assert "".join(pieces) == writing.text == "to be"
    assert writing.reason == "stop"
    assert writing.tokens[-1] == end
