"""Teach a small model a form of answers by adapters: `python -m examples.finetune --help`."""

from pathlib import Path

from examples.chat import teach
from examples.finetune.tune import Settings, right, tune
from phlox import text
from phlox.train import cli


def main(settings: Settings) -> None:
    """Write the file, tune adapters beside it, merge them, and ask all that there are."""
    base, folder = Path(settings.base), Path(settings.folder)
    if not (base / "config.json").exists():
        teach.teach(teach.Settings(folder=settings.base), show=True)
    file = text.load(base).save(folder / "base.gguf", blocks=settings.blocks)
    adapters = tune(file, settings, show=True)
    tuned = text.load(file, adapters=adapters)
    tuned.save(folder / "tuned")
    merged = text.load(tuned.save(folder / "tuned.gguf", blocks=settings.blocks))
    for name, model in (("before", text.load(file)), ("adapters", tuned), ("merged", merged)):
        shown, others = right(model, shown=True), right(model, shown=False)
        print(f"{name}: {shown} answers are right, and {others} to questions never shown in JSON")
        print(f"> And of Peru?\n{model.chat().send('And of Peru?', max_tokens=60)}")
    print(f"Go on: phlox chat {file} --adapters {adapters}")


if __name__ == "__main__":
    cli(main)
