#!/usr/bin/env bash
# torchmetrics 1.9.0: `CHRFScore` of a short text beside itself is far below 1.
#
# Guess: 1, as for every text; and the value of sacrebleu, whose implementation the page "ChrF Score"
# says that it follows, and beside which the tests of torchmetrics compare it.
# Done: texts of two to eight letters beside themselves, by both, without n-grams of words.
# Seen: "ab" has 0.333, "word" 0.667; sacrebleu gives 1 for all. A text of n letters has n-grams of
# up to n letters alone: sacrebleu takes the mean over orders that occur, torchmetrics over six, so
# the best score of n letters is n / 6. Labels, answers and codes are such texts.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torchmetrics==1.9.0 torch==2.15.0 numpy==2.4.6 sacrebleu==2.6.0
"$folder/venv/bin/python" - <<'PYTHON'
import sacrebleu
from torchmetrics.functional.text import chrf_score

for text in ("ab", "yes", "word", "seven", "abcdefgh"):
    ours = chrf_score([text], [[text]], n_word_order=0).item()
    theirs = sacrebleu.corpus_chrf([text], [[text]]).score / 100
    print(f"{text:9} torchmetrics {ours:.3f}  sacrebleu {theirs:.3f}")
    assert abs(theirs - 1) < 1e-9
    assert abs(ours - min(len(text), 6) / 6) < 1e-6, "orders that do not occur are left out now"
PYTHON
