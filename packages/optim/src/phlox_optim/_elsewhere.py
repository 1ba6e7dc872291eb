"""What PyTorch calls the settings of optimizers, schedules and clippings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
    "lr": "the rate is an argument of each step: optimizer.step(0.1, model, grads)",
    "optimizer": "optimizer.step(schedule.step(), model, grads): each step takes a rate",
    "params": "a step takes the model: optimizer.step(0.1, model, grads)",
}
