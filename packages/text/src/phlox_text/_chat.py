"""A conversation: its messages, and what the model has read of them."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

from phlox_tensor import WrongTypeError

from ._answer import Answer
from ._errors import TextError
from ._reader import Answers, Reader
from ._settings import Rules, check_rules


class Chat:
    """A conversation with a language model; each turn reads what is new alone.

    Attributes:
        messages: what was said; change it as you like between turns.

    Example:
        >>> chat = model.chat("You are brief.")  # doctest: +SKIP
        >>> chat.send("Hello")  # doctest: +SKIP
        'Hi.'
    """

    def __init__(self, model: Answers, system: str | None, more: dict[str, Any]) -> None:
        """Begin; see ``LanguageModel.chat``."""
        if model.tokenizer.template is None:
            raise TextError(
                "chat",
                "the model has no template of conversations",
                expected="one in tokenizer_config.json or chat_template.jinja",
                hint='model.generate("Once upon a time")',
            )
        self._template = model.tokenizer.template
        self._model = model
        self._more = more
        self._reader = Reader(model)
        self._answer: Answer | None = None
        self.messages: list[dict[str, Any]] = []
        if system is not None:
            self.messages.append({"role": "system", "content": _text(system)})

    @overload
    def send(self, text: str, *, stream: Literal[False] = False, **rules: Unpack[Rules]) -> str: ...

    @overload
    def send(self, text: str, *, stream: Literal[True], **rules: Unpack[Rules]) -> Answer: ...

    def send(self, text: str, *, stream: bool = False, **rules: Unpack[Rules]) -> str | Answer:
        """Return the answer to a text; both are messages from then on.

        An answer that was not read to its end is one as far as it was read.

        Args:
            text: what the user says.
            stream: whether pieces of the answer are given as they come.
            rules: as in ``text.Rules``.

        Raises:
            TextError: where the context is full, or the template refuses.
            WrongTypeError: for what is no text, such as messages.
        """
        check_rules(rules, "chat")
        if self._answer is not None:
            self._answer.close()
        asked = [*self.messages, {"role": "user", "content": _text(text)}]
        written = self._template.render(asked, answer=True, **self._more)
        whole = self._model.tokenizer.encode(written, special=False)
        answer = self._reader.answer(whole, self._ended, **rules)
        self._answer, self.messages = answer, asked
        return answer if stream else "".join(answer)

    def _ended(self, answer: Answer) -> None:
        self._answer = None
        self.messages.append({"role": "assistant", "content": answer.text})


def _text(given: object) -> str:
    """What is said, of which a template would make some text whatever it is."""
    if isinstance(given, str):
        return given
    hint = "chat.messages += messages[:-1]; chat.send(messages[-1]['content'])"
    got = type(given).__name__
    raise WrongTypeError("chat", "not a text", got=got, expected="a str", hint=hint)
