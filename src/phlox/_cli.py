"""The command ``phlox``: what is here, records, ONNX files, training runs, language models."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from ._extras import of_extra

# Those of phlox_train, which is loaded when one of them is asked for.
_RUNS: Final = {
    "export": "write the rows of a training run for other tools",
    "report": "write one page about training runs",
    "runs": "list training runs",
    "watch": "show curves of training runs while they go on",
}
# Those of phlox_text.
_TEXT: Final = {
    "chat": "hold a conversation with a language model",
    "run": "let a language model go on with a text",
    "serve": "answer programs in the form of OpenAI's API",
    "transcribe": "write down what is said in a sound",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    try:
        return _chosen(list(sys.argv[1:] if argv is None else argv))
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        return 0
    except (ModuleNotFoundError, ValueError) as error:
        if not getattr(error, "hint", ""):  # no error of ours
            raise
        print(error, file=sys.stderr)
        return 2


def _chosen(words: list[str]) -> int:
    if words[:1] == ["record"]:
        from phlox_record._cli import main as record  # noqa: PLC0415 - loaded when it is needed

        return record(words[1:])
    if words[:1] == ["data"]:
        with of_extra("data"):
            from phlox_data._bench import main as data  # noqa: PLC0415 - loaded when it is needed

        return data(words[1:])
    if words[:1] == ["onnx"]:
        return _onnx(words[1:])
    if words[:1] == ["metrics"]:
        with of_extra("train"):
            from ._metrics import main as metrics  # noqa: PLC0415 - loads phlox_train

        return metrics(words[1:])
    if words[:1] == ["launch"]:
        with of_extra("distributed"):
            from phlox_distributed._launch import main as launch  # noqa: PLC0415 - as the others

        return launch(words[1:])
    if words and words[0] in {**_RUNS, **_TEXT}:
        return _by_name(words[0], words[1:])
    parser = argparse.ArgumentParser(prog="phlox", description=__doc__)
    parser.add_argument("--version", action="store_true", help="print the version and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("data", help="measure a loader: which workers to take", add_help=False)
    doctor = commands.add_parser("doctor", help="print the devices here and what is missing")
    doctor.add_argument(
        "--peaks", action="store_true", help="measure peaks too, on an idle machine"
    )
    for name in ("layers", "optimizers"):
        told = commands.add_parser(name, help=f"print the {name}: settings, names elsewhere, tests")
        told.add_argument("name", nargs="?", help="all about one, each setting on its line")
        told.add_argument("--json", action="store_true", help="as JSON")
    commands.add_parser("launch", help="run a script in many processes", add_help=False)
    commands.add_parser("metrics", help="print every metric: what it takes", add_help=False)
    commands.add_parser("onnx", help="say what an ONNX file holds and needs", add_help=False)
    ops = commands.add_parser("ops", help="print every op: backends, gradient rule, tests")
    ops.add_argument("name", nargs="?", help="where each part of this op stands")
    ops.add_argument("--json", action="store_true", help="as JSON")
    commands.add_parser("record", help="look into record files and convert them", add_help=False)
    for name, line in {**_RUNS, **_TEXT}.items():
        commands.add_parser(name, help=line, add_help=False)
    options = parser.parse_args(words)
    return _run(options, parser)


def _by_name(command: str, words: list[str]) -> int:
    """Run a command of a package that has several."""
    if command in _TEXT:
        with of_extra("text"):
            from phlox_text._cli import main as text  # noqa: PLC0415 - as the others

        return text(command, words)
    with of_extra("train"):
        from phlox_train.show.commands import main as runs  # noqa: PLC0415 - as the others

    return runs(command, words)


def _onnx(words: list[str]) -> int:
    with of_extra("onnx"):
        from phlox_onnx._cli import main  # noqa: PLC0415 - loaded when it is needed

    from . import Autodiff  # noqa: PLC0415 - loaded when it is needed

    return main(words, train=Autodiff)


def _run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    if options.version:
        from . import __version__  # noqa: PLC0415 - the package imports nothing else either

        print(__version__)
        return 0
    if options.command == "doctor":
        from ._doctor import report  # noqa: PLC0415 - loads every backend

        print(report(peaks=options.peaks))
        return 0
    if options.command in {"layers", "optimizers"}:
        from . import _learning  # noqa: PLC0415 - loads the packages
        from ._table import no_such  # noqa: PLC0415 - loads phlox_tensor

        records = getattr(_learning, options.command)()
        found = _learning.named(options.name, records) if options.name else records
        if not found:
            names = [record["name"] for record in records]
            meant = _learning.meant(options.name)
            raise no_such(options.command, options.command[:-1], options.name, names, meant)
        if options.json:
            print(_learning.as_json(found))
        elif options.name:
            print("\n\n".join(map(_learning.as_page, found)))
        else:
            print(_learning.as_text(found))
        return 0
    if options.command == "ops" and options.name:
        from . import _places  # noqa: PLC0415 - loads every backend

        print((_places.as_json if options.json else _places.as_text)(options.name))
        return 0
    if options.command == "ops":
        from ._coverage import as_json, as_table  # noqa: PLC0415 - loads every backend

        print(as_json() if options.json else as_table())
        return 0
    parser.print_help()
    return 2


if __name__ == "__main__":
    sys.exit(main())
