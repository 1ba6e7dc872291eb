"""`phlox serve`: a language model behind the routes of OpenAI's API, for this machine."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from time import time
from typing import Any, Final
from uuid import uuid4

import uvicorn
from anyio import CancelScope, Lock, Semaphore, to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from phlox_tensor import PhloxError

from ._batch import Batch, Row
from ._errors import TextError
from ._language_model import LanguageModel
from ._requests import Asked, asked_by

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1", "[::1]")
MOST_BYTES: Final = 4 << 20  # of a body: some hundred thousand tokens


class _RefusedError(Exception):
    """A request that is not read, and its status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Service:
    """Answers some requests together, which join and leave at each token; few wait besides."""

    def __init__(
        self, model: LanguageModel, name: str, *, parallel: int, waiting: int, max_tokens: int
    ) -> None:
        """Serve a model by a name."""
        self._model = model
        self._name = name
        self._most = max_tokens
        self._waiting = parallel + waiting
        self._open = 0
        self._batch = Batch(model)
        self._seats = Semaphore(parallel)  # tasks that wait and that release may differ
        self._turn = Lock()  # who has it makes the next step of all
        self._began = int(time())

    def app(self, hosts: list[str]) -> Starlette:
        """Return the application; ``hosts`` are the names by which it may be called."""
        return Starlette(
            routes=[
                Route("/health", self._health),
                Route("/v1/models", self._models),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/completions", self._complete, methods=["POST"]),
            ],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts)],
        )

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _models(self, _: Request) -> Response:
        about = {"id": self._name, "object": "model", "created": self._began, "owned_by": "phlox"}
        return JSONResponse({"object": "list", "data": [about]})

    async def _chat(self, request: Request) -> Response:
        return await self._served(request, chat=True)

    async def _complete(self, request: Request) -> Response:
        return await self._served(request, chat=False)

    async def _served(self, request: Request, *, chat: bool) -> Response:
        """Read a request, wait for its turn, answer it."""
        try:
            asked, whole = await self._read(request, chat=chat)
        except _RefusedError as error:
            return _refused(str(error), error.status)
        except ClientDisconnect:
            return Response(status_code=499)
        except (PhloxError, RecursionError, ValueError) as error:
            return _refused(str(error), 400)
        form, pieces = _Form(self._name, chat), self._pieces(whole, asked)
        try:
            # The answer without a piece yet: whether the text can be answered at all.
            answer: Any = await anext(pieces)
        except PhloxError as error:
            return _refused(str(error), 400)
        if asked.stream:
            events = _events(pieces, answer, form, usage=asked.usage)
            return StreamingResponse(events, media_type="text/event-stream")
        async with aclosing(pieces):
            try:
                async for _ in pieces:
                    if await request.is_disconnected():
                        return Response(status_code=499)
            except PhloxError as error:  # such as a device without room
                return _refused(str(error), 500)
        return JSONResponse(form.whole(answer))

    async def _read(self, request: Request, *, chat: bool) -> tuple[Asked, list[int]]:
        """What a request asks for, and its tokens."""
        # A page of another site cannot send this type without being asked first.
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise _RefusedError("the type of a body is application/json", 415)
        if self._open >= self._waiting:
            raise _RefusedError("too many requests are waiting", 429)
        found = bytearray()
        async for part in request.stream():
            found += part
            if len(found) > MOST_BYTES:
                raise _RefusedError(f"a body has at most {MOST_BYTES:,} bytes", 413)
        asked = asked_by(json.loads(found), chat=chat)
        whole = self._tokens(asked)
        most = asked.rules.get("max_tokens")
        if most is None:  # as many as there is room for
            most = max(self._model.model.context + 1 - len(whole), 1)
        asked.rules["max_tokens"] = min(most, self._most)
        return asked, whole

    def _tokens(self, asked: Asked) -> list[int]:
        """Tokens of a text, or of a conversation."""
        tokenizer = self._model.tokenizer
        if asked.messages is None:
            found = tokenizer.encode(asked.prompt)
        elif tokenizer.template is None:
            raise TextError("serve", "the model has no template of conversations")
        else:
            text = tokenizer.template.render(asked.messages, answer=True)
            found = tokenizer.encode(text, special=False)
        if not found:
            raise TextError("serve", "nothing to go on from")
        return found

    async def _pieces(self, whole: list[int], asked: Asked) -> AsyncGenerator[Any, None]:
        """Give the answer, then its pieces; whoever stops reading ends it."""
        self._open += 1
        try:
            async with self._seats:
                row = self._batch.add(whole, **asked.rules)
                try:
                    yield row
                    while True:
                        async with self._turn:
                            if not row.pieces and not row.ended:
                                await to_thread.run_sync(self._batch.step)
                        pieces, row.pieces = row.pieces, []
                        if pieces:
                            yield "".join(pieces)
                        if row.error is not None:
                            raise row.error
                        if row.ended:
                            return
                finally:
                    with CancelScope(shield=True):  # no step is under way while it leaves
                        async with self._turn:
                            self._batch.drop(row)
        finally:
            self._open -= 1


class _Form:
    """How answers are written."""

    def __init__(self, name: str, chat: bool) -> None:
        self._chat = chat
        self._kind = "chat.completion" if chat else "text_completion"
        self._about = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{uuid4().hex}",
            "created": int(time()),
            "model": name,
        }

    def whole(self, answer: Row) -> dict[str, Any]:
        """Return an answer at once."""
        said: dict[str, Any] = {"text": answer.text}
        if self._chat:
            said = {"message": {"role": "assistant", "content": answer.text}}
        choice = {"index": 0, "finish_reason": answer.reason, "logprobs": None, **said}
        return self._written([choice], self._kind) | {"usage": _usage(answer)}

    def piece(self, text: str | None, reason: str | None = None) -> dict[str, Any]:
        """Return a piece of an answer, or its end."""
        said: dict[str, Any] = {"text": text or ""}
        if self._chat:
            said = {"delta": {} if text is None else {"role": "assistant", "content": text}}
        choice = {"index": 0, "finish_reason": reason, "logprobs": None, **said}
        kind = "chat.completion.chunk" if self._chat else self._kind
        return self._written([choice], kind)

    def usage(self, answer: Row) -> dict[str, Any]:
        """Return what an answer took, as a piece without text."""
        kind = "chat.completion.chunk" if self._chat else self._kind
        return self._written([], kind) | {"usage": _usage(answer)}

    def _written(self, choices: list[Any], kind: str) -> dict[str, Any]:
        return {**self._about, "object": kind, "choices": choices}


async def _events(
    pieces: AsyncGenerator[Any, None], answer: Row, form: _Form, *, usage: bool
) -> AsyncIterator[str]:
    async with aclosing(pieces):
        try:
            async for piece in pieces:
                yield _event(form.piece(piece))
        except PhloxError as error:
            yield _event(_error(str(error)))
            return
        yield _event(form.piece(None, answer.reason))
        if usage:
            yield _event(form.usage(answer))
        yield "data: [DONE]\n\n"


def _event(said: dict[str, Any]) -> str:
    return f"data: {json.dumps(said, ensure_ascii=False)}\n\n"


def _usage(answer: Row) -> dict[str, int]:
    read, made = answer.prompt_tokens, len(answer.tokens)
    return {"prompt_tokens": read, "completion_tokens": made, "total_tokens": read + made}


def _error(message: str) -> dict[str, Any]:
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    }


def _refused(message: str, status: int) -> Response:
    return JSONResponse(_error(message), status_code=status)


def run(model: LanguageModel, name: str, options: Any) -> None:
    """Serve until the process is told to end."""
    service = Service(
        model,
        name,
        parallel=options.parallel,
        waiting=options.waiting,
        max_tokens=options.max_tokens,
    )
    alone = options.host in LOOPBACK
    app = service.app([*LOOPBACK] if alone else ["*"])
    uvicorn.run(app, host=options.host, port=options.port, log_level="warning")
