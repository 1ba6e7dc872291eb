"""Text as tokens and back: the pieces of a ``tokenizer.json``, whole or as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import tokenizers

from phlox_tensor import WrongTypeError
from phlox_tensor.files import look

from ._errors import TextError
from ._files import read_bytes, read_json
from ._gguf import ends_of, read_gguf, special_of, tokenizer_of
from ._template import ChatTemplate

_LOST = "\ufffd"  # what decoders give for bytes that are no character, or none yet
_NAMES: Final = ("bos_token", "eos_token", "pad_token", "unk_token")


class Tokenizer:
    """Turns text into tokens and tokens into text, as the files of a model say.

    Attributes:
        backend: the ``tokenizers.Tokenizer`` that does it.
        special: tokens by their names in templates, such as ``eos_token``.
        ends: tokens that end a text.
        template: how conversations are written; None where no file says it.
        header: what the GGUF file said that it came in; None for other files.

    Example:
        >>> from tokenizers import Tokenizer as Backend, models
        >>> tokenizer = Tokenizer(Backend(models.WordLevel({"to": 0, "be": 1}, "to")))
        >>> tokenizer.encode("be")
        [1]
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        special: Mapping[str, str] | None = None,
        template: ChatTemplate | None = None,
        ends: Sequence[int] = (),
    ) -> None:
        """Wrap a tokenizer, which neither cuts nor fills texts from now on."""
        backend.no_truncation()
        backend.no_padding()
        self.backend: Final = backend
        self.special: Final = dict(special or {})
        end = self.special.get("eos_token")
        known = None if end is None else backend.token_to_id(end)
        found = [*ends, *(() if known is None else (known,))]
        self.ends: Final[tuple[int, ...]] = tuple(dict.fromkeys(found))
        self.template: Final = template
        self.header: Mapping[str, Any] | None = None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the tokenizer of a folder, of a ``tokenizer.json`` or of a GGUF file.

        Read are ``tokenizer.json``, ``tokenizer_config.json``, ``special_tokens_map.json`` and
        the template of ``chat_template.jinja``; no code of others is run.

        Raises:
            TextError: where there is none, or it cannot be read.
        """
        place = Path(path)
        file = place / "tokenizer.json" if place.is_dir() else place
        if place.is_dir() and not file.exists():
            file = next(iter(sorted(place.glob("*.gguf"))), file)
        if file.suffix == ".gguf" and file.is_file():
            return cls._of_gguf(file)
        if not file.is_file():
            raise TextError(
                "tokenizer",
                "there is no tokenizer",
                got=str(place),
                expected="a folder with tokenizer.json, such a file, or a GGUF file",
                hint=look(place),
            )
        try:
            backend = tokenizers.Tokenizer.from_buffer(read_bytes(file, "tokenizer"))
        except TextError:
            raise
        except Exception as error:
            raise TextError("tokenizer", f"{file} is no tokenizer", got=error) from None
        settings = {
            **read_json(file.parent / "special_tokens_map.json", "tokenizer"),
            **read_json(file.parent / "tokenizer_config.json", "tokenizer"),
        }
        special = dict(_special(settings))
        return cls(backend, special, ChatTemplate.beside(file.parent, settings, special))

    @classmethod
    def _of_gguf(cls, file: Path) -> Self:
        about = read_gguf(file)
        made, special = tokenizer_of(about, file), dict(special_of(about))
        source = about.get("chat_template")
        template = ChatTemplate(source, special, unread=True) if isinstance(source, str) else None
        tokenizer = cls(made, special, template, ends_of(about))
        tokenizer.header = about
        return tokenizer

    @property
    def words(self) -> int:
        """The number of tokens, which is one more than the largest."""
        return max(self.backend.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def encode(self, text: Any, *, special: bool = True) -> list[int]:
        """Return the tokens of a text, those that begin and end it included unless told.

        Raises:
            WrongTypeError: for what is no text.
        """
        if not isinstance(text, str):
            got = type(text).__name__
            raise WrongTypeError("tokenizer", "not a text", got=got, expected="a str")
        return list(self.backend.encode(text, add_special_tokens=special).ids)

    def decode(self, tokens: Sequence[int], *, special: bool = False) -> str:
        """Return the text of tokens, without those that stand for no text unless told."""
        return str(self.backend.decode(list(tokens), skip_special_tokens=not special))

    def stream(self) -> TokenStream:
        """Return what turns tokens into text as they come."""
        return TokenStream(self)


class TokenStream:
    """Text of tokens that come one by one; no character is cut.

    Example:
        >>> from tokenizers import Tokenizer as Backend, decoders, models
        >>> backend = Backend(models.WordLevel({"<0xC3>": 0, "<0xA4>": 1}, "<0xC3>"))
        >>> backend.decoder = decoders.ByteFallback()
        >>> stream = Tokenizer(backend).stream()
        >>> stream.add(0), stream.add(1)
        ('', 'ä')
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Start with no token."""
        self._tokenizer = tokenizer
        self._tokens: list[int] = []
        self._start = 0  # tokens before are not decoded again
        self._given = 0  # the text of tokens before was given

    def add(self, token: int) -> str:
        """Return the text that a token ends; empty while a character is not whole."""
        self._tokens.append(token)
        return self._new(whole=False)

    def rest(self) -> str:
        """Return what is left in the end, where it is no whole character either."""
        return self._new(whole=True)

    def _new(self, *, whole: bool) -> str:
        # Decoded beside the tokens before: a decoder may drop a space in front of the first.
        before = self._tokenizer.decode(self._tokens[self._start : self._given])
        text = self._tokenizer.decode(self._tokens[self._start :])
        if len(text) <= len(before) or (text.endswith(_LOST) and not whole):
            return ""
        self._start, self._given = self._given, len(self._tokens)
        return text[len(before) :]


def _special(settings: Mapping[str, Any]) -> Any:
    """Names and texts of special tokens, which files write in two ways."""
    for name in _NAMES:
        token = settings.get(name)
        token = token.get("content") if isinstance(token, dict) else token
        if isinstance(token, str):
            yield name, token
