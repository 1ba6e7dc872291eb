"""`phlox run`, `chat`, `serve` and `transcribe`: models in a terminal, and for programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from phlox_tensor import PhloxError
from phlox_tensor.files import told
from phlox_tensor.needed import needing

from ._answer import Answer
from ._language_model import LanguageModel, load
from ._transcribe import main as transcribe

_RULES: Final = (
    ("--max-tokens", int, "N", "most tokens of an answer; as many as there is room for"),
    ("--temperature", float, "X", "what logits are divided by; 0 for the likeliest token"),
    ("--top-k", int, "N", "choose from so many tokens"),
    ("--top-p", float, "P", "choose from the likeliest tokens of this share together"),
    ("--min-p", float, "P", "choose from tokens of this part of the likeliest's share"),
    ("--repetition-penalty", float, "X", "above 1: repeat less"),
    ("--seed", int, "N", "what the draws follow from"),
)


def main(command: str, argv: Sequence[str]) -> int:
    """Run `phlox run`, `chat`, `serve` or `transcribe` with `argv`; return the exit status."""
    if command == "serve":
        return _serve(argv)
    if command == "transcribe":
        return transcribe(argv)
    options = _parser(command).parse_args(argv)
    rules = {name: value for name in _names() if (value := getattr(options, name)) is not None}
    if options.stop:
        rules["stop"] = options.stop
    try:
        model = _load(options)
        if command == "run":
            text = sys.stdin.read() if options.prompt is None else options.prompt
            _say(model.generate(text, stream=True, **rules), quiet=options.quiet)
        else:
            _talk(model, options, rules)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
    except KeyboardInterrupt:
        print()
        return 130
    except (PhloxError, OSError) as error:
        print(told(command, error), file=sys.stderr)
        return 1
    return 0


def _serve(argv: Sequence[str]) -> int:
    """Answer requests in the form of OpenAI's API."""
    parser = argparse.ArgumentParser(prog="phlox serve", description=_serve.__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="127.0.0.1: this machine alone")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--max-tokens", type=_count, default=1024, help="most tokens of an answer")
    parser.add_argument("--parallel", type=_count, default=8, help="requests answered together")
    parser.add_argument("--waiting", type=int, default=16, help="most requests that wait besides")
    _add_model(parser)
    options = parser.parse_args(argv)
    with needing("serve", "phlox-text[serve]", "anyio", "starlette", "uvicorn"):
        from ._serve import run  # noqa: PLC0415 - an extra, which this command alone needs
    try:
        model = _load(options)
    except (PhloxError, OSError) as error:
        print(told("serve", error), file=sys.stderr)
        return 1
    name = Path(options.folder).resolve().name
    print(f"{name}: http://{options.host}:{options.port}/v1", file=sys.stderr)
    run(model, name, options)
    return 0


def _count(text: str) -> int:
    """A number of the command line that is at least 1."""
    found = int(text)
    if found < 1:
        raise argparse.ArgumentTypeError(f"got {text}, expected at least 1")
    return found


def _add_model(parser: argparse.ArgumentParser) -> None:
    """Take what says which model, and where."""
    parser.add_argument("folder", help="with config.json and tokenizer.json, or a GGUF file")
    parser.add_argument("--adapters", metavar="FOLDER", help="of PEFT's, put beside the weights")
    parser.add_argument("--device", help="cpu, wgpu, numpy; by default the default device")
    parser.add_argument("--compile", action="store_true", help="compile the step of a token")
    parser.add_argument("--cache-bits", type=int, metavar="8", help="of keys and values")


def _load(options: argparse.Namespace) -> LanguageModel:
    return load(
        options.folder,
        options.device,
        adapters=options.adapters,
        compile=options.compile,
        cache_bits=options.cache_bits,
    )


def _names() -> list[str]:
    return [flag[2:].replace("-", "_") for flag, *_ in _RULES]


def _parser(command: str) -> argparse.ArgumentParser:
    told = {
        "run": "Go on with a text.",
        "chat": "Hold a conversation; /new begins again, /exit ends.",
    }
    parser = argparse.ArgumentParser(prog=f"phlox {command}", description=told[command])
    if command == "run":
        parser.add_argument("--prompt", metavar="TEXT", help="by default what stdin gives")
    else:
        parser.add_argument("--system", metavar="TEXT", help="told before the first turn")
    for flag, kind, metavar, text in _RULES:
        parser.add_argument(flag, type=kind, metavar=metavar, help=text)
    parser.add_argument(
        "--stop", action="append", metavar="TEXT", help="a text that ends an answer"
    )
    _add_model(parser)
    parser.add_argument("--quiet", action="store_true", help="say nothing of tokens and time")
    return parser


def _say(answer: Answer, *, quiet: bool) -> None:
    """Print an answer as it comes, then what it took."""
    try:
        for piece in answer:
            print(piece, end="", flush=True)
    except KeyboardInterrupt:  # enough of this answer; what was said stays
        answer.close()
    print(flush=True)
    if not quiet:
        count = len(answer.tokens)
        told = f"{answer.prompt_tokens} tokens read in {answer.first:.2f} s, {count} made"
        more = f", {answer.rate:.1f} tokens/s" if answer.rate else ""
        print(f"[{told}{more}; {answer.reason}]", file=sys.stderr)


def _talk(model: LanguageModel, options: Any, rules: dict[str, Any]) -> None:
    chat = model.chat(options.system)
    for line in _lines():
        if line.strip() == "/exit":
            return
        if line.strip() == "/new":
            chat = model.chat(options.system)
        elif line.strip():
            try:
                _say(chat.send(line, stream=True, **rules), quiet=options.quiet)
            except PhloxError as error:  # such as a full context: the conversation goes on
                print(error, file=sys.stderr)


def _lines() -> Iterator[str]:
    """What the user types, until the end of input."""
    asked = "> " if sys.stdin.isatty() else ""
    while True:
        try:
            yield input(asked)
        except EOFError:
            return
