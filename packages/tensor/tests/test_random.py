"""Random numbers: known words, the same ones for the same seed, states that can be kept."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError, DTypeError, KindError, Numpy
from phlox_tensor.random import Generator, generator, use_generator
from phlox_tensor.reference.random import bits, philox

# Known answers of Random123 1.14 (kat_vectors, philox4x32 with 10 rounds): counter, key, words.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def plain_philox(counter: list[int], key: list[int]) -> list[int]:
    """The rounds of Salmon et al. (SC 2011), in Python's integers, as a second opinion."""
    c, k, mask = counter, key, 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & mask, p0 >> 32 ^ c[3] ^ k[1], p0 & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c


@pytest.mark.parametrize(("counter", "key", "known"), KNOWN)
def test_known_answers(counter: str, key: str, known: str) -> None:
    assert plain_philox(words(counter), words(key)) == words(known)


def test_the_first_block_is_the_known_one() -> None:
    assert philox(np.zeros(1, np.uint64), 0)[0].tolist() == words(KNOWN[0][2])
    assert pt.ops.random_bits(4, 0, 0).tolist() == words(KNOWN[0][2])


def block(counter: int, key: int) -> list[int]:
    mask = 0xFFFFFFFF
    return plain_philox([counter & mask, counter >> 32, 0, 0], [key & mask, key >> 32])


@pytest.mark.parametrize("counter", [0, 1, 2**32 - 2, 2**32 + 5, 2**64 - 2])
@pytest.mark.parametrize("key", [0, 7, 2**40 + 3, 2**64 - 1])
def test_words_beside_plain_python(counter: int, key: int) -> None:
    want = block(counter, key) + block((counter + 1) % 2**64, key)
    assert bits(8, key, counter).tolist() == want
    assert bits(3, key, counter).tolist() == want[:3]


def test_the_same_seed_gives_the_same_numbers() -> None:
    def numbers() -> list[Any]:
        return [
            pt.random.normal((3, 5)).tolist(),
            pt.random.uniform(7, -1, 1).tolist(),
            pt.random.randint(9, -5, 5).tolist(),
            pt.random.bernoulli((2, 2), 0.5).tolist(),
            pt.random.permutation(6).tolist(),
        ]

    pt.seed(7)
    first = numbers()
    assert numbers() != first
    pt.seed(7)
    assert numbers() == first
    pt.seed(8)
    assert numbers() != first


def test_draws_do_not_overlap() -> None:
    """The words of two draws are those of one long draw, block by block."""
    pt.seed(3)
    parts = [pt.random.uniform(4).tolist(), pt.random.uniform(8).tolist()]
    pt.seed(3)
    assert parts[0] + parts[1] == pt.random.uniform(12).tolist()


def test_a_state_can_be_saved_and_restored() -> None:
    pt.seed(np.int64(5))  # type: ignore[arg-type]
    pt.random.normal(10)
    state = generator().state()
    assert all(type(n) is int for n in state)
    ahead = pt.random.normal(10).tolist()
    generator().set_state(*state)
    assert pt.random.normal(10).tolist() == ahead
    other = Generator(*state)
    with use_generator(other) as inside:
        assert inside is generator() is other
        assert pt.random.normal(10).tolist() == ahead
        pt.seed(1)
    assert generator() is not other
    assert other.state() == (1, 0)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "a", None])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    before = generator().state()
    with pytest.raises(ArgumentError, match=r"\[seed\] not an integer in range"):
        pt.seed(seed)
    assert generator().state() == before


def test_a_thread_with_its_own_generator_repeats_itself() -> None:
    """Whatever other threads draw meanwhile."""

    def work(seed: int, out: list[Any]) -> None:
        with use_generator(Generator(seed)):
            out.append([pt.random.normal(5, device="numpy").tolist() for _ in range(20)])

    alone: list[Any] = []
    work(1, alone)
    work(2, alone)
    together: list[list[Any]] = [[], []]
    threads = [threading.Thread(target=work, args=(i + 1, together[i])) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[0][0], together[1][0]] == alone


def test_calls_of_other_generators_say_how_numbers_are_drawn() -> None:
    generator = pt.random.Generator(3)
    calls = (
        lambda: generator.normal((2, 3)),  # type: ignore[attr-defined]
        lambda: pt.random.normal((2, 3), generator=generator),  # type: ignore[call-arg]
    )
    for call in calls:
        generator.set_state(3)
        with pytest.raises((pt.UnknownNameError, pt.UnknownArgumentError)) as caught:
            call()
        exec(f"{caught.value.hint}", {"px": pt, "generator": generator})
        assert generator.state() == (3, 2)


def test_many_threads_on_one_generator_never_share_a_block() -> None:
    shared = Generator(1)
    drawn: list[int] = []

    def work() -> None:
        for _ in range(200):
            drawn.append(shared.draw(3)[1])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(drawn) == list(range(0, 2400, 3))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniforms_fill_their_interval(dtype: str) -> None:
    pt.seed(11)
    values = pt.random.uniform(20_000, -2.0, 3.0, dtype=dtype).numpy().astype(np.float64)
    # The end is open before the numbers are rounded to the type.
    assert values.min() >= -2
    assert values.max() <= 3
    assert abs(values.mean() - 0.5) < 4 * 5 / sqrt(12 * 20_000) + 0.01
    assert abs(values.std() - 5 / sqrt(12)) < 0.02
    unit = pt.random.uniform(1000, dtype=dtype).numpy().astype(np.float64)
    assert unit.min() >= 0
    assert unit.max() < 1


def test_a_negative_standard_deviation_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"negative standard deviation: got -1, expected std"):
        pt.random.normal((2,), std=-1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("count", [0, 1, 5, 20_001])
def test_normals_have_their_moments(dtype: str, count: int) -> None:
    pt.seed(12)
    values = pt.random.normal(count, 1.0, 2.0, dtype=dtype).numpy().astype(np.float64)
    assert values.shape == (count,)
    assert np.isfinite(values).all()
    if count > 100:
        assert abs(values.mean() - 1) < 5 * 2 / sqrt(count)
        assert abs(values.std() - 2) < 0.05
        assert abs(((values - 1) ** 3).mean()) < 0.4


def test_integers_stay_in_their_range() -> None:
    pt.seed(13)
    values = pt.random.randint(20_000, -100, 100, dtype="int8").numpy()
    assert (int(values.min()), int(values.max())) == (-100, 99)
    counts = np.bincount(values.astype(int) + 100)
    assert counts.min() > 50
    assert pt.random.randint(3, 200, 256, dtype="uint8").numpy().min() >= 200
    assert pt.random.randint((2, 3), 0, 1).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert pt.random.randint(3, 0, 2**31, dtype="int32").numpy().min() >= 0
    for low, high in ((3, 3), (5, 2), (0, 2**63 + 1)):
        with pytest.raises(ArgumentError, match=r"\[randint\] range"):
            pt.random.randint(2, low, high)
    with pytest.raises(DTypeError, match=r"\[randint\] number out of range: got 299"):
        pt.random.randint(2, 250, 300, dtype="uint8")
    with pytest.raises(KindError, match=r"\[randint\] not an integer type: got bool"):
        pt.random.randint(2, 0, 2, dtype="bool")


def test_wide_integers_are_drawn_from_two_words() -> None:
    pt.seed(13)
    values = pt.random.randint(20_000, -(2**62), 2**62).numpy() / 2.0**62
    assert values.min() < -0.99 < 0.99 < values.max()
    assert values.mean() == pytest.approx(0, abs=5 / sqrt(3 * 20_000))
    assert len({*(pt.random.randint(1000, 0, 2**40).numpy() % 2**20).tolist()}) > 990


@pytest.mark.parametrize("device", [Numpy(), Numpy(int="int32")], ids=repr)
@pytest.mark.parametrize("span", [2**16 + 1, 2**31 - 5, 3 << 29, 2**31])
def test_wide_integers_are_digits_of_one_fraction(device: Numpy, span: int) -> None:
    with pt.use_device(device):
        pt.seed(5)
        got = pt.random.randint(200, -7, span - 7, dtype="int32").tolist()
    pt.seed(5)
    words = bits(400, *generator().draw(100)).astype(object)
    want = [int((high << 32 | low) * span >> 64) - 7 for high, low in words.reshape(-1, 2)]
    assert got == want


@pytest.mark.parametrize("span", [2**32, 2**32 + 1, 2**48 - 1, 3 << 61, 2**63])
def test_the_widest_integers_are_digits_of_one_fraction(span: int) -> None:
    pt.seed(5)
    low = -(span // 2)
    got = pt.random.randint(100, low, low + span).tolist()
    each = 2 if span == 2**32 else 3
    pt.seed(5)
    drawn = bits(100 * each, *generator().draw(25 * each)).reshape(-1, each).tolist()
    whole = [sum(word << 32 * (each - 1 - i) for i, word in enumerate(line)) for line in drawn]
    assert got == [low + (u * span >> 32 * each) for u in whole]


@pytest.mark.parametrize("span", [3 << 15, 3 << 29, 2**31 - 1, 3 << 30, 3 << 61])
def test_wide_integers_fall_evenly(span: int) -> None:
    """By chi-squared, 11 degrees of freedom; 1 in 10⁵ is above 43."""
    pt.seed(17)
    values = pt.random.randint(120_000, 0, span).tolist()
    counts = np.bincount([value * 12 // span for value in values], minlength=12)
    assert counts.sum() == 120_000
    assert ((counts - 10_000.0) ** 2).sum() / 10_000 < 43


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ((0, 10), "px.random.randint((), 0, 10)"),
        ((10, (3,)), "px.random.randint((3,), 0, 10)"),
        (([3], 10), "px.random.randint((3,), 0, 10)"),
    ],
)
def test_two_numbers_alone_are_no_draw(given: Any, hint: str) -> None:
    with pytest.raises(TypeError, match=r"\[randint\] an argument is missing") as caught:
        pt.random.randint(*given)
    assert f"hint: {hint}" in str(caught.value)
    assert "high: int," in str(inspect.signature(pt.random.randint)).replace("'", "")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_no_uniform_number_is_the_upper_end(dtype: str) -> None:
    pt.seed(13)
    for low, high in ((2.0, 3.0), (-3.0, 1.001), (-1.0, 0.0), (1.0, 1.0001)):
        values = pt.random.uniform(20_000, low, high, dtype=dtype).astype("float64")
        assert float(values.max()) < high


def test_a_range_wider_than_the_type_is_refused() -> None:
    with pytest.raises(ArgumentError, match="wider than float32"):
        pt.random.uniform(3, -3e38, 3e38)
    assert pt.random.uniform(3, -3e38, 3e38, dtype="float64").isfinite().all()


@pytest.mark.parametrize("probability", [1e-9, 1e-4, 0.3, 1 - 1e-9])
def test_rare_truth_is_as_rare_as_it_should_be(probability: float) -> None:
    pt.seed(21)
    state = generator().state()
    got = pt.random.bernoulli(1 << 19, probability).numpy()
    want = (1 << 19) * probability
    assert abs(got.sum() - want) < 5 * max(want * (1 - probability), 1) ** 0.5
    generator().set_state(*state)
    high = pt.random.uniform(1 << 19, dtype="float32").numpy().astype(np.float64)
    low = pt.random.uniform(1 << 19, dtype="float32").numpy() * 2.0**-24
    fine = 2**-8 <= probability <= 1 - 2**-8
    np.testing.assert_array_equal(got, (high if fine else high + low) < probability)


def test_a_uniform_of_zero_is_no_rare_truth_by_itself() -> None:
    """The first word of block 13359172 of key 21 is 234: below 2⁸, so that its uniform is 0."""
    for draw, want in ((lambda: pt.random.uniform(1), 0.0), (rare, False)):
        generator().set_state(21, 13359172)
        assert draw().tolist() == [want]


def rare() -> Any:
    return pt.random.bernoulli(1, 1e-9)


def test_bernoulli_and_permutations() -> None:
    pt.seed(14)
    share = pt.random.bernoulli((100, 100), 0.25).numpy().mean()
    assert abs(share - 0.25) < 0.02
    assert not pt.random.bernoulli(100, 0.0).numpy().any()
    assert pt.random.bernoulli(100, 1.0).numpy().all()
    with pytest.raises(ArgumentError, match="not a probability"):
        pt.random.bernoulli(2, 1.5)
    order = pt.random.permutation(50).tolist()
    assert sorted(order) == list(range(50))
    assert order != sorted(order)
    assert pt.random.permutation(0).shape == (0,)


def test_words_of_uniforms_are_those_of_the_spec() -> None:
    drawn = bits(6, 5, 9)
    unit = pt.ops.random_uniform((6,), 0.0, 1.0, "float32", 5, 9).numpy()
    assert np.array_equal(unit, (drawn >> np.uint32(8)) * np.float32(2.0**-24))
    wide = pt.ops.random_uniform((3,), 0.0, 1.0, "float64", 5, 9).numpy()
    high, low = drawn[0::2] >> np.uint32(5), drawn[1::2] >> np.uint32(6)
    assert np.array_equal(wide, (high * 2.0**26 + low) * 2.0**-53)
    z = pt.ops.random_normal((2,), 0.0, 1.0, "float64", 5, 9).numpy()
    u = pt.ops.random_uniform((2,), 0.0, 1.0, "float64", 5, 9).numpy()
    radius, angle = np.sqrt(-2 * np.log(1 - u[0])), 2 * np.pi * u[1]
    assert np.allclose(z, [radius * np.cos(angle), radius * np.sin(angle)], rtol=1e-14)


def test_two_integers_are_asked_about() -> None:
    with pytest.raises(ArgumentError, match=r"px.random.normal\(\(2, 3\)\)"):
        pt.random.normal(2, 3)
    with pytest.raises(ArgumentError, match=r"px.random.uniform\(\(2, 3\)\)"):
        pt.random.uniform(2, 3)
    with pytest.raises(ArgumentError, match=r"low 1\.5, high 0\.5"):
        pt.random.uniform((2,), 1.5, 0.5)
    assert pt.random.normal(2, 3.0).shape == pt.random.normal(2, 3, 2).shape == (2,)
    assert pt.random.uniform(2, 3, 3).tolist() == [3.0, 3.0]


FORKS = """
import json, os, phlox_tensor as pt

def draw():
    return pt.random.uniform(4).tolist()

def child():
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, json.dumps(draw()).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(reading, 1000))

found = []
for stream in (pt.random.generator(), pt.random.Generator()):
    with pt.random.use_generator(stream):
        for _ in range(2):
            pt.seed(3)
            found.append([child(), child(), draw()])
print(json.dumps(found))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_processes_that_fork_draw_other_numbers_the_same_for_one_seed() -> None:
    def run() -> Any:
        command = [sys.executable, "-W", "ignore", "-c", FORKS]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)

    found = run()
    assert found == run()
    pt.seed(3)
    mine = pt.random.uniform(4).tolist()
    assert all(parent == mine for *_, parent in found)
    children = [tuple(draws) for *both, _ in found for draws in both]
    assert len({*children, tuple(mine)}) == 9


def test_the_hint_for_turned_ends_runs() -> None:
    wrong: tuple[tuple[Any, ...], ...] = (((2,), 5, 1), (2, 3))
    for given in wrong:
        with pytest.raises(ArgumentError, match="an empty range") as caught:
            pt.random.uniform(*given)
        code = str(caught.value).rpartition("hint: ")[2].replace("px.", "pt.")
        assert eval(code, {"pt": pt}).shape in {(2,), (2, 3)}


@pytest.mark.parametrize("ends", [(float("nan"), 1.0), (0.0, float("inf")), (-float("inf"), 0.0)])
def test_uniform_numbers_have_finite_ends(ends: tuple[float, float]) -> None:
    with pytest.raises(ArgumentError, match=r"\[uniform\] no range"):
        pt.random.uniform((2,), *ends)


@pytest.mark.parametrize("std", [-1.0, float("nan"), float("inf")])
def test_normal_numbers_have_a_finite_deviation(std: float) -> None:
    with pytest.raises(ArgumentError, match=r"\[normal\] (a negative|no) standard deviation"):
        pt.random.normal((2,), std=std)


def test_numbers_in_the_order_of_numpy_are_refused() -> None:
    calls: dict[str, Callable[[], Any]] = {
        "px.random.normal((5,), 0, 1)": lambda: pt.random.normal(0, 1, 5),
        "px.random.randint((5,), 0, 10)": lambda: pt.random.randint(0, 10, 5),
        "px.random.uniform((), 0, 1)": lambda: pt.random.uniform(0, 1),
        "px.random.uniform((5,), 1, 3)": lambda: pt.random.uniform(1, 3, 5),
    }
    for hint, call in calls.items():
        with pytest.raises(pt.ArgumentError, match="the shape comes first") as caught:
            call()
        assert caught.value.hint == hint
    assert pt.random.normal((0,), 1, 5).shape == (0,)
    assert pt.random.uniform(5, 0, 1).shape == pt.random.randint(5, 0, 10).shape == (5,)
