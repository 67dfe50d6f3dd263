"""Fits the weights of the embedded judge and prints them, with cross-validated accuracies.

    python benchmarks/fit_embedded.py

Material: `embedded_tuning.jsonl` (captions, questions and rubrics written for this), the dev half
of `mini`, and its questions and rubrics again in near and in far other words
(`embedded_paraphrases.jsonl`). Nothing of the frozen half is looked at. Folds are pictures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs
from scipy.optimize import minimize

from snellen.embedded import reading, statements
from snellen.embedded.encoder import Encoder
from snellen.judges.labelled import load_trials
from snellen.records import ReadTask, RubricTask

HERE = Path(__file__).parent
MINI = HERE.parent / "src" / "snellen" / "data" / "mini"
PENALTY_OPTION, PENALTY_STATED, PENALTY_SUPPORT = 0.002, 0.005, 0.001
FOLDS, ROUNDS = 8, 5

Weights = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Question:
    """A reading question with its evidence; `label` is the option's place, None for E."""

    source: str
    picture: str
    task: ReadTask
    label: int | None
    evidence: reading.Evidence


@dataclass(frozen=True)
class Statement:
    """A rubric with its features; `supported` says whether the caption says it."""

    source: str
    picture: str
    features: np.ndarray
    supported: bool


def main() -> None:
    """Fits on all, and says how well the same fit does on pictures it has not seen."""
    encoder = Encoder()
    questions, rubrics = _questions(encoder), _statements(encoder)
    options, stated = fit_reading(questions)
    print("OPTION_WEIGHTS =", _shown(options))
    print("STATED_WEIGHTS =", _shown(stated))
    print("SUPPORT_WEIGHTS =", _shown(fit_support(rubrics)))
    hits = _cross_validate(questions, fit_reading, _is_read_right)
    for source in dict.fromkeys(q.source for q in questions):
        for name, keep in (("stated", True), ("absent", False)):
            which = [q.source == source and (q.label is not None) == keep for q in questions]
            print(f"reading {source:10} {name} {hits[which].mean():.3f} of {sum(which)}")
    hits = _cross_validate(rubrics, fit_support, _is_verified)
    for source in dict.fromkeys(r.source for r in rubrics):
        which = [r.source == source for r in rubrics]
        print(f"rubric {source:10} {hits[which].mean():.3f} of {sum(which)}")


def fit_reading(questions: Sequence[Question]) -> Weights:
    """The weights of options (none negative) and of whether the answer is stated."""
    questions = _thinned(questions)
    answered = [q for q in questions if q.label is not None]
    weights = np.ones(answered[0].evidence.pairs.shape[2])
    for _ in range(ROUNDS):
        # The best segment of an option depends on the weights, so both are fitted in turns.
        rows = [_best_rows(q.evidence.pairs, weights) for q in answered]
        labels = [q.label or 0 for q in answered]
        weights = _fit_choice(rows, labels, weights)
    features = [reading.stated_features(q.evidence, weights)[1] for q in questions]
    truths = [q.label is not None for q in questions]
    return weights, _fit_yes_no(np.array(features), np.array(truths, float), PENALTY_STATED)


def _thinned(questions: Sequence[Question]) -> list[Question]:
    """Keeps one in four of the `far` wordings: more of them make the judge guess where it reads."""
    far = [q for q in questions if q.source == "far"]
    dropped = {id(q) for place, q in enumerate(far) if place % 4}
    return [q for q in questions if id(q) not in dropped]


def fit_support(rubrics: Sequence[Statement]) -> np.ndarray:
    """The weights of whether a caption says a statement."""
    truths = np.array([r.supported for r in rubrics], float)
    return _fit_yes_no(np.array([r.features for r in rubrics]), truths, PENALTY_SUPPORT)


def _best_rows(pairs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    best = (pairs @ weights).argmax(axis=0)
    return pairs[best, np.arange(pairs.shape[1])]


def _fit_choice(rows: list[np.ndarray], labels: list[int], start: np.ndarray) -> np.ndarray:
    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = PENALTY_OPTION * weights @ weights, 2 * PENALTY_OPTION * weights
        for features, label in zip(rows, labels, strict=True):
            scores = features @ weights
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            total -= np.log(shares[label] + 1e-12) / len(rows)
            slope = slope + (shares @ features - features[label]) / len(rows)
        return total, slope

    bounds = [(0, None)] * len(start)
    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x


def _fit_yes_no(features: np.ndarray, truths: np.ndarray, penalty: float) -> np.ndarray:
    free = np.r_[0.0, np.ones(features.shape[1] - 1)]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        shares = 1 / (1 + np.exp(-features @ weights))
        fit = truths * np.log(shares + 1e-12) + (1 - truths) * np.log(1 - shares + 1e-12)
        slope = features.T @ (shares - truths) / len(truths) + 2 * penalty * free * weights
        return -fit.mean() + penalty * (free * weights) @ weights, slope

    return minimize(loss, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B").x


def _is_read_right(question: Question, weights: Weights) -> bool:
    found = reading.decide(question.evidence, list(weights[0]), list(weights[1]))
    return (found.choice if found.stated > 0 else None) == question.label


def _is_verified(rubric: Statement, weights: np.ndarray) -> bool:
    return bool(rubric.features @ weights > 0) == rubric.supported


def _cross_validate(
    rows: Sequence[Any], fit: Callable[..., Any], is_right: Callable[..., bool]
) -> np.ndarray:
    pictures = sorted({row.picture for row in rows})
    hits = np.zeros(len(rows), bool)
    for fold in range(FOLDS):
        out = set(pictures[fold::FOLDS])
        weights = fit([row for row in rows if row.picture not in out])
        for place, row in enumerate(rows):
            if row.picture in out:
                hits[place] = is_right(row, weights)
    return hits


def _questions(encoder: Encoder) -> list[Question]:
    tasks = list(_tasks())
    vectors = encoder.embed(text for _, _, task, _ in tasks for text in reading.texts_for(task))
    return [
        Question(source, picture, task, label, reading.weigh(task, vectors))
        for source, picture, task, label in tasks
    ]


def _tasks() -> Iterator[tuple[str, str, ReadTask, int | None]]:
    for number, row in enumerate(_rows("embedded_tuning.jsonl")):
        for q in row["questions"]:
            task = ReadTask(row["caption"], q["question"], tuple(q["options"]))
            yield "written", f"written-{number}", task, _place(q["label"])
    reworded = _paraphrases("question_id")
    for trial in load_trials(MINI):
        if trial.half == "dev" and isinstance(trial.task, ReadTask):
            name = trial.name.split("/")[1]
            picture, label = name.rsplit("-", 1)[0], _place(str(trial.labels[0]))
            yield "dev", picture, trial.task, label
            for row in reworded.get(name, ()):
                options = tuple(row["options"])
                task = structs.replace(trial.task, question=row["question"], options=options)
                yield row["wording"], picture, task, label


def _paraphrases(key: str) -> dict[str, list[dict[str, Any]]]:
    """Rewordings by item: `near` keeps some of the words, `far` next to none."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in _rows("embedded_paraphrases.jsonl"):
        if key in row:
            found.setdefault(row[key], []).append(row)
    return found


def _statements(encoder: Encoder) -> list[Statement]:
    rows = list(_labelled_statements())
    vectors = encoder.embed(
        text for _, _, caption, text_, _ in rows for text in statements.texts_for(caption, [text_])
    )
    found = []
    for source, picture, caption, text, label in rows:
        claim = statements.claim_of(text)
        features = statements.support_features(caption, claim, vectors)
        found.append(Statement(source, picture, features, label != claim.forbidden))
    return found


def _labelled_statements() -> Iterator[tuple[str, str, str, str, bool]]:
    for number, row in enumerate(_rows("embedded_tuning.jsonl")):
        for rubric in row["rubrics"]:
            yield (
                "written",
                f"written-{number}",
                row["caption"],
                rubric["statement"],
                rubric["label"],
            )
    reworded = _paraphrases("id")
    for trial in load_trials(MINI):
        if trial.half == "dev" and isinstance(trial.task, RubricTask):
            picture = trial.name.split("/")[1]
            texts = (*trial.task.must_right, *trial.task.easy_wrong)
            for text, label in zip(texts, trial.labels, strict=True):
                yield "dev", picture, trial.task.caption, text, bool(label)
            for row in reworded.get(picture, ()):
                again = (*row["must_right"], *row["easy_wrong"])
                for text, label in zip(again, trial.labels, strict=True):
                    yield row["wording"], picture, trial.task.caption, text, bool(label)


def _place(letter: str) -> int | None:
    return None if letter == "E" else ord(letter) - ord("A")


def _rows(name: str) -> list[dict[str, Any]]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _shown(weights: np.ndarray) -> tuple[float, ...]:
    return tuple(round(float(w), 2) for w in weights)


if __name__ == "__main__":
    main()
