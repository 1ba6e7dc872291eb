#!/usr/bin/env bash
# torchmetrics 1.9.0: `MultilabelRankingLoss` of equal scores depends on where the labels stand.
#
# Guess: that of scikit-learn's `label_ranking_loss`, which the page "Label Ranking Loss" describes
# alike: pairs that are ordered wrongly, where an equal score is a wrong order. So a model that gives
# all labels the same score has a loss of 1, as it knows nothing.
# Done: five equal scores, and the one right label at each of the five places.
# Seen: 1, 0.75, 0.5, 0.25 and 0. Equal scores are ranked by their place, so the same model is the
# worst or a perfect one by the order of the columns. Scores tie where a sigmoid saturates or in half
# precision; `MultilabelRankingAveragePrecision` beside it counts ties as scikit-learn does.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torchmetrics==1.9.0 torch==2.15.0 numpy==2.4.6 scikit-learn==1.9.1
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from sklearn.metrics import label_ranking_average_precision_score, label_ranking_loss
from torchmetrics.functional.classification import (
    multilabel_ranking_average_precision,
    multilabel_ranking_loss,
)

scores = torch.full((1, 5), 0.5)
rows = torch.eye(5, dtype=torch.long)[:, None]
losses = [round(multilabel_ranking_loss(scores, row, 5).item(), 6) for row in rows]
theirs = [label_ranking_loss(row, scores) for row in rows]
print("torchmetrics", losses)
print("scikit-learn", theirs)
assert losses == [1.0, 0.75, 0.5, 0.25, 0.0], "ties are no longer ranked by their place"
assert theirs == [1.0] * 5
for row in rows:
    ours = multilabel_ranking_average_precision(scores, row, 5).item()
    assert abs(ours - label_ranking_average_precision_score(row, scores)) < 1e-6
PYTHON
