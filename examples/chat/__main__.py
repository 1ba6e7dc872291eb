"""Teach a tiny model some capitals, and talk: `python -m examples.chat --help`."""

from pathlib import Path

from examples.chat.facts import talks
from examples.chat.teach import Settings, teach
from phlox import text
from phlox.train import cli


def main(settings: Settings) -> None:
    """Teach, unless the folder is there; ask all questions; say how to go on."""
    folder = Path(settings.folder)
    if not (folder / "config.json").exists():
        teach(settings, show=True)
    model = text.load(folder)
    asked = list(talks())
    answers = [model.chat().send(question, max_tokens=40) for question, _ in asked]
    right = sum(answer == want for answer, (_, want) in zip(answers, asked, strict=True))
    print(f"{right} of {len(asked)} answers are right, such as:")
    chat = model.chat()
    for said in ("What is the capital of Peru?", "And of Japan?"):
        print(f"> {said}\n{chat.send(said, max_tokens=40)}")
    print(f"Go on: phlox chat {folder}")


if __name__ == "__main__":
    cli(main)
