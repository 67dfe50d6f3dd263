"""No answer of yesterday passes for a result of today, told through the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.server import Body, picture_uris
from tests.worlds.engine_world import (
    answer,
    chats,
    command,
    numbers,
    rows,
    serve,
    small_benchmark,
    type_in,
)


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pictures, nine questions: twelve calls."""
    return small_benchmark(tmp_path_factory.mktemp("benchmark"), images=3, questions=9)


@pytest.mark.slow
def test_a_second_checkpoint_behind_the_same_name_is_asked_everything(
    benchmark: Path, tmp_path: Path
) -> None:
    """The server loads other weights, the command has a new --out: every call is made."""
    weights = ["first"]

    def script(body: Body) -> str:
        return f"The {weights[0]} bus." if picture_uris(body) else answer(body)

    with serve(script) as server:
        assert type_in(command(benchmark, server.url, tmp_path / "first")).returncode == 0
        weights[0] = "second"
        done = type_in(command(benchmark, server.url, tmp_path / "second"))
        assert len(chats(server)) == 24
    assert done.returncode == 0
    assert "cache" not in done.stderr
    assert {row["reply"] for row in rows(tmp_path / "second", "replies")} == {"The second bus."}


@pytest.mark.slow
def test_with_the_cache_the_run_says_what_came_out_of_it(benchmark: Path, tmp_path: Path) -> None:
    """Count and age are told; another declared revision is another model."""
    config = tmp_path / "mine.toml"
    config.write_text('cache = true\n[models.eye]\nrevision = "1"\n', encoding="utf-8")
    with serve() as server:
        for name in ("a", "b"):
            line = command(benchmark, server.url, tmp_path / name, "--config", str(config))
            done = type_in(line)
            assert done.returncode == 0
        assert len(chats(server)) == 12
        assert "notice: 12 replies came out of the cache, the oldest 0.0 hours old" in done.stderr
        config.write_text('cache = true\n[models.eye]\nrevision = "2"\n', encoding="utf-8")
        assert type_in(command(benchmark, server.url, tmp_path / "c", *line[-2:])).returncode == 0
        assert len(chats(server, "model")) == 6
        assert type_in([*line, "--no-cache", "--out", str(tmp_path / "d")]).returncode == 0
        assert len(chats(server)) == 12 + 3 + 12
    assert numbers(tmp_path / "a") == numbers(tmp_path / "b")


@pytest.mark.slow
def test_a_mended_judge_is_asked_again(benchmark: Path, tmp_path: Path) -> None:
    """Unreadable judgements are not kept: after the judge was mended, the next run reads it."""
    is_mended = [False]

    def script(body: Body) -> str:
        readable = is_mended[0] or picture_uris(body)
        return answer(body) if readable else "I would rather not say."

    with serve(script) as server:
        words = ("--cache", "--reasks", "1")
        line = command(benchmark, server.url, tmp_path / "before", *words)
        assert type_in(line).returncode == 3
        is_mended[0] = True
        line = command(benchmark, server.url, tmp_path / "after", *words)
        done = type_in(line)
        assert (len(chats(server, "model")), len(chats(server, "judge"))) == (3, 18 + 9)
    assert done.returncode == 0
    assert numbers(tmp_path / "after")["counts"]["scored"] == 9
