"""Search sentences by meaning: `python -m examples.search "a question"`."""

import sys

import numpy as np

from examples.search.data import folder
from examples.search.model import Encoder
from examples.search.sentences import sentences
from examples.wheels import DataError


def search(encoder: Encoder, question: str, known: list[str], count: int = 5) -> list[str]:
    """Return the sentences that are most like a question, the best first."""
    vectors, wanted = encoder(known), encoder([question])[0]
    return [known[index] for index in np.argsort(-(vectors @ wanted), kind="stable")[:count]]


def main() -> int:
    """Print the sentences that are most like the question."""
    question = " ".join(sys.argv[1:]) or "an animal that sleeps"
    try:
        encoder = Encoder(folder())
    except (DataError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    print(question)
    for found in search(encoder, question, sentences()):
        print(f"  {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
