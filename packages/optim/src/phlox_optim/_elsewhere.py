"""What PyTorch calls optimizers, and the settings of optimizers, schedules and clippings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_OWN: Final = (
    "not built; a rule of your own does it: class {0}(optim.SimpleOptimizer), with one step"
)

_RATE: Final = "a schedule of your own: class Mine(optim.SchedulerConfig), with rate(self, step)"

# Names of ``torch.optim`` and of what stands beside it -> what to type.
NAMES: Final[Mapping[str, str]] = {
    "ASGD": _OWN.format("ASGD"),
    "Adagrad": "optim.AdaGradConfig().init()",
    "Adamax": _OWN.format("Adamax"),
    "AveragedModel": "average = nn.moving_average(average, model, n / (n + 1))  # for n = 1, 2, …",
    "ChainedScheduler": "optim.ComposedSchedulerConfig((first, second)).init()",
    "ConstantLR": "optim.ConstantSchedulerConfig(0.1).init()",
    "CosineAnnealingLR": "optim.CosineSchedulerConfig(0.1, steps=1000).init()",
    "CosineAnnealingWarmRestarts": "optim.CosineRestartsSchedulerConfig(0.1, period=100).init()",
    "CyclicLR": _RATE,
    "ExponentialLR": "optim.ExponentialSchedulerConfig(0.1, gamma=0.99).init()",
    "GradScaler": "optim.LossScalingConfig().init()",
    "LBFGS": "optim.LbfgsConfig().init()",
    "LRScheduler": "optim.SchedulerConfig",
    "LambdaLR": _RATE,
    "LinearLR": "optim.LinearSchedulerConfig(0.1, 0.0, steps=1000).init()",
    "MultiStepLR": "optim.MultiStepSchedulerConfig(0.1, milestones=(30, 80)).init()",
    "MultiplicativeLR": _RATE,
    "NAdam": _OWN.format("NAdam"),
    "OneCycleLR": "optim.OneCycleSchedulerConfig(0.1, steps=1000).init()",
    "PolynomialLR": "optim.PolynomialSchedulerConfig(0.1, steps=1000).init()",
    "RAdam": _OWN.format("RAdam"),
    "RMSprop": "optim.RmsPropConfig().init()",
    "ReduceLROnPlateau": "optim.PlateauSchedulerConfig(0.1).init()",
    "Rprop": _OWN.format("Rprop"),
    "SGD": "optim.SgdConfig(momentum=0.9).init()",
    "SWALR": "optim.SequentialSchedulerConfig((schedule, optim.ConstantSchedulerConfig(0.05)), "
    "(1000,)).init()",
    "SequentialLR": "optim.SequentialSchedulerConfig((first, second), (100,)).init()",
    "SparseAdam": _OWN.format("SparseAdam"),
    "StepLR": "optim.StepSchedulerConfig(0.1, step_size=30).init()",
    "ZeroRedundancyOptimizer": "train.Learner(..., group=group, shard_optimizer=True)",
    "clip_grad_norm_": "grad_clipping=optim.ClipByGlobalNorm(1.0) in the config of an optimizer",
    "clip_grad_value_": "grad_clipping=optim.ClipByValue(1.0) in the config of an optimizer",
    "lr_scheduler": "optim.CosineSchedulerConfig(initial_lr=0.1, steps=1000).init()",
    "swa_utils": "average = nn.moving_average(average, model, n / (n + 1))  # for n = 1, 2, …",
}

# PyTorch's words for settings -> ours, of which a config has some.
SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "T_0": ("period",),
    "T_max": ("steps",),
    "T_mult": ("growth",),
    "anneal_strategy": ("curve",),
    "beta2_decay": ("decay",),
    "betas": ("beta_1", "beta_2", "beta_3"),
    "clip_value": ("threshold",),
    "div_factor": ("start_divisor",),
    "eps": ("epsilon",),
    "eta_min": ("min_lr",),
    "final_div_factor": ("end_divisor",),
    "history_size": ("history",),
    "initial_accumulator_value": ("initial_sum",),
    "line_search_fn": ("line_search",),
    "lr": ("initial_lr", "max_lr", "peak_lr"),
    "max_eval": ("max_evaluations",),
    "max_iter": ("max_iterations",),
    "max_norm": ("threshold",),
    "mode": ("best",),
    "pct_start": ("rising",),
    "three_phase": ("three_phases",),
    "total_iters": ("steps",),
    "total_steps": ("steps",),
}

# PyTorch's settings that are no settings here -> what to do.
NO_SETTINGS: Final[Mapping[str, str]] = {
    "capturable": "leave it out: px.compile takes any step",
    "differentiable": "leave it out: gradients are constants of a step",
    "foreach": "leave it out: elementwise rules step all parameters by one call",
    "fused": "leave it out: elementwise rules step all parameters by one call",
    "lr": "the rate is an argument of each step: optimizer.step(0.1, model, grads)",
    "maximize": "leave it out, and go back from the opposite: (-loss).backward()",
    "optimizer": "optimizer.step(schedule.step(), model, grads): each step takes a rate",
    "params": "a step takes the model: optimizer.step(0.1, model, grads)",
}
