"""What PyTorch and Burn call our schedules, and where what they do differs."""

from __future__ import annotations

from typing import Final

from phlox._elsewhere import Difference

# Our name: PyTorch's classes of ``torch.optim.lr_scheduler``, Burn's scheduler.
SCHEDULES: Final[dict[str, tuple[str, str]]] = {
    "ComposedScheduler": ("ChainedScheduler", "ComposedLrScheduler"),
    "ConstantScheduler": ("LambdaLR", "Constant"),
    "CosineRestartsScheduler": ("CosineAnnealingWarmRestarts", ""),
    "CosineScheduler": ("CosineAnnealingLR", "CosineAnnealingLrScheduler"),
    "ExponentialScheduler": ("ExponentialLR", "ExponentialLrScheduler"),
    "InverseSquareRootScheduler": ("", ""),
    "LinearScheduler": ("LinearLR", "LinearLrScheduler"),
    "MultiStepScheduler": ("MultiStepLR", ""),
    "NoamScheduler": ("", "NoamLrScheduler"),
    "OneCycleScheduler": ("OneCycleLR", ""),
    "PlateauScheduler": ("ReduceLROnPlateau", ""),
    "PolynomialScheduler": ("PolynomialLR", ""),
    "SequentialScheduler": ("SequentialLR", "SequentialLrScheduler"),
    "StepScheduler": ("StepLR", "StepLrScheduler"),
    "WarmUpScheduler": ("LinearLR inside of SequentialLR", ""),
}

# PyTorch's schedules that are not built -> what to type.
NO_SCHEDULES: Final[dict[str, str]] = {
    "ConstantLR": "optim.SequentialSchedulerConfig of two ConstantSchedulerConfig",
    "CyclicLR": "optim.CosineRestartsSchedulerConfig, or a config of your own with one rate(step)",
    "LambdaLR": "a config of your own with one rate(step)",
    "MultiplicativeLR": "a config of your own with one rate(step)",
}

_SAME: Final = "as here"
_RATES: Final = "the curve can be read from the config alone"
DIFFERENCES: Final[tuple[Difference, ...]] = (
    Difference(
        "every schedule",
        "what a step does",
        "returns the rate: optimizer.step(schedule.step(), model, grads)",
        "writes the rate into the optimizer, after optimizer.step()",
        _SAME,
        "an optimizer holds no rate",
    ),
    Difference(
        "every schedule",
        "config.rate(step)",
        "a function of the count of steps",
        "from the last rate, in most",
        "from the last rate, in some",
        "resuming gives the same bits",
    ),
    Difference(
        "every schedule",
        "rates by group",
        'groups={"head.*": {"lr_factor": 10.0}} of the optimizer',
        "base_lrs, a rate for each group",
        "ModuleLrScheduler",
        "one schedule for all",
    ),
    Difference(
        "ComposedScheduler",
        "reduction",
        "",
        "the product of the factors of all",
        "'prod'",
        "one word for one thing",
    ),
    Difference(
        "CosineScheduler",
        "after the last step",
        "stays at min_lr",
        "rises again, with a period of 2 · T_max",
        _SAME,
        "training that goes on does not jump",
    ),
    Difference(
        "LinearScheduler",
        "ends",
        "initial_lr and final_lr",
        "start_factor=1/3 and end_factor=1.0 of the rate",
        _SAME,
        _RATES,
    ),
    Difference(
        "LinearScheduler",
        "count of steps",
        "has to be given",
        "total_iters=5",
        "no default",
        "no count is usual",
    ),
    Difference(
        "OneCycleScheduler",
        "momentum",
        "stays",
        "cycles too, unless cycle_momentum=False",
        "no such schedule",
        "settings of a rule are constant",
    ),
    Difference(
        "OneCycleScheduler",
        "after the last step",
        "stays at the last rate",
        "an error",
        "no such schedule",
        "training that goes on does not stop",
    ),
    Difference(
        "PlateauScheduler",
        "best",
        "",
        "mode='min'",
        "no such schedule",
        "min and max are ops",
    ),
    Difference(
        "PlateauScheduler",
        "rate with another schedule",
        "schedule.step() * plateau.rate",
        "both write the rate",
        "no such schedule",
        "who sets the rate can be read",
    ),
    Difference(
        "PolynomialScheduler",
        "final_lr",
        "",
        "none: 0",
        "no such schedule",
        "a rate may stay above 0",
    ),
    Difference(
        "PolynomialScheduler",
        "count of steps",
        "has to be given",
        "total_iters=5",
        "no such schedule",
        "no count is usual",
    ),
    Difference(
        "WarmUpScheduler",
        "start",
        "",
        "start_factor=1/3 of LinearLR",
        "no such schedule",
        "the line of most papers begins at 0",
    ),
)
