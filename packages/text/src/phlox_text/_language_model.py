"""A model and its tokenizer: text in, text out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Final, Literal, Unpack, overload

import numpy as np

from phlox_nn.generation.compiled import with_compiled_layers
from phlox_nn.generation.held import check_bits
from phlox_nn.generation.sampling import Sampling, numbers_of
from phlox_nn.generation.steps import Generation, step_in_room
from phlox_nn.models import CausalModel
from phlox_nn.models import load as load_model
from phlox_tensor import ArgumentError, Backend, WrongTypeError, asarray
from phlox_tensor.files import look

from ._answer import Answer, Writing
from ._chat import Chat
from ._errors import TextError
from ._perplexity import perplexity
from ._save import save
from ._settings import GREEDY, Rules, check_rules, read_settings
from ._tokenizer import Tokenizer

_RULES: Final = {"min_p", "repetition_penalty", "temperature", "top_k", "top_p"}


class LanguageModel:
    """A causal model with its tokenizer.

    Attributes:
        model: the module, as it was given.
        tokenizer: what turns text into its tokens and back.
        sampling: the rules of calls that say none.
        ends: tokens that end a text.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        sampling: Sampling = GREEDY,
        ends: Sequence[int] = (),
        compile: bool = False,
        cache_bits: int | None = None,
    ) -> None:
        """Put a model and a tokenizer together.

        Args:
            model: an ``nn.models.CausalModel``; nothing of it is changed or recorded.
            tokenizer: the ``Tokenizer`` that it was trained with.
            sampling: the rules of calls that say none; by default the likeliest token each time.
            ends: tokens that end a text, beside that of the tokenizer.
            compile: whether a step is one compiled function over a cache of fixed size. Otherwise
                the layers of decoders of the Llama family are, after some tokens.
            cache_bits: 8 for keys and values in integers of 8 bits, a scale for each position and
                head, which are nearly those of floats; None for floats.

        Raises:
            ArgumentError: for other bits, and for integers beside compiled steps.
            WrongTypeError: for a model that is no ``nn.models.CausalModel``.
        """
        if not isinstance(model, CausalModel) or not isinstance(tokenizer, Tokenizer):
            raise WrongTypeError(
                "text",
                "no causal model and its tokenizer",
                got=f"{type(model).__name__} and {type(tokenizer).__name__}",
                expected="nn.models.CausalModel, text.Tokenizer",
            )
        self.model: Final[CausalModel] = model
        self.tokenizer: Final[Tokenizer] = tokenizer
        self.sampling = sampling
        self.ends: Final = tuple(dict.fromkeys((*ends, *tokenizer.ends)))
        self._inference: Final = model.with_training(False).freeze()
        self._compile = compile
        self._bits = cache_bits
        check_bits(cache_bits, self._inference.devices[0])
        if compile and cache_bits is not None:
            got = f"cache_bits={cache_bits}"
            hint = "text.load(path, cache_bits=8); phlox run FOLDER --cache-bits 8"
            raise ArgumentError(
                "text", "compiled steps keep floats", got=got, expected="None", hint=hint
            )

    @overload
    def generate(
        self, prompt: str, *, stream: Literal[False] = False, **rules: Unpack[Rules]
    ) -> str: ...

    @overload
    def generate(self, prompt: str, *, stream: Literal[True], **rules: Unpack[Rules]) -> Answer: ...

    @overload
    def generate(
        self,
        prompt: list[str] | tuple[str, ...],
        *,
        stream: Literal[False] = False,
        **rules: Unpack[Rules],
    ) -> list[str]: ...

    def generate(
        self,
        prompt: str | list[str] | tuple[str, ...],
        *,
        stream: bool = False,
        **rules: Unpack[Rules],
    ) -> str | list[str] | Answer:
        """Return how a text goes on, without the text itself; of several texts at once a list.

        Args:
            prompt: a text, or several of any lengths.
            stream: whether pieces of the text are given as they come.
            rules: as in ``text.Rules``: ``max_tokens``, ``temperature``, ``stop`` and others.

        Raises:
            TextError: for a text without a token, or one that the context has no room for.
            UnknownArgumentError: for rules that there are not.
        """
        check_rules(rules, "generate")
        if isinstance(prompt, str):
            tokens = self._encoded(prompt)
            answer = self.answer(self.start(), tokens, tokens, None, **rules)
            return answer if stream else "".join(answer)
        if stream:
            raise TextError(
                "generate",
                "only one text comes in pieces",
                got=f"{len(prompt)} texts",
                expected="one",
                hint="model.generate(prompts[0], stream=True)",
            )
        return self._together([self._encoded(text) for text in prompt], rules)

    def chat(self, system: str | None = None, **more: Any) -> Chat:
        """Return a conversation, which keeps what was read from turn to turn.

        Args:
            system: what the model is told before the first turn.
            more: what the template asks for, such as ``enable_thinking`` and ``tools``.

        Raises:
            TextError: for a model whose files hold no template of conversations.
            WrongTypeError: for what is no text, such as messages.
        """
        return Chat(self, system, more)

    def perplexity(self, text: str, *, length: int = 512) -> float:
        """Return the perplexity of a text: among how many likely tokens the one that comes is one.

        exp of the mean of -log of the share of each token. The text is read in rows of so many
        tokens, each for itself, of which the first is given.

        Raises:
            TextError: for a text of fewer than two tokens, and rows that the context has no room
                for.
        """
        tokens = self._encoded(text)
        if not 1 < length <= self.model.context or len(tokens) < 2:
            got = f"{len(tokens)} tokens in rows of {length}"
            expected = f"two or more, in rows of 2 to {self.model.context}"
            raise TextError("perplexity", "no text in rows", got=got, expected=expected)
        starts = range(0, len(tokens) - 1, length)
        return perplexity(
            self._inference, (self._rows([tokens[at : at + length]]) for at in starts)
        )

    def save(self, path: str | Path, *, blocks: str | Mapping[str, str] | None = None) -> Path:
        """Write the model with its tokenizer, template and rules; return the path.

        Adapters are merged, and weights in blocks become floats, unless ``blocks`` says otherwise.

        Args:
            path: a file that ends in ``.gguf``, for llama.cpp, or a folder as people share them.
            blocks: of a file, the form of all matrices, such as ``"Q8_0"``, or forms by pattern, as
                ``nn.models.save_gguf`` takes them.

        Raises:
            TextError: for a tokenizer that the format has no place for.
            RecordError: for a model that it has no place for.
        """
        return save(self.model, self.tokenizer, self.sampling, self.ends, path, blocks)

    def start(self) -> Generation:
        """Return a text of which nothing was read."""
        return self._generation()

    def _generation(self, pads: Any = None) -> Generation:
        return Generation(self._by_step, pads=pads, bits=self._bits, rolls=not self._compile)

    @cached_property
    def _by_step(self) -> CausalModel:
        """The model as steps call it."""
        model = self._inference
        return model if self._compile else with_compiled_layers(model, _compiled)

    def answer(
        self,
        generation: Generation,
        whole: list[int],
        new: list[int],
        at_end: Callable[[Answer], object] | None = None,
        **rules: Unpack[Rules],
    ) -> Answer:
        """Return what follows tokens, of which the last ones are new to a generation."""
        writing, count, sampling = self._begun(len(whole), rules)
        rows = self._rows([new])
        needed = sampling.looks_back or self.model.turn is not None
        before = self._rows([whole]) if needed else None
        numbers = numbers_of(rules.get("seed"), 1, count, sampling)
        made = generation.tokens(rows, sampling, numbers, before=before, compiled=self._compiled())
        return Answer(writing, made, len(whole), at_end)

    def _together(self, texts: list[list[int]], rules: Rules) -> list[str]:
        """Several texts at once, whose shorter ones are filled in front."""
        if not texts:
            return []
        longest = max(map(len, texts))
        pads = np.array([longest - len(text) for text in texts], np.int64)
        begun = [self._begun(longest, rules) for _ in texts]
        _, count, sampling = begun[0]
        writings = [writing for writing, _, _ in begun]
        rows = self._rows([[0] * (longest - len(text)) + text for text in texts])
        numbers = numbers_of(rules.get("seed"), len(texts), count, sampling)
        generation, last = self._generation(pads), longest + count - 1
        if all(generation.alike(len(text), last) for text in texts) or not pads.any():
            self._write(
                writings, generation.tokens(rows, sampling, numbers, compiled=self._compiled())
            )
        else:  # texts whose keys become others at steps of their own
            for i, text in enumerate(texts):
                alone = self.start().tokens(
                    self._rows([text]), sampling, numbers[i : i + 1], compiled=self._compiled()
                )
                self._write(writings[i : i + 1], alone)
        return [writing.text for writing in writings]

    def _write(self, writings: list[Writing], steps: Iterable[Any]) -> None:
        """Write the tokens of each step until all are at their end."""
        for new in steps:
            for writing, token in zip(writings, new.tolist(), strict=True):
                if writing.reason is None:
                    writing.add(token)
            if all(writing.reason is not None for writing in writings):
                break
        for writing in writings:
            writing.end()

    def _begun(self, length: int, rules: Rules) -> tuple[Writing, int, Sampling]:
        """An empty answer to so many tokens, its most tokens, and how they are chosen."""
        context, most = self.model.context, rules.get("max_tokens")
        room = context + 1 - length  # the last token is made, not read
        if room < 1 or (most is not None and most > room):
            raise TextError(
                "generate",
                "the context has no room for the text and its answer",
                got=f"{length} + {1 if most is None else most} tokens",
                expected=f"at most {context}",
                hint=f"max_tokens={room}" if room > 0 else None,
            )
        stop = rules.get("stop", ())
        stops = [stop] if isinstance(stop, str) else stop
        given: Any = {name: value for name, value in rules.items() if name in _RULES}
        changed = replace(self.sampling, **given)
        return Writing(self.tokenizer.stream(), self.ends, stops), most or room, changed

    def _encoded(self, text: str) -> list[int]:
        tokens = self.tokenizer.encode(text)
        if not tokens:
            raise TextError("generate", "nothing to go on from", got=repr(text), expected="a token")
        return tokens

    def _rows(self, rows: list[list[int]]) -> Any:
        """Tokens on the device of the model."""
        largest, words = max(map(max, rows)), self.model.words
        if largest >= words:
            raise TextError(
                "generate",
                "the tokenizer is of another model",
                got=f"token {largest}",
                expected=f"tokens below {words}",
            )
        return asarray(rows, device=self._inference.devices[0])

    def _compiled(self) -> Any:
        return _compiled_step if self._compile else None


@lru_cache(maxsize=16)
def _compiled_step(sampling: Sampling) -> Any:
    return _compiled(partial(step_in_room, sampling))


def _compiled(function: Callable[..., Any]) -> Any:
    from phlox_fusion import compile as compiled  # noqa: PLC0415 - slow, and long answers alone need it

    return compiled(function)


def load(
    path: str | Path | CausalModel,
    device: Backend | str | None = None,
    *,
    adapters: str | Path | None = None,
    cache_bits: int | None = None,
    compile: bool = False,
) -> LanguageModel:
    """Return the language model of a folder: weights, tokenizer, rules and template.

    Args:
        path: a folder with ``config.json``, weights and ``tokenizer.json``, as people share them; a
            GGUF file, which has all in one; or the model that ``nn.models.load`` made of either.
        device: where the weights go; by default the default device.
        adapters: a folder of PEFT's whose small matrices go beside the weights.
        cache_bits: 8 for keys and values in integers of 8 bits; None for floats.
        compile: whether a step is one compiled function over a cache of fixed size.

    Raises:
        TextError: without a tokenizer, and for files beside it that cannot be read; for a model
            that comes from no folder.
    """
    given = isinstance(path, CausalModel)
    source = path.source if isinstance(path, CausalModel) else path
    if source is None or (given and device is not None):
        raise TextError(
            "text",
            "a model that was not loaded has no tokenizer" if source is None else "two devices",
            got="a model" if source is None else device,
            expected="a folder, or the model that nn.models.load made of one",
            hint="text.LanguageModel(model, tokenizer)" if source is None else "text.load(model)",
        )
    place = Path(source)
    if not place.exists():
        expected = "a folder with config.json and tokenizer.json, or a GGUF file"
        hint = look(place)
        raise TextError("text", "there is no model", got=str(place), expected=expected, hint=hint)
    alone = place.suffix == ".gguf" and place.is_file()
    folder = place if alone or place.is_dir() else place.parent
    sampling, ends = (GREEDY, ()) if alone else read_settings(folder)
    tokenizer = Tokenizer.load(folder)
    model: Any = path if given else load_model(place, device=device, quantized=True)
    if adapters is not None:
        from phlox_nn import load_adapters  # noqa: PLC0415 - an option alone needs it

        model = load_adapters(model, adapters)
    return LanguageModel(
        model, tokenizer, sampling=sampling, ends=ends, compile=compile, cache_bits=cache_bits
    )
