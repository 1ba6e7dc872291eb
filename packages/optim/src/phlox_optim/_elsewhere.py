"""What PyTorch calls optimizers, and the settings of optimizers, schedules and clippings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_OWN: Final = (
    "not built; a rule of your own does it: class {0}(optim.SimpleOptimizer), with one step"
)

# Names of ``torch.optim`` -> what to type.
NAMES: Final[Mapping[str, str]] = {
    "ASGD": _OWN.format("ASGD"),
    "Adagrad": "optim.AdaGradConfig().init()",
    "Adamax": _OWN.format("Adamax"),
    "LBFGS": "optim.LbfgsConfig().init()",
    "NAdam": _OWN.format("NAdam"),
    "RAdam": _OWN.format("RAdam"),
    "RMSprop": "optim.RmsPropConfig().init()",
    "Rprop": _OWN.format("Rprop"),
    "SGD": "optim.SgdConfig(momentum=0.9).init()",
    "SparseAdam": _OWN.format("SparseAdam"),
    "lr_scheduler": "optim.CosineSchedulerConfig(initial_lr=0.1, steps=1000).init()",
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
