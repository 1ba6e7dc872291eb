"""Text in, text out: of a folder as people share them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Cpu, nn, text
from tests.text.folders import TEXT, tokenizer, write_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(folder: Path) -> text.LanguageModel:
    return text.load(folder)


def test_a_folder_brings_rules_and_ends(model: text.LanguageModel) -> None:
    assert model.sampling == text.Sampling(temperature=0.9, top_k=50)
    assert model.ends == (0, 2)
    assert isinstance(model.model, nn.models.Llama)


def test_pieces_are_the_text_that_comes_at_once(model: text.LanguageModel) -> None:
    whole = model.generate("Now is", max_tokens=40, seed=1)
    answer = model.generate("Now is", max_tokens=40, seed=1, stream=True)
    pieces = list(answer)
    assert len(pieces) > 5
    assert all(pieces)
    assert "".join(pieces) == whole == answer.text
    assert answer.reason in {"length", "stop"}
    assert 0 < len(answer.tokens) <= 40
    assert answer.prompt_tokens == len(model.tokenizer.encode("Now is"))
    assert 0 < answer.first < answer.seconds
    assert answer.rate > 0
    assert model.generate("Now is", max_tokens=40, seed=2) != whole
    greedy = model.generate("Now is", max_tokens=9, temperature=0)
    assert greedy == model.generate("Now is", max_tokens=9, temperature=0, seed=8)


def test_several_texts_at_once_are_what_each_is_alone(folder: Path) -> None:
    prompts = ["Now", TEXT, "made glorious summer"]
    for compiled in (False, True):
        model = text.load(folder, compile=compiled)
        alone = [
            model.generate(prompt, max_tokens=30, seed=[seed])
            for seed, prompt in enumerate(prompts)
        ]
        assert model.generate(prompts, max_tokens=30, seed=[0, 1, 2]) == alone
    assert model.generate([], max_tokens=3) == []


def test_a_text_that_stops_ends_it(model: text.LanguageModel) -> None:
    whole = model.generate("Now is", max_tokens=40, seed=1)
    stop = whole[7:10]
    answer = model.generate("Now is", max_tokens=40, seed=1, stop=["nowhere", stop], stream=True)
    assert "".join(answer) == whole[: whole.index(stop)]
    assert answer.reason == "stop"
    assert len(answer.tokens) < 40
    assert model.generate(["Now is"], max_tokens=40, seed=1, stop=stop) == [answer.text]


def test_a_conversation_reads_what_is_new_alone(model: text.LanguageModel) -> None:
    chat = model.chat("Be brief.")
    first = chat.send("Hello", max_tokens=12, seed=1)
    read = len(chat._reader.read)
    second = chat.send("And then?", max_tokens=12, seed=2)
    roles = ["system", "user", "assistant", "user", "assistant"]
    assert [each["role"] for each in chat.messages] == roles
    assert chat.messages[2]["content"] == first
    template = model.tokenizer.template
    assert template is not None
    whole = template.render(chat.messages[:-1], answer=True)
    assert model.generate(whole, max_tokens=12, seed=2) == second
    tokens = model.tokenizer.encode(whole, special=False)
    assert chat._reader.read[: len(tokens)] == tokens
    assert read < len(tokens)
    # What a reader leaves half read is what was said.
    answer = chat.send("More", max_tokens=50, seed=3, stream=True)
    piece = next(answer)
    chat.send("Enough", max_tokens=3)
    assert chat.messages[6]["content"].startswith(piece)
    assert len(chat.messages) == 9


def test_a_turn_reads_no_more_than_what_came_since(model: text.LanguageModel) -> None:
    lengths: list[int] = []

    class Counting(nn.models.CausalModel):
        inner: Any

        @property
        def context(self) -> int:
            return 512

        @property
        def words(self) -> int:
            return 320

        def extend(self, tokens: Any, cache: Any = None, **options: Any) -> Any:
            lengths.append(tokens.shape[1])
            return self.inner.extend(tokens, cache, **options)

    counting = text.LanguageModel(Counting(model.model), model.tokenizer, ends=model.ends)
    chat, prompts = counting.chat(), []
    for turn in range(3):
        answer = chat.send(f"turn {turn}", max_tokens=6, stream=True)
        prompts.append(answer.prompt_tokens)
        list(answer)
    read = [length for length in lengths if length > 1]
    assert read[0] == prompts[0]
    # An answer of a random model need not be what its text is as tokens: at most it is read again.
    assert read[1] <= prompts[1] - prompts[0]
    assert read[2] <= prompts[2] - prompts[1]


def test_a_full_context_is_an_error_that_harms_nothing(model: text.LanguageModel) -> None:
    with pytest.raises(text.TextError, match=r"no room(.|\n)*hint: max_tokens=512"):
        model.generate("No", max_tokens=600)
    with pytest.raises(text.TextError, match="the context has no room"):
        model.generate(TEXT * 40)
    chat = model.chat()
    chat.send("Hello", max_tokens=4, seed=1)
    said = list(chat.messages)
    with pytest.raises(text.TextError, match="the context has no room"):
        chat.send(TEXT * 40)
    assert chat.messages == said
    after = chat.send("And?", max_tokens=8, seed=2)
    other = model.chat()
    other.send("Hello", max_tokens=4, seed=1)
    assert other.send("And?", max_tokens=8, seed=2) == after


def test_a_loaded_model_goes_on_with_text_itself(folder: Path, model: text.LanguageModel) -> None:
    loaded: Any = nn.models.load(folder)
    want = model.generate("Now is", max_tokens=9, seed=3)
    pieces = loaded.generate("Now is", max_tokens=9, seed=3, stream=True)
    assert "".join(pieces) == want
    assert loaded.generate(["Now is"], max_tokens=9, seed=3) == [want]
    assert text.load(loaded).generate("Now is", max_tokens=9, seed=3) == want
    greedy = loaded.generate("Now is", max_tokens=9, temperature=0, top_k=3)
    assert greedy == model.generate("Now is", max_tokens=9, temperature=0)
    made: Any = nn.models.GptConfig(40, 64, 8, 1, 1).init(Cpu())
    with pytest.raises(text.TextError, match=r"hint: text.LanguageModel\(model, tokenizer\)"):
        made.generate("Now is", max_tokens=3)
    with pytest.raises(px.UnknownArgumentError, match=r"hint: count=\.\.\."):
        made.generate(px.asarray([[1]]), max_tokens=3)


def test_wrong_calls_say_what_to_type(model: text.LanguageModel, tmp_path: Path) -> None:
    loose: Any = model
    with pytest.raises(px.UnknownArgumentError, match="max_tokens"):
        loose.generate("Now", max_new_tokens=3)
    for wrong, said in (
        ({"max_tokens": 0}, "max_tokens is no count: got 0"),
        ({"stop": 3}, "stop is no text: got 3"),
        ({"temperature": -1.0}, "no choice"),
    ):
        with pytest.raises(px.PhloxError, match=said):
            loose.generate("Now", **wrong)
    with pytest.raises(text.TextError, match="nothing to go on from"):
        model.generate("")
    with pytest.raises(text.TextError, match=r"hint: model.generate\(prompts\[0\], stream=True"):
        loose.generate(["a", "b"], stream=True)
    with pytest.raises(px.WrongTypeError, match="no causal model"):
        text.LanguageModel(loose, model.tokenizer)
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Now"}]
    for ask in (loose.chat, loose.chat().send):
        with pytest.raises(
            px.WrongTypeError, match=r"not a text: got list(.|\n)*chat.messages \+="
        ):
            ask(talk)
    bare = text.LanguageModel(model.model, text.Tokenizer(tokenizer()))
    with pytest.raises(text.TextError, match=r"no template(.|\n)*hint: model.generate"):
        bare.chat()
    small = nn.models.GptConfig(40, 64, 8, 1, 1).init(Cpu())
    with pytest.raises(text.TextError, match=r"of another model: got token \d+, expected tokens"):
        text.LanguageModel(small, model.tokenizer).generate("Now is")
    (tmp_path / "generation_config.json").write_text(json.dumps({"do_sample": True, "top_p": "x"}))
    with pytest.raises(text.TextError, match="rules that are none"):
        text.load(tmp_path)
    with pytest.raises(text.TextError, match="there is no model: got"):
        text.load(tmp_path / "nothing")
    with pytest.raises(AttributeError, match=r"text.Tokenizer.load"):
        _ = vars(px)["text"].AutoTokenizer


def test_a_gguf_file_has_all_in_one(model: text.LanguageModel, tmp_path: Path) -> None:
    told = json.loads(tokenizer().to_str())["model"]
    tokens = sorted(told["vocab"], key=told["vocab"].__getitem__)
    special = len([token for token in tokens if token.startswith("<|")])
    header = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": tokens,
        "token_type": [3] * special + [1] * (len(tokens) - special),
        "merges": [" ".join(pair) for pair in told["merges"]],
        "eos_token_id": 0,
        "eot_token_id": 2,
    }
    about: dict[str, Any] = {f"tokenizer.ggml.{name}": value for name, value in header.items()}
    assert model.tokenizer.template is not None
    about["tokenizer.chat_template"] = model.tokenizer.template.source
    file = tmp_path / "model.gguf"
    network: Any = model.model
    nn.models.save_gguf(network, file, header=about)
    for place in (file, tmp_path):
        found = text.load(place)
        assert found.ends == (0, 2)
        found.sampling = model.sampling
        assert found.generate("Now is", max_tokens=20, seed=1) == model.generate(
            "Now is", max_tokens=20, seed=1
        )
        assert found.chat("Be brief.").send("Hi", max_tokens=9, temperature=0) == model.chat(
            "Be brief."
        ).send("Hi", max_tokens=9, temperature=0)
    loaded: Any = nn.models.load(file)
    assert text.load(loaded).ends == (0, 2)
    # A device without integers of 8 bits has floats of the same values.
    nn.models.save_gguf(network, file, blocks="Q8_0", header=about)
    kept = text.load(file, "cpu").generate("Now is", max_tokens=9)
    assert text.load(file, "wgpu").generate("Now is", max_tokens=9) == kept


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("how", ["compiled", "floats", "integers", "window"])
def test_four_thousand_tokens_keep_memory_flat(how: str) -> None:
    px.seed(2)
    window = 256 if how == "window" else None
    network = nn.models.LlamaConfig(320, 4608, 64, 2, 4, 2, d_ff=128, window=window).init(Cpu())
    endless = text.Tokenizer(tokenizer())  # no token ends a text
    bits = 8 if how == "integers" else None
    given = text.LanguageModel(network, endless, compile=how == "compiled", cache_bits=bits)
    list(given.generate(TEXT, max_tokens=300, temperature=1.0, seed=1, stream=True))
    before = _resident()
    answer = given.generate(TEXT, max_tokens=4000, temperature=1.0, seed=1, stream=True)
    list(answer)
    assert len(answer.tokens) == 4000
    # Keys and values of all layers are 2.1 MB; growing holds the old and the new beside each other.
    assert _resident() - before < 30 << 20


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json", "a.gguf"])
def test_a_file_that_is_cut_is_refused(name: str, tmp_path: Path) -> None:
    write_folder(tmp_path)
    place = text.load(tmp_path).save(tmp_path / name) if name.endswith("gguf") else tmp_path
    raw = (tmp_path / name).read_bytes()
    for size in (0, 5, len(raw) // 2, len(raw) - 1):
        (tmp_path / name).write_bytes(raw[:size])
        with pytest.raises(
            px.PhloxError, match=r"tokenizer|config|safetensors|gguf|ends early|load"
        ):
            text.load(place).generate("Now", max_tokens=2)


def test_perplexity_is_that_of_all_shares(model: text.LanguageModel) -> None:
    tokens = model.tokenizer.encode(TEXT)
    network: Any = model.model
    logits = network(px.asarray([tokens]))[0].numpy().astype("f8")
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    at = [shares[i, token] for i, token in enumerate(tokens[1:])]
    want = np.exp(-np.log(at).mean())
    assert model.perplexity(TEXT) == pytest.approx(want, rel=1e-5)
    # Rows are read each for itself, the first token of which is given.
    assert model.perplexity(TEXT, length=7) > 0
    assert model.perplexity(TEXT, length=len(tokens)) == pytest.approx(want, rel=1e-5)
    with pytest.raises(text.TextError, match="in rows of 2 to 512"):
        model.perplexity(TEXT, length=1000)


def test_integers_keep_what_a_conversation_says(model: text.LanguageModel) -> None:
    network: Any = model.model
    small = text.LanguageModel(network, model.tokenizer, cache_bits=8)
    chat = small.chat("Be brief.")
    first = chat.send("Hello", max_tokens=8)
    again = chat.send("And then?", max_tokens=8)
    assert first
    assert again
    with pytest.raises(px.ArgumentError, match="compiled steps keep floats"):
        text.LanguageModel(network, model.tokenizer, cache_bits=8, compile=True)
    with pytest.raises(px.ArgumentError, match="got 4 bits"):
        text.LanguageModel(network, model.tokenizer, cache_bits=4)


def _resident() -> int:
    """Bytes of this process that are in memory."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096
