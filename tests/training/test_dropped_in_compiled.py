"""A compiled step whose result is thrown away is found out as the step as written is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest

import phlox as px
from phlox import Autodiff, Cpu, GradientError, nn, optim

TRAIN = Autodiff(Cpu())
ROWS = {count: px.ones((count, 3), device=TRAIN) for count in (1, 2, 4)}
BOTH = pytest.mark.parametrize("wrap", [lambda f: f, px.compile], ids=["written", "compiled"])


def pair(config: Any = None) -> tuple[Any, Any]:
    px.seed(0)
    net = nn.Sequential(nn.Linear(3, 2, device=TRAIN), nn.Linear(2, 2, device=TRAIN))
    return net, (config or optim.AdamConfig()).init()


def step(model: Any, optimizer: Any, x: Any) -> Any:
    loss = model(x).sum()
    return optimizer.step(0.1, model, loss.backward()), loss


def only_the_loss(model: Any, optimizer: Any, x: Any) -> Any:
    return step(model, optimizer, x)[0](x).sum()


def of_a_dict(state: Any, x: Any) -> Any:
    model, _ = step(state["model"], state["optimizer"], x)
    return {**state, "model": model}


def of_two(g: Any, d: Any, first: Any, second: Any, x: Any) -> Any:
    grads = (g(x) + d(x)).sum().backward()
    return first.step(0.1, g, grads), second.step(0.1, d, grads)


def refused(call: Callable[[], Any]) -> None:
    """One of the next calls is an error."""

    def calls() -> None:
        for _ in range(6):
            call()

    with pytest.raises(GradientError, match="of this very model, and what it gave was thrown"):
        calls()


@BOTH
@pytest.mark.parametrize("before", [0, 1, 2, 3, 10])
@pytest.mark.parametrize("function", [step, only_the_loss])
def test_a_dropped_result_is_an_error(wrap: Any, before: int, function: Any) -> None:
    (model, optimizer), kept, x = pair(), wrap(step), ROWS[1]
    for _ in range(before):
        model, _ = kept(model, optimizer, x)
    run = wrap(function) if function is not step else kept
    refused(lambda: run(model, optimizer, x))


@BOTH
def test_it_is_found_beside_what_is_kept_and_in_batches_by_turns(wrap: Any) -> None:
    (g, first), (d, second), run = pair(), pair(), wrap(of_two)
    for _ in range(10):
        g, d = run(g, d, first, second, ROWS[1])
    models = [g, d]

    def keep_one() -> None:
        models[0], _ = run(*models, first, second, ROWS[1])

    refused(keep_one)
    (model, optimizer), run = pair(), wrap(step)
    for i in range(10):
        model, _ = run(model, optimizer, ROWS[1 + i % 2])
    rows = cycle((ROWS[1], ROWS[2]))
    refused(lambda: run(model, optimizer, next(rows)))


@BOTH
def test_it_is_found_in_containers_and_by_an_optimizer_from_outside(wrap: Any) -> None:
    model, optimizer = pair()
    state, run = {"model": model, "optimizer": optimizer}, wrap(of_a_dict)
    for _ in range(6):
        state = run(state, ROWS[2])
    refused(lambda: run(state, ROWS[2]))
    model, optimizer = pair()
    run = wrap(lambda model, x: step(model, optimizer, x)[0])
    refused(lambda: run(model, ROWS[2]))


def kept_copies(run: Any) -> None:
    model, optimizer = pair()
    assert len([run(model, optimizer, ROWS[2]) for _ in range(20)]) == 20


def restarted_from_one_model(run: Any) -> None:
    first, optimizer = pair()
    for _ in range(20):
        model = first
        for _ in range(3):
            model, _ = run(model, optimizer, ROWS[2])


def an_optimizer_each(run: Any) -> None:
    model, _ = pair()
    for _ in range(20):
        run(model, optim.AdamConfig().init(), ROWS[2])


def two_models_by_turns(run: Any) -> None:
    (first, optimizer), (second, _) = pair(), pair()
    second = second.map(lambda _, param: param.with_value(param.value))
    for i in range(20):
        run((first, second)[i % 2], optimizer, ROWS[2])


def evaluated_in_between(run: Any) -> None:
    model, optimizer = pair()
    score = px.compile(lambda model, x: model(x).sum())
    for _ in range(20):
        score(model, ROWS[4])
        before = model
        model, _ = run(model, optimizer, ROWS[2])
        score(before, ROWS[4])


@BOTH
@pytest.mark.parametrize(
    "program",
    [
        kept_copies,
        restarted_from_one_model,
        an_optimizer_each,
        two_models_by_turns,
        evaluated_in_between,
    ],
)
def test_what_is_right_as_written_is_right(wrap: Any, program: Callable[[Any], None]) -> None:
    program(wrap(step))


@BOTH
def test_steps_on_trial_and_steps_of_cells_are_right(wrap: Any) -> None:
    model, optimizer = pair()
    on_trial = wrap(lambda m, x: optimizer.step(0.1, m, m(x).sum().backward(), strict=False))
    inside = wrap(lambda m, x: optim.SgdConfig().init().step(0.1, m, m(x).sum().backward()))
    cell, other = px.Cell(model), optim.AdamConfig().init()

    def in_a_cell(x: Any) -> Any:
        after, loss = step(cell.get(), other, x)
        cell.set(after)
        return loss

    in_cell = wrap(in_a_cell)
    kept = model
    for _ in range(20):
        on_trial(model, ROWS[2])
        kept = inside(model, ROWS[2])
        in_cell(ROWS[2])
    assert (other.steps, len(kept.params())) == (20, 4)


def with_the_loss(run: Any, model: Any, optimizer: Any) -> None:
    for rows in [ROWS[2]] * 12:
        _, _loss = run(model, optimizer, rows)


def under_another_name(run: Any, model: Any, optimizer: Any) -> None:
    for _ in range(12):
        _new = run(model, optimizer, ROWS[2])


@BOTH
@pytest.mark.parametrize("loop", [with_the_loss, under_another_name])
def test_a_model_that_is_never_rebound_is_told_once(wrap: Any, loop: Any) -> None:
    model, optimizer = pair()
    with pytest.warns(UserWarning, match="very same model is stepped again and again") as told:
        loop(wrap(step), model, optimizer)
    assert len(told) == 1
    assert told[0].filename == __file__


@BOTH
def test_a_few_trials_and_trials_that_are_kept_are_not_told(wrap: Any) -> None:
    run, (model, optimizer) = wrap(step), pair()
    trial = model
    for _ in range(6):
        for _ in range(3):
            trial, _ = run(model, optimizer, ROWS[2])
        model = trial
    kept_copies(run)


def test_a_new_module_that_is_thrown_away_is_told() -> None:
    model, _ = pair()
    moved = px.compile(lambda average, model: nn.moving_average(average, model, 0.9))
    with pytest.warns(UserWarning, match="the new module is thrown away"):
        moved(model, model)
    both = px.compile(lambda model, x: (model.freeze(), model(x).sum()))
    with pytest.warns(UserWarning, match="the new module is thrown away"):
        both(model, ROWS[2])


def test_what_is_kept_or_no_new_module_is_not_told() -> None:
    model, _ = pair()
    average = px.Cell(model)

    def averaged(model: Any) -> Any:
        average.set(nn.moving_average(average.get(), model, 0.9))
        return average.get()

    moved = px.compile(lambda average, model: nn.moving_average(average, model, 0.9))
    same = px.compile(lambda model, x: (model, model(x).sum()))
    in_cell, forward = px.compile(averaged), px.compile(lambda model, x: model(x))
    for _ in range(6):
        kept = moved(model, model)
        same(model, ROWS[2])
        in_cell(kept)
        forward(model, ROWS[2])
