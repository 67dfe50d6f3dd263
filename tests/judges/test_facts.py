"""Captions written from facts say exactly what they are said to say."""

from __future__ import annotations

import pytest

from snellen.judges.facts import Shares, facts_of, write_captions
from snellen.readers import LoadOptions, load_benchmark
from snellen.records import Region


@pytest.fixture(scope="module")
def regions() -> tuple[Region, ...]:
    """The regions of the bundled reading benchmark."""
    return load_benchmark("mini-reading", None, options=LoadOptions()).regions


def test_the_same_seed_writes_the_same_captions_and_another_seed_others(
    regions: tuple[Region, ...],
) -> None:
    """The seed alone decides what becomes of each fact."""
    assert write_captions(regions, seed=3) == write_captions(regions, seed=3)
    assert write_captions(regions, seed=3) != write_captions(regions, seed=4)


@pytest.mark.slow
def test_treatments_come_at_the_rates_asked_for(regions: tuple[Region, ...]) -> None:
    """Over ten seeds each treatment's share is within two points of its rate."""
    told = [t for seed in range(10) for c in write_captions(regions, seed=seed) for t in c.told]
    rates = {"stated": 0.4, "absent": 0.25, "changed": 0.2, "negated": 0.15}
    for treatment, rate in rates.items():
        share = sum(t.treatment == treatment for t in told) / len(told)
        assert share == pytest.approx(rate, abs=0.02)


def test_a_caption_holds_what_is_stated_and_not_what_is_left_out(
    regions: tuple[Region, ...],
) -> None:
    """A stated value stands in a sentence of its fact, another one where it was changed."""
    for caption in write_captions(regions):
        for told in caption.told:
            fact = told.fact
            states = any(fact.say(fact.value, form) in caption.text for form in (0, 1))
            assert states == (told.treatment == "stated")
            says_other = any(fact.say(fact.others[0], form) in caption.text for form in (0, 1))
            assert says_other == (told.treatment == "changed")
            assert (fact.deny() in caption.text) == (told.treatment == "negated")


def test_the_truth_is_the_letter_of_what_the_caption_says(regions: tuple[Region, ...]) -> None:
    """The value where stated, the other value where changed, E where the caption does not say."""
    for told in (t for c in write_captions(regions) for t in c.told):
        assert told.options["ABCD".index(told.answer)] == told.fact.value
        if told.treatment in ("absent", "negated"):
            assert told.truth == "E"
        else:
            said = told.fact.value if told.is_stated else told.fact.others[0]
            assert told.options["ABCD".index(told.truth)] == said


def test_names_do_not_give_values_away_and_options_differ(regions: tuple[Region, ...]) -> None:
    """A grey cloud is not asked for its colour, and no option repeats another."""
    for fact in facts_of(regions):
        assert fact.value.casefold() not in fact.subject.casefold()
        assert len({fact.value, *fact.others}) == 4


def test_regions_without_metadata_give_no_captions() -> None:
    """A benchmark without structured facts has nothing to write captions from."""
    bare = Region("r", "i", (0, 0, 1, 1), "thing")
    odd = Region("q", "i", (0, 0, 1, 1), "thing", metadata={"detailed_appearance": 3})
    assert write_captions([bare, odd], shares=Shares()) == []
