"""Bar charts: accuracy by domain and generator, shares of categories, the tree of domains.

Source: CapProbe, figures 2 (domains), 3 (categories) and 9 (accuracy by domain).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from snellen.figures.chart import Chart
from snellen.figures.series import (
    FEW_IMAGES,
    MOST_SHOWN,
    Series,
    axis_title,
    few_of,
    is_thin,
    labels_of,
    percent,
    series_of,
)
from snellen.figures.style import (
    DOUBLE,
    INK,
    NEUTRAL,
    PALE,
    SINGLE,
    SMALL,
    SOFT,
    faded,
    legend_name,
    look,
    look_of,
    new_figure,
    percent_axis,
    plain,
    readable,
    styled,
    wrapped,
)
from snellen.records import Item
from snellen.runs.folder import Run
from snellen.runs.spec import Value
from snellen.runs.summary import summary_of
from snellen.tables.table import title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAR_HEIGHT = 0.135
GROUP_GAP = 0.1
THIN_BAR = 0.075
MOST_NUMBERED = 3
MOST_HEIGHT = 8.3
ROWS_A_COLUMN = 20
LABEL_CHARS = 24
CHARS_AN_INCH = 15.5


@dataclass(frozen=True, slots=True)
class _Plan:
    """How rows of bars are laid out: inches a bar, rows a column, columns, numbers on each bar."""

    bar: float
    n_columns: int
    a_column: int
    number_each: bool

    @property
    def row(self) -> float:
        """The height of a row of bars in inches, its gap included."""
        return self.bar + GROUP_GAP


def domain_bars(
    series: Sequence[Series], *, few: int = FEW_IMAGES, unit: str = "images", title: str = ""
) -> Figure:
    """Rates by domain, best domain first, with the number of items on the bars.

    Domains with fewer than `few` items are grey: their rates describe those items and no more.
    """

    def mean(label: str) -> float:
        known = [v for one in series if not math.isnan(v := percent(one.values.get(label)))]
        return sum(known) / len(known) if known else -1.0

    rows = sorted(labels_of(series), key=lambda label: (-mean(label), label))
    # Few models have thick bars that carry a number each; many are packed to fit a page.
    each = len(series) <= MOST_NUMBERED
    bar = (BAR_HEIGHT if each else THIN_BAR) * len(series)
    for n_columns in (1, 2, 3):
        a_column = math.ceil(len(rows) / n_columns)
        if a_column * (bar + GROUP_GAP) <= MOST_HEIGHT:
            break
    plan = _Plan(bar, n_columns, a_column, each)
    with styled():
        narrow = plan.n_columns == 1 and len(series) == 1
        figure = new_figure(SINGLE if narrow else DOUBLE, 0.85 + plan.a_column * plan.row)
        grid = figure.subplots(1, plan.n_columns, squeeze=False)[0]
        for k, axes in enumerate(grid):
            part = rows[k * plan.a_column : (k + 1) * plan.a_column]
            _domain_column(axes, series, part, few=few, plan=plan)
            axes.set_ylim(plan.a_column - 0.5, -0.5)
        figure.supxlabel(title or "Overall accuracy, %", fontsize=8)
        _domain_legend(figure, series, few=few, unit=unit, rows=rows)
    return figure


def _n_items(series: Sequence[Series], label: str) -> int:
    return max((one.n_items.get(label, 0) for one in series), default=0)


def _domain_column(
    axes: Axes, series: Sequence[Series], rows: Sequence[str], *, few: int, plan: _Plan
) -> None:
    for place, label in enumerate(rows):
        n = _n_items(series, label)
        thick = plan.bar / len(series) / plan.row
        values = [percent(one.values.get(label)) for one in series]
        for k, value in enumerate(values):
            if math.isnan(value):
                continue
            y = place + thick * (k - (len(series) - 1) / 2)
            colour = look_of(series[k].name, k).colour
            colour = faded(colour) if n < few else colour
            axes.barh(y, value, height=thick * 0.92, color=colour)
            if plan.number_each:
                _put_number(axes, value, y, n)
        known = [value for value in values if not math.isnan(value)]
        if not plan.number_each and known:
            _put_number(axes, max(known), place, n)
    width = LABEL_CHARS if plan.n_columns < 3 else 14
    names = [wrapped(readable(label), width) for label in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.tick_params(axis="y", length=0)
    percent_axis(axes, top=114)
    axes.set_xticks([0, 25, 50, 75, 100] if plan.n_columns < 3 else [0, 50, 100])
    axes.spines["left"].set_visible(False)


def _put_number(axes: Axes, value: float, y: float, n: int) -> None:
    axes.text(value + 1.5, y, str(n), fontsize=SMALL, va="center_baseline", color=SOFT)


def _domain_legend(
    figure: Figure, series: Sequence[Series], *, few: int, unit: str, rows: Sequence[str]
) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=look_of(one.name, k).colour) for k, one in enumerate(series)]
    names = [legend_name(one.name) for one in series]
    if any(_n_items(series, label) < few for label in rows):
        handles.append(Patch(facecolor=PALE))
        names.append(f"greyed: fewer than {few} {unit}")
    columns = 2 if figure.get_figwidth() < DOUBLE else 4
    figure.legend(
        handles, names, loc="outside upper left", ncols=columns, columnspacing=1.2,
        title=f"Number beside a bar: {unit}", title_fontsize=SMALL, alignment="left",
    )  # fmt: skip


def group_bars(series: Sequence[Series], *, title: str = "Overall accuracy, %") -> Figure:
    """Rates of a few groups side by side, such as question generators, with intervals."""
    labels = labels_of(series)
    height = 0.9 + len(series) * (0.17 * len(labels) + 0.12)
    with styled():
        figure = new_figure(SINGLE, height)
        axes = figure.add_subplot()
        thick = 0.82 / len(labels)
        for k, label in enumerate(labels):
            for place, one in enumerate(series):
                value = one.values.get(label)
                if value is None or value.value is None:
                    continue
                y = place + thick * (k - (len(labels) - 1) / 2)
                axes.barh(
                    y, percent(value), height=thick * 0.9, color=look_of(one.name, place).colour,
                    hatch=look(k).hatch, edgecolor=INK, linewidth=0.4,
                )  # fmt: skip
                if value.ci95 is not None:
                    ends = [100 * end for end in value.ci95]
                    axes.plot(ends, [y, y], color=INK, linewidth=0.9, zorder=4)
            axes.barh([math.nan], [math.nan], color=PALE, hatch=look(k).hatch, edgecolor=INK,
                      linewidth=0.4, label=legend_name(label))  # fmt: skip
        axes.set_yticks(range(len(series)), [plain(one.name, 26) for one in series])
        axes.set_ylim(len(series) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        percent_axis(axes)
        axes.set_xlabel(title)
        figure.legend(loc="outside upper left", ncols=3)
    return figure


def share_bars(counts: Mapping[str, int], *, unit: str = "questions") -> Figure:
    """How a total splits into categories: a bar each, with its share and its count."""
    rows = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    total = sum(counts.values()) or 1
    with styled():
        figure = new_figure(SINGLE, 0.65 + 0.2 * len(rows))
        axes = figure.add_subplot()
        shares = [100 * n / total for _, n in rows]
        axes.barh(range(len(rows)), shares, height=0.72, color=NEUTRAL)
        for place, (share, (_, n)) in enumerate(zip(shares, rows, strict=True)):
            axes.text(
                share + max(shares) * 0.015, place, f"{share:.1f}%  ({n:,})", va="center_baseline",
                fontsize=SMALL,
            )  # fmt: skip
        axes.set_yticks(range(len(rows)), [readable(name, 34) for name, _ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, max(shares) * 1.6)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"Share of {total:,} {unit}, %")
        axes.spines["left"].set_visible(False)
    return figure


def domain_tree(tree: Mapping[str, Mapping[str, float]], *, unit: str = "images") -> Figure:
    """Two levels of domains: a bar each on the first level, cut into those of the second.

    `tree` maps a domain to the weight of each of its sub-domains, in items. It shows what a
    sunburst shows, in a form in which lengths can be compared.
    """
    rows = sorted(tree.items(), key=lambda entry: (-sum(entry[1].values()), entry[0]))
    n_columns = 2 if len(rows) > ROWS_A_COLUMN else 1
    a_column = math.ceil(len(rows) / n_columns)
    longest = max((sum(parts.values()) for _, parts in rows), default=1.0)
    with styled():
        figure = new_figure(DOUBLE, 0.6 + 0.22 * a_column)
        for k, axes in enumerate(figure.subplots(1, n_columns, squeeze=False)[0]):
            chars_a_unit = (DOUBLE / n_columns - 1.5) * CHARS_AN_INCH / (1.2 * longest)
            _tree_column(axes, rows[k * a_column : (k + 1) * a_column], longest, chars_a_unit)
            axes.set_ylim(a_column - 0.5, -0.5)
        figure.supxlabel(
            f"{unit.capitalize()} (number at the end: {unit} / sub-domains)", fontsize=8
        )
    return figure


def _tree_column(
    axes: Axes,
    rows: Sequence[tuple[str, Mapping[str, float]]],
    longest: float,
    chars_a_unit: float,
) -> None:
    for place, (_, parts) in enumerate(rows):
        start = 0.0
        ordered = sorted(parts.items(), key=lambda entry: (-entry[1], entry[0]))
        for k, (name, weight) in enumerate(ordered):
            axes.barh(
                place, weight, left=start, height=0.74, color=NEUTRAL,
                alpha=(0.55, 0.3)[k % 2], edgecolor="white", linewidth=0.6,
            )  # fmt: skip
            room = int(weight * chars_a_unit)
            if room >= max(4, 0.6 * len(name)):
                axes.text(
                    start + weight / 2, place, plain(name, room), ha="center", color=INK,
                    va="center_baseline", fontsize=SMALL, clip_on=True,
                )  # fmt: skip
            start += weight
        axes.text(
            start + longest * 0.015, place, f"{start:.0f} / {len(parts)}", va="center_baseline",
            fontsize=SMALL, color=SOFT,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [plain(name, LABEL_CHARS) for name, _ in rows])
    axes.set_xlim(0, longest * 1.2)
    axes.locator_params(axis="x", integer=True, nbins=5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def generator_chart(runs: Sequence[Run]) -> Chart | None:
    """The headline by the generator of the questions; None where one generator wrote them."""
    metric = runs[0].protocol.headline
    series = series_of(runs, "generator", metric)
    if not series or len(series[0].values) < 2:
        return None
    caption = "Does a model do better on the questions of one generator? Lines are 95% intervals."
    return Chart(
        "bars-generator", f"{title_of(metric)} by question generator", caption,
        group_bars(series, title=axis_title(metric)),
    )  # fmt: skip


def shares_chart(run: Run) -> Chart | None:
    """How many questions each category has; None for fewer than two categories."""
    counts = Counter(p.groups.get("category", "") for i in run.items for p in i.probes)
    counts.pop("", None)
    if len(counts) < 2:
        return None
    return Chart(
        "shares-category", "Questions by category", "What the benchmark asks.",
        share_bars(counts),
    )  # fmt: skip


def tree_chart(run: Run) -> Chart | None:
    """The domains of a benchmark as bars, cut into sub-domains; None for fewer than two."""
    tree = domain_weights(run.items)
    if len(tree) < 2:
        return None
    caption = (
        "Pictures of each domain, cut into sub-domains; a picture with several sub-domains in a "
        "domain counts there in equal parts."
    )
    n_few = sum(sum(parts.values()) < FEW_IMAGES for parts in tree.values())
    return Chart(
        "domains", "Domains of the benchmark", caption, domain_tree(tree),
        is_thin=n_few > len(tree) / 2,
    )  # fmt: skip


def rubric_domain_chart(runs: Sequence[Run]) -> Chart | None:
    """The score of rubric runs by domain; None for fewer than two domains."""
    shown, remark = few_of(runs)
    series = series_of(shown, "category", "score")
    if not series or len(series[0].values) < 2:
        return None
    caption = f"Domains with fewer than {FEW_IMAGES} pictures are grey.{remark}"
    figure = domain_bars(series, title="Score, %")
    return Chart("bars-category", "Score by domain", caption, figure, is_thin=is_thin(series))


def shut_gates_chart(runs: Sequence[Run]) -> Chart | None:
    """The share of pictures whose gate is shut, by domain; None for fewer than two domains."""

    def complement(value: Value) -> Value:
        ends = value.ci95 and (1 - value.ci95[1], 1 - value.ci95[0])
        return replace(value, value=None if value.value is None else 1 - value.value, ci95=ends)

    shown, remark = few_of(runs)
    series = [
        replace(one, values={label: complement(value) for label, value in one.values.items()})
        for one in series_of(shown, "category", "gate_pass")
    ]
    if not series or len(series[0].values) < 2:
        return None
    caption = (
        f"Pictures on which a Must-Right statement failed, or could not be scored. Domains with "
        f"fewer than {FEW_IMAGES} pictures are grey.{remark}"
    )
    figure = domain_bars(series, title="Gates shut, %")
    return Chart("bars-gates", "Shut gates by domain", caption, figure, is_thin=is_thin(series))


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
    figure = group_bars(series[:MOST_SHOWN], title=axis_title(metric))
    return Chart("bars-judges", f"{title_of(metric)} by judge", caption, figure)


def domain_chart(runs: Sequence[Run], dimension: str) -> Chart | None:
    """The headline by the labels of a dimension of domains; None for fewer than two labels."""
    headline = runs[0].protocol.headline
    title = f"{title_of(headline)} by domain"
    shown, remark = few_of(runs)
    series = series_of(shown, dimension, headline)
    if not series or len(series[0].values) < 2:
        return None
    caption = (
        f"Pooled over the probes of all pictures with that label; domains with fewer than "
        f"{FEW_IMAGES} pictures are grey.{remark}"
    )
    figure = domain_bars(series, title=axis_title(headline))
    return Chart(f"bars-{dimension}", title, caption, figure, is_thin=is_thin(series))


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
