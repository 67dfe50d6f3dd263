"""The report in a real headless browser: no errors, no requests, filters that work."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.report_runs import HOSTILE, direct_run, reading_run, rubric_run

from snellen.records import Region
from snellen.report.page import ReportOptions, write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine (apt install chromium)"),
]
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


@dataclass
class Seen:
    """A page, and what went wrong or was asked for while it was open."""

    page: Any
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of runs of all protocols whose captions and judge texts are hostile."""
    folder = tmp_path_factory.mktemp("report")
    runs = [
        reading_run(folder, "alpha", right=3, caption=HOSTILE),
        reading_run(folder, "beta", right=1, fidelity="low"),
        rubric_run(folder, "alpha"),
        rubric_run(folder, HOSTILE),
        direct_run(folder, "alpha"),
    ]
    region = Region("r0-4", "i0", (100, 200, 600, 900), "thing")
    options = ReportOptions(regions={"r0-4": region})
    return write_report(runs, folder / "report.html", options=options)[0]


def look(browser: Any, file: Path, **settings: Any) -> Seen:
    """Opens a file in a fresh window, and keeps all messages, dialogs and requests."""
    page = browser.new_context(**settings).new_page()
    seen = Seen(page)

    def refuse(dialog: Any) -> None:
        seen.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", lambda message: seen.problems.append(message.text))
    page.on("pageerror", lambda error: seen.problems.append(str(error)))
    page.on("dialog", refuse)
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(file.as_uri())
    return seen


@pytest.fixture
def seen(browser: Any, report_file: Path) -> Iterator[Seen]:
    """The report, open at the width of a desktop."""
    opened = look(browser, report_file, viewport={"width": 1280, "height": 900})
    yield opened
    opened.page.context.close()


def shown(seen: Seen) -> int:
    """How many cards the gallery shows."""
    return int(seen.page.locator("#cards .card").count())


def test_the_page_opens_without_errors_or_requests(seen: Seen, report_file: Path) -> None:
    """Nothing is said on the console and nothing is loaded but the file itself."""
    assert seen.problems == []
    asked = [url for url in seen.requests if not url.startswith("data:")]
    assert asked == [report_file.as_uri()]
    assert shown(seen) > 10


def test_hostile_captions_and_names_show_as_text(seen: Seen) -> None:
    """A script in a caption, a judge's words or a name is read, and never run."""
    caption = seen.page.locator("#cards .words.caption div").filter(has_text="alert(1)").first
    assert caption.text_content() == HOSTILE
    assert seen.page.locator("#cards script, #cards img[onerror], main img[src=x]").count() == 0
    assert seen.page.locator("th", has_text=HOSTILE).count() > 0
    assert seen.problems == []


def test_filters_narrow_the_gallery_and_clear_again(seen: Seen) -> None:
    """Every filter leaves only cards of its label, together they intersect, clear undoes them."""
    everything = shown(seen)
    seen.page.select_option("#filter-model", "beta")
    beta = shown(seen)
    assert 0 < beta < everything
    assert set(seen.page.locator("#cards .where b").all_text_contents()) == {"beta"}
    seen.page.select_option("#filter-kind", "could not tell")
    assert 0 < shown(seen) < beta
    assert set(seen.page.locator("#cards .kind").all_text_contents()) == {"could not tell"}
    seen.page.click("#filter-clear")
    assert shown(seen) == everything


@pytest.mark.parametrize(
    ("name", "label", "words"),
    [
        ("protocol", "rubric: bench-rubric", "bench-rubric"),
        ("category", "Attributes", "Attributes"),
        ("domain", "Sports", "Sports"),
    ],
)
def test_each_filter_keeps_its_label(seen: Seen, name: str, label: str, words: str) -> None:
    """Protocol, category and domain keep exactly the cards that carry the label."""
    seen.page.select_option(f"#filter-{name}", label)
    heads = seen.page.locator("#cards .where").all_text_contents()
    assert heads
    assert all(words in head for head in heads)


def test_search_finds_words_and_says_when_there_are_none(seen: Seen) -> None:
    """The search looks into questions, captions and judge texts, whatever their case."""
    seen.page.fill("#filter-text", "WHAT IS THING 4")
    assert shown(seen) > 0
    assert all(
        "What is thing 4?" in words
        for words in seen.page.locator("#cards .question").all_text_contents()
    )
    seen.page.fill("#filter-text", "no such words anywhere")
    assert shown(seen) == 0
    assert "Nothing matches" in (seen.page.locator("#found").text_content() or "")


def test_filters_work_by_keyboard_alone(seen: Seen) -> None:
    """Tab reaches a labelled select, keys choose, and Enter on the button clears."""
    everything = shown(seen)
    seen.page.get_by_label("Verdict").focus()
    seen.page.keyboard.press("Tab")
    focused = seen.page.evaluate("document.activeElement.id")
    assert focused == "filter-category"
    seen.page.keyboard.press("ArrowDown")
    assert shown(seen) < everything
    seen.page.locator("#filter-clear").focus()
    seen.page.keyboard.press("Enter")
    assert shown(seen) == everything


def test_a_region_is_framed_where_it_lies(seen: Seen) -> None:
    """The frame over a picture covers the region's share of its width and height."""
    seen.page.fill("#filter-text", "p0-4")
    picture, frame = seen.page.evaluate(
        """() => ["#cards .picture", "#cards .picture rect.over"].map(
          (name) => document.querySelector(name).getBoundingClientRect().toJSON())"""
    )
    assert frame["x"] - picture["x"] == pytest.approx(0.2 * picture["width"], abs=2)
    assert frame["y"] - picture["y"] == pytest.approx(0.1 * picture["height"], abs=2)
    assert frame["width"] == pytest.approx(0.7 * picture["width"], abs=3)


@pytest.mark.parametrize("width", [360, 768])
def test_narrow_windows_do_not_scroll_sideways(browser: Any, report_file: Path, width: int) -> None:
    """At phone width only tables and figures scroll, each in its own box."""
    seen = look(browser, report_file, viewport={"width": width, "height": 740})
    size = seen.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    seen.page.context.close()
    assert size[0] <= size[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_light_and_dark(browser: Any, report_file: Path, scheme: str) -> None:
    """Ink, soft ink and badges have a contrast of at least 4.5 to their ground."""
    seen = look(browser, report_file, color_scheme=scheme)
    pairs = seen.page.evaluate(
        """() => {
          const light = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(Number).map((v) => v / 255)
            .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
          const ground = (node) => {
            for (let at = node; at; at = at.parentElement) {
              const colour = getComputedStyle(at).backgroundColor;
              if (colour !== "rgba(0, 0, 0, 0)") return colour;
            }
          };
          return [...document.querySelectorAll(
            "p, a, th, .value, small, .badge, abbr.low, figcaption, summary, li, .kind, dd, dt"
          )].map((node) => {
            const [a, b] = [light(getComputedStyle(node).color), light(ground(node))];
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            return [node.className || node.tagName, ratio];
          });
        }"""
    )
    seen.page.context.close()
    weak = {name: round(ratio, 2) for name, ratio in pairs if ratio < 4.5}
    assert len(pairs) > 100
    assert weak == {}


def test_print_opens_folds_and_hides_controls(seen: Seen) -> None:
    """On paper the breakdowns are open and the filters gone; afterwards all is as before."""
    closed = seen.page.locator("details:not([open])").count()
    seen.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    seen.page.emulate_media(media="print")
    assert seen.page.locator("details:not([open]):not(.screen-only)").count() == 0
    assert not seen.page.locator("#filters").is_visible()
    seen.page.emulate_media(media="screen")
    seen.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert seen.page.locator("details:not([open])").count() == closed
    assert seen.page.pdf(format="A4")[:4] == b"%PDF"


def test_every_picture_has_a_description(seen: Seen) -> None:
    """Figures and photographs carry alternative text."""
    missing = seen.page.locator("img:not([alt]), img[alt='']").count()
    assert missing == 0
