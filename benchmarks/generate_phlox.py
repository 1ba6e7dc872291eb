"""The side of phlox in ``benchmarks.generate``: python -m benchmarks.generate_phlox FILE."""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import Any

import phlox as px
from phlox import nn
from phlox_nn.generation.compiled import with_compiled_layers
from phlox_nn.generation.sampling import Sampling, numbers_of
from phlox_nn.generation.steps import Generation

GREEDY = Sampling(temperature=0)


def main(path: str) -> None:
    """Answer until the input ends."""
    began = perf_counter()
    model: Any = nn.models.load(path, px.Cpu()).with_training(False).freeze()
    steps = with_compiled_layers(model, lambda function: px.compile(function))
    print(json.dumps({"load": perf_counter() - began}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(
            json.dumps(score(model, asked) if "rows" in asked else answer(steps, asked)), flush=True
        )


def answer(model: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Read a text, then go on with the likeliest tokens; say how long each took."""
    text: Any = px.asarray([asked["text"]], device=px.Cpu())
    count = asked["count"]
    began = perf_counter()
    steps = Generation(model).tokens(text, GREEDY, numbers_of(0, 1, count, GREEDY))
    tokens = [int(next(steps).item())]
    read = perf_counter() - began
    began = perf_counter()
    tokens += [int(each.item()) for each in steps]
    made = perf_counter() - began
    return {"read": read, "made": made, "tokens": tokens}


def score(model: Any, asked: dict[str, Any]) -> dict[str, float]:
    """The perplexity of rows of tokens."""
    from phlox_text._perplexity import perplexity  # noqa: PLC0415 - a cold start without it

    rows = (px.asarray([row], device=px.Cpu()) for row in asked["rows"])
    return {"perplexity": perplexity(model, rows)}


if __name__ == "__main__":
    main(sys.argv[1])
