"""The response cache: shared by runs and processes, and never a run's undoing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from snellen.engine.cache import ResponseCache, cache_key
from snellen.errors import SettingsError
from snellen.records import Reply, Usage
from snellen.settings import Endpoint

REPLY = Reply("An answer 🦁", "thought", usage=Usage(3, 4), choices={"A": -0.1}, notes=("n",))


def test_a_reply_is_found_at_once_and_by_the_next_to_open(tmp_path: Path) -> None:
    """Before a flush from memory, after closing from the file, every field as it was."""
    cache = ResponseCache(tmp_path / "c.sqlite")
    cache.put("k", REPLY)
    assert cache.get("k") == REPLY
    cache.close()
    again = ResponseCache(tmp_path / "c.sqlite")
    assert (again.get("k"), again.get("other")) == (REPLY, None)
    again.close()


def test_the_address_is_part_of_the_key() -> None:
    """The same request at another endpoint, or to another declared revision, is another entry."""
    here = Endpoint("m", "http://a/v1", "m")
    others = (replace(here, url="http://b/v1"), replace(here, revision="2"))
    assert cache_key(here, "k") not in {cache_key(one, "k") for one in others}


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    """A run closes it early to know of trouble, and again on its way out."""
    cache = ResponseCache(tmp_path / "c.sqlite")
    cache.put("k", Reply("kept"))
    cache.close()
    cache.close()
    again = ResponseCache(tmp_path / "c.sqlite")
    assert again.get("k") == Reply("kept")
    again.close()


def test_what_is_put_while_another_thread_flushes_is_not_lost(tmp_path: Path) -> None:
    """No reply falls between two batches."""
    cache = ResponseCache(tmp_path / "c.sqlite")
    done = threading.Event()

    def flush() -> None:
        while not done.is_set():
            cache.flush()

    flusher = threading.Thread(target=flush)
    flusher.start()
    for k in range(20_000):
        cache.put(f"k{k}", REPLY)
    done.set()
    flusher.join()
    cache.close()
    with sqlite3.connect(tmp_path / "c.sqlite") as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (20_000,)
    db.close()


def test_a_reply_is_found_while_it_is_being_written(tmp_path: Path) -> None:
    """Another process holds the file meanwhile: the batch is neither waiting nor written."""
    path = tmp_path / "c.sqlite"
    cache = ResponseCache(path)
    cache.put("k", REPLY)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    flusher = threading.Thread(target=cache.flush)
    flusher.start()
    flusher.join(0.1)
    assert flusher.is_alive()
    assert cache.get("k") == REPLY
    other.execute("COMMIT")
    other.close()
    flusher.join()
    cache.close()


WRITER = """
import sys
from pathlib import Path
from snellen.engine.cache import ResponseCache
from snellen.records import Reply
cache = ResponseCache(Path(sys.argv[1]))
for k in range(600):
    cache.put(f"{sys.argv[2]}{k}", Reply(sys.argv[2]))
    cache.put(f"both{k}", Reply("both"))
    if k % 20 == 0:
        cache.flush()
cache.close()
assert not cache.trouble, cache.trouble
"""


def test_two_processes_write_one_cache(tmp_path: Path) -> None:
    """Nothing is lost, nothing locks up."""
    path = tmp_path / "c.sqlite"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("x", "y")
    ]
    assert [w.wait(60) for w in writers] == [0, 0]
    cache = ResponseCache(path)
    assert all(cache.get(f"{name}{k}") == Reply(name) for name in ("x", "y") for k in range(600))
    cache.close()


def test_a_file_that_is_no_database_is_one_clear_error(tmp_path: Path) -> None:
    """The hint says how to go on."""
    (tmp_path / "c.sqlite").write_bytes(b"this is no database" * 100)
    with pytest.raises(SettingsError, match=r"c\.sqlite cannot be opened") as caught:
        ResponseCache(tmp_path / "c.sqlite")
    assert "--cache" in caught.value.hint


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    """A file where the folder should be."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SettingsError, match="cannot be opened"):
        ResponseCache(tmp_path / "file" / "c.sqlite")


def test_a_cache_that_fails_meanwhile_costs_nothing_but_the_sharing(tmp_path: Path) -> None:
    """What cannot be written is not kept, what cannot be read is not found, and it is said."""
    first = ResponseCache(tmp_path / "c.sqlite")
    first.put("old", REPLY)
    first.close()
    cache = ResponseCache(tmp_path / "c.sqlite")
    with sqlite3.connect(tmp_path / "c.sqlite") as db:
        db.execute("DROP TABLE answers")
    db.close()
    cache.put("k", REPLY)
    cache.flush()
    assert cache.get("old") is None
    cache.close()
    assert "no such table" in cache.trouble


def test_an_entry_that_cannot_be_read_is_not_found(tmp_path: Path) -> None:
    """An entry of another version is asked for again."""
    first = ResponseCache(tmp_path / "c.sqlite")
    first.put("k", REPLY)
    first.close()
    with sqlite3.connect(tmp_path / "c.sqlite") as db:
        db.execute("UPDATE answers SET reply = x'ff00'")
    db.close()
    cache = ResponseCache(tmp_path / "c.sqlite")
    assert (cache.get("k"), cache.trouble) == (None, "")
    cache.close()
