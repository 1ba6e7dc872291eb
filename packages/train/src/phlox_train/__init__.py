"""Training: one whole step, runs that go on to the bit, and ``fit`` as one page over them.

```python
learner = train.Learner(model, optimizer, 1e-3)
for batch in batches:
    print(learner.step(forward, batch)["loss"])
```
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from phlox_tensor.public import publish as _publish

from ._cli import cli as cli
from ._elsewhere import NAMES as _NAMES
from ._evaluate import evaluate as evaluate
from ._evaluate import predict as predict
from ._find_lr import RateTrial as RateTrial
from ._find_lr import find_lr as find_lr
from ._fit import Fitted as Fitted
from ._fit import fit as fit
from .metrics.metric import Metric as Metric
from .metrics.totals import Results as Results
from .runs.checkpoints import Checkpoints as Checkpoints
from .runs.errors import RunError as RunError
from .runs.events import EpochEnded as EpochEnded
from .runs.events import Event as Event
from .runs.events import Failed as Failed
from .runs.events import Measured as Measured
from .runs.events import Saved as Saved
from .runs.events import Started as Started
from .runs.events import Stepped as Stepped
from .runs.events import Stopped as Stopped
from .runs.events import Validated as Validated
from .runs.keep import Every as Every
from .runs.keep import KeepBest as KeepBest
from .runs.keep import KeepLast as KeepLast
from .runs.keep import KeepRule as KeepRule
from .runs.keep import Kept as Kept
from .runs.results import Best as Best
from .runs.results import Series as Series
from .runs.run import Run as Run
from .runs.stop import MaxTime as MaxTime
from .runs.stop import NoImprovement as NoImprovement
from .runs.stop import NotFinite as NotFinite
from .runs.stop import Reached as Reached
from .runs.stop import Seen as Seen
from .runs.stop import StopRule as StopRule
from .step.ema import Ema as Ema
from .step.learner import Learner as Learner

if _TYPE_CHECKING:  # metrics are loaded when the first one is asked for
    from .metrics.clusters import AdjustedRand as AdjustedRand
    from .metrics.clusters import Completeness as Completeness
    from .metrics.clusters import FowlkesMallows as FowlkesMallows
    from .metrics.clusters import Homogeneity as Homogeneity
    from .metrics.clusters import MutualInformation as MutualInformation
    from .metrics.clusters import Rand as Rand
    from .metrics.clusters import VMeasure as VMeasure
    from .metrics.counts import Accuracy as Accuracy
    from .metrics.counts import BalancedAccuracy as BalancedAccuracy
    from .metrics.counts import CohenKappa as CohenKappa
    from .metrics.counts import ConfusionMatrix as ConfusionMatrix
    from .metrics.counts import Dice as Dice
    from .metrics.counts import ExactMatch as ExactMatch
    from .metrics.counts import FBeta as FBeta
    from .metrics.counts import Hamming as Hamming
    from .metrics.counts import Jaccard as Jaccard
    from .metrics.counts import MatthewsCorrelation as MatthewsCorrelation
    from .metrics.counts import Precision as Precision
    from .metrics.counts import Recall as Recall
    from .metrics.counts import Specificity as Specificity
    from .metrics.curves import AUROC as AUROC
    from .metrics.curves import ROC as ROC
    from .metrics.curves import AveragePrecision as AveragePrecision
    from .metrics.curves import PrecisionRecallCurve as PrecisionRecallCurve
    from .metrics.detection import MeanAveragePrecision as MeanAveragePrecision
    from .metrics.detection import MeanAverageRecall as MeanAverageRecall
    from .metrics.features import FrechetDistance as FrechetDistance
    from .metrics.images import PSNR as PSNR
    from .metrics.images import SSIM as SSIM
    from .metrics.images import MultiScaleSSIM as MultiScaleSSIM
    from .metrics.likelihood import Brier as Brier
    from .metrics.likelihood import CalibrationError as CalibrationError
    from .metrics.likelihood import Hinge as Hinge
    from .metrics.likelihood import LogLoss as LogLoss
    from .metrics.likelihood import Perplexity as Perplexity
    from .metrics.moments import R2 as R2
    from .metrics.moments import ConcordanceCorrelation as ConcordanceCorrelation
    from .metrics.moments import ExplainedVariance as ExplainedVariance
    from .metrics.moments import PearsonCorrelation as PearsonCorrelation
    from .metrics.orders import KendallCorrelation as KendallCorrelation
    from .metrics.orders import MedianAbsoluteError as MedianAbsoluteError
    from .metrics.orders import SpearmanCorrelation as SpearmanCorrelation
    from .metrics.ranking import MAP as MAP
    from .metrics.ranking import MRR as MRR
    from .metrics.ranking import NDCG as NDCG
    from .metrics.ranking import HitRate as HitRate
    from .metrics.ranking import PrecisionAtK as PrecisionAtK
    from .metrics.ranking import RecallAtK as RecallAtK
    from .metrics.regression import CosineSimilarity as CosineSimilarity
    from .metrics.regression import KLDivergence as KLDivergence
    from .metrics.regression import LogCosh as LogCosh
    from .metrics.regression import MeanAbsoluteError as MeanAbsoluteError
    from .metrics.regression import MeanAbsolutePercentageError as MeanAbsolutePercentageError
    from .metrics.regression import MeanSquaredError as MeanSquaredError
    from .metrics.regression import MeanSquaredLogError as MeanSquaredLogError
    from .metrics.regression import Pinball as Pinball
    from .metrics.regression import RootMeanSquaredError as RootMeanSquaredError
    from .metrics.regression import (
        SymmetricMeanAbsolutePercentageError as SymmetricMeanAbsolutePercentageError,
    )
    from .metrics.regression import TweedieDeviance as TweedieDeviance
    from .metrics.regression import (
        WeightedMeanAbsolutePercentageError as WeightedMeanAbsolutePercentageError,
    )
    from .metrics.signals import Average as Average
    from .metrics.signals import ScaleInvariantSDR as ScaleInvariantSDR
    from .metrics.signals import SignalNoiseRatio as SignalNoiseRatio
    from .metrics.text import BLEU as BLEU
    from .metrics.text import CER as CER
    from .metrics.text import CHRF as CHRF
    from .metrics.text import ROUGE as ROUGE
    from .metrics.text import WER as WER
    from .metrics.text import EditDistance as EditDistance

__version__ = "0.1.0"


def _metrics() -> dict[str, _Any]:
    from .metrics.rows import ROWS  # noqa: PLC0415 - slow, and not every training has metrics

    return ROWS


_publish(__name__, _NAMES, rooms=("metrics", "runs", "step"), later=_metrics)
