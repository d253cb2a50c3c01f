# SPDX-License-Identifier: Apache-2.0
"""Drawing: known numbers, the right frequencies, and no dependence on the batch."""

from math import log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from stages.samplers.base import SamplingConfig
from stages.samplers.draw import draw, log_distribution, uniform

SEEDS = st.integers(0, 2**63 - 1)
LOGITS = st.lists(st.integers(-20, 20), min_size=2, max_size=12, unique=True)


def probabilities(values: list[float], **sampling: float) -> list[float]:
    """What a distribution becomes under sampling parameters."""
    logits = torch.tensor([[log(value) for value in values]])
    config = SamplingConfig(**{"temperature": 1.0, **sampling})  # type: ignore[arg-type]
    return [round(value, 6) for value in log_distribution(logits, config)[0].exp().tolist()]


@pytest.mark.parametrize(
    ("seed", "step", "word"),
    [
        # SplitMix64 as published: the first outputs of seed 0 …
        (0, 0, 0xE220A8397B1DCDAF),
        (0, 1, 0x6E789E6AA1B965F4),
        (0, 2, 0x06C45D188009454F),
        # … and of seed 1234567
        (1234567, 0, 6457827717110365317),
        (1234567, 1, 3203168211198807973),
        (1234567, 2, 9817491932198370423),
        (1234567, 3, 4593380528125082431),
    ],
)
def test_the_numbers_are_those_of_splitmix64(seed: int, step: int, word: int) -> None:
    # 53 high bits of the 64-bit output make the number
    assert uniform(torch.tensor([seed]), step).item() == (word >> 11) / 2**53


@given(st.lists(SEEDS, min_size=1, max_size=8), st.integers(0, 4096))
def test_numbers_lie_in_the_unit_interval_and_belong_to_their_seed(
    seeds: list[int], step: int
) -> None:
    together = uniform(torch.tensor(seeds), step).tolist()
    assert all(0 <= number < 1 for number in together)
    assert together == [uniform(torch.tensor([seed]), step).item() for seed in seeds]


@pytest.mark.parametrize("along", ["seeds", "steps"])
def test_numbers_fill_the_unit_interval_evenly(along: str) -> None:
    if along == "seeds":
        numbers = uniform(torch.arange(10_000), 0)
    else:
        numbers = torch.cat([uniform(torch.tensor([5]), step) for step in range(10_000)])
    counts = torch.histc(numbers, bins=10, min=0, max=1)
    # chi-square with 9 degrees of freedom passes 27.9 once in a thousand
    assert float(((counts - 1000) ** 2 / 1000).sum()) < 27.9


def test_tokens_come_as_often_as_their_probability_says() -> None:
    wanted = torch.tensor([0.1, 0.2, 0.3, 0.4])
    drawn, _ = draw(wanted.log().repeat(20_000, 1), torch.arange(20_000), 3,
                    SamplingConfig(temperature=1.0))  # fmt: skip
    counts = torch.bincount(drawn, minlength=4)
    # chi-square with 3 degrees of freedom passes 16.3 once in a thousand
    assert float(((counts - 20_000 * wanted) ** 2 / (20_000 * wanted)).sum()) < 16.3


def test_temperature_is_a_power_of_the_probabilities() -> None:
    # 0.2² : 0.8² = 0.04 : 0.64 = 1 : 16
    assert probabilities([0.2, 0.8], temperature=0.5) == [round(1 / 17, 6), round(16 / 17, 6)]


def test_top_k_keeps_the_k_likeliest_in_proportion() -> None:
    # 0.5 and 0.3 of 0.8
    assert probabilities([0.15, 0.5, 0.05, 0.3], top_k=2) == [0, 0.625, 0, 0.375]


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [
        # 0.5 < 0.75 ≤ 0.5 + 0.3: two are needed
        (0.75, [0, 0.625, 0, 0.375]),
        # 0.8 < 0.9 ≤ 0.95: three; 0.15, 0.5 and 0.3 of 0.95
        (0.9, [0.157895, 0.526316, 0, 0.315789]),
        # the likeliest always stays
        (0.01, [0, 1, 0, 0]),
        (1.0, [0.15, 0.5, 0.05, 0.3]),
    ],
)
def test_top_p_keeps_the_fewest_that_reach_it(top_p: float, expected: list[float]) -> None:
    assert probabilities([0.15, 0.5, 0.05, 0.3], top_p=top_p) == expected


def test_top_p_counts_within_what_top_k_leaves() -> None:
    # top_k leaves 4/7 and 3/7; the first alone reaches 0.5, while 0.4 of the whole would not
    assert probabilities([0.4, 0.3, 0.2, 0.1], top_k=2, top_p=0.5) == [1, 0, 0, 0]


@given(LOGITS, st.integers(0, 14), st.floats(0.05, 1.0), st.floats(0.1, 5.0), SEEDS)
def test_what_is_left_sums_to_one_and_only_that_is_drawn(
    logits: list[int], top_k: int, top_p: float, temperature: float, seed: int
) -> None:
    sampling = SamplingConfig(temperature=temperature, top_k=top_k, top_p=top_p)
    row = torch.tensor([logits], dtype=torch.float32)
    left = log_distribution(row, sampling)[0]
    assert float(left.double().exp().sum()) == pytest.approx(1, abs=1e-5)
    kept = int(left.isfinite().sum())
    assert 1 <= kept <= (min(top_k, len(logits)) or len(logits))
    # the likeliest are kept
    order = row[0].argsort(descending=True)
    assert bool(left[order[:kept]].isfinite().all())
    token, logprob = draw(row, torch.tensor([seed]), 0, sampling)
    assert float(logprob) == float(left[int(token)]) > -torch.inf


@given(LOGITS, SEEDS, st.integers(0, 9), st.floats(0.1, 1.0))
def test_greedy_takes_the_likeliest_and_tells_its_chance_at_temperature_one(
    logits: list[int], seed: int, top_k: int, top_p: float
) -> None:
    row = torch.tensor([logits], dtype=torch.float32)
    sampling = SamplingConfig(temperature=0.0, top_k=top_k, top_p=top_p)
    token, logprob = draw(row, torch.tensor([seed]), 0, sampling)
    assert logits[int(token)] == max(logits)
    assert float(logprob) == float(row.log_softmax(-1)[0].max())


@given(st.lists(SEEDS, min_size=2, max_size=9), st.integers(0, 99), st.integers(0, 99))
def test_a_slot_draws_the_same_token_in_any_batch(seeds: list[int], step: int, number: int) -> None:
    logits = torch.randn(len(seeds), 17, generator=torch.Generator().manual_seed(number))
    sampling = SamplingConfig(temperature=0.8, top_p=0.9)
    together, logprobs = draw(logits, torch.tensor(seeds), step, sampling)
    back, back_logprobs = draw(logits.flip(0), torch.tensor(seeds[::-1]), step, sampling)
    assert back.flip(0).tolist() == together.tolist()
    assert back_logprobs.flip(0).tolist() == pytest.approx(logprobs.tolist(), abs=1e-6)
    for place, seed in enumerate(seeds):
        alone, _ = draw(logits[place : place + 1], torch.tensor([seed]), step, sampling)
        assert int(alone) == int(together[place])


def test_steps_of_a_slot_are_drawn_apart() -> None:
    logits = torch.zeros(1, 1000)
    sampling = SamplingConfig(temperature=1.0)
    tokens = [int(draw(logits, torch.tensor([3]), step, sampling)[0]) for step in range(20)]
    assert len(set(tokens)) > 15
