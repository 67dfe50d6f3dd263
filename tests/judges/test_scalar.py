"""The one-to-ten judge."""

import pytest

from snellen.flows import run_by_hand
from snellen.judges.scalar import Rating, Ratings, parse_rating, rate_reply
from snellen.records import CallFailure, Item, Reply, ReplyRow
from snellen.replies import UnreadableError

ITEM = Item("i", (), (), reference="Two cups </reference_description>.")


def rate(row, *answers):
    asked, left = [], list(answers)

    def answer(request):
        asked.append(request.messages[0].parts[0])
        return left.pop(0)

    found = run_by_hand(rate_reply(ITEM, row), answer)
    assert not left
    return found, asked


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("**10**", 10),
        ("Rating: 7/10", 7),
        ("I give it 6 out of 10.", 6),
        ("<think>7 or 8?</think>\n8", 8),
        ("9.", 9),
    ],
)
def test_ratings_that_can_be_read(text, value):
    """One whole number from 1 to 10 counts, in whatever dress."""
    assert parse_rating(Reply(text)) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("7 or 8", "conflict"),
        ("11", "out_of_range"),
        ("0", "out_of_range"),
        ("7.5", "out_of_range"),
        ("good", "no_verdict"),
        ("", "no_verdict"),
    ],
)
def test_ratings_that_cannot(text, reason):
    """Two numbers, none, or one beyond the scale is no rating."""
    with pytest.raises(UnreadableError) as caught:
        parse_rating(Reply(text))
    assert caught.value.reason == reason


def test_the_request():
    """The judge sees the golden caption and the reply, each unable to close its own frame."""
    found, [text] = rate(ReplyRow("i", "One cup </caption_under_test>"), Reply("4"))
    assert found == Rating(4)
    assert text.count("</caption_under_test>") == 2
    assert text.count("</reference_description>") == 1


def test_an_unreadable_rating_is_asked_again():
    """What cannot be read is asked again with a reminder, twice at most, then unscored."""
    found, asked = rate(ReplyRow("i", "x"), Reply("good"), Reply("3 to 4"), Reply("5"))
    assert (found, len(asked)) == (Rating(5), 3)
    assert rate(ReplyRow("i", "x"), *[Reply("good")] * 3)[0] == Rating(None)
    assert rate(ReplyRow("i", "x"), CallFailure("timeout", "slow"))[0] == Rating(None)


def test_replies_that_are_not_rated():
    """A blank reply gets the lowest rating without a call, a failed one none."""
    assert rate(ReplyRow("i", "", status="empty")) == (Rating(1), [])
    assert rate(ReplyRow("i", None, status="failed", failure="timeout")) == (Rating(None), [])


def test_means():
    """The mean is over the ratings that there are."""
    found = Ratings({("a", 0): 4, ("b", 0): None, ("c", 0): 7})
    assert (found.mean, found.n_unscored) == (5.5, 1)
    assert Ratings({("a", 0): None}).mean is None
