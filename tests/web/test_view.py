"""`snellen view`: lists that filter, items with all that is known of them, runs side by side."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient
from tests.worlds.report_runs import direct_run, reading_run, rubric_run, save_run
from tests.worlds.viewed_runs import Page, browser_at

from snellen.records import ReplyRow, Usage, Verdict
from snellen.settings import ModelSettings, Settings


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two reading runs, a rubric run and a direct run."""
    folder = tmp_path_factory.mktemp("runs")
    alpha = reading_run(folder, "alpha", right=3, caption="A red field under a grey sky.")
    first = alpha.items[0].probes[3]
    verdict = Verdict(
        "i0", first.id, "B", False, "scored", raw='It says "red  field", so <answer>B</answer>.'
    )
    reply = ReplyRow("i0", "A red field under a grey sky.", reasoning="Hm. Red?", tokens=9)
    alpha = replace(
        alpha,
        verdicts={**alpha.verdicts, ("i0", 0, first.id): verdict},
        replies={**alpha.replies, ("i0", 0): reply},
    )
    for run in (alpha, reading_run(folder, "beta", right=1), rubric_run(folder, "gamma"),
                direct_run(folder, "delta")):  # fmt: skip
        save_run(run)
    return folder


@pytest.fixture(scope="module")
def here(root: Path) -> TestClient:
    """A browser at these runs."""
    return browser_at(root)


def shown(here: TestClient, path: str, **query: str | int) -> Page:
    """A page that is there."""
    answer = here.get(path + (f"?{urlencode(query)}" if query else ""))
    assert answer.status_code == 200, answer.text
    return Page(answer.text)


def rows(page: Page) -> list[str]:
    """The verdicts of the rows of a list of probes."""
    kinds = ("right", "wrong", "abstained", "unscored")
    classes = [a.get("class") for tag, a in page.elements if tag == "tr" and a.get("class")]
    return [name for name in classes if name in kinds]


def test_the_start_page_has_a_leaderboard_for_each_benchmark(here: TestClient) -> None:
    """With intervals, a link to each run, and boxes to choose runs that belong together."""
    page = shown(here, "/")
    assert {"/runs/alpha", "/runs/beta", "/runs/gamma", "/runs/delta"} <= set(page.links("/runs/"))
    boxes = [a["value"] for tag, a in page.elements if a.get("name") == "run"]
    assert sorted(boxes) == ["alpha", "beta"]
    assert re.search(r"\[\d+\.\d, \d+\.\d\]", page.text)


@pytest.mark.parametrize(("down", "first"), [("", "beta"), ("1", "alpha")])
def test_columns_of_a_leaderboard_sort(here: TestClient, down: str, first: str) -> None:
    """By number, both ways; the head says which, and the other leaderboards stay."""
    page = shown(here, "/", sort="s1.overall_acc", down=down)
    assert page.links("/runs/")[0] == f"/runs/{first}"
    order = [a["aria-sort"] for _, a in page.elements if "aria-sort" in a]
    assert order == ["descending" if down else "ascending"]


def test_columns_of_a_leaderboard_are_chosen_in_the_address(here: TestClient) -> None:
    """Only the columns that are named stand beside name and scored."""
    page = shown(here, "/", cols="coverage")
    heads = [a for tag, a in page.elements if tag == "th" and a.get("scope") == "col"]
    assert len(heads) < len([1 for tag, a in shown(here, "/").elements
                             if tag == "th" and a.get("scope") == "col"])  # fmt: skip
    assert page.links("cols=coverage")


def test_a_run_lists_all_its_probes(here: TestClient) -> None:
    """Right answers too, each with a link to its place on the page of its item."""
    page = shown(here, "/runs/alpha")
    assert len(rows(page)) == 24
    assert {"right", "wrong", "abstained", "unscored"} == set(rows(page))
    assert len(page.links("/item?")) == 24


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"verdict": "unscored"}, 1),
        ({"verdict": "unscored", "reason": "unreadable_hedged"}, 1),
        ({"reason": "no such reason"}, 0),
        ({"category": "Action"}, 4),
        ({"l1": "Plants"}, 12),
        ({"generator": "g1", "category": "Attributes"}, 0),
        ({"region": "r2-3"}, 1),
        ({"q": "WHAT thing 4?"}, 4),
        ({"q": "p1-2"}, 1),
        ({"q": "nothing like it"}, 0),
        ({"page": "99"}, 24),
        ({"page": "-1", "sort": "nonsense", "verdict": "nonsense"}, 24),
    ],
)
def test_filters_narrow_the_list(here: TestClient, query: dict[str, str], count: int) -> None:
    """Filters intersect; what is unknown asks for nothing, and an empty list says what to do."""
    page = shown(here, "/runs/alpha", **query)
    assert len(rows(page)) == count
    assert count or "No probe matches" in page.text


def test_failures_are_all_that_is_not_right(here: TestClient) -> None:
    """`failed` stands for wrong, could not tell and unscored."""
    page = shown(here, "/runs/alpha", verdict="failed")
    assert set(rows(page)) == {"wrong", "abstained", "unscored"}


def test_probes_are_told_by_how_many_runs_have_them_right(here: TestClient) -> None:
    """Difficulty filters and sorts over the runs of one leaderboard."""
    none = shown(here, "/runs/alpha", right_in="none")
    some = shown(here, "/runs/alpha", right_in="some")
    all_ = shown(here, "/runs/alpha", right_in="all")
    counts = [len(rows(page)) for page in (none, some, all_)]
    assert sum(counts) == 24
    assert all(counts)
    assert set(rows(all_)) == {"right"}
    assert rows(shown(here, "/runs/alpha", sort="difficulty", down="1"))[0] == "right"


def test_filters_and_columns_stay_in_every_link(here: TestClient) -> None:
    """Sorting, turning pages and opening an item keep what the address asks for."""
    page = shown(here, "/runs/alpha", verdict="wrong", category="Action", cols="tokens")
    for like in ("sort=verdict", "/item?"):
        assert all("verdict=wrong" in h and "cols=tokens" in h for h in page.links(like))
    assert page.links("/item?")


def test_items_are_listed_with_their_counts(here: TestClient) -> None:
    """One row an item; filters of probes keep the items that have such a probe."""
    assert len(shown(here, "/runs/alpha/items").links("/item?")) == 4
    assert len(shown(here, "/runs/alpha/items", verdict="unscored").links("/item?")) == 1
    assert len(shown(here, "/runs/alpha/items", q="grey sky").links("/item?")) == 4
    falling = shown(here, "/runs/alpha/items", sort="right", down="1").links("/item?")
    rising = shown(here, "/runs/alpha/items", sort="right").links("/item?")
    assert falling[0] != rising[0]


def test_an_item_shows_all_that_is_known(here: TestClient) -> None:
    """Options, right answer, verdict, the judge's words, folded thoughts, region and difficulty."""
    page = shown(here, "/runs/alpha/item", id="i0", probe="p0-3")
    for words in (
        "right answer",
        "as the judge read it",
        "Hm. Red?",
        "right in 2 of 2",
        "9 tokens",
    ):
        assert words in page.text
    assert [a["id"] for a in page.with_class("current")] == ["p3"]
    assert page.with_class("probe")[0]["data-region"] == "r0-0"
    sources = [a["src"] or "" for tag, a in page.elements if tag == "img"]
    assert len(sources) == 1
    answer = here.get(sources[0])
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")


def test_words_that_the_judge_quotes_are_marked_in_the_reply(here: TestClient) -> None:
    """Whatever their white space and case; words that do not stand there are not."""
    answer = here.get("/runs/alpha/item?id=i0")
    assert re.findall(r"<mark data-evidence=\"p3 \">([^<]*)</mark>", answer.text) == ["red field"]
    assert "data-evidence" not in here.get("/runs/alpha/item?id=i1").text


def test_keys_lead_from_failure_to_failure(here: TestClient) -> None:
    """Next and previous, over the borders of items, within the filters of the address."""
    seen, at = [], "/runs/alpha/item?id=i0"
    while at:
        page = shown(here, at)
        seen += [a["id"] for a in page.with_class("current")]
        at = next((a["href"] or "" for _, a in page.elements if a.get("data-key") == "j"), "")
    failures = rows(shown(here, "/runs/alpha", verdict="failed"))
    assert len(seen) == len(failures)
    back = next(a["href"] for _, a in page.elements if a.get("data-key") == "k")
    assert Page(here.get(back or "").text).with_class("current")[0]["id"] == seen[-2]
    narrow = shown(here, "/runs/alpha/item", id="i0", verdict="unscored")
    following = next(a["href"] for _, a in narrow.elements if a.get("data-key") == "j")
    assert "probe=p3-5" in (following or "")


def test_runs_stand_side_by_side_on_one_item(here: TestClient) -> None:
    """Without an item: the first on which they differ. Each reply and all verdicts are there."""
    page = shown(here, "/side?run=alpha&run=beta")
    assert "Who saw what" in page.text
    assert len(page.with_class("differs")) == 3
    assert len(page.with_class("reply")) == 2
    following = next(a["href"] for _, a in page.elements if a.get("data-key") == "j")
    assert "id=i1" in (following or "")


def test_flips_are_counted_and_listed(here: TestClient) -> None:
    """From the first run to the second, by direction."""
    page = shown(here, "/flips?run=alpha&run=beta")
    assert "Right to wrong (8)" in page.text
    assert "Wrong to right (0)" in page.text
    assert len(page.links("/side?")) >= 8
    other = shown(here, "/flips?run=beta&run=alpha")
    assert "Wrong to right (8)" in other.text
    assert "Nothing of this kind" in shown(here, "/flips?run=alpha&run=beta&kind=to_right").text


@pytest.mark.parametrize(
    "path",
    ["/side?run=alpha", "/side?run=alpha&run=gamma", "/flips?run=alpha&run=nobody", "/side"],
)
def test_runs_that_do_not_belong_together_are_refused(here: TestClient, path: str) -> None:
    """With a sentence that says why, and where to go."""
    answer = here.get(path)
    assert answer.status_code == 400
    assert "start page" in answer.text or "leaderboard" in answer.text


def test_every_protocol_has_its_pages(here: TestClient) -> None:
    """Statements and questions without options are shown as what they are."""
    assert "The response says must_right 0." in shown(here, "/runs/gamma/item", id="i0").text
    direct = shown(here, "/runs/delta/item", id="1").text
    assert "answer 1" in direct
    assert "<|image_1|>" not in direct.split("Question")[0]
    for run in ("alpha", "gamma", "delta"):
        assert "How it was measured" in shown(here, f"/runs/{run}/numbers").text


def test_all_of_a_judges_words_are_a_link_away(here: TestClient) -> None:
    """As plain text, which no browser takes for a page."""
    answer = here.get("/runs/alpha/words?n=3")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text == 'It says "red  field", so <answer>B</answer>.'
    assert here.get("/runs/alpha/words?n=x").status_code == 400


def test_long_lists_have_pages(tmp_path: Path) -> None:
    """Fifty rows a page, with links to the next and back."""
    run = reading_run(tmp_path, "many")
    items = tuple(
        replace(item, probes=tuple(replace(p, id=f"{p.id}-{k}") for p in item.probes
                                   for k in range(5)))
        for item in run.items
    )  # fmt: skip
    save_run(replace(run, items=items))
    here = browser_at(tmp_path)
    first, last = shown(here, "/runs/many"), shown(here, "/runs/many", page=3)
    assert (len(rows(first)), len(rows(last))) == (50, 20)
    assert "120 probes, page 1 of 3" in first.text
    assert not last.links("page=4")


def test_costs_come_from_the_prices_of_the_settings(root: Path) -> None:
    """Tokens alone where a judge has no price; nothing where it counted no tokens."""
    run = reading_run(root.parent / "priced", "alpha")
    priced = {key: replace(v, usage=Usage(1000, 100)) for key, v in run.verdicts.items()}
    save_run(replace(run, verdicts=priced))
    here = browser_at(root.parent / "priced")
    assert "Judge: 1,000 tokens in, 100 out" in shown(here, "/runs/alpha/item", id="i0").text
    assert "$" not in shown(here, "/runs/alpha/item", id="i0").text
    prices = {"j": ModelSettings(price_in_usd=2.0, price_out_usd=10.0)}
    here.app.state.library.settings = Settings(prices)
    assert "100 out, $0.003" in shown(here, "/runs/alpha/item", id="i0").text
