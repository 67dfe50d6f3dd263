"""The gallery of failures: which are shown, what their cards hold, and that it stays small."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from pathlib import Path

import msgspec
from PIL import Image as Pillow
from tests.worlds.report_runs import direct_run, reading_run, rubric_run

from snellen.pictures.prepare import image_from_path
from snellen.records import Region
from snellen.report.gallery import TEXT_BUDGET, choose, failures_of, gallery_of


def test_failures_are_wrong_unscored_or_abstained(tmp_path: Path) -> None:
    """Everything that is not right is a failure of its kind; skipped probes are none."""
    run = reading_run(tmp_path)
    kinds = [f.kind for f in failures_of(run)]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "wrong": 3,
        "abstained": 2,
        "unscored": 1,
    }
    key = next(iter(run.verdicts))
    skipped = {key: replace(run.verdicts[key], status="skipped", correct=None)}
    assert failures_of(replace(run, verdicts=skipped)) == []


def test_wrong_and_unscored_come_before_abstained(tmp_path: Path) -> None:
    """Abstentions are shown only where places are left, and pictures take turns."""
    failures = failures_of(reading_run(tmp_path, right=1))
    chosen = choose(failures, 6)
    assert [f.kind for f in chosen] == ["wrong"] * 4 + ["unscored", "abstained"]
    assert [f.item.id for f in chosen[:4]] == ["i0", "i1", "i2", "i3"]
    assert choose(failures, 0) == []


def test_unscored_take_at_most_half_of_the_places(tmp_path: Path) -> None:
    """Many unscored probes do not crowd out wrong answers, and fill up where those are few."""
    run = rubric_run(tmp_path, right=0)
    verdicts = {
        key: replace(v, status="unscored", correct=None, verdict=None) if key[0] != "i0" else v
        for key, v in run.verdicts.items()
    }
    failures = failures_of(replace(run, verdicts=verdicts))
    assert [f.kind for f in choose(failures, 4)] == ["wrong"] * 2 + ["unscored"] * 2
    assert [f.kind for f in choose(failures, 10)] == ["wrong"] * 4 + ["unscored"] * 6


def test_a_question_without_a_picture_is_told_from_a_picture_left_out(tmp_path: Path) -> None:
    """A card knows whether its question came with pictures, shown or not."""
    run = direct_run(tmp_path)
    bare = replace(run, items=[replace(item, images=()) for item in run.items])
    (shown,) = {probe["pictured"] for probe in gallery_of([run], with_pictures=False).probes}
    (without,) = {probe["pictured"] for probe in gallery_of([bare]).probes}
    assert (shown, without) == (True, False)


def test_shared_things_are_stored_once(tmp_path: Path) -> None:
    """Two models that fail on one probe of one picture share the probe and the picture."""
    runs = [reading_run(tmp_path, "a"), reading_run(tmp_path, "b")]
    gallery = gallery_of(runs)
    assert len(gallery.pictures) == 1
    assert len(gallery.failures) == 2 * len(gallery.probes)
    assert {f["run"] for f in gallery.failures[:2]} == {0, 1}


def test_pictures_are_small_upright_jpegs(tmp_path: Path) -> None:
    """A picture becomes a thumbnail within its limit, turned as its EXIF says."""
    run = reading_run(tmp_path)
    large = Pillow.new("RGB", (1600, 800), "red")
    exif = Pillow.Exif()
    exif[0x0112] = 6
    path = Path(run.items[0].images[0].path)
    large.save(path.with_suffix(".jpg"), exif=exif)
    image = image_from_path(path.with_suffix(".jpg"))
    items = tuple(replace(item, images=(image,)) for item in run.items)
    (stored,) = gallery_of([replace(run, items=items)]).pictures.values()
    kind, data = stored["src"].split(",")
    assert kind == "data:image/jpeg;base64"
    opened = Pillow.open(io.BytesIO(base64.b64decode(data)))
    assert opened.size == (180, 360) == (stored["width"], stored["height"])


def test_a_lost_picture_says_why(tmp_path: Path) -> None:
    """A picture that is gone leaves its reason in its place, and nothing stops."""
    run = reading_run(tmp_path)
    Path(run.items[0].images[0].path).unlink()
    (stored,) = gallery_of([run]).pictures.values()
    assert "does not exist" in stored["error"]


def test_pictures_can_be_left_out(tmp_path: Path) -> None:
    """Without pictures the cards have none."""
    gallery = gallery_of([reading_run(tmp_path)], with_pictures=False)
    assert gallery.pictures == {}
    assert {tuple(p["pictures"]) for p in gallery.probes} == {()}


def test_regions_of_the_same_picture_become_boxes(tmp_path: Path) -> None:
    """A probe carries its region's box; a region of another picture is not drawn."""
    regions = {
        "r0-4": Region("r0-4", "i0", (1, 2, 3, 4), "thing"),
        "r2-4": Region("r2-4", "elsewhere", (1, 2, 3, 4), "thing"),
    }
    probes = gallery_of([reading_run(tmp_path)], regions=regions).probes
    boxes = {p["id"]: p["box"] for p in probes}
    assert (boxes["p0-4"], boxes["p2-4"]) == ([1, 2, 3, 4], None)


def test_filters_have_labels_in_every_protocol(tmp_path: Path) -> None:
    """Category and domain come from where each protocol keeps them."""
    runs = [reading_run(tmp_path), rubric_run(tmp_path), direct_run(tmp_path)]
    labels = [
        (gallery_of([run]).probes[0]["category"], gallery_of([run]).probes[0]["domains"])
        for run in runs
    ]
    assert labels == [
        ("Count", ["Plants"]),
        ("Easy-Wrong", ["Natural Scene"]),
        ("ocr_error", ["NA"]),
    ]


def test_marks_of_pictures_become_words(tmp_path: Path) -> None:
    """A direct question shows which picture is meant where there are several, else no mark."""
    run = direct_run(tmp_path)
    assert gallery_of([run]).probes[0]["question"] == "What is 0?"
    items = tuple(replace(item, images=item.images * 2) for item in run.items)
    two = gallery_of([replace(run, items=items)])
    assert two.probes[0]["question"] == "[picture 1] What is 0?"


def test_long_texts_are_cut_until_the_gallery_fits(tmp_path: Path) -> None:
    """Captions of megabytes are cut, and the cut says how much is missing."""
    long = "\u4e00" * 400_000
    runs = [reading_run(tmp_path, f"m{k}", right=0, caption=long + str(k)) for k in range(13)]
    gallery = gallery_of(runs)
    texts = msgspec.json.encode((gallery.probes, gallery.captions, gallery.failures))
    assert len(texts) <= TEXT_BUDGET
    assert "more characters in the run folder]" in gallery.captions[0]


def test_totals_count_what_is_not_shown(tmp_path: Path) -> None:
    """The number of failures does not depend on how many are shown."""
    few = gallery_of([reading_run(tmp_path)], most=1)
    assert len(few.failures) == 1
    assert few.totals == [{"wrong": 3, "unscored": 1, "abstained": 2}]
