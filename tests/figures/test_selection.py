"""Figures: which a group of runs has, what they show, and how they are saved."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image as Pillow
from tests.worlds.report_runs import HOSTILE, direct_run, reading_run, rubric_run

from snellen.figures import bars, card, heat, radar, rings, scatter, style
from snellen.figures.bars import domain_weights, judges_chart
from snellen.figures.calibration import calibration_of, reliability
from snellen.figures.scatter import published_points
from snellen.figures.selection import charts_of, overview_chart, write_charts
from snellen.figures.series import Series, best_runs, series_of
from snellen.records import Region
from snellen.runs.naming import named_apart
from snellen.runs.spec import Value
from snellen.stats.agreement import calibration


def value(rate: float | None, low: float = 0.1, high: float = 0.9) -> Value:
    """A metric's value with an interval."""
    return Value(rate, rate, rate, None if rate is None else (low, high), 10, 5)


def series(name: str, rates: dict[str, float | None], n: int = 9) -> Series:
    """A series with the same number of items behind each label."""
    return Series(name, {k: value(v) for k, v in rates.items()}, dict.fromkeys(rates, n))


def words(figure: object) -> list[str]:
    """All texts that a figure shows."""
    found = [t.get_text() for t in figure.findobj(Text) if t.get_visible()]  # type: ignore[attr-defined]
    return [text for text in found if text]


def test_a_reading_section_has_all_its_figures(tmp_path: Path) -> None:
    """Two reading runs give every figure but the judge's reliability, which needs probabilities."""
    runs = [reading_run(tmp_path, "a", right=4), reading_run(tmp_path, "b", right=2)]
    assert [chart.name for chart in charts_of(runs)] == [
        "radar-category", "coverage-density", "length", "bars-generator", "shares-category",
        "bars-l1", "domains", "rings", "card",
    ]  # fmt: skip


def test_one_run_skips_figures_that_compare(tmp_path: Path) -> None:
    """With a single run nothing is drawn that only several can show."""
    names = {chart.name for chart in charts_of([reading_run(tmp_path)])}
    assert not names & {"coverage-density", "length", "card"}
    assert "radar-category" in names


def test_rubric_and_direct_sections_have_their_figures(tmp_path: Path) -> None:
    """Rubric runs get heat map, gap, coverage and gates, direct runs a radar of capabilities."""
    rubric = [rubric_run(tmp_path, "a"), rubric_run(tmp_path, "b", right=3)]
    names = ["heat-category", "gap", "coverage", "bars-category", "bars-gates", "card"]
    assert [c.name for c in charts_of(rubric)] == names
    assert [c.name for c in charts_of([direct_run(tmp_path)])] == ["radar-error_category"]


def test_nothing_is_drawn_where_nothing_was_scored(tmp_path: Path) -> None:
    """Runs without a scored probe leave only what the benchmark itself shows."""
    runs = []
    for name in "ab":
        run = reading_run(tmp_path, name)
        lost = {
            key: replace(v, status="unscored", verdict=None, correct=None, reason="judge_timeout")
            for key, v in run.verdicts.items()
        }
        runs.append(replace(run, verdicts=lost, summary=None))
    assert [chart.name for chart in charts_of(runs)] == ["shares-category", "domains", "rings"]


@pytest.mark.slow
def test_captionqa_is_drawn_by_its_own_headline(tmp_path: Path) -> None:
    """The reading of CaptionQA shows its score where others show overall accuracy."""
    run = replace(reading_run(tmp_path, benchmark="captionqa"), summary=None)
    titles = {chart.name: chart.title for chart in charts_of([run])}
    assert titles["radar-category"] == "Score by question category"


def test_reliability_is_drawn_from_stored_probabilities(tmp_path: Path) -> None:
    """Calibration takes the probability of the given letter and leaves abstentions out."""
    run = reading_run(tmp_path, right=4)
    sure = {
        key: replace(v, probabilities={"A": 0.8, "B": 0.6, "E": 0.9})
        for key, v in run.verdicts.items()
    }
    run = replace(run, verdicts=sure)
    found = calibration_of([run])
    assert found is not None
    assert {b.n: b.accuracy for b in found.bins if b.n} == {18: 1.0, 3: 0.0}
    assert "reliability" in {chart.name for chart in charts_of([run])}
    assert calibration_of([reading_run(tmp_path)]) is None


@pytest.mark.slow
def test_files_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    """SVG, PNG and PDF of the same runs do not differ between two drawings."""
    runs = [reading_run(tmp_path, "a"), reading_run(tmp_path, "b", right=2)]
    first = write_charts(charts_of(runs)[:2], tmp_path / "one")
    second = write_charts(charts_of(runs)[:2], tmp_path / "two")
    assert [p.suffix for p in first] == [".png", ".svg", ".pdf"] * 2
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert b"<dc:date>" not in first[1].read_bytes()


def test_the_settings_of_a_host_program_stay(tmp_path: Path) -> None:
    """Drawing and saving change nothing in matplotlib's own settings and open no window."""
    before = {name: mpl.rcParams[name] for name in mpl.rcParams if name != "backend"}
    style.save(radar.radar([series("a", {"x": 0.1, "y": 0.2, "z": 0.3})]), "svg")
    assert {name: mpl.rcParams[name] for name in before} == before
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.slow
def test_names_are_never_read_as_mathematics_or_dropped() -> None:
    """Dollar signs, backslashes, markup and a leading underscore show as they are."""
    name = r"_a$\frac{1}{0$ & <b>"
    rates: dict[str, float | None] = {r"$\bad{$": 0.4, "b_c": 0.5, "d": 0.6}
    figures = [
        radar.radar([series(name, rates)]),
        bars.domain_bars([series(name, rates)]),
        bars.group_bars([series(name, rates)]),
        heat.heat_map([series(name, rates)]),
        scatter.trade_off([scatter.Point(name, 1, 2), scatter.Point("o", 2, 1)]),
    ]
    for figure in figures:
        svg = style.save(figure, "svg")
        assert svg.startswith(b"<?xml")
        assert b"<b>" not in re.sub(rb"<!--.*?-->", b"", svg, flags=re.S)
        assert any(name in shown for shown in words(figure))


def test_characters_without_a_glyph_become_boxes() -> None:
    """Text of a script that no font has is drawn without a warning; control characters go."""
    assert style.plain("a\u0000b\u202e") == "ab"
    assert set(style.plain("\U000e0041\u1bc0")) <= {style.MISSING}
    style.save(bars.share_bars({"\u1bc0\u1bc1": 3, "x": 1}), "png")


@pytest.mark.slow
def test_no_type_is_smaller_than_seven_points(tmp_path: Path) -> None:
    """Every text of every figure stays legible at paper width."""
    runs = [reading_run(tmp_path, "a"), reading_run(tmp_path, "b", right=2)]
    rubric = [rubric_run(tmp_path, "a"), rubric_run(tmp_path, "b")]
    for chart in (*charts_of(runs), *charts_of(rubric)):
        style.save(chart.figure, "png")
        sizes = [t.get_fontsize() for t in chart.figure.findobj(Text) if t.get_text()]
        assert min(sizes) >= style.SMALL, chart.name
        assert chart.figure.get_figwidth() in {style.SINGLE, style.DOUBLE}


def test_models_look_different_in_more_than_colour() -> None:
    """The first thirteen looks differ, and two of one colour differ in their marker."""
    looks = [style.look(k) for k in range(13)]
    assert len({(one.colour, one.marker) for one in looks}) == 13
    assert len({one.marker for one in looks}) == 13


def test_a_model_has_one_look_on_a_page(tmp_path: Path) -> None:
    """Whatever its place in a figure, a model keeps its colour; no other name gets that one."""
    p = scatter.Point
    with style.same_looks(["a", "b"]):
        both = scatter.trade_off([p("a", 1, 2), p("b", 2, 1)])
        one = scatter.trade_off([p("b (low fidelity)", 2, 1), p("new", 3, 0)])

    def colours(figure: object) -> list[str]:
        axes = figure.axes[0]  # type: ignore[attr-defined]
        return [line.get_color() for line in axes.lines if line.get_linestyle() == "None"]

    assert colours(both) == [style.look(0).colour, style.look(1).colour]
    assert colours(one) == [style.look(1).colour, style.look(3).colour]


def test_no_model_has_the_colour_of_right_or_wrong() -> None:
    """The colours of verdicts and of models have nothing in common, on light and dark pages."""
    marks = {style.RIGHT, style.WRONG}
    assert not marks & set(style.COLOURS)
    assert not {style.DARK[c] for c in marks} & {style.DARK[c] for c in style.COLOURS}
    assert len({style.DARK[c] for c in style.COLOURS}) == len(style.COLOURS)


def test_a_figure_on_a_page_has_dark_colours_for_dark_pages() -> None:
    """Every colour but those on photographs and cells has a counterpart in the dark."""
    drawn = style.page_svg(bars.domain_bars([series("m", {"a": 0.5, "b": 0.2})])).decode()
    assert "prefers-color-scheme:dark" in drawn
    assert f"--c{style.INK[1:]}:{style.DARK[style.INK]};" in drawn
    body = drawn.split("</style>", 1)[1]
    assert not set(style.DARK) & set(re.findall(r"#[0-9a-f]{6}", body))
    heat_map = style.page_svg(heat.heat_map([series("m", {"a": 0.9, "b": 0.1})])).decode()
    assert {style.ON_DARK, style.ON_LIGHT} <= set(re.findall(r"#[0-9a-f]{6}", heat_map))


def test_a_chart_of_few_pictures_a_group_is_thin(tmp_path: Path) -> None:
    """A chart most of whose bars stand for fewer than five pictures says so."""
    thin = {chart.name: chart.is_thin for chart in charts_of([reading_run(tmp_path)])}
    assert thin["bars-l1"]
    assert not thin["radar-category"]


def test_all_headlines_stand_in_one_figure(tmp_path: Path) -> None:
    """The overview has a panel a benchmark, with its best models and their intervals."""
    groups = {
        "first": [reading_run(tmp_path, "a"), reading_run(tmp_path, "b", right=1)],
        "second": [direct_run(tmp_path, "a", fidelity="low")],
    }
    chart = overview_chart(groups)
    assert chart is not None
    titles = [axes.get_title(loc="left") for axes in chart.figure.axes]
    assert titles == ["first", "second (low fidelity)"]
    assert [t.get_text() for t in chart.figure.axes[0].get_yticklabels()] == ["a", "b"]
    assert len(chart.figure.axes[0].lines) == 4


def test_two_rings_hold_domains_and_their_parts() -> None:
    """A sector each for domains and sub-domains; names stand where sectors have room."""
    figure = rings.domain_rings({"Plants": {"Trees": 60.0, "Moss": 1.0}, "Sports": {"Golf": 40.0}})
    sectors = figure.axes[0].patches
    widths = [round((s.theta2 - s.theta1) / 360, 3) for s in sectors]  # type: ignore[attr-defined]
    assert widths == [0.604, 0.594, 0.01, 0.396, 0.396]
    shown = words(figure)
    assert {"Plants", "Trees", "Sports", "Golf"} <= set(shown)
    assert "Moss" in shown or widths[2] * 360 < 4
    assert "2 domains\n3 sub-domains\n101 labels" in shown


def test_shut_gates_are_what_did_not_pass(tmp_path: Path) -> None:
    """The bars of shut gates are 100 per cent less those of gate pass."""
    run = rubric_run(tmp_path)
    [chart] = [c for c in charts_of([run]) if c.name == "bars-gates"]
    passed = series_of([run], "category", "gate_pass")[0].values
    bars_drawn = sorted(p.get_width() for p in chart.figure.axes[0].patches)
    assert bars_drawn == pytest.approx(
        sorted(100 * (1 - (v.value or 0.0)) for v in passed.values())
    )


def test_judges_of_one_model_stand_side_by_side(tmp_path: Path) -> None:
    """Models that two judges read have a bar a judge; one judge alone makes no figure."""
    run, other = reading_run(tmp_path, "a"), reading_run(tmp_path, "b")
    second = replace(run, spec=replace(run.spec, judge=replace(run.spec.judge, name="k")))
    assert judges_chart([run, other]) is None
    chart = judges_chart([run, other, second])
    assert chart is not None
    assert {"j", "k", "a"} <= set(words(chart.figure))
    assert "b" not in words(chart.figure)


def test_published_rows_are_grey_points(tmp_path: Path) -> None:
    """Beside runs on the benchmark of a paper stand its published rows, on no other benchmark."""
    published = published_points("capprobe")
    assert len(published) > 10
    assert published_points("mini-reading") == []
    figure = scatter.trade_off([scatter.Point("mine", 60, 2)], published=published)
    [grey] = [line for line in figure.axes[0].lines if line.get_label() == "published"]
    assert len(grey.get_xdata()) == len(published)
    [chart] = [
        c for c in charts_of([reading_run(tmp_path, benchmark="capprobe")])
        if c.name == "coverage-density"
    ]  # fmt: skip
    assert "published rows" in chart.caption


def test_axes_are_named_for_abilities(tmp_path: Path) -> None:
    """The radar of accuracy by kind of error names the ability, not the error."""
    [radar_chart] = [c for c in charts_of([direct_run(tmp_path)]) if c.name.startswith("radar")]
    shown = {text.replace("\n", " ") for text in words(radar_chart.figure)}
    assert {"ocr", "no hallucination", "visual counting"} <= shown


def test_domains_with_few_images_are_greyed_and_counted() -> None:
    """Bars carry their number of images, and those under the limit lose their colour."""
    one = Series("m", {"Many": value(0.5), "Few": value(0.4)}, {"Many": 7, "Few": 4})
    figure = bars.domain_bars([one], few=5)
    colours = {tuple(np.round(p.get_facecolor(), 3)) for p in figure.axes[0].patches}
    full, grey = style.look(0).colour, style.faded(style.look(0).colour)
    assert colours == {tuple(np.round(mpl.colors.to_rgba(c), 3)) for c in (full, grey)}
    assert {"7", "4", "greyed: fewer than 5 images"} <= set(words(figure))


def test_many_models_and_domains_fit_a_page() -> None:
    """Six models on 37 domains stay within the height of a page."""
    rates: dict[str, float | None] = {f"domain {k}": k / 40 for k in range(37)}
    figure = bars.domain_bars([series(f"m{k}", rates) for k in range(6)])
    assert figure.get_figheight() < 9.5


def test_the_frontier_holds_what_nothing_beats() -> None:
    """A point is on the Pareto frontier unless another is at least as good on both axes."""
    p = scatter.Point
    points = [p("a", 1, 9), p("b", 5, 5), p("c", 4, 4), p("d", 9, 1), p("e", 9, 0.5)]
    assert [q.name for q in scatter.frontier(points)] == ["a", "b", "d"]


def test_more_than_six_points_get_a_key() -> None:
    """Many names stand in a key beside the figure instead of on top of each other."""
    points = [scatter.Point(f"model {k}", k, 20 - k) for k in range(9)]
    figure = scatter.trade_off(points)
    assert figure.get_figwidth() == style.DOUBLE
    assert "9  model 8" in words(figure)


def test_alignment_states_its_correlations() -> None:
    """The scatter says Pearson, R squared, Spearman and n (PerceptionRubrics, figure 9)."""
    rows = [(1283, 60.81), (1264, 51.77), (1237, 45.65), (1190, 41.88), (1162, 12.59)]
    points = [scatter.Point(f"m{k}", x, y) for k, (x, y) in enumerate(rows)]
    shown = words(scatter.alignment(points, x_title="Elo"))
    assert "Pearson 0.916 (R\u00b2 0.838), Spearman 1.000, n = 5" in shown


def test_curves_take_given_points() -> None:
    """Length and rubric coverage are drawn from plain points, in any order."""
    lengths = [scatter.LengthPoint("full", 400, 73, 86), scatter.LengthPoint("50", 50, 30, 92)]
    figure = scatter.length_curves({"m": lengths})
    drawn = [line.get_xdata().tolist() for line in figure.axes[0].lines if len(line.get_xdata())]
    assert [50, 400] in drawn
    spread = [scatter.SpreadPoint(0.4, (3.0, 3.2)), scatter.SpreadPoint(0.2, (5.0, 4.8))]
    assert {"4.90", "3.10"} <= set(words(scatter.coverage_curve(spread)))


def test_cut_captions_make_a_curve_a_model(tmp_path: Path) -> None:
    """Runs of `snellen lengths` are one line a model, and no models of their own."""
    run = reading_run(tmp_path)
    assert run.summary is not None
    tokens = run.summary.metrics["tokens_per_image"]
    cut = [
        replace(
            run,
            spec=replace(run.spec, options=dict(run.spec.options) | {"kept_share": share}),
            summary=replace(
                run.summary,
                metrics=dict(run.summary.metrics)
                | {"tokens_per_image": replace(tokens, value=share * 100)},
            ),
        )
        for share in (0.5, 1.0)
    ]
    charts = {chart.name: chart for chart in charts_of(named_apart([run, *cut]))}
    assert "length" not in charts
    lines = [line for axes in charts["length-curves"].figure.axes for line in axes.lines]
    assert [line.get_xdata().tolist() for line in lines] == [[50, 100]] * 2
    assert {line.get_label() for line in lines} == {run.name}


def test_the_gap_is_gate_minus_atomic() -> None:
    """The number beside a model is gate pass minus atomic accuracy, in points."""
    shown = words(scatter.gap_lines([scatter.GapPoint("m", 80.0, 62.5)]))
    assert "\u221217.5" in shown


def test_missing_values_leave_gaps() -> None:
    """A label without a value is no zero: no number in the heat map, no bar, no marker."""
    rates: dict[str, float | None] = {"a": 0.5, "b": None, "c": 0.2}
    assert "0.0" not in words(heat.heat_map([series("m", rates)]))
    assert len(bars.domain_bars([series("m", rates)]).axes[0].patches) == 2
    line = radar.radar([series("m", rates)]).axes[0].lines[0]
    assert math.isnan(line.get_ydata()[1])


def test_direct_radar_draws_its_intervals() -> None:
    """With intervals, each axis carries a line from the lower to the upper end."""
    figure = radar.radar([series("m", {"a": 0.5, "b": 0.4, "c": 0.2})], intervals=True)
    ends = [tuple(line.get_ydata()) for line in figure.axes[0].lines]
    assert ends.count((10.0, 90.0)) == 3


def test_low_fidelity_is_said_in_figures(tmp_path: Path) -> None:
    """Beside others the name of a run says low fidelity; where all runs are, a corner says so."""
    runs = [reading_run(tmp_path, "a", fidelity="low"), reading_run(tmp_path, "b")]
    assert series_of(runs, "category", "overall_acc")[0].name == "a (low fidelity)"
    rubric = [rubric_run(tmp_path, name, fidelity="low") for name in "cd"]
    for chart in charts_of(rubric):
        assert words(chart.figure).count("low fidelity") == 1, chart.name
        assert not any("(low fidelity)" in text for text in words(chart.figure))


def test_best_runs_come_first(tmp_path: Path) -> None:
    """Figures that hold few models take those with the best headline number."""
    runs = [reading_run(tmp_path, str(n), right=n) for n in (1, 4, 2)]
    assert [run.name for run in best_runs(runs, 2)] == ["4", "2"]


def test_the_card_shows_what_tells_models_apart(tmp_path: Path) -> None:
    """The card takes probes on which models differ, their boxes, and hostile captions as text."""
    runs = [
        reading_run(tmp_path, "a", right=5, caption=HOSTILE),
        reading_run(tmp_path, "b", right=0),
    ]
    region = Region("r0-1", "i0", (0, 0, 500, 500), "thing")
    found = card.choose_card(runs, {"r0-1": region})
    assert found is not None
    assert found.title == "i0"
    assert [p.answers[0].mark for p in found.probes] == [card.RIGHT] * 3
    assert found.probes[0].answers[1].mark == card.WRONG
    assert [p.box for p in found.probes] == [None, 1, None]
    assert found.boxes == ((0, 0, 500, 500),)
    chart = next(c for c in charts_of(runs, regions={"r0-1": region}) if c.name == "card")
    assert any("<script>" in text for text in words(chart.figure))


def test_captions_of_wide_letters_stay_in_their_columns() -> None:
    """No line of a caption reaches into the next one, however wide its letters are."""
    texts = ("\u03a9" * 900, "WWWW " * 300, "plain words " * 90)
    sides = card.Card("t", tuple((str(k), text) for k, text in enumerate(texts)), ())
    figure = card.qualitative_card(sides, Pillow.new("RGB", (40, 30)))
    figure.canvas.draw()
    boxes = [t.get_window_extent() for t in figure.texts if t.get_text()]
    lefts = sorted({round(box.x0) for box in boxes})
    assert len(lefts) == len(texts)
    for box in boxes:
        nexts = [left for left in lefts if left > round(box.x0) + 1]
        assert box.x1 <= min([*nexts, figure.bbox.x1])


def test_the_label_of_gaps_fits_beside_long_names() -> None:
    """The label below the gaps is within the figure, though long names leave it little room."""
    figure = scatter.gap_lines([scatter.GapPoint("a-model-with-a-rather-long-name", 80.0, 62.5)])
    figure.canvas.draw()
    assert figure.axes[0].xaxis.label.get_window_extent().x1 <= figure.bbox.x1


def test_domains_weigh_each_picture_once(tmp_path: Path) -> None:
    """A picture with several sub-domains of a domain is shared out, and counts once in it."""
    item = reading_run(tmp_path).items[0]
    both = replace(item, groups={"l1": ("Pets & Animals",), "l2": ("Pets", "Wildlife", "Forests")})
    tree = domain_weights([both])
    assert sum(tree["Pets & Animals"].values()) == pytest.approx(1.0)


def test_sub_domains_of_ones_own_keep_their_names(tmp_path: Path) -> None:
    """Names that the taxonomy lacks go to the picture's only domain, else to `other`."""
    item = reading_run(tmp_path).items[0]
    own = replace(item, groups={"l1": ("Sports",), "l2": ("Curling",)})
    assert domain_weights([own]) == {"Sports": {"Curling": 1.0}}
    unclear = replace(item, groups={"l1": ("Sports", "Home"), "l2": ("Curling",)})
    assert domain_weights([unclear]) == {"Sports": {"other": 1.0}, "Home": {"other": 1.0}}


def test_a_figure_stays_where_it_is_however_often_it_is_saved() -> None:
    """Page and files show one layout: saving in between in another form moves nothing."""
    figure = bars.share_bars({"Spatial Relationship & Position": 30, "Count": 9, "OCR/Text": 4})
    first = style.save(figure, "svg")
    style.save(figure, "png")
    assert style.save(figure, "svg") == first


def test_reliability_states_its_error() -> None:
    """The diagram names the expected calibration error and how many answers it holds."""
    found = calibration([0.9, 0.9, 0.6, 0.6], [True, True, True, False])
    assert "ECE 0.100, n = 4" in words(reliability(found))


@pytest.mark.slow
def test_run_never_imports_matplotlib() -> None:
    """Neither the package, nor runs, nor the report module import matplotlib by themselves."""
    code = "import sys, snellen.runs.run, snellen.report.page; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
