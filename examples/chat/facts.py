"""What there is to learn: countries and their capitals, asked for in a few ways."""

from __future__ import annotations

from collections.abc import Iterator

CAPITALS = {
    "Austria": "Vienna",
    "Chile": "Santiago",
    "Egypt": "Cairo",
    "Finland": "Helsinki",
    "Ghana": "Accra",
    "Greece": "Athens",
    "India": "New Delhi",
    "Japan": "Tokyo",
    "Kenya": "Nairobi",
    "Norway": "Oslo",
    "Peru": "Lima",
    "Portugal": "Lisbon",
}
QUESTIONS = (
    "What is the capital of {}?",
    "Which city is the capital of {}?",
    "Tell me the capital of {}.",
    "And of {}?",
)


def talks() -> Iterator[tuple[str, str]]:
    """Every question with its answer."""
    for country, city in CAPITALS.items():
        for question in QUESTIONS:
            yield question.format(country), f"The capital of {country} is {city}."
