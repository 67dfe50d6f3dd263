"""Which figures a group of runs has, and how they are written as files.

A figure that needs more runs, or numbers that are not there, is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from snellen.errors import ImageError
from snellen.figures import bars, calibration, card, heat, overview, radar, rings, scatter, style
from snellen.figures.chart import Chart
from snellen.figures.series import (
    MOST_SHOWN,
    Series,
    best_runs,
    labels_of,
    name_of,
    series_of,
)
from snellen.figures.study_charts import coverage_chart
from snellen.records import Item, Region
from snellen.runs.folder import Run
from snellen.runs.naming import kept_share, whole_name
from snellen.runs.spec import Value
from snellen.runs.summary import summary_of
from snellen.studies.published import METRICS, published_models
from snellen.studies.rubric import coverage_of
from snellen.tables.table import measured, metric_column, title_of

KINDS = ("png", "svg", "pdf")
# Charts of the benchmark alone, which no judge can get wrong.
OF_THE_DATA = frozenset({"shares-category", "domains", "rings"})


def charts_of(
    runs: Sequence[Run], *, regions: Mapping[str, Region] | None = None
) -> tuple[Chart, ...]:
    """All figures of runs of one protocol on the same data, the best run first.

    `regions` by id let the qualitative card show where its probes are anchored.
    """
    ordered = best_runs(runs, len(runs))
    is_low = all(run.spec.judge.fidelity == "low" for run in ordered)
    if is_low:
        # Said once in each figure, instead of behind each name.
        ordered = tuple(map(_unmarked, ordered))
    charts = [CHARTS[name](ordered) for name in ordered[0].protocol.charts]
    shown = _card_chart(ordered, regions)
    found = tuple(chart for chart in (*charts, shown) if chart is not None)
    if is_low:
        for chart in (chart for chart in found if chart.name not in OF_THE_DATA):
            style.stamp(chart.figure, style.LOW_SUFFIX.strip(" ()"))
    return found


def _unmarked(run: Run) -> Run:
    return replace(run, spec=replace(run.spec, judge=replace(run.spec.judge, fidelity="")))


def overview_chart(groups: Mapping[str, Sequence[Run]]) -> Chart | None:
    """The headline number of each run with its interval: a panel for each titled group of runs."""
    panels = []
    for title, runs in groups.items():
        metric = runs[0].protocol.headline
        factor = 100 if metric_column(metric).format.unit == "%" else 1
        rows = []
        for run in best_runs(runs):
            cell = measured(summary_of(run).metrics[metric])
            if cell.value is not None:
                rows.append((run.name, factor * cell.value, _scaled(cell.interval, factor)))
        is_low = any(run.spec.judge.fidelity == "low" for run in runs)
        if rows:
            panels.append(
                overview.Panel(title + (style.LOW_SUFFIX if is_low else ""), _axis(metric),
                               tuple(rows))
            )  # fmt: skip
    if not panels:
        return None
    caption = "Headline numbers; lines are 95% intervals."
    if len(panels) > MOST_SHOWN:
        caption += f" The first {MOST_SHOWN} of {len(panels)} benchmarks."
    if any(len(runs) > MOST_SHOWN for runs in groups.values()):
        caption += f" The best {MOST_SHOWN} models of each benchmark."
    return Chart("overview", "At a glance", caption, overview.overview(panels[:MOST_SHOWN]))


def write_charts(charts: Sequence[Chart], folder: Path, *, prefix: str = "") -> list[Path]:
    """Writes each chart as PNG, SVG and PDF; gives the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for chart in charts:
        for kind in KINDS:
            path = folder / f"{prefix}{chart.name}.{kind}"
            path.write_bytes(style.save(chart.figure, kind))
            written.append(path)
    return written


def _few(runs: Sequence[Run]) -> tuple[Sequence[Run], str]:
    """The runs that one figure can show, and a remark if that is not all of them."""
    if len(runs) <= MOST_SHOWN:
        return runs, ""
    return runs[:MOST_SHOWN], f" The best {MOST_SHOWN} of {len(runs)} models are shown."


def _radar_chart(
    runs: Sequence[Run], dimension: str, metric: str, title: str, *, intervals: bool = False
) -> Chart | None:
    shown, remark = _few(runs)
    series = series_of(shown, dimension, metric)
    labels = {label for one in series for label in one.values}
    if len(labels) < radar.LEAST_AXES:
        return None
    lines = " Lines across the axes are 95% intervals." if intervals else ""
    caption = f"Strict values in per cent.{lines}{remark}"
    return Chart(f"radar-{dimension}", title, caption, radar.radar(series, intervals=intervals))


def _scaled(pair: tuple[float, float] | None, factor: float) -> tuple[float, float] | None:
    return None if pair is None else (factor * pair[0], factor * pair[1])


def _trade_chart(runs: Sequence[Run]) -> Chart | None:
    points = []
    for run in runs:
        metrics = summary_of(run).metrics
        x, y = metrics.get("coverage"), metrics.get("global_density")
        if x is not None and y is not None and x.value is not None and y.value is not None:
            points.append(
                scatter.Point(
                    name_of(run), 100 * x.value, y.value, _scaled(x.ci95, 100), _scaled(y.ci95, 1)
                )
            )
    published = published_points(runs[0].spec.benchmark)
    if len(points) + len(published) < 2 or not points:
        return None
    caption = (
        "Correct answers per thousand caption tokens against how many questions the captions let "
        "the judge answer. Bars are 95% intervals."
    )
    if published:
        caption += f" Grey: the {len(published)} published rows, under another judge."
    figure = scatter.trade_off(points, published=published)
    return Chart("coverage-density", "Coverage against global density", caption, figure)


def published_points(benchmark: str) -> list[scatter.Point]:
    """Coverage in per cent and global density of the published rows; none where none are known."""
    if "coverage" not in METRICS.get(benchmark, ()):
        return []
    rows = [(row.model, row.metrics) for row in published_models(benchmark)]
    return [scatter.Point(name, 100 * m["coverage"], m["global_density"]) for name, m in rows]


def _domain_chart(runs: Sequence[Run], dimension: str, metric: str, title: str) -> Chart | None:
    shown, remark = _few(runs)
    series = series_of(shown, dimension, metric)
    if not series or len(series[0].values) < 2:
        return None
    caption = (
        f"Pooled over the probes of all pictures with that label; domains with fewer than "
        f"{bars.FEW_IMAGES} pictures are grey.{remark}"
    )
    figure = bars.domain_bars(series, title=_axis(metric))
    return Chart(f"bars-{dimension}", title, caption, figure, is_thin=_is_thin(series))


def _is_thin(series: Sequence[Series]) -> bool:
    """Whether most labels have so few pictures that they are grey."""
    n = [max(one.n_items.get(label, 0) for one in series) for label in labels_of(series)]
    return sum(count < bars.FEW_IMAGES for count in n) > len(n) / 2


def _axis(metric: str) -> str:
    """A metric's title for an axis: `Overall, %`."""
    return metric_column(metric).heading.replace(" %", ", %")


def _generator_chart(runs: Sequence[Run], metric: str) -> Chart | None:
    series = series_of(runs, "generator", metric)
    if not series or len(series[0].values) < 2:
        return None
    caption = "Does a model do better on the questions of one generator? Lines are 95% intervals."
    return Chart(
        "bars-generator", f"{title_of(metric)} by question generator", caption,
        bars.group_bars(series, title=_axis(metric)),
    )  # fmt: skip


def _length_chart(runs: Sequence[Run]) -> Chart | None:
    whole = [run for run in runs if kept_share(run) is None]
    points = [point for run in whole for point in _length_points(run)]
    if len(points) < 2:
        return None
    caption = "Each point is one model, at the mean length of its captions."
    return Chart(
        "length", "Coverage and effective accuracy by caption length", caption,
        scatter.length_lines(points),
    )  # fmt: skip


def _curves_chart(runs: Sequence[Run]) -> Chart | None:
    curves: dict[str, list[scatter.LengthPoint]] = {}
    for run in runs:
        if kept_share(run) is not None:
            model = replace(run.spec.model, name=whole_name(run))
            name = name_of(replace(run, spec=replace(run.spec, model=model)))
            curves.setdefault(name, []).extend(_length_points(run))
    drawn = {name: curve for name, curve in curves.items() if len(curve) > 1}
    shown = dict(list(drawn.items())[:MOST_SHOWN])
    if not shown:
        return None
    caption = "Stored captions, cut at sentence ends and judged again: one curve a model."
    if len(drawn) > len(shown):
        caption += f" The first {len(shown)} of {len(drawn)} models."
    return Chart(
        "length-curves", "What shorter captions would score", caption, scatter.length_curves(shown)
    )


def _length_points(run: Run) -> list[scatter.LengthPoint]:
    """A run's place in a figure of lengths; none where a number of it is missing."""
    metrics = summary_of(run).metrics
    known = [_plain(metrics.get(n)) for n in ("tokens_per_image", "coverage", "effective_acc")]
    if any(math.isnan(v) for v in known):
        return []
    return [scatter.LengthPoint(name_of(run), known[0], 100 * known[1], 100 * known[2])]


def _plain(value: Value | None) -> float:
    return math.nan if value is None or value.value is None else value.value


def _reliability_chart(runs: Sequence[Run]) -> Chart | None:
    found = calibration.calibration_of(runs)
    if found is None:
        return None
    caption = (
        "How often the letter that the judge gave is right, by the probability that it gave it; "
        "abstentions are left out. ECE is the expected calibration error."
    )
    return Chart("reliability", "Reliability of the judge", caption, calibration.reliability(found))


def _shares_chart(run: Run) -> Chart | None:
    counts = Counter(p.groups.get("category", "") for i in run.items for p in i.probes)
    counts.pop("", None)
    if len(counts) < 2:
        return None
    return Chart(
        "shares-category", "Questions by category", "What the benchmark asks.",
        bars.share_bars(counts),
    )  # fmt: skip


def _tree_chart(run: Run) -> Chart | None:
    tree = domain_weights(run.items)
    if len(tree) < 2:
        return None
    caption = (
        "Pictures of each domain, cut into sub-domains; a picture with several sub-domains in a "
        "domain counts there in equal parts."
    )
    n_few = sum(sum(parts.values()) < bars.FEW_IMAGES for parts in tree.values())
    return Chart(
        "domains", "Domains of the benchmark", caption, bars.domain_tree(tree),
        is_thin=n_few > len(tree) / 2,
    )  # fmt: skip


def _rings_chart(run: Run) -> Chart | None:
    tree = domain_weights(run.items)
    if len(tree) < 2:
        return None
    caption = (
        "Inside the domains, outside their sub-domains, as wide as their share of the pictures. "
        "Colours only tell neighbours apart."
    )
    return Chart("rings", "Domains and sub-domains", caption, rings.domain_rings(tree))


def domain_weights(items: Sequence[Item]) -> dict[str, dict[str, float]]:
    """For each domain the items in each of its sub-domains; each item weighs 1 in each domain."""
    parents = _parents()
    tree: dict[str, dict[str, float]] = {}
    for item in items:
        domains, below = item.groups.get("l1", ()), item.groups.get("l2", ())
        # A name from outside the taxonomy has its place only where there is no choice.
        unlisted = domains if len(domains) == 1 else ()
        for domain in domains:
            own = [n for n in below if domain in parents.get(n, unlisted)] or ["other"]
            for name in own:
                part = tree.setdefault(domain, {})
                part[name] = part.get(name, 0.0) + 1 / len(own)
    return tree


def _parents() -> dict[str, tuple[str, ...]]:
    """The domains that each sub-domain of the taxonomy belongs to."""
    from importlib import resources

    import msgspec

    file = resources.files("snellen") / "data" / "capprobe_taxonomy.json"
    taxonomy = msgspec.json.decode(file.read_bytes(), type=dict[str, list[str]])
    found: dict[str, tuple[str, ...]] = {}
    for domain, names in taxonomy.items():
        for name in names:
            found[name] = (*found.get(name, ()), domain)
    return found


def _heat_chart(runs: Sequence[Run]) -> Chart | None:
    series = series_of(runs, "category", "score")
    if not series or len(series[0].values) < 2:
        return None
    caption = "Mean gated score of the pictures of each domain; n counts pictures."
    return Chart(
        "heat-category", "Score by domain and model", caption, heat.heat_map(series),
        is_thin=_is_thin(series),
    )  # fmt: skip


def _rubric_domain_chart(runs: Sequence[Run]) -> Chart | None:
    shown, remark = _few(runs)
    series = series_of(shown, "category", "score")
    if not series or len(series[0].values) < 2:
        return None
    caption = f"Domains with fewer than {bars.FEW_IMAGES} pictures are grey.{remark}"
    figure = bars.domain_bars(series, title="Score, %")
    return Chart("bars-category", "Score by domain", caption, figure, is_thin=_is_thin(series))


def _shut_gates_chart(runs: Sequence[Run]) -> Chart | None:
    shown, remark = _few(runs)
    series = [
        replace(one, values={label: _complement(value) for label, value in one.values.items()})
        for one in series_of(shown, "category", "gate_pass")
    ]
    if not series or len(series[0].values) < 2:
        return None
    caption = (
        f"Pictures on which a Must-Right statement failed, or could not be scored. Domains with "
        f"fewer than {bars.FEW_IMAGES} pictures are grey.{remark}"
    )
    figure = bars.domain_bars(series, title="Gates shut, %")
    return Chart("bars-gates", "Shut gates by domain", caption, figure, is_thin=_is_thin(series))


def _complement(value: Value) -> Value:
    """A rate of what did not happen."""
    ends = value.ci95 and (1 - value.ci95[1], 1 - value.ci95[0])
    return replace(value, value=None if value.value is None else 1 - value.value, ci95=ends)


def judges_chart(runs: Sequence[Run]) -> Chart | None:
    """The headline of models that several judges read; None where no two judges read one model.

    The runs share data, protocol and control.
    """
    metric = runs[0].protocol.headline
    found: dict[str, dict[str, Value]] = {}
    for run in runs:
        found.setdefault(run.name, {})[run.spec.judge.name] = summary_of(run).metrics[metric]
    series = [Series(name, values) for name, values in found.items() if len(values) > 1]
    if not series:
        return None
    caption = "The same models under several judges. Lines are 95% intervals."
    if len(series) > MOST_SHOWN:
        caption += f" The first {MOST_SHOWN} of {len(series)} models."
    figure = bars.group_bars(series[:MOST_SHOWN], title=_axis(metric))
    return Chart("bars-judges", f"{title_of(metric)} by judge", caption, figure)


def _gap_chart(runs: Sequence[Run]) -> Chart | None:
    points = []
    for run in runs:
        metrics = summary_of(run).metrics
        atomic, gate = _plain(metrics.get("atomic_acc")), _plain(metrics.get("gate_pass"))
        if not (math.isnan(atomic) or math.isnan(gate)):
            points.append(scatter.GapPoint(name_of(run), 100 * atomic, 100 * gate))
    if not points:
        return None
    caption = (
        "Single statements that hold, against pictures on which every Must-Right one holds. The "
        "gap is gate pass \u2212 atomic accuracy."
    )
    left_out = len(runs) - len(points)
    if left_out:
        caption += f" Left out for want of atomic accuracy: {left_out} of {len(runs)} runs."
    return Chart("gap", "Atomic accuracy and gate pass", caption, scatter.gap_lines(points))


def _coverage_chart(runs: Sequence[Run]) -> Chart | None:
    points = coverage_of(runs)
    is_low = any(run.spec.judge.fidelity == "low" for run in runs)
    return coverage_chart(points, is_low=is_low) if points else None


def _card_chart(runs: Sequence[Run], regions: Mapping[str, Region] | None) -> Chart | None:
    from snellen.pictures.prepare import open_upright

    found = card.choose_card(runs, regions)
    if found is None:
        return None
    item = next(i for i in runs[0].items if i.id == found.title)
    try:
        picture = open_upright(item.images[0])
    except ImageError:
        return None
    caption = (
        f"Picture {item.id}: captions side by side, and three probes on which they differ. "
        "\u2713 right, \u2717 wrong, ? the judge could not tell."
    )
    return Chart(
        "card", "One picture, several captions", caption, card.qualitative_card(found, picture),
    )  # fmt: skip


def _headline_radar(runs: Sequence[Run]) -> Chart | None:
    headline = runs[0].protocol.headline
    title = f"{title_of(headline)} by question category"
    return _radar_chart(runs, "category", headline, title)


def _capability_radar(runs: Sequence[Run]) -> Chart | None:
    title = "Accuracy by capability"
    return _radar_chart(runs, "error_category", "accuracy", title, intervals=True)


def _headline_by_domain(runs: Sequence[Run], dimension: str) -> Chart | None:
    headline = runs[0].protocol.headline
    return _domain_chart(runs, dimension, headline, f"{title_of(headline)} by domain")


# The charts of runs of one protocol, by the names that protocols have for them.
CHARTS: Mapping[str, Callable[[Sequence[Run]], Chart | None]] = {
    "radar-category": _headline_radar,
    "radar-capability": _capability_radar,
    "trade": _trade_chart,
    "length": _length_chart,
    "length-curves": _curves_chart,
    "bars-generator": lambda runs: _generator_chart(runs, runs[0].protocol.headline),
    "reliability": _reliability_chart,
    "shares": lambda runs: _shares_chart(runs[0]),
    "bars-l1": lambda runs: _headline_by_domain(runs, "l1"),
    "bars-domain": lambda runs: _headline_by_domain(runs, "domain"),
    "tree": lambda runs: _tree_chart(runs[0]),
    "rings": lambda runs: _rings_chart(runs[0]),
    "heat": _heat_chart,
    "gap": _gap_chart,
    "coverage": _coverage_chart,
    "bars-category": _rubric_domain_chart,
    "bars-gates": _shut_gates_chart,
}
