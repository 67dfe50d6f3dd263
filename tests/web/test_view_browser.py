"""`snellen view` in a real headless browser: walks through the demo's runs, by pointer and key."""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from tests.worlds.browser import NEEDS_CHROMIUM, Watched, barriers, chromium, served, watched
from tests.worlds.report_runs import HOSTILE, reading_run, save_run
from tests.worlds.viewed_runs import spoilt_run

from snellen.cli.demo import PROTOCOLS, evaluate

pytestmark = NEEDS_CHROMIUM
PAGES = {
    "start": "/",
    "run": "/runs/reading-terse?verdict=failed",
    "items": "/runs/reading-terse/items",
    "numbers": "/runs/reading-terse/numbers",
    "item": "/runs/reading-thorough/item?id=astronaut",
    "rubric": "/runs/rubric-careless/item?id=astronaut",
    "direct": "/runs/direct-careless/item?id=0",
    "side": "/side?run=reading-terse&run=reading-thorough&run=reading-careless",
    "flips": "/flips?run=reading-terse&run=reading-thorough",
    "nothing": "/runs/nobody",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that shows the demo's runs, with its indexes built."""
    folder = tmp_path_factory.mktemp("demo")
    # In a thread of its own: the browser's event loop runs in this one.
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(evaluate, PROTOCOLS, [folder] * len(PROTOCOLS)))
    with served(["view", folder]) as found:
        get(found, "/")
        waits_for(lambda: len(list(folder.glob("*/*/view.sqlite"))) == 9)
        waits_for(lambda: "Difficulty" in get(found, "/runs/reading-terse")[1])
        yield found


def get(address: str, path: str, **headers: str) -> tuple[int, str]:
    """The status and text of a page, without a browser."""
    host = urlsplit(address)
    with closing(http.client.HTTPConnection(host.netloc, timeout=20)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def waits_for(condition: Any, seconds: float = 180.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def seen(browser: Any, address: str) -> Iterator[Watched]:
    """The start page in a window of a desktop; nothing may go wrong or be asked of others."""
    with watched(browser, viewport={"width": 1440, "height": 900}, base_url=address) as found:
        found.page.goto("/")
        yield found
        assert found.problems == []
        strangers = [u for u in found.requests if not u.startswith((address, "data:"))]
        assert strangers == []


def test_a_walk_from_the_leaderboard_to_a_comparison(seen: Watched) -> None:
    """Run, filter, item, region and probe, next failure, two captioners; then back by history."""
    page = seen.page
    page.locator("#s1").get_by_role("link", name="terse").click()
    page.get_by_role("checkbox", name="wrong").check()
    page.wait_for_url(re.compile("verdict=wrong"))
    page.wait_for_selector("tbody tr.wrong")
    assert page.locator("tbody tr:not(.wrong)").count() == 0
    wrong = page.locator("tbody tr.wrong").count()
    page.locator(".bar-row", has_text="Count").first.click()
    page.wait_for_url(re.compile("category=Count"))
    assert 0 < page.locator("tbody tr.wrong").count() < wrong

    page.locator("a.question").first.click()
    page.wait_for_url(re.compile("/item.*verdict=wrong|verdict=wrong.*"))
    current = page.locator(".probe.current")
    assert current.is_visible()
    region = current.get_attribute("data-region")
    box = page.locator(f'.stage rect[data-region="{region}"]')
    page.mouse.move(0, 0)
    current.hover()
    assert "on" in (box.get_attribute("class") or "")
    page.mouse.move(0, 0)
    assert "on" not in (box.get_attribute("class") or "")
    box.dispatch_event("pointerover")
    assert "on" in (current.get_attribute("class") or "").split()

    first = page.url
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != first)
    assert "wrong" in (page.locator(".probe.current").get_attribute("class") or "")
    page.keyboard.press("k")
    page.wait_for_url(first)
    page.keyboard.press("c")
    page.wait_for_url(re.compile("/side"))
    assert page.locator(".replies section").count() == 2
    assert page.locator("tr.differs").count() > 0
    page.go_back()
    page.wait_for_url(first)


def test_a_region_leads_to_its_probes_by_keyboard(seen: Watched, address: str) -> None:
    """Tab reaches the frames over the picture, and Enter goes to the first probe of one."""
    page = seen.page
    page.goto(PAGES["item"])
    link = page.locator(".stage svg a").first
    link.focus()
    region = link.get_attribute("data-region")
    assert page.locator(f'.probe.on[data-region="{region}"]').count() > 0
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("#p"))


def test_two_runs_are_chosen_and_compared(seen: Watched) -> None:
    """Boxes of the leaderboard lead to both pages of comparison."""
    page = seen.page
    page.get_by_role("checkbox", name="Choose terse").first.check()
    page.get_by_role("checkbox", name="Choose careless").first.check()
    page.locator("#s1").get_by_role("button", name="What flipped").click()
    page.wait_for_url(re.compile("/flips"))
    page.get_by_role("link", name=re.compile("Wrong to right")).click()
    page.locator("a.question").first.click()
    page.wait_for_url(re.compile("/side"))
    first = page.url
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != first)


def test_a_leaderboard_sorts_and_its_figures_are_drawn(seen: Watched) -> None:
    """A click on a column's head, then another; the figures appear when they are scrolled to."""
    page = seen.page
    board = page.locator("#s1")
    names = board.locator("tbody th a").all_text_contents()
    board.get_by_role("link", name="Tokens/image").click()
    page.wait_for_url(re.compile("sort="))
    falling = board.locator("tbody th a").all_text_contents()
    board.get_by_role("link", name="Tokens/image").click()
    page.wait_for_url(lambda url: "down" not in url)
    rising = board.locator("tbody th a").all_text_contents()
    assert rising == falling[::-1]
    assert sorted(rising) == sorted(names)
    page.locator("#s1-figures").scroll_into_view_if_needed()
    page.wait_for_selector(".figures img", timeout=60_000)
    page.locator(".figures img").first.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('.figures img').naturalWidth > 0")


def test_search_and_keys(seen: Watched) -> None:
    """A slash goes to the search, which narrows while one types and keeps the cursor; ? helps."""
    page = seen.page
    page.goto("/runs/reading-terse")
    page.keyboard.press("/")
    page.keyboard.type("helmet")
    page.wait_for_url(re.compile("q=helmet"))
    page.wait_for_function("document.activeElement.id === 'q'")
    assert 0 < page.locator("tbody tr").count() < 20
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()


def test_the_picture_zooms(seen: Watched) -> None:
    """By key and by button, up to a limit, and back to where it fits."""
    page = seen.page
    page.goto(PAGES["item"])
    width = "document.querySelector('.sheet').getBoundingClientRect().width"
    fits = page.evaluate(width)
    page.keyboard.press("+")
    page.get_by_role("button", name="Larger").click()
    assert page.evaluate(width) == pytest.approx(fits * 1.96, rel=0.02)
    page.keyboard.press("0")
    assert page.evaluate(width) == pytest.approx(fits, rel=0.01)


def test_a_run_under_way_renews_its_page(browser: Any, tmp_path: Path) -> None:
    """Verdicts that arrive appear on the start page and on the run's page without a reload."""
    whole = reading_run(tmp_path, "alpha")
    begun = replace(whole, verdicts=dict(list(whole.verdicts.items())[:3]))
    folder = save_run(begun)
    (folder / "summary.json").unlink()
    with served(["view", tmp_path]) as address, watched(browser, base_url=address) as seen:
        seen.page.goto("/")
        seen.page.get_by_text("under way").wait_for(timeout=20_000)
        seen.page.get_by_role("link", name="alpha").click()
        seen.page.get_by_text("3 of 24 probes judged").wait_for(timeout=20_000)
        with (folder / "verdicts.jsonl").open("ab") as file:
            for verdict in list(whole.verdicts.values())[3:15]:
                file.write(msgspec.json.encode(verdict) + b"\n")
        seen.page.get_by_text("15 of 24 probes judged").wait_for(timeout=20_000)
        save_run(whole)
        (folder / "summary.json").touch()
        seen.page.get_by_text("under way").wait_for(state="detached", timeout=20_000)
        assert seen.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_no_serious_barrier_on_any_page(
    browser: Any, address: str, scheme: str, width: int
) -> None:
    """Axe finds none, no page scrolls sideways, and nothing moves after it has been shown."""
    size = {"width": width, "height": 860}
    with watched(browser, viewport=size, color_scheme=scheme, base_url=address) as seen:
        for name, path in PAGES.items():
            seen.page.goto(path)
            seen.page.wait_for_timeout(300)
            assert barriers(seen.page) == [], name
            extent = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert extent[0] <= extent[1], name
            shift = seen.page.evaluate(
                """() => new Promise((resolve) => {
                  let sum = 0;
                  new PerformanceObserver((list) => {
                    for (const one of list.getEntries()) sum += one.hadRecentInput ? 0 : one.value;
                  }).observe({type: "layout-shift", buffered: true});
                  setTimeout(() => resolve(sum), 100);
                })"""
            )  # fmt: skip
            assert shift < 0.05, name
            seen.page.keyboard.press("?")
            assert barriers(seen.page) == [], name


@pytest.mark.parametrize("text", [HOSTILE, '" autofocus onfocus="alert(1)', "\u202e\u05d0" * 40,
                                  "W" * 3000])  # fmt: skip
def test_hostile_runs_do_nothing(browser: Any, tmp_path: Path, text: str) -> None:
    """No dialog, no request to others, no page wider than the window."""
    spoilt_run(tmp_path, text)
    with served(["view", tmp_path]) as address, watched(
        browser, viewport={"width": 390, "height": 800}, base_url=address
    ) as seen:  # fmt: skip
        seen.page.goto("/")
        waits_for(lambda: get(address, "/runs/spoilt")[0] == 200)
        for path in ("/", "/runs/spoilt", "/runs/spoilt/items", "/runs/spoilt/numbers"):
            seen.page.goto(path)
            extent = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert extent[0] <= extent[1], path
        seen.page.goto("/runs/spoilt")
        seen.page.locator("a.question").first.click()
        seen.page.locator(".probe").first.hover()
        extent = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert extent[0] <= extent[1]
        assert seen.problems == []
        assert all(url.startswith((address, "data:")) for url in seen.requests)


def test_a_server_for_others_opens_with_its_token_only(tmp_path: Path) -> None:
    """The first line is the address with the token; without it nobody gets a page."""
    save_run(reading_run(tmp_path, "alpha"))
    with served(["view", tmp_path, "--host", "0.0.0.0"]) as address:
        found = urlsplit(address)
        here = f"http://127.0.0.1:{found.port}"
        assert re.fullmatch(r"token=[\w-]{24,}", found.query)
        assert get(here, "/")[0] == 401
        token = found.query.removeprefix("token=")
        assert get(here, "/", Authorization=f"Bearer {token}")[0] == 200
        assert get(here, "/", Host="evil.example", Authorization=f"Bearer {token}")[0] == 421
