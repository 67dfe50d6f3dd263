"""The three protocols as tasks of Inspect, judged and scored as in an evaluation.

`inspect eval snellen/reading --model MODEL -T judge=NAME -T judge_url=URL` shows the pictures to
the model of Inspect; captions and answers are judged by the judge of Snellen. Sampling, limits and
logs are those of Inspect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

from snellen import rewards
from snellen.records import Item, JsonObject

Options = str | int | float | bool


@task  # type: ignore[untyped-decorator]
def reading(benchmark: str = "mini-reading", judge: str = "embedded", **options: Options) -> Task:
    """Describe pictures; the judge answers questions from the description (CapProbe)."""
    return _task(benchmark, judge, options)


@task  # type: ignore[untyped-decorator]
def rubric(benchmark: str = "mini-rubric", judge: str = "embedded", **options: Options) -> Task:
    """Describe pictures; the judge audits the description (PerceptionRubrics)."""
    return _task(benchmark, judge, options)


@task  # type: ignore[untyped-decorator]
def direct(benchmark: str = "mini-direct", judge: str = "embedded", **options: Options) -> Task:
    """Answer questions about pictures (PerceptionBench)."""
    return _task(benchmark, judge, options)


def _task(benchmark: str, judge: str, options: Mapping[str, Options]) -> Task:
    """A task; `options` are arguments of `snellen.run` about data, judge and protocol."""
    own = rewards.Scorer(benchmark, judge, **options)  # type: ignore[arg-type]
    items = own.benchmark.items
    samples = [
        Sample(
            id=item.id,
            input=_messages(own.messages(item.id)),
            target=item.probes[0].answer if item.text else item.reference,
            metadata={"groups": {name: list(labels) for name, labels in item.groups.items()}},
        )
        for item in items
    ]
    return Task(
        dataset=MemoryDataset(samples, name=own.benchmark.name),
        solver=generate(),
        scorer=judged(own, items),
        name=own.benchmark.name,
    )


def _messages(messages: Iterable[JsonObject]) -> list[object]:
    """OpenAI-style messages as those of Inspect."""
    found: list[object] = []
    for message in messages:
        content = message["content"]
        parts: list[object] = []
        pieces: list[JsonObject]
        pieces = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in pieces:
            if part["type"] == "text":
                parts.append(ContentText(text=part["text"]))
            else:
                parts.append(ContentImage(image=part["image_url"]["url"]))
        made = ChatMessageSystem if message["role"] == "system" else ChatMessageUser
        found.append(made(content=parts))
    return found


@scorer(metrics=[mean(), stderr()], name="snellen")  # type: ignore[untyped-decorator]
def judged(own: rewards.Scorer, items: Iterable[Item]) -> Scorer:
    """The metric of one reply, with every part of it in the metadata of the score.

    A reply that could not be scored raises an error in Inspect: it never becomes a zero.
    """
    known = {item.id for item in items}

    async def score(state: TaskState, target: Target) -> Score:
        del target
        name = str(state.sample_id)
        assert name in known
        [found] = await own.score([state.output.completion], [name])
        if found is None:
            raise RuntimeError(f"the judge gave no verdict on the reply to {name}")
        parts = {key: value for key, value in found.parts.items() if value is not None}
        unscored = {"unscored": found.unscored, "probes": found.n, "tokens": found.tokens}
        return Score(
            value=found.value, answer=state.output.completion, metadata={**parts, **unscored}
        )

    return score
