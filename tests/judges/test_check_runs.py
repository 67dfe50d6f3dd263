"""A judge whose errors are known is measured, and its check can be read again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from snellen.errors import DataError, UsageError
from snellen.judges.check_runs import CheckWish, check_judge
from snellen.judges.material import Known, Material, material
from snellen.keys import rng_for
from snellen.readers import LoadOptions, load_benchmark
from snellen.readers.mini import MINI
from snellen.records import ProtocolName
from snellen.runs.judge_errors import JudgeCheck, ProtocolCheck, read_check
from snellen.runs.request import RunRequest
from snellen.tables.judges import check_tables
from snellen.templates import bundled


def mini_material(protocol: ProtocolName, limit: int | None = None) -> Material:
    """The material that a check of the bundled benchmark uses."""
    regions = load_benchmark("mini-reading", None, options=LoadOptions()).regions
    return material(str(MINI), protocol, regions=regions, limit=limit)


class Scripted:
    """A judge that knows the truth and errs at given rates, the same way each time it is asked.

    It finds the probe by looking for caption and question in the prompt. `calls` counts.
    """

    def __init__(
        self, made: Material, *, commits: float = 0.0, abstains: float = 0.0, place: str = ""
    ) -> None:
        self._made, self._commits, self._abstains = made, commits, abstains
        self._place = place
        self.calls = 0

    async def __call__(self, messages: list[dict[str, Any]]) -> str:
        self.calls += 1
        content = messages[-1]["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        item, probe, known = self._find(text)
        rng = rng_for(0, item, probe.id)
        if self._place:
            return self._place
        truth = str(known.truth)
        if truth == "E":
            said = "ABCD"[int(rng.integers(4))] if rng.random() < self._commits else "E"
        else:
            said = "E" if rng.random() < self._abstains else truth
        return said if said == "E" else self._shown(text, probe.options["ABCD".index(said)])

    def _find(self, text: str) -> tuple[str, Any, Known]:
        for item in self._made.benchmark.items:
            if str(self._made.replies[item.id, 0].reply) not in text:
                continue
            for probe in item.probes:
                if probe.question in text and all(option in text for option in probe.options):
                    return item.id, probe, self._made.known[item.id, probe.id]
        raise AssertionError(text)

    @staticmethod
    def _shown(text: str, option: str) -> str:
        return next(c for c in "ABCD" if f"\n{c}. {option}\n" in text)


def check(judge: Any, out: Path, **words: Any) -> JudgeCheck:
    """The finished check of a judge on the bundled material."""
    request = RunRequest("", "", judge=judge, cache=False)
    found = asyncio.run(check_judge(request, CheckWish(out, **words)))
    assert isinstance(found, JudgeCheck)
    return found


def inside(found: ProtocolCheck, name: str, truth: float) -> bool:
    """Whether the interval of a rate holds a value."""
    low, high = found.rates[name].ci95 or (1.0, 0.0)
    return low <= truth <= high


@pytest.mark.slow
def test_a_judge_with_known_errors_is_measured_within_its_intervals(tmp_path: Path) -> None:
    """10% false commits and 20% false abstentions are found, and no error that is not there."""
    judge = Scripted(mini_material("reading"), commits=0.1, abstains=0.2)
    reading = check(judge, tmp_path, protocols=("reading",), repeats=1).protocols["reading"]
    assert inside(reading, "committed_when_absent", 0.1)
    assert inside(reading, "abstained_when_stated", 0.2)
    assert reading.rates["fooled_when_changed"].hits == 0
    assert reading.prompts["verdict"] == bundled("reading_judge").sha256
    rows = dict(zip(reading.confusion.truths, reading.confusion.counts, strict=True))
    right, wrong, uncertain, unscored = rows["right"]
    assert (wrong, unscored) == (0, 0)
    assert uncertain / (right + uncertain) == pytest.approx(0.2, abs=0.04)


def test_a_judge_that_always_says_one_letter_is_told_by_its_place(tmp_path: Path) -> None:
    """All choices fall on one place, and the content changes with the order."""
    judge = Scripted(mini_material("reading", limit=10), place="B")
    position = (
        check(judge, tmp_path, protocols=("reading",), limit=10).protocols["reading"].position
    )
    assert position is not None
    assert position.p_value is not None
    assert position.p_value < 0.001
    assert position.chosen["A"] == position.chosen["C"] == position.chosen["D"] == 0
    assert position.same_content.hits < position.same_content.n / 2


def test_a_finished_check_resumes_without_a_call(tmp_path: Path) -> None:
    """The runs of a check are ordinary runs: started again they are read from the journal."""
    words: Mapping[str, Any] = {"protocols": ("reading",), "limit": 4, "repeats": 2}
    judge = Scripted(mini_material("reading", limit=4))
    first = check(judge, tmp_path, **words)
    asked = judge.calls
    second = check(judge, tmp_path, **words)
    assert (judge.calls, second.protocols["reading"].calls) == (asked, 0)
    assert second.protocols["reading"].rates == first.protocols["reading"].rates
    assert first.protocols["reading"].same_again is not None
    assert first.protocols["reading"].same_again.value == 1.0


@pytest.mark.slow
def test_the_embedded_judge_is_measured_under_all_protocols(tmp_path: Path) -> None:
    """Its check has every protocol, is marked as low fidelity, and reads back from its file."""
    found = check("embedded", tmp_path, limit=2, repeats=1)
    assert set(found.protocols) == {"reading", "rubric", "direct"}
    assert found.judge.fidelity == "low"
    assert read_check(tmp_path) == read_check(tmp_path / "judge_check.json")
    assert read_check(tmp_path).protocols["direct"].rates == found.protocols["direct"].rates
    titles = [table.title for table in check_tables(found)]
    assert titles[0] == "reading: judge embedded on material of known truth"
    assert titles[-1] == "Speed and cost"


def test_a_benchmark_without_facts_is_refused(tmp_path: Path) -> None:
    """Captions cannot be written from a benchmark without region metadata."""
    with pytest.raises(DataError, match="no regions with metadata"):
        check("embedded", tmp_path, source="mini-rubric")


def test_a_check_needs_a_judge(tmp_path: Path) -> None:
    """Without a judge there is nothing to measure."""
    with pytest.raises(UsageError, match="no judge"):
        check("", tmp_path, limit=1)


def test_a_file_that_is_no_check_is_refused_by_name(tmp_path: Path) -> None:
    """Another JSON file, and no file, are told apart from a check."""
    other = tmp_path / "other.json"
    other.write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match="is no judge check"):
        read_check(other)
    with pytest.raises(DataError, match="cannot be read"):
        read_check(tmp_path)


def test_material_of_every_protocol_knows_all_its_probes() -> None:
    """Each probe has a truth of its protocol's kind, and limits keep something of everything."""
    for protocol in ("reading", "rubric", "direct"):
        made = mini_material(protocol)
        ids = {(item.id, probe.id) for item in made.benchmark.items for probe in item.probes}
        assert ids == set(made.known)
        kind = str if protocol == "reading" else bool
        assert all(isinstance(known.truth, kind) for known in made.known.values())
        assert {known.source for known in made.known.values()} == {"dev", "frozen", "facts"}
