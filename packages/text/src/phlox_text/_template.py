"""Chat templates: conversations as text, by jinja2 in its sandbox, as transformers writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

from ._errors import TextError
from ._files import read_bytes, read_json

_ROLES: Final = '[{"role": "user", "content": "Hello"}]'


class ChatTemplate:
    """Writes a conversation as the text that a model was trained on.

    A template is code of others: it runs in the sandbox of jinja2, which reaches no attribute that
    begins with an underscore and changes no value that it is given.

    Example:
        >>> t = ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")
        >>> t.render([{"role": "user", "content": "Hello"}])
        '<user>Hello'
    """

    def __init__(
        self, source: str, special: Mapping[str, str] | None = None, *, unread: bool = False
    ) -> None:
        """Read a template.

        Args:
            source: its text.
            special: tokens by their names in templates.
            unread: whether it is read when a conversation is written first.

        Raises:
            TextError: for what is none.
        """
        self.source: Final = source
        self._special = dict(special or {})
        if not unread:
            _ = self._template

    @cached_property
    def _template(self) -> Any:
        from jinja2 import TemplateError  # noqa: PLC0415 - slow, and only conversations need it

        from ._jinja import environment  # noqa: PLC0415 - the same

        try:
            return environment().from_string(self.source)
        except TemplateError as error:
            raise TextError("chat", "the template is none", got=error) from None

    @classmethod
    def beside(
        cls, folder: Path, settings: Mapping[str, Any], special: Mapping[str, str]
    ) -> Self | None:
        """Return the template of a folder and its ``tokenizer_config.json``; None without one."""
        file = folder / "chat_template.jinja"
        found = settings.get("chat_template")
        found = read_json(folder / "chat_template.json", "chat").get("chat_template", found)
        if file.is_file():
            found = read_bytes(file, "chat").decode("utf-8", "replace")
        if isinstance(found, list):  # several by name
            named = {each.get("name"): each.get("template") for each in found if type(each) is dict}
            found = named.get("default")
        return cls(found, special, unread=True) if isinstance(found, str) else None

    def render(
        self,
        messages: Any,
        *,
        answer: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **more: Any,
    ) -> str:
        """Return a conversation as text.

        Args:
            messages: a list of dicts, each with a ``role`` and, mostly, a ``content``.
            answer: whether the beginning of an answer follows.
            tools: what the model may call, as JSON schemas.
            more: what else the template asks for, such as ``enable_thinking``.

        Raises:
            TextError: for messages that are none, and where the template refuses or fails.
        """
        given = messages if isinstance(messages, list | tuple) else [None]
        known = [dict(each) for each in given if isinstance(each, Mapping) and "role" in each]
        if len(known) != len(given):
            raise TextError(
                "chat", "these are no messages", got=repr(messages)[:60], expected=_ROLES
            )
        values: dict[str, Any] = {"documents": None, **self._special, **more}
        values |= {"messages": known, "tools": tools, "add_generation_prompt": answer}
        template = self._template
        from jinja2 import TemplateError  # noqa: PLC0415 - the template has loaded it

        try:
            return str(template.render(values))
        except TemplateError as error:
            raise TextError("chat", "the template refuses the conversation", got=error) from None
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            got = f"{type(error).__name__}: {error}"
            raise TextError("chat", "the template fails", got=got) from None
