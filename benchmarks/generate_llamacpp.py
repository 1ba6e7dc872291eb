"""The side of llama.cpp in ``benchmarks.generate``: answers a line of its input by a line of JSON.

It runs in an environment of its own, where phlox is not: python generate_llamacpp.py THREADS FILE.
With the name of a form and a further path it writes the file there in this form.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from time import perf_counter
from typing import Any

import llama_cpp  # pyright: ignore[reportMissingImports] - in its own environment alone
import numpy as np


def main(threads: int, path: str) -> None:
    """Answer until the input ends."""
    began = perf_counter()
    model: Any = llama_cpp.Llama(
        path, n_ctx=1024, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False
    )
    tell({"load": perf_counter() - began})
    for line in sys.stdin:
        asked = json.loads(line)
        tell(perplexity(model, asked["rows"]) if "rows" in asked else answer(model, asked))


def answer(model: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Read a text, then go on with the likeliest tokens; say how long each took."""
    model.reset()
    began = perf_counter()
    model.eval(asked["text"])
    tokens = [likeliest(model)]
    read = perf_counter() - began
    began = perf_counter()
    for _ in range(asked["count"] - 1):
        model.eval(tokens[-1:])
        tokens.append(likeliest(model))
    made = perf_counter() - began
    return {"read": read, "made": made, "tokens": tokens}


def perplexity(model: Any, rows: list[list[int]]) -> dict[str, float]:
    """Return exp of the mean of -log of the share of each token but the first of a row."""
    found = []
    for row in rows:
        model.reset()
        for token, following in pairwise(row):
            model.eval([token])
            shares = logits(model).astype(np.float64)
            least = shares.max()
            found.append(least + np.log(np.exp(shares - least).sum()) - shares[following])
    return {"perplexity": float(np.exp(np.mean(found)))}


def likeliest(model: Any) -> int:
    """The token of the largest logit."""
    return int(logits(model).argmax())


def logits(model: Any) -> Any:
    """Those after the last token."""
    start = llama_cpp.llama_get_logits(model.ctx)
    return np.ctypeslib.as_array(start, shape=(model.n_vocab(),))


def quantize(threads: int, path: str, form: str, to: str) -> None:
    """Write a file anew."""
    chosen = llama_cpp.llama_model_quantize_default_params()
    chosen.nthread, chosen.ftype = threads, getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{form}")
    if llama_cpp.llama_model_quantize(path.encode(), to.encode(), chosen):
        sys.exit(f"llama.cpp does not quantize {path}")


def tell(said: dict[str, Any]) -> None:
    """Write a line."""
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    (main if len(sys.argv) == 3 else quantize)(int(sys.argv[1]), *sys.argv[2:])
