#!/usr/bin/env bash
# sentencepiece 0.2.3: a user-defined symbol with a space is in the vocabulary and never matches.
#
# Guess: "New York" is one token wherever it occurs: the page "Use custom symbols" of the project
# says that a user-defined symbol is one token in any context. Or the trainer refuses the space.
# Done: train with the symbols "<end>" and "New York", look both up and encode them; then once more
# with the escaped form, the lower-one-eighth-block character for the space.
# Seen: "New York" has an id, but the text is split into letters, because spaces are escaped before
# the symbols are looked for. "<end>" is matched, and so is the escaped form.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sentencepiece==0.2.3
"$folder/venv/bin/python" - <<'PYTHON'
import os
import tempfile

import sentencepiece

words = ["the", "cat", "sat", "on", "mat", "dog", "ran"]
lines = [" ".join(words[(i * j) % 7] for j in range(1, 7)) for i in range(1, 500)]
with tempfile.TemporaryDirectory() as folder:

    def train(symbols):
        source, prefix = os.path.join(folder, "text"), os.path.join(folder, "model")
        with open(source, "w") as file:
            file.write("\n".join(lines))
        sentencepiece.SentencePieceTrainer.train(
            input=source,
            model_prefix=prefix,
            model_type="bpe",
            vocab_size=30,
            hard_vocab_limit=False,
            user_defined_symbols=symbols,
            minloglevel=9,
        )
        return sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")

    text = "the New York cat <end>"
    plain, escaped = train(["<end>", "New York"]), train(["<end>", "New\u2581York"])
    seen = plain.encode(text, out_type=str), escaped.encode(text, out_type=str)
    print("id of the symbol:", plain.piece_to_id("New York"), "pieces:", seen[0])
    print("escaped symbol, pieces:", seen[1])
    assert plain.id_to_piece(plain.piece_to_id("New York")) == "New York"
    assert "New York" not in seen[0] and "<end>" in seen[0]
    assert "New\u2581York" in seen[1]
PYTHON
