"""The journal keeps every finished call, whatever happens to the process."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from snellen.engine.journal import AppendFile, CallRow, FolderLock, Journal, now, read_rows
from snellen.errors import RunFolderError
from snellen.records import CallFailure, Message, Reply, Request, Usage, address

REQUEST = Request("judge", (Message("user", ("Hm?",)),), "verdict", probe="q1")


def row(item: str = "a", **more: object) -> CallRow:
    words: dict[str, object] = {"reply": Reply("B", usage=Usage(prompt=3, completion=1))}
    return CallRow(item, 0, "verdict", "q1", 0, "key", "judge", **{**words, **more})  # type: ignore[arg-type]


def test_a_reply_comes_back_as_it_was(tmp_path: Path) -> None:
    """Every field of a reply or failure survives the file."""
    reply = Reply(
        "bärtig 🦁", "thought", "length", Usage(1, 2, 3, 4), 0.25, "m", choices={"A": -0.5},
        notes=("seed not sent",),
    )  # fmt: skip
    failure = CallFailure("timeout", "too late", None, 3.0, 2, 1.5)
    with Journal(tmp_path) as journal:
        journal.append(row("a", reply=reply))
        journal.append(row("b", reply=None, failure=failure))
    with Journal(tmp_path) as journal:
        found = [journal.take(address(item, 0, REQUEST)) for item in "ab"]
    assert [r.answer for r in found if r is not None] == [reply, failure]


def test_a_stored_call_is_given_out_once_and_the_last_of_two_wins(tmp_path: Path) -> None:
    """A failed call that was repeated is its later row."""
    with Journal(tmp_path) as journal:
        journal.append(row(reply=None, failure=CallFailure("timeout", "late")))
        journal.append(row())
    with Journal(tmp_path) as journal:
        assert journal.n_stored == 1
        found = journal.take(address("a", 0, REQUEST))
        assert found is not None
        assert found.reply is not None
        assert journal.take(address("a", 0, REQUEST)) is None


@pytest.mark.parametrize("tail", [b'{"item":"b","rep', b"\x00\x00\x00", b"{", b"x" * 200_000])
def test_a_torn_last_line_is_cut_off_and_said(tmp_path: Path, tail: bytes) -> None:
    """What follows the last newline is dropped, however long it is; whole rows stay."""
    with Journal(tmp_path) as journal:
        journal.append(row("a"))
    file = tmp_path / "calls.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + tail)
    assert len(list(read_rows(file, CallRow))) == 1
    with Journal(tmp_path) as journal:
        assert (journal.torn, journal.n_stored) == (len(tail), 1)
        journal.append(row("c"))
    assert file.read_bytes().startswith(whole)
    assert [r.item for r in read_rows(file, CallRow)] == ["a", "c"]


def test_a_file_of_nothing_but_a_torn_line_becomes_empty(tmp_path: Path) -> None:
    """Without a single newline there is no whole row."""
    (tmp_path / "calls.jsonl").write_bytes(b'{"item"')
    with Journal(tmp_path) as journal:
        assert (journal.torn, journal.n_stored) == (7, 0)


def test_a_damaged_row_in_the_middle_is_left_out_and_told(tmp_path: Path) -> None:
    """Its call is made again; the rows around it are kept."""
    with Journal(tmp_path) as journal:
        for item in "abc":
            journal.append(row(item))
    file = tmp_path / "calls.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:20] + b"\xff\n" + lines[2])
    with Journal(tmp_path) as journal:
        assert [stored.item for stored in journal.stored()] == ["a", "c"]
        assert "1 damaged rows are left out, the first in line 2" in journal.notices[0]


def test_a_journal_that_was_removed_is_written_no_more(tmp_path: Path) -> None:
    """Nobody would find what is written into a file that has no name left."""
    with Journal(tmp_path / "run") as journal:
        journal.append(row("a"))
        shutil.rmtree(tmp_path / "run")
        with pytest.raises(RunFolderError, match=r"calls\.jsonl was removed"):
            journal.append(row("b"))


def test_every_row_is_in_the_file_before_append_returns(tmp_path: Path) -> None:
    """Nothing is held back in a buffer."""
    with Journal(tmp_path) as journal:
        for n in range(1, 4):
            journal.append(row(f"i{n}"))
            assert len((tmp_path / "calls.jsonl").read_bytes().splitlines()) == n


def test_a_second_writer_is_refused_with_the_first_ones_number(tmp_path: Path) -> None:
    """The lock names the process that holds the folder, and ends with it."""
    first = Journal(tmp_path)
    with pytest.raises(RunFolderError, match=f"in use by process {os.getpid()}"):
        Journal(tmp_path)
    first.close()
    Journal(tmp_path).close()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    """`kill -9` leaves no lock behind."""
    code = f"""
import time
from pathlib import Path
from snellen.engine.journal import FolderLock
lock = FolderLock(Path({str(tmp_path)!r}))
print("held", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(RunFolderError, match=f"process {holder.pid}"):
            FolderLock(tmp_path)
        holder.send_signal(signal.SIGKILL)
    FolderLock(tmp_path).release()


def test_a_full_disk_is_one_clear_error_and_leaves_no_half_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a row that went through is taken back, so that the file can be gone on with."""
    file = AppendFile(tmp_path / "rows.jsonl")
    file.append({"n": 1})
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if len(data) > 5:
            return write(fd, data[:5])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(RunFolderError, match="No space left on device") as caught:
            file.append({"n": 2222})
    assert "make room" in caught.value.hint
    file.append({"n": 3})
    file.close()
    rows = [json.loads(line) for line in file.path.read_text(encoding="utf-8").splitlines()]
    assert rows == [{"n": 1}, {"n": 3}]


def test_a_short_write_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may take a row in pieces."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    file = AppendFile(tmp_path / "rows.jsonl")
    file.append({"text": "x" * 50})
    file.close()
    assert json.loads(file.path.read_text(encoding="utf-8")) == {"text": "x" * 50}


def test_times_are_rfc_3339_in_utc() -> None:
    """To the millisecond, with a Z."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", now())


def test_reading_a_file_that_is_not_there_gives_nothing(tmp_path: Path) -> None:
    """A run that has made no call has no rows."""
    assert list(read_rows(tmp_path / "none.jsonl", CallRow)) == []
