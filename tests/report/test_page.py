"""The report: one page with everything, safe against hostile text, and its figures and tables."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.worlds.report_runs import HOSTILE, PROMPT, direct_run, reading_run, rubric_run, save_run

from snellen.cli import cli
from snellen.errors import DataError, UsageError
from snellen.records import Item, Probe, ReplyRow, Verdict
from snellen.report.environment import source_hash
from snellen.report.gallery import gallery_of
from snellen.report.page import (
    ReportOptions,
    bundled_regions,
    report,
    write_report,
)
from snellen.report.sections import failures_table, sections_of
from snellen.runs.folder import Run
from snellen.runs.naming import named_apart
from snellen.runs.summary import summarise, summary_of
from snellen.tables.runs import label_of, leaderboard


class Page(HTMLParser):
    """Elements with their attributes, and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._mute = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps an element."""
        self.elements.append((tag, dict(attrs)))
        self._mute = tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:
        """Text counts again after a script or style."""
        self._mute = False

    def handle_data(self, data: str) -> None:
        """Keeps a text."""
        self.words += "" if self._mute else data

    def count(self, tag: str) -> int:
        """How many elements of a name there are."""
        return sum(name == tag for name, _ in self.elements)


def page_of(*runs: Run, options: ReportOptions | None = None) -> str:
    """The report of runs as text, without figures, which take most of the time."""
    return report(sections_of(runs, with_charts=False), options)


def test_one_section_a_benchmark_and_protocol(tmp_path: Path) -> None:
    """Runs of one benchmark share a section, in the order reading, rubric, direct."""
    runs = [
        direct_run(tmp_path, "a"),
        rubric_run(tmp_path, "a"),
        reading_run(tmp_path, "a", right=1),
        reading_run(tmp_path, "b"),
    ]
    sections = sections_of(runs, with_charts=False)
    assert [s.title for s in sections] == ["bench-reading", "bench-rubric", "bench-direct"]
    assert [run.name for run in sections[0].runs] == ["b", "a"]


def test_runs_that_must_not_be_compared_stand_apart(tmp_path: Path) -> None:
    """Another judge, other data or a control each make a section of their own."""
    run = reading_run(tmp_path)
    judge = replace(run.spec.judge, name="other")
    others = [
        replace(run, spec=replace(run.spec, judge=judge)),
        replace(run, spec=replace(run.spec, data_digest="e" * 64)),
        replace(run, spec=replace(run.spec, options={"control": "blind"})),
    ]
    sections = sections_of([run, *others], with_charts=False)
    assert len(sections) == 4
    assert "bench-reading, blind control" in {s.title for s in sections}


def test_two_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """The same model twice in a section has its folders behind its name, or else numbers."""
    run = reading_run(tmp_path)
    other = replace(run, folder=Path("sweep/low"))
    names = {run.name for run in sections_of([run, other], with_charts=False)[0].runs}
    assert names == {f"m ({run.folder.name})", "m (low)"}
    names = {run.name for run in sections_of([run, run], with_charts=False)[0].runs}
    assert names == {"m #1", "m #2"}
    blind = reading_run(tmp_path, "blind")
    blind = replace(blind, spec=replace(blind.spec, options={"control": "blind"}))
    second = replace(blind, folder=Path("orders/second"))
    assert label_of(named_apart([blind, second])[1]) == "second (blind)"


def test_a_report_needs_a_run() -> None:
    """No run is a misuse."""
    with pytest.raises(UsageError, match="at least one run"):
        sections_of([])


def test_the_page_tells_what_was_measured_and_how(tmp_path: Path) -> None:
    """Judge, prompt with hash and text, parameters, pictures, data hash, versions, licence."""
    words = Page(page_of(reading_run(tmp_path))).words
    for fact in (
        "judge j", PROMPT.sha256, PROMPT.text, "temperature = 0.7, top_p = 0.9",
        "files above 1,000 stored pixels are refused", "d" * 64, "snellen 0.1.0", "CC-BY-4.0",
        "i3 333333333333",
    ):  # fmt: skip
        assert fact in words, fact


def test_every_number_has_its_readings_and_counts(tmp_path: Path) -> None:
    """Strict, scored and upper values, intervals, and scored of all probes are on the page."""
    words = Page(page_of(reading_run(tmp_path))).words
    assert "75.0" in words
    assert "78.3" in words
    assert "79.2" in words
    assert "23/24" in words
    assert "Overall % in its readings" in words
    assert "7/8" in words
    assert "unreadable_hedged 1" in words


def test_unknown_cost_is_unknown_and_roles_are_apart(tmp_path: Path) -> None:
    """Cost that no endpoint said is `unknown`; retries and reasoning tokens have their places."""
    page = page_of(reading_run(tmp_path))
    row = re.search(r"<tr><th[^>]*>m</th><td[^>]*><span[^>]*>judge</span>.*?</tr>", page)
    assert row is not None
    assert "unknown" in row[0]
    assert "0.0000" not in row[0]
    assert "Reasoning tokens" in page
    assert ">77<" in page


def test_low_fidelity_is_marked_on_every_table_of_numbers(tmp_path: Path) -> None:
    """Each table that has a number with an interval carries one badge, and no number does."""
    page = page_of(reading_run(tmp_path, fidelity="low"))
    assert 'class="warning low"' in page
    tables = re.findall(r"<table>.*?</table></div>(?:<p class=\"note\">.*?</p>)?", page)
    measured = [table for table in tables if "<small><span>[" in table]
    assert len(measured) > 3
    assert all(table.count('class="badge low"') == 1 for table in measured)
    plain, _ = page_of(reading_run(tmp_path)).split('<template id="card">')
    assert 'class="badge low"' not in plain


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    """A run without a summary is summed up anew, and the page warns that it is not complete."""
    words = Page(page_of(replace(reading_run(tmp_path), summary=None))).words
    assert "m: the run is incomplete" in words


def test_nothing_foreign_becomes_markup(tmp_path: Path) -> None:
    """Hostile names, labels, captions and judge texts add no element and lose no character."""
    tame, wild = reading_run(tmp_path, "tame"), reading_run(tmp_path, "tame", caption=HOSTILE)
    probes = tuple(
        replace(p, question=HOSTILE, options=(HOSTILE,) * 4, groups={"category": HOSTILE})
        for p in wild.items[0].probes
    )
    item = replace(wild.items[0], probes=probes, groups={"l1": (HOSTILE,), "l2": ()})
    spec = replace(
        wild.spec,
        benchmark=HOSTILE,
        license=HOSTILE,
        model=replace(wild.spec.model, name=HOSTILE),
        prompts={"verdict": replace(PROMPT, text=HOSTILE)},
    )
    wild = replace(wild, items=(item, *wild.items[1:]), spec=spec, summary=None)
    hostile = Page(report(sections_of([wild])))
    assert hostile.count("script") == Page(page_of(tame)).count("script") == 2
    assert all("onerror" not in attributes for _, attributes in hostile.elements)
    assert {tag for tag, _ in hostile.elements} <= {
        tag for tag, _ in Page(report(sections_of([tame]))).elements
    }
    assert HOSTILE in hostile.words
    assert all(a.get("src", "data:").startswith("data:") for t, a in hostile.elements if t == "img")  # type: ignore[union-attr]


def test_the_policy_allows_this_script_and_style_alone(tmp_path: Path) -> None:
    """The content security policy forbids all but data pictures and the page's own two hashes."""
    page = page_of(reading_run(tmp_path))
    policy = next(
        attributes["content"] or ""
        for tag, attributes in Page(page).elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    script = page[page.rindex("<script>") + 8 : page.rindex("</script>")]
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert rules["script-src"] == f"'{source_hash(script)}'"
    assert rules["style-src"] == f"'{source_hash(style)}'"
    assert not any(
        key == "style" or key.startswith("on") for _, a in Page(page).elements for key in a
    )


def test_the_first_screen_holds_scores_and_what_went_wrong(tmp_path: Path) -> None:
    """A leaderboard over benchmarks, one figure, and the failures come before any section."""
    runs = [reading_run(tmp_path, "a"), reading_run(tmp_path, "b", right=1), direct_run(tmp_path)]
    page = report(sections_of(runs))
    first = page[page.index('id="overview"') : page.index('id="s1"')]
    assert first.count("<figure") == 1
    words = Page(first).words
    assert "bench-reading: Overall %" in words
    assert "bench-direct: Accuracy %" in words
    assert "What went wrong" in words
    sections = sections_of(runs, with_charts=False)
    gallery = gallery_of([run for section in sections for run in section.runs])
    reading, direct = failures_table(sections, gallery.totals).rows
    assert reading[:5] == ("bench-reading", 7, 15, 2, 48)
    assert direct[:5] == ("bench-direct", 2, 0, 0, 6)


def test_how_it_was_measured_comes_last(tmp_path: Path) -> None:
    """Settings, prompts, calls and costs stand behind the failures, and the contents lead there."""
    page = page_of(reading_run(tmp_path))
    order = [page.index(mark) for mark in ('id="s1"', 'id="failures"', 'id="provenance"')]
    assert order == sorted(order)
    assert page.index("Reasoning tokens") > order[-1]
    assert 'href="#provenance"' in page


@pytest.mark.parametrize(
    ("most", "promise"), [(2, "2 of 6 failures are here, the rest in "), (9, "All 6 failures")]
)
def test_the_gallery_promises_what_it_holds(tmp_path: Path, most: int, promise: str) -> None:
    """The lead says how many failures are on the page, and where the others are."""
    page = page_of(reading_run(tmp_path), options=ReportOptions(gallery=most))
    assert promise in Page(page).words


def test_the_gallery_is_capped_a_run(tmp_path: Path) -> None:
    """`gallery` limits the failures of each run, and 0 leaves the gallery out."""
    runs = [reading_run(tmp_path, "a"), reading_run(tmp_path, "b", right=1)]
    page = page_of(*runs, options=ReportOptions(gallery=2))
    data = json.loads(page.split('id="gallery-data">')[1].split("</script>")[0])
    assert len(data["failures"]) == 4
    assert 'id="failures"' not in page_of(*runs, options=ReportOptions(gallery=0))


@pytest.mark.slow
def test_the_same_runs_give_the_same_page(tmp_path: Path) -> None:
    """Nothing in a page, figures included, depends on when it was written."""
    run = reading_run(tmp_path)
    assert report(sections_of([run])) == report(sections_of([run]))


@pytest.mark.slow
def test_figures_and_tables_are_written_as_files(tmp_path: Path) -> None:
    """Each figure in three formats and each table in three, named by benchmark."""
    runs = [reading_run(tmp_path, "a"), direct_run(tmp_path, "a")]
    write_report(runs, tmp_path / "r.html", figures=tmp_path / "f", tables_to=tmp_path / "t")
    figures = {p.name for p in (tmp_path / "f").iterdir()}
    assert {f"bench-reading-radar-category.{k}" for k in ("png", "svg", "pdf")} <= figures
    assert (tmp_path / "f" / "bench-direct-radar-error_category.pdf").read_bytes()[:4] == b"%PDF"
    tables = {p.name for p in (tmp_path / "t").iterdir()}
    assert {f"bench-reading-main.{k}" for k in ("md", "csv", "tex")} <= tables
    assert {"bench-reading-by-category.csv", "bench-direct-usage.md"} <= tables


@pytest.mark.slow
def test_sections_of_one_name_do_not_overwrite_each_other(tmp_path: Path) -> None:
    """Two judges on one benchmark write their tables under different names."""
    run = reading_run(tmp_path)
    other = replace(run, spec=replace(run.spec, judge=replace(run.spec.judge, name="../../other")))
    written = write_report([run, other], tmp_path / "r.html", tables_to=tmp_path / "t")
    names = [p.name for p in written[1:]]
    assert len(names) == len(set(names)) == len(list((tmp_path / "t").iterdir()))
    assert all(p.parent == tmp_path / "t" for p in written[1:])


def test_a_benchmark_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    """Slashes and dots of a benchmark's name do not become folders."""
    run = reading_run(tmp_path, benchmark="../../x/y")
    written = write_report([run], tmp_path / "r.html", tables_to=tmp_path / "t")
    assert all(p.parent == tmp_path / "t" for p in written[1:])


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A folder in the page's place is an expected failure that names it."""
    with pytest.raises(DataError, match="cannot be written"):
        write_report([reading_run(tmp_path)], tmp_path)


def test_the_command_writes_a_page_about_run_folders(tmp_path: Path) -> None:
    """`snellen report` takes folders of runs, finds those below, and says where the page is."""
    save_run(reading_run(tmp_path / "runs", "a"))
    save_run(reading_run(tmp_path / "runs", "b", right=1))
    out = tmp_path / "page" / "report.html"
    words = ["report", str(tmp_path / "runs"), "--out", str(out), "--tables", str(tmp_path / "t")]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert str(out) in done.output
    page = out.read_text(encoding="utf-8")
    assert "2 models, 4 items, 24 probes" in page
    assert (tmp_path / "t" / "bench-reading-main.tex").exists()


def test_the_command_frames_regions_of_given_data(tmp_path: Path) -> None:
    """With --data the boxes of a benchmark's regions are on the cards."""
    save_run(reading_run(tmp_path, "m"))
    bench = tmp_path / "bench"
    bench.mkdir()
    (bench / "benchmark.json").write_text(
        json.dumps(
            {"name": "b", "protocol": "reading", "version": "1", "license": "", "source": ""}
        ),
        encoding="utf-8",
    )
    picture = "red.png"
    shutil.copy(tmp_path / "pictures" / "red.png", bench / picture)
    rows = {
        "images": {"image_id": "i0", "image": picture, "l1": ["Plants"], "l2": []},
        "regions": {"region_id": "r0-4", "image_id": "i0", "bbox": [0, 0, 500, 250],
                    "mask": None, "nature": "thing", "metadata": {}},
        "questions": {"question_id": "p0-4", "image_id": "i0", "region_id": "r0-4",
                      "category": "Count", "question": "?", "options": ["a", "b", "c", "d"],
                      "answer": "A", "generator": "g"},
    }  # fmt: skip
    for name, row in rows.items():
        (bench / f"{name}.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    out = tmp_path / "r.html"
    words = ["report", str(tmp_path / "m"), "--out", str(out), "--data", str(bench)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert '"box":[0.0,0.0,500.0,250.0]' in out.read_text(encoding="utf-8")


def test_only_bundled_benchmarks_are_looked_up(tmp_path: Path) -> None:
    """A benchmark of another name, known or not, is never loaded or fetched for its regions."""
    assert bundled_regions([reading_run(tmp_path, benchmark="capprobe")]) == {}
    assert bundled_regions([reading_run(tmp_path, benchmark="mini-of-mine")]) == {}
    assert bundled_regions([reading_run(tmp_path, benchmark="mini-reading")])


def test_help_answers_with_an_example() -> None:
    """The command explains itself."""
    done = CliRunner().invoke(cli, ["report", "--help"])
    assert done.exit_code == 0
    assert "Example: snellen report" in done.output


@pytest.mark.slow
def test_thirteen_large_runs_stay_under_five_megabytes(tmp_path: Path) -> None:
    """13 runs of 25,650 verdicts with long captions make a page under 5 MB without pictures."""
    base = reading_run(tmp_path)
    caption = "A long and winding description. " * 200
    items, replies, verdicts = [], {}, {}
    for i in range(342):
        probes = tuple(
            Probe(f"q{i}-{k}", f"What is the {k}th thing like, seen from the left? " * 3, "A",
                  ("one thing", "two things", "three", "four"),
                  groups={"category": f"category {k % 10}", "generator": f"g{k % 2}"})
            for k in range(75)
        )  # fmt: skip
        name = f"image-{i}"
        groups = {"l1": (f"domain {i % 37}",), "l2": (f"part {i % 219}",)}
        items.append(Item(name, (), probes, cluster=name, groups=groups, digest="0" * 64))
        replies[name, 0] = ReplyRow(name, caption + name, tokens=900)
        for k, probe in enumerate(probes):
            letter = "ABE"[(i + k) % 3]
            verdicts[name, 0, probe.id] = Verdict(
                name, probe.id, letter, letter == "A", "scored", raw=caption[:2000] + letter
            )
    spec = replace(base.spec, items={item.id: item.digest for item in items})
    big = Run(tmp_path, spec, tuple(items), replies, verdicts, None)
    big = replace(big, summary=summarise(big, status="complete"))
    runs = [
        replace(big, spec=replace(spec, model=replace(spec.model, name=f"model-{k}")))
        for k in range(13)
    ]
    assert len(verdicts) == 25_650
    assert len(report(sections_of(runs)).encode()) < 5_000_000


def test_sections_of_one_benchmark_are_told_apart_and_marked_each_on_its_own(
    tmp_path: Path,
) -> None:
    """A second judge is named in titles, and its low fidelity does not rub off on the first."""
    run = reading_run(tmp_path, "a")
    low = replace(run.spec.judge, name="embedded", fidelity="low")
    other = replace(run, spec=replace(run.spec, judge=low))
    sections = sections_of([run, other], with_charts=False)
    titles = [s.title for s in sections]
    assert titles == ["bench-reading, judge embedded", "bench-reading, judge j"]
    heads = re.findall(r"<th scope=\"col\".*?</th>", report(sections))[:3]
    assert ["badge low" in head for head in heads] == [False, True, False]
    shown = re.search(r'id="gallery-data">(.*?)</script>', report(sections))
    assert shown is not None
    assert [run["benchmark"] for run in json.loads(shown[1])["runs"]] == titles


def test_sections_that_differ_in_items_alone_say_how_many(tmp_path: Path) -> None:
    """Under one judge the number of items tells two sections apart, else a number does."""
    run = reading_run(tmp_path)
    short = replace(run, items=run.items[:1], spec=replace(run.spec, data_digest="e" * 64))
    sections = sections_of([run, short], with_charts=False)
    assert {s.title for s in sections} == {"bench-reading, 4 items", "bench-reading, 1 item"}
    same = replace(run, spec=replace(run.spec, data_digest="e" * 64))
    twins = sections_of([run, same], with_charts=False)
    assert len({s.title for s in twins}) == 2


def test_a_run_that_did_not_end_says_so_in_every_table_of_numbers(tmp_path: Path) -> None:
    """The leaderboard of an interrupted run calls its numbers not final."""
    run = reading_run(tmp_path)
    summary = replace(summary_of(run), status="incomplete")
    ended, broken = (leaderboard([r]).notes for r in (run, replace(run, summary=summary)))
    assert "m: the run is incomplete, its numbers are not final" in broken
    assert not any("not final" in note for note in ended)


def test_unscored_probes_are_told_of(tmp_path: Path) -> None:
    """The leaderboard and the page say how many there are, and which probes the values are over."""
    run = reading_run(tmp_path)
    one = summary_of(run)
    many = replace(one, counts=replace(one.counts, scored=20, unscored=4))
    told = "m: 4 of 24 probes are unscored: values are over scored probes"
    assert told in Page(page_of(replace(run, summary=many))).words
    assert told in leaderboard([replace(run, summary=many)]).notes
    none = replace(one, counts=replace(one.counts, scored=24, unscored=0))
    assert not any("unscored" in note for note in leaderboard([replace(run, summary=none)]).notes)


def test_the_one_interval_that_no_bootstrap_holds_is_marked(tmp_path: Path) -> None:
    """Where the density CV has an interval, tables and page say that it is too short."""
    marked = "Density CV are too short where caption lengths have heavy tails"
    run = reading_run(tmp_path)
    assert marked in leaderboard([run]).notes[0]
    assert marked in Page(page_of(run)).words
    assert marked not in leaderboard([direct_run(tmp_path)]).notes[0]
