"""The review of a built benchmark in the browser, asked as a browser asks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.worlds.capprobe_world import config, construct, paint
from tests.worlds.perception_world import config as perception_config
from tests.worlds.perception_world import construct as construct_perception
from tests.worlds.perception_world import results

from snellen.builders.options import ReviewOptions
from snellen.builders.perception.options import PerceptionOptions
from snellen.construction import review
from snellen.web.guard import Access
from snellen.web.review.app import review_app

OWN = {"origin": "http://127.0.0.1"}
HOSTILE = "<script>alert(1)</script>\u202e" + "w" * 2000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of one painted picture with two annotators."""
    folder = tmp_path_factory.mktemp("built")
    options = ReviewOptions(
        annotators=("ann", "bob"), adjudicator="eve", overlap=0.5, adjudicate_accepts=0.0
    )
    construct(paint(folder / "in", 1), folder / "out", config=config(review=options))
    return folder / "out"


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with TestClient(
        review_app(folder, access=Access()), base_url="http://127.0.0.1", follow_redirects=False
    ) as found:
        yield found


def task_of(client: TestClient, person: str) -> str:
    """The next task of a person."""
    answer = client.get("/next", params={"as": person})
    assert answer.status_code == 303, answer.text
    return re.search(r"id=([^&]+)", answer.headers["location"])[1]  # type: ignore[index]


def decide(client: TestClient, person: str, task: str, word: str, **more: str) -> Any:
    """Sends the form of a task as the page has it."""
    page = client.get("/task", params={"id": task, "as": person}).text
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    form = {**hidden, "decision": word, **more}
    return client.post("/task", data=form, headers=OWN)


def test_a_task_is_decided_and_the_next_one_comes(client: TestClient, folder: Path) -> None:
    """The decision is saved with the text's digest, its reasons and its time."""
    first = task_of(client, "ann")
    answer = decide(client, "ann", first, "delete", reason_clarity="on", note="odd")
    assert answer.status_code == 303
    assert task_of(client, "ann") != first
    [one] = review.read_decisions(folder)
    assert (one.id, one.annotator, one.decision, one.reasons) == (
        first,
        "ann",
        "delete",
        ("clarity",),
    )
    assert one.note == "odd"
    assert one.digest
    assert one.seconds is not None


def test_an_edit_goes_to_the_adjudicator_whose_word_is_final(
    client: TestClient, folder: Path
) -> None:
    """The adjudicator sees before and after without names, and may keep the text as it was."""
    task = task_of(client, "ann")
    assert client.get("/next", params={"as": "eve"}).status_code == 200
    decide(client, "ann", task, "edit", question_0="What colour is the large area?")
    assert task_of(client, "eve") == task
    page = client.get("/task", params={"id": task, "as": "eve"}).text
    assert "without names" in page
    assert "<ins>" in page
    card = page[page.index("without names") : page.index('class="asked"')]
    assert "ann" not in re.sub(r"<[^>]+>", "", card).split()
    decide(client, "eve", task, "restore")
    [one] = [s for s in review.state(folder) if s.task.id == task]
    assert one.final is not None
    assert one.after["question"] == one.task.shown["question"]
    assert client.get("/next", params={"as": "eve"}).status_code == 200


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"options_0": "same", "options_1": "same"}, "four different options"),
        ({"question_0": " "}, "no question"),
        ({}, "nothing was changed"),
    ],
)
def test_an_edit_that_cannot_be_is_refused_and_what_was_typed_stays(
    client: TestClient, folder: Path, fields: dict[str, str], said: str
) -> None:
    task = task_of(client, "ann")
    answer = decide(client, "ann", task, "edit", note="my note", **fields)
    assert answer.status_code == 422
    assert said in answer.text
    assert "my note" in answer.text
    assert review.read_decisions(folder) == []


def test_two_who_save_the_same_task_are_both_kept_and_the_second_is_told(
    client: TestClient, folder: Path
) -> None:
    """The page shows the first decision; the adjudicator gets both; mine can be withdrawn."""
    task = task_of(client, "ann")
    pages = {
        name: client.get("/task", params={"id": task, "as": name}).text for name in ("ann", "bob")
    }
    forms = {
        name: dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
        for name, page in pages.items()
    }
    first = {**forms["ann"], "decision": "delete", "note": "first note"}
    assert client.post("/task", data=first, headers=OWN).status_code == 303
    second = {**forms["bob"], "decision": "accept"}
    answer = client.post("/task", data=second, headers=OWN)
    assert answer.status_code == 409
    assert "first note" in answer.text
    [one] = [s for s in review.state(folder) if s.task.id == task]
    assert [d.annotator for d in one.by] == ["ann", "bob"]
    assert one.needs_adjudicator
    client.post("/undo", data={"as": "bob", "id": task}, headers=OWN)
    [one] = [s for s in review.state(folder) if s.task.id == task]
    assert [d.annotator for d in one.by] == ["ann"]
    assert len(review.read_decisions(folder)) == 3


def test_undo_withdraws_the_last_decision_and_shows_the_task_again(
    client: TestClient, folder: Path
) -> None:
    """The history keeps both; a second undo withdraws the one before."""
    first = task_of(client, "ann")
    decide(client, "ann", first, "accept")
    second = task_of(client, "ann")
    decide(client, "ann", second, "delete")
    for expected in (second, first):
        answer = client.post("/undo", data={"as": "ann"}, headers=OWN)
        assert expected in answer.headers["location"]
    assert all(one.first is None for one in review.state(folder))
    assert len(review.read_decisions(folder)) == 4


def test_decisions_that_others_appended_count_and_both_files_agree(folder: Path) -> None:
    """A decision by a Python call, or a line written by hand, is there at the next start."""
    task = review.read_queue(folder)[0]
    review.decide(folder, review.Decision(task.id, task.annotator, "accept"))
    line = (folder / "review" / "decisions.jsonl").read_text()
    (folder / "review" / "decisions.sqlite").unlink()
    with TestClient(review_app(folder, access=Access()), base_url="http://127.0.0.1") as client:
        assert "1 of" in client.get("/").text
    assert (folder / "review" / "decisions.jsonl").read_text() == line


def test_figures_add_up(client: TestClient, folder: Path) -> None:
    shared = next(task for task in review.read_queue(folder) if task.second)
    decide(client, shared.annotator, shared.id, "accept")
    decide(client, shared.second, shared.id, "delete")
    page = client.get("/stats").text
    assert "Krippendorff" in page
    assert "ann and bob" in page


def test_pictures_come_by_task_and_only_as_they_were_put_up(
    client: TestClient, folder: Path
) -> None:
    """No address names a file, and a file that has changed is not shown."""
    task = task_of(client, "ann")
    answer = client.get("/picture", params={"id": task, "n": 0})
    assert answer.status_code == 200
    assert answer.headers["content-type"] in ("image/png", "image/jpeg")
    region = review.read_queue(folder)[0].region
    assert client.get("/mask", params={"region": region}).content.startswith(b"\x89PNG")
    for bad in ({"id": "../../etc/passwd"}, {"id": task, "n": 9}, {"id": task, "n": "-1"}):
        assert client.get("/picture", params=bad).status_code == 404
    assert client.get("/mask", params={"region": "../x"}).status_code == 404
    queue = folder / "review" / "queue.jsonl"
    queue.write_text(re.sub(r'"path":"[^"]+"', '"path":"/etc/passwd"', queue.read_text()))
    with TestClient(review_app(folder, access=Access()), base_url="http://127.0.0.1") as fooled:
        assert fooled.get("/picture", params={"id": task, "n": 0}).status_code == 404


def test_strangers_decide_nothing(client: TestClient, folder: Path) -> None:
    """Another origin, an unknown name and an unknown task are refused."""
    task = task_of(client, "ann")
    form = {"id": task, "as": "ann", "decision": "delete", "seen": "0"}
    assert client.post("/task", data=form).status_code == 403
    foreign = {"origin": "http://evil.example"}
    assert client.post("/task", data=form, headers=foreign).status_code == 403
    assert client.post("/task", data={**form, "as": "mallory"}, headers=OWN).status_code == 400
    assert client.post("/task", data={**form, "id": "none"}, headers=OWN).status_code == 404
    assert review.read_decisions(folder) == []


def test_hostile_text_is_shown_as_text(client: TestClient, folder: Path) -> None:
    """Markup in an edit, a note or a question never runs."""
    task = task_of(client, "ann")
    decide(client, "ann", task, "edit", question_0=HOSTILE, note=HOSTILE)
    for path, person in (("/task", "ann"), ("/task", "eve")):
        page = client.get(path, params={"id": task, "as": person})
        assert page.status_code == 200
        assert "<script>alert" not in page.text


def test_a_folder_without_a_review_is_named(tmp_path: Path) -> None:
    from snellen.errors import SnellenError

    with pytest.raises(SnellenError, match="build"):
        review_app(tmp_path, access=Access())


@pytest.mark.slow
def test_atomic_questions_and_attributions_are_decided_too(tmp_path: Path) -> None:
    """Their fields are shown with all pictures; a type is chosen among those of the taxonomy."""
    source, out = results(tmp_path / "in", "seer", names=("cat.jpg", "app.png")), tmp_path / "out"
    options = perception_config(perception=PerceptionOptions(disagreement="people"))
    construct_perception(source, out, config=options)
    with TestClient(
        review_app(out, access=Access()), base_url="http://127.0.0.1", follow_redirects=False
    ) as client:
        task = task_of(client, "annotator")
        page = client.get("/task", params={"id": task, "as": "annotator"}).text
        assert "Attributions" in page
        assert '<option value="ocr_error"' in page or "ocr_error</option>" in page
        assert decide(client, "annotator", task, "edit", type_0="ocr_error").status_code == 303
    construct_perception(source, out, config=options)
    with TestClient(
        review_app(out, access=Access()), base_url="http://127.0.0.1", follow_redirects=False
    ) as client:
        task = task_of(client, "annotator")
        page = client.get("/task", params={"id": task, "as": "annotator"}).text
        assert "Error category" in page
        assert client.get("/picture", params={"id": task, "n": 0}).status_code == 200
        refused = decide(client, "annotator", task, "edit", problem_0="<|image_7|>?")
        assert (refused.status_code, "leaves no question" in refused.text) == (422, True)
        assert decide(client, "annotator", task, "accept").status_code == 303
