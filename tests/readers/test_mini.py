"""The bundled benchmark: its labels, the files of a run on it, and its numbers by hand."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import snellen
from snellen.cli import cli
from snellen.readers import load_benchmark
from snellen.readers.mini import CAPTIONERS, MINI, bundled_replies, labels
from snellen.readers.replies import load_replies
from snellen.runs.folder import Run, load_run
from snellen.runs.plan import make_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import execute
from snellen.tokens import count_tokens

CATEGORIES = {
    "Recognition", "Attributes", "OCR/Text", "Scene Perception", "Count", "Current State",
    "Dynamic Object", "Action", "Camera Features", "Spatial Relationship & Position",
}  # fmt: skip
CAPABILITIES = {
    "visual_relation_error", "visual_counting_error", "visual_attribute_error",
    "depth_3d_perception_error", "visual_localization_error", "visual_comparison_error",
    "fine_grained_recognition_error", "context_integration_error", "ocr_error", "hallucination",
}  # fmt: skip


def perfect_reading(captioner: str) -> dict[str, float]:
    """The reading metrics under a perfect judge, by plain arithmetic."""
    said = labels("reading")
    captions = load_replies(bundled_replies(captioner, "mini-reading"))
    m = c = u = 0
    request_tokens = 0
    for item in load_benchmark("mini-reading").items:
        [tokens] = count_tokens([captions[item.id]])
        for probe in item.probes:
            verdict = said[captioner, item.id, probe.id]
            m += 1
            c += verdict == probe.answer
            u += verdict == "E"
            request_tokens += tokens
    return {
        "coverage": (m - u) / m,
        "effective": c / (m - u),
        "global_density": 1000 * c / request_tokens,
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The thorough captions, read by the embedded judge."""
    out = tmp_path_factory.mktemp("mini") / "thorough"
    captions = load_replies(bundled_replies("thorough", "mini-reading"))
    return snellen.score_captions(
        captions, benchmark="mini-reading", judge="embedded", out=out, cache=False
    )


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_benchmark_is_as_large_and_as_varied_as_promised() -> None:
    """Pictures, questions, rubrics and direct questions cover all categories and capabilities."""
    reading, rubric = load_benchmark("mini-reading"), load_benchmark("mini-rubric")
    direct = load_benchmark("mini-direct")
    probes = [probe for item in reading.items for probe in item.probes]
    answers = Counter(probe.answer for probe in probes)
    assert len(reading.items) >= 12
    assert len(probes) >= 150
    assert {probe.groups["category"] for probe in probes} == CATEGORIES
    assert max(answers.values()) - min(answers.values()) <= 3
    assert sum(len(item.probes) for item in rubric.items) >= 90
    assert all(item.reference for item in rubric.items)
    assert len(direct.items) >= 40
    assert {item.groups["error_category"][0] for item in direct.items} == CAPABILITIES
    assert sum(len(item.images) > 1 for item in direct.items) >= 3
    assert sum(bool(item.hint) for item in direct.items) >= 3


def test_every_pair_of_captioner_and_probe_has_one_label() -> None:
    """The labels cover each captioner and each probe of each protocol, and nothing else."""
    for protocol in ("reading", "rubric", "direct"):
        benchmark = load_benchmark(f"mini-{protocol}")
        expected = {
            (captioner, item.id, probe.id)
            for captioner in CAPTIONERS
            for item in benchmark.items
            for probe in item.probes
        }
        assert set(labels(protocol)) == expected


def test_pictures_are_small_and_their_origin_is_stated() -> None:
    """Each picture is under 200 KB, at most 1024 pixels long, and named in the licence file."""
    from PIL import Image

    stated = (MINI / "images" / "LICENSES.md").read_text(encoding="utf-8")
    pictures = [p for p in (MINI / "images").iterdir() if p.suffix in {".jpg", ".png"}]
    assert len(pictures) >= 12
    for picture in pictures:
        assert picture.stat().st_size < 200_000
        assert picture.name in stated
        with Image.open(picture) as opened:
            assert max(opened.size) <= 1024


def test_perfect_labels_order_the_captioners_as_they_were_written() -> None:
    """`thorough` leads in coverage, `careless` trails in effective accuracy, `terse` in density."""
    found = {captioner: perfect_reading(captioner) for captioner in CAPTIONERS}
    assert max(found, key=lambda c: found[c]["coverage"]) == "thorough"
    assert min(found, key=lambda c: found[c]["effective"]) == "careless"
    assert max(found, key=lambda c: found[c]["global_density"]) == "terse"


@pytest.mark.slow
def test_a_run_writes_the_files_of_the_contract(run: Run) -> None:
    """A finished folder holds its six files, and no two rows for one reply or verdict."""
    for name in ("run.json", "calls.jsonl", "replies.jsonl", "verdicts.jsonl", "summary.json"):
        assert (run.folder / name).exists(), name
    replies = rows(run.folder / "replies.jsonl")
    verdicts = rows(run.folder / "verdicts.jsonl")
    assert len({r["id"] for r in replies}) == len(replies) == 15
    assert len({(v["id"], v["probe_id"]) for v in verdicts}) == len(verdicts) == 199
    assert {"id", "reply", "reasoning", "finish_reason", "tokens", "usage", "latency_s", "status"}
    assert set(verdicts[0]) >= {
        "id", "probe_id", "verdict", "correct", "status", "reason", "raw", "usage",
    }  # fmt: skip
    assert json.loads((run.folder / "run.json").read_text(encoding="utf-8"))["schema"] == 1


@pytest.mark.slow
def test_the_summary_equals_a_hand_computation_from_the_files(run: Run) -> None:
    """All eight metrics follow from verdicts.jsonl and replies.jsonl by the paper's formulas."""
    verdicts = rows(run.folder / "verdicts.jsonl")
    tokens = {r["id"]: r["tokens"] for r in rows(run.folder / "replies.jsonl")}
    m: Counter[str] = Counter()
    c: Counter[str] = Counter()
    u: Counter[str] = Counter()
    for v in verdicts:
        m[v["id"]] += 1
        c[v["id"]] += v["correct"] is True
        u[v["id"]] += v["verdict"] == "E"
    total_m, total_c, total_u = sum(m.values()), sum(c.values()), sum(u.values())
    density = [1000 * c[i] / (m[i] * tokens[i]) for i in m]
    mean = sum(density) / len(density)
    sigma = math.sqrt(sum((d - mean) ** 2 for d in density) / len(density))
    by_hand = {
        "overall_acc": total_c / total_m,
        "effective_acc": total_c / (total_m - total_u),
        "uncertain_ratio": total_u / total_m,
        "coverage": (total_m - total_u) / total_m,
        "tokens_per_image": sum(tokens.values()) / len(tokens),
        "mean_density": mean,
        "global_density": 1000 * total_c / sum(m[i] * tokens[i] for i in m),
        "density_cv": sigma / mean,
    }
    written = json.loads((run.folder / "summary.json").read_text(encoding="utf-8"))["metrics"]
    assert {name: value["value"] for name, value in written.items()} == pytest.approx(by_hand)
    product = written["effective_acc"]["value"] * written["coverage"]["value"]
    assert abs(written["overall_acc"]["value"] - product) < 1e-12


@pytest.mark.slow
def test_breakdowns_add_up_to_the_whole(run: Run) -> None:
    """Categories, generators and natures each cover all probes; right answers add up."""
    summary = run.summary
    assert summary is not None
    right: dict[str, float] = defaultdict(float)
    for dimension in ("category", "generator", "nature"):
        for label, metrics in summary.by[dimension].items():
            n = summary.group_counts[dimension][label]["probes"]
            right[dimension] += metrics["overall_acc"].value * n
        assert right[dimension] == pytest.approx(summary.counts.correct)
    assert set(summary.by["category"]) == CATEGORIES


@pytest.mark.slow
def test_the_embedded_judge_marks_every_number_as_low_fidelity(run: Run) -> None:
    """No number of the embedded judge goes without its mark."""
    assert run.summary is not None
    assert {value.fidelity for value in run.summary.metrics.values()} == {"low"}
    assert any("low fidelity" in note for note in run.summary.notes)


@pytest.mark.slow
def test_a_second_start_repeats_no_call(run: Run) -> None:
    """Started again on the same folder, a run reads its journal and calls nobody."""
    before = (run.folder / "calls.jsonl").read_bytes()
    captions = load_replies(bundled_replies("thorough", "mini-reading"))
    again = snellen.score_captions(
        captions, benchmark="mini-reading", judge="embedded", out=run.folder, cache=False
    )
    assert (run.folder / "calls.jsonl").read_bytes() == before
    assert again.summary is not None
    assert run.summary is not None
    assert again.summary.metrics == run.summary.metrics


@pytest.mark.slow
def test_torn_last_lines_are_dropped(run: Run) -> None:
    """A half-written last row in any of the row files is left out when the run is read."""
    whole = load_run(run.folder)
    for name in ("replies.jsonl", "verdicts.jsonl"):
        with (run.folder / name).open("a", encoding="utf-8") as file:
            file.write('{"id": "torn')
    torn = load_run(run.folder)
    assert torn.replies == whole.replies
    assert torn.verdicts == whole.verdicts


@pytest.mark.slow
def test_replies_in_other_languages_are_unscored_and_told(tmp_path: Path) -> None:
    """However many come first, those in English are scored, and the way out is named."""
    strange = [
        "图中没有人,只有一只橙色的猫坐在垫子上",
        "Auf dem Bild ist eine Katze, die auf der Matte liegt und in die Kamera schaut",
        "На картинке изображена кошка, которая лежит на ковре",
    ]
    items = load_benchmark("mini-direct").items
    replies = {item.id: strange[k % 3] if k < 20 else "two" for k, item in enumerate(items)}
    plan = make_plan(RunRequest("mini-direct", tmp_path / "run", replies=replies, judge="embedded"))
    finished = asyncio.run(execute(plan))
    counts = finished.summary.counts
    assert counts.unscored_by_reason == {"judge_language": 20}
    assert (counts.scored, finished.error, finished.exit_code) == (len(items) - 20, None, 3)
    [notice] = finished.notices
    assert "20 probes" in notice
    assert "--judge NAME --judge-url URL" in notice


SHOWN = {
    "reading": ("overall_acc", "effective_acc", "coverage"),
    "rubric": ("score",),
    "direct": ("accuracy",),
}
IN_README = re.compile(r"^(\w+) {3,}((?:[\d.]+ \[[^\]]+\] *)+)$", re.MULTILINE)


def readme_rows() -> dict[str, list[str]]:
    """The numbers of the demo as the README shows them, by captioner."""
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    return {name: re.findall(r"[\d.]+ \[[^\]]+\]", line) for name, line in IN_README.findall(text)}


def shown(run: Run, protocol: str) -> list[str]:
    """The same numbers of a run, in per cent."""
    assert run.summary is not None
    found = [run.summary.metrics[name] for name in SHOWN[protocol]]
    return [
        f"{100 * m.value:.1f} [{100 * m.ci95[0]:.1f}, {100 * m.ci95[1]:.1f}]"
        for m in found
        if m.value is not None and m.ci95 is not None
    ]


@pytest.mark.slow
def test_the_readme_shows_what_the_demo_measures(run: Run) -> None:
    """Numbers, intervals and all three captioners; here the first captioner's reading."""
    rows = readme_rows()
    assert list(rows) == ["thorough", "careless", "terse"]
    assert {len(numbers) for numbers in rows.values()} == {5}
    assert rows["thorough"][:3] == shown(run, "reading")


@pytest.mark.slow
def test_every_number_of_the_readme_is_the_demos(tmp_path: Path) -> None:
    """All captioners under all protocols, as `demo --json` prints them."""
    done = CliRunner().invoke(cli, ["demo", "--json", "--out", str(tmp_path)])
    assert done.exit_code == 0
    printed = json.loads(done.stdout)
    assert {row["half"] for row in printed["embedded_judge"]} == {"dev", "frozen"}
    found: dict[str, list[str]] = {}
    for summary in printed["runs"]:
        for name in SHOWN[summary["protocol"]]:
            value = summary["metrics"][name]
            low, high = value["ci95"]
            text = f"{100 * value['value']:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
            found.setdefault(summary["model"], []).append(text)
    assert found == readme_rows()
