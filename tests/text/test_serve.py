"""`phlox serve` beside programs that speak HTTP."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from phlox import text
from phlox_text import _serve
from phlox_text._batch import Batch
from tests.text.folders import TEXT, write_folder

RULES: Any = {"max_tokens": 24, "seed": 3, "temperature": 0.8}
TALK = [{"role": "user", "content": "Hello"}]


class Served:
    """A server in a thread of this process."""

    def __init__(self, model: text.LanguageModel) -> None:
        self.model = model
        self.service = _serve.Service(model, "tiny", parallel=3, waiting=3, max_tokens=200)
        app = self.service.app([*_serve.LOOPBACK])
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self.thread.start()

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=60)

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with closing(self.connect()) as connection:
            sent = {"Content-Type": "application/json", **headers}
            connection.request("POST", path, data, sent)
            answer = connection.getresponse()
            said = answer.read()
        return answer.status, json.loads(said) if said.startswith(b"{") else said.decode()

    def wait_until_free(self) -> None:
        limit = time.monotonic() + 30
        while self.service._open:
            assert time.monotonic() < limit
            time.sleep(0.01)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(text.load(write_folder(tmp_path_factory.mktemp("model"))))
    yield made
    made.server.should_exit = True
    made.thread.join(30)
    made.socket.close()
    assert not made.thread.is_alive()


def events(said: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in said.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_text_goes_on_as_it_does_here(served: Served) -> None:
    want = served.model.generate("Now is", **RULES)
    status, said = served.post("/v1/completions", {"model": "x", "prompt": "Now is", **RULES})
    assert status == 200
    assert said["object"] == "text_completion"
    choice = said["choices"][0]
    assert choice["text"] == want
    usage = said["usage"]
    assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"]
    assert usage["completion_tokens"] <= 24
    others = {"max_completion_tokens": None, "max_tokens": 3}  # null says nothing
    status, said = served.post("/v1/completions", {"prompt": ["Now is"], **others})
    assert said["usage"]["completion_tokens"] == 3
    status, stream = served.post(
        "/v1/completions", {"prompt": "Now is", "stream": True, "n": 1, "tools": [], **RULES}
    )
    pieces = events(stream)
    assert "".join(piece["choices"][0]["text"] for piece in pieces) == want
    assert pieces[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]


def test_a_conversation_is_answered_whole_and_in_pieces(served: Served) -> None:
    chat = served.model.chat()
    want = chat.send("Hello", **RULES)
    body = {"messages": TALK, **RULES}
    status, said = served.post("/v1/chat/completions", body)
    assert status == 200
    assert said["choices"][0]["message"] == {"role": "assistant", "content": want}
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    options = {"messages": parts, "stream": True, "stream_options": {"include_usage": True}}
    status, stream = served.post("/v1/chat/completions", {**body, **options})
    *pieces, usage = events(stream)
    deltas = [piece["choices"][0]["delta"].get("content", "") for piece in pieces]
    assert "".join(deltas) == want
    assert len(deltas) > 4
    assert usage["usage"]["completion_tokens"] == said["usage"]["completion_tokens"]
    # Without a count an answer has as many tokens as the server gives.
    status, said = served.post("/v1/chat/completions", {"messages": TALK, "seed": 1, "top_k": 200})
    assert said["usage"]["completion_tokens"] <= 200


def test_requests_at_once_get_their_own_answers(served: Served) -> None:
    prompts = ["Now", "is the", "winter"]
    want = [served.model.generate(prompt, **RULES) for prompt in prompts]
    found: dict[int, Any] = {}

    def ask(place: int) -> None:
        found[place] = served.post("/v1/completions", {"prompt": prompts[place], **RULES})

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i][1]["choices"][0]["text"] for i in range(3)] == want


def test_a_client_that_goes_away_ends_its_answer(served: Served, monkeypatch: Any) -> None:
    made: list[float] = []
    step = Batch.step

    def slow(self: Batch) -> None:
        time.sleep(0.02)
        made.append(time.monotonic())
        step(self)

    rules: Any = {"max_tokens": 190, "seed": 5, "top_k": 320}
    assert len(list(served.model.generate("Now is", stream=True, **rules))) > 100
    monkeypatch.setattr(Batch, "step", slow)
    body = {"prompt": "Now is", **rules}
    for stream in (True, False):
        made.clear()
        data = json.dumps({**body, "stream": stream}).encode()
        connection = served.connect()
        connection.request("POST", "/v1/completions", data, {"Content-Type": "application/json"})
        limit = time.monotonic() + 30
        while len(made) < 3 and time.monotonic() < limit:
            time.sleep(0.01)
        connection.close()
        served.wait_until_free()
        assert 3 <= len(made) < 60
    monkeypatch.undo()
    status, _ = served.post("/v1/completions", {"prompt": "Now is", **RULES})
    assert status == 200


def test_what_is_not_served_is_said(served: Served, monkeypatch: Any) -> None:
    def refused(body: Any, status: int, said: str, path: str = "/v1/completions") -> None:
        got, answer = served.post(path, body)
        assert got == status
        assert said in answer["error"]["message"]

    refused(b"{", 400, "")
    refused(b"[" * 200_000, 400, "")
    refused([], 400, "the body is no object")
    refused({"prompt": 3}, 400, "prompt is no text")
    refused({"prompt": ["x", "y"]}, 400, "prompt is no text")
    refused({"prompt": "x", "temperature": float("nan")}, 400, "no choice")
    refused({"prompt": "x", "n": 2}, 400, "n is not served")
    refused({"prompt": "x", "temperature": "hot"}, 400, "temperature is no number")
    refused({"prompt": "x", "max_tokens": True}, 400, "max_tokens is no number")
    refused({"prompt": "x", "max_tokens": 0}, 400, "max_tokens is no count")
    refused({"prompt": "x", "top_p": 7}, 400, "top_p is no share")
    refused({"prompt": "x", "stop": [3]}, 400, "stop is no text")
    refused({"prompt": ""}, 400, "nothing to go on from")
    refused({"prompt": TEXT * 60}, 400, "the context has no room")
    chat = "/v1/chat/completions"
    refused({"messages": []}, 400, "there are no messages", chat)
    refused(
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "no text", chat
    )
    refused({"messages": TALK, "tools": [{}]}, 400, "tools is not served", chat)
    assert (
        served.post("/v1/completions", {"prompt": "x"}, **{"Content-Type": "text/plain"})[0] == 415
    )
    assert served.post("/v1/completions", {"prompt": "x"}, Host="evil.example")[0] == 400
    monkeypatch.setattr(_serve, "MOST_BYTES", 100)
    refused({"prompt": "x" * 200}, 413, "at most 100 bytes")
    monkeypatch.setattr(served.service, "_waiting", 0)
    monkeypatch.setattr(_serve, "MOST_BYTES", 10_000)
    refused({"prompt": "x"}, 429, "too many requests")
    monkeypatch.undo()
    with closing(served.connect()) as connection:
        connection.request("GET", "/v1/models")
        assert json.loads(connection.getresponse().read())["data"][0]["id"] == "tiny"
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200


@pytest.mark.long
def test_the_client_of_openai_is_served(served: Served) -> None:
    openai: Any = pytest.importorskip("openai", reason="it comes with ./x test --long")
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{served.port}/v1", api_key="none")
    rules: dict[str, Any] = {"model": "tiny", "max_tokens": 24, "seed": 3, "temperature": 0.8}
    whole = client.chat.completions.create(messages=TALK, **rules)
    assert whole.choices[0].finish_reason in {"length", "stop"}
    stream = client.chat.completions.create(messages=TALK, stream=True, **rules)
    pieces = [piece.choices[0].delta.content or "" for piece in stream]
    assert "".join(pieces) == whole.choices[0].message.content
    assert client.completions.create(prompt="Now is", **rules).choices[0].text
    assert [each.id for each in client.models.list()] == ["tiny"]
    with pytest.raises(openai.BadRequestError, match="n is not served"):
        client.completions.create(prompt="Now is", n=2, **rules)


def test_the_command_says_where_it_serves(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    from phlox._cli import main

    folder = tmp_path / "small"
    folder.mkdir()
    write_folder(folder)
    given: list[Any] = []
    monkeypatch.setattr(uvicorn, "run", lambda app, **options: given.append(options))
    assert main(["serve", str(folder), "--port", "8123"]) == 0
    assert given == [{"host": "127.0.0.1", "port": 8123, "log_level": "warning"}]
    assert capsys.readouterr().err == "small: http://127.0.0.1:8123/v1\n"
    for flag in ("--parallel", "--max-tokens"):
        with pytest.raises(SystemExit):
            main(["serve", str(folder), flag, "0"])
        assert "got 0, expected at least 1" in capsys.readouterr().err
    assert main(["serve", str(tmp_path / "none")]) == 1
    assert "there is no model" in capsys.readouterr().err
