"""The rows of a run for other tools, each by its own library."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from phlox_tensor import ArgumentError
from phlox_tensor.needed import needed

from ..runs.rows import PLACE
from .report import flat
from .view import View

Row = dict[str, Any]


def export(view: View, to: str, output: Path | None = None) -> Path:
    """Write the rows of a run for a tool, and return where they are.

    Args:
        view: the run.
        to: one of ``FORMATS``.
        output: a file or a folder, as the tool has it; by default inside of the run.

    Raises:
        ModuleNotFoundError: where its library is not installed.
    """
    if to not in FORMATS:
        raise ArgumentError("export", "no such format", got=to, expected=", ".join(FORMATS))
    place, write = FORMATS[to]
    path = output or view.folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    write(view, path)
    return path


def _csv(view: View, path: Path) -> None:
    rows = list(view.rows())  # once: a run that goes on may log another name meanwhile
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*PLACE, *(name for name in names if name not in PLACE)])
        writer.writeheader()
        writer.writerows(rows)


def _parquet(view: View, path: Path) -> None:
    arrow = needed("export", "pyarrow", "pyarrow")
    parquet = needed("export", "pyarrow", "pyarrow.parquet")
    rows = [{name: _number(value) for name, value in row.items()} for row in view.rows()]
    names = dict.fromkeys([*PLACE, *(name for row in rows for name in row)])
    columns = {name: [row.get(name) for row in rows] for name in names}
    for name, column in columns.items():
        kinds = {type(value) for value in column} - {type(None)}
        if float in kinds and kinds <= {float, int}:  # a loss of 1.0 may be written as 1
            columns[name] = [None if value is None else float(value) for value in column]
        elif len(kinds) > 1:
            columns[name] = [None if value is None else str(value) for value in column]
    parquet.write_table(arrow.table(columns), path)


def _tensorboard(view: View, path: Path) -> None:
    library = needed("export", "phlox-train[tensorboard]", "tensorboardX")
    with library.SummaryWriter(str(path)) as writer:
        for row, values in _numbers(view):
            for name, value in values.items():
                writer.add_scalar(name, value, row["step"], walltime=_began(view) + row["time"])
        if view.config:
            lines = [f"    {name}: {value}" for name, value in flat(view.config).items()]
            writer.add_text("config", "\n".join(lines))


def _wandb(view: View, path: Path) -> None:
    wandb = needed("export", "wandb", "wandb")
    path.mkdir(parents=True, exist_ok=True)
    with wandb.init(
        project="phlox", name=view.name, config=view.config, dir=str(path), mode="offline"
    ) as run:
        run.define_metric("*", step_metric="step")  # rows of validation share a step with others
        for row, values in _numbers(view):
            run.log({"step": row["step"], "epoch": row["epoch"], **values})


def _mlflow(view: View, path: Path) -> None:
    mlflow = needed("export", "mlflow", "mlflow")
    client = mlflow.MlflowClient(f"sqlite:///{path.resolve()}")
    found = client.get_experiment_by_name("phlox")
    experiment = found.experiment_id if found else client.create_experiment("phlox")
    began = round(1000 * _began(view))
    run = client.create_run(experiment, start_time=began, run_name=view.name).info.run_id
    for name, value in flat(view.config).items():
        client.log_param(run, name, value[:6000])  # as long as it may be
    block: list[Any] = []
    for row, values in _numbers(view):
        time = began + round(1000 * row["time"])
        block += [mlflow.entities.Metric(k, v, time, row["step"]) for k, v in values.items()]
        if len(block) >= 900:  # 1,000 are allowed in a call
            client.log_batch(run, metrics=block[:1000])
            block = block[1000:]
    client.log_batch(run, metrics=block)
    client.set_terminated(run, "FINISHED" if view.state == "done" else "KILLED")


def _numbers(view: View) -> Iterator[tuple[Row, Mapping[str, float]]]:
    """Each row, and its numbers by split and name."""
    for row in view.rows():
        found = {k: _number(v) for k, v in row.items() if k not in PLACE}
        split = row["split"]
        yield (
            row,
            {f"{split}/{k}": float(v) for k, v in found.items() if isinstance(v, float | int)},
        )


def _number(value: Any) -> Any:
    """A value with the numbers that JSON has no words for."""
    return float(value) if value in ("nan", "inf", "-inf") else value


def _began(view: View) -> float:
    """When the run began, by the clock of the day; 0 where nobody wrote it down."""
    began = view.card.get("began")
    return datetime.fromisoformat(began).timestamp() if began else 0.0


# Where the file or the folder of each is by default, and what writes it.
FORMATS: Final[Mapping[str, tuple[str, Callable[[View, Path], None]]]] = {
    "csv": ("log.csv", _csv),
    "mlflow": ("mlflow.db", _mlflow),
    "parquet": ("log.parquet", _parquet),
    "tensorboard": ("tensorboard", _tensorboard),
    "wandb": (".", _wandb),
}
