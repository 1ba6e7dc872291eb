"""Requests in the form of OpenAI's API: what is asked, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ._errors import TextError
from ._settings import Rules, check_rules

_RULES: Final = ("seed", "temperature", "top_k", "top_p", "min_p", "repetition_penalty")
_NUMBERS: Final = {
    "max_completion_tokens": int,
    "max_tokens": int,
    "min_p": float,
    "repetition_penalty": float,
    "seed": int,
    "temperature": float,
    "top_k": int,
    "top_p": float,
}
# What this server does not do, and the values that ask for nothing.
_REFUSED: Final[Mapping[str, tuple[Any, ...]]] = {
    "best_of": (None, 1),
    "echo": (None, False),
    "frequency_penalty": (None, 0),
    "functions": (None, []),
    "logit_bias": (None, {}),
    "logprobs": (None, False, 0),
    "n": (None, 1),
    "presence_penalty": (None, 0),
    "response_format": (None, {"type": "text"}),
    "suffix": (None, ""),
    "tools": (None, []),
}


@dataclass(frozen=True)
class Asked:
    """A request.

    Attributes:
        messages: the conversation, of a chat.
        prompt: the text to go on with, otherwise.
        rules: how it goes on.
        stream: whether pieces are sent as they come.
        usage: whether a last piece says how many tokens there were.
    """

    messages: list[dict[str, str]] | None
    prompt: str | None
    rules: Rules
    stream: bool
    usage: bool


def asked_by(body: Any, *, chat: bool) -> Asked:
    """Return what a body asks for.

    Raises:
        TextError: naming the field that is wrong or not served.
    """
    if not isinstance(body, dict):
        raise TextError("serve", "the body is no object", got=type(body).__name__)
    for name, nothing in _REFUSED.items():
        if body.get(name) not in nothing:
            raise TextError("serve", f"{name} is not served", got=body[name], expected="none")
    for name, kind in _NUMBERS.items():
        value = body.get(name)
        fits = type(value) is int or (kind is float and type(value) is float)
        if value is not None and not fits:
            what = "a whole number" if kind is int else "a number"
            raise TextError("serve", f"{name} is no number", got=repr(value)[:40], expected=what)
    given: Any = {name: body[name] for name in _RULES if body.get(name) is not None}
    most = body.get("max_completion_tokens")  # null as if it were not there
    given["max_tokens"] = body.get("max_tokens") if most is None else most
    if body.get("stop") is not None:
        given["stop"] = body["stop"]
    check_rules(given, "serve")
    options = body.get("stream_options")
    usage = isinstance(options, dict) and options.get("include_usage") is True
    stream = body.get("stream") is True
    if chat:
        return Asked(_messages(body.get("messages")), None, given, stream, usage)
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:  # as clients of several texts send one
        prompt = prompt[0]
    if not isinstance(prompt, str):
        got = type(prompt).__name__
        raise TextError("serve", "prompt is no text", got=got, expected="one text")
    return Asked(None, prompt, given, stream, usage)


def _messages(given: Any) -> list[dict[str, str]]:
    """Messages whose contents are texts, whole or in parts."""
    if not isinstance(given, list) or not given:
        raise TextError("serve", "there are no messages", expected="a list of them")
    found = []
    for each in given:
        role = each.get("role") if isinstance(each, dict) else None
        content = each.get("content") if isinstance(each, dict) else None
        if isinstance(content, list):
            parts = [part.get("text") if isinstance(part, dict) else None for part in content]
            content = None if None in parts else "".join(map(str, parts))
        if not isinstance(role, str) or not isinstance(content, str):
            got = repr(each)[:60]
            raise TextError("serve", "a message is no text", got=got, expected="role and content")
        found.append({"role": role, "content": content})
    return found
