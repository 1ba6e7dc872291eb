"""What models share that go on with a text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final, overload

from phlox_tensor import (
    ArgumentError,
    Bool,
    Float,
    Int,
    ShapeError,
    Tensor,
    WrongTypeError,
    concat,
)
from phlox_tensor.arguments import explain
from phlox_tensor.names import unknown_argument

from ..generation.sampling import Sampling, Seed, numbers_of
from ..generation.steps import Generation
from ..layers.attention import KeyValues
from ..module.module import Module

Caches = tuple[KeyValues, ...]
# What others call the count.
_WORDS: Final[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
    ("max_length", "max_new_tokens", "max_tokens"), ("count",)
)


class CausalModel(Module):
    """Base of models that tell each token from those before it.

    Example:
        >>> import phlox as px
        >>> from phlox_nn import models
        >>> model = models.GptConfig(words=9, positions=8, d_model=4, n_layers=1, n_heads=2).init()
        >>> logits, cache = model.extend(px.asarray([[1, 2, 3]]))
        >>> model.extend(px.asarray([[4]]), cache)[0].shape
        (1, 1, 9)

    Attributes:
        source: where ``nn.models.load`` read it; None for a model that was not loaded so.
    """

    source: str | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def context(self) -> int:
        """The most tokens that a text may have."""

    @property
    @abstractmethod
    def words(self) -> int:
        """The number of tokens."""

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How many positions each layer looks at, the latest; empty where all look at all."""
        return ()

    @property
    def turn(self) -> int | None:
        """The longest text of the usual keys, where longer ones have others; None without any."""
        return None

    @abstractmethod
    def extend(
        self,
        tokens: Tensor[Int],
        cache: Caches | None = None,
        *,
        padding: Tensor[Bool] | None = None,
        positions: Tensor[Int] | None = None,
        last: bool = False,
    ) -> tuple[Tensor[Float], Caches]:
        """Map the next tokens (N, length) to logits, and to what the blocks have to keep.

        Args:
            tokens: what follows what the cache has.
            cache: what the call before gave; None at the start.
            padding: (N, K), True for places before the first of a text, of all with the new ones.
                Positions count from that first token, so that answers stay the same.
            positions: (length,), where a cache of fixed size is written; None for one that grows.
                It has as many keys, filled or not, of which later ones are hidden.
            last: whether to give the logits of the last token alone, (N, 1, words).

        Raises:
            ShapeError: for a text longer than the context.
        """

    def extend_each(
        self, tokens: Tensor[Int], caches: Sequence[Caches]
    ) -> tuple[Tensor[Float], list[Caches]]:
        """Map the next token (N, 1) of each text, whose caches are of any lengths.

        What a text gives is what it gives alone, but for the last bits where several rows are
        multiplied in another order than one.

        Args:
            tokens: one for each text.
            caches: what ``extend`` gave for each, of one text alone.

        Returns:
            Logits (N, 1, words), and the caches with the new tokens.
        """
        found = [self.extend(tokens[i : i + 1], cache) for i, cache in enumerate(caches)]
        return concat([logits for logits, _ in found], axis=0), [kept for _, kept in found]

    def forward(self, tokens: Tensor[Int]) -> Tensor[Float]:
        """Map tokens (N, length) to logits (N, length, words) of the tokens that follow."""
        return self.extend(tokens)[0]

    @overload
    def generate(
        self,
        tokens: Tensor[Int],
        count: int,
        *,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float | None = None,
        seed: Seed = None,
    ) -> Tensor[Int]: ...

    @overload
    def generate(
        self, tokens: str | list[str], *, max_tokens: int | None = None, **rules: Any
    ) -> Any: ...

    def generate(
        self,
        tokens: Tensor[Int] | str | list[str],
        count: int | None = None,
        *,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float | None = None,
        seed: Seed = None,
        **of_text: Any,
    ) -> Any:
        """Return tokens (N, length) followed by ``count`` more, drawn from what is likely.

        A model that trains neither drops values nor records here. Of a model that
        ``nn.models.load`` read a text or several may be given in place of tokens, where the package
        phlox-text is installed: ``model.generate("Once upon", max_tokens=50, stream=True)``, with
        all that ``phlox_text.LanguageModel.generate`` takes.

        Args:
            tokens: at least one for each text.
            count: how many are added.
            temperature: what logits are divided by; 0 for the likeliest token each time. None is 1,
                and for text what the files of the model say.
            top_k: how many tokens there are to choose from; None for all.
            top_p: the likeliest tokens that have this share together are chosen from; None for
                all. Holtzman et al., 2020.
            min_p: tokens of less than this part of the share of the likeliest are not chosen;
                None for all. Nguyen et al., 2024.
            repetition_penalty: logits of tokens that are there already are divided by it where
                they are positive, and multiplied where not; None is 1. Keskar et al., 2019.
            seed: what the draws follow from, beside row and position, on all devices; one for
                each text makes them independent of the others. None takes it from the stream of
                random numbers.
            of_text: for text, such as ``max_tokens`` and ``stream``.

        Raises:
            ArgumentError: for a temperature or a count below 0, a share that is none, no token to
                choose from or to start with; for text without the package.
            ShapeError: for a text longer than the positions.
            WrongTypeError: for tokens that are no tensor, and a count that is no int.
        """
        rules = {
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "min_p": min_p,
            "repetition_penalty": repetition_penalty,
        }
        given: Any = {name: rule for name, rule in rules.items() if rule is not None}
        if isinstance(tokens, str) or _are_texts(tokens):
            return _with_text(self).generate(tokens, seed=seed, **given, **of_text)
        wrong = unknown_argument("generate", of_text, ("tokens", "count", *rules, "seed"), _WORDS)
        if wrong is not None:
            raise wrong
        first, more = check_start(tokens, count)
        sampling = Sampling(**given)
        check_length(self, first.shape[1] + more - 1)
        if not more:
            return first
        numbers = numbers_of(seed, first.shape[0], more, sampling)
        following = Generation(self.with_training(False).freeze()).tokens(first, sampling, numbers)
        return concat((first, *(new[:, None] for new in following)), axis=-1)


def check_length(model: CausalModel, length: int) -> None:
    """Refuse a text that the model cannot read."""
    if length > model.context:
        got, expected = f"{length} tokens", f"at most {model.context}"
        raise ShapeError(type(model).__name__, "too long", got=got, expected=expected)


def check_start(tokens: Any, count: Any) -> tuple[Tensor[Int], int]:
    """Return both; refuse what no text goes on from."""
    if not isinstance(tokens, Tensor) or type(count) is not int:
        raise WrongTypeError(
            "generate",
            "tokens are a tensor, and their count an int",
            got=f"{type(tokens).__name__} and {count!r}",
            expected="tokens (N, length), and how many are added",
            hint="model.generate(px.asarray([[1, 2]]), 3)",
        )
    if tokens.ndim != 2 or not tokens.shape[1] or count < 0:
        raise ArgumentError(
            "generate",
            "nothing to go on from",
            got=f"tokens {tokens.shape}, count {count}",
            expected="tokens (N, length) with one each at least, count >= 0",
            hint="tokens[None] for a single text" if tokens.ndim == 1 else None,
        )
    return tokens, count


def _are_texts(given: Any) -> bool:
    return isinstance(given, list | tuple) and any(isinstance(each, str) for each in given)


def _with_text(model: CausalModel) -> Any:
    """The model beside its tokenizer, by the package that knows of text."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and only text needs it

    for point in entry_points(group="phlox.text"):
        return point.load()(model)
    raise ArgumentError(
        "generate",
        "text needs a package that is not installed",
        got="no phlox-text",
        expected="it, or tokens",
        hint='pip install "phlox[text]"',
    )


explain(CausalModel)
