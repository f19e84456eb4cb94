"""Submissions that survive a kill: a queue in one SQLite file.

A submission's id is the digest of what is asked, so that the same question sent twice is one submission. It is on
the disk before its sender is told that it was taken; whatever was begun and not answered when a process ended is
waiting again in the next one.
"""
from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import sqlite3
import threading
import time
from pathlib import Path
from typing import Callable


class Full(Exception):
    """The queue has no room."""


class Submissions:
    """One process holds the folder; every method may be called from any of its threads."""

    def __init__(self, folder: Path, most_waiting: int):
        folder.mkdir(parents=True, exist_ok=True)
        self._lock_file = open(folder / "lock", "a")
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RuntimeError(f"{folder} is in use by another process") from error
        self.most_waiting = most_waiting
        self._changed = threading.Condition()
        self._database = sqlite3.connect(folder / "submissions.sqlite", check_same_thread=False,
                                         isolation_level=None)
        self._database.executescript(
            "pragma journal_mode = wal; pragma synchronous = full;"
            "create table if not exists submissions (number integer primary key, id text unique not null,"
            " state text not null, request text not null, record text, taken real not null);"
            "create index if not exists by_state on submissions (state, number);"
            "update submissions set state = 'waiting' where state = 'running';")
        self._closed = False
        self._told: dict[str, list[Callable[[], None]]] = {}

    def take(self, request: dict) -> tuple[str, str]:
        """Its id and its state: waiting, running or done. Raises Full."""
        return self.take_all([request])[0]

    def take_all(self, requests: list[dict]) -> list[tuple[str, str]]:
        """All or none of them. Raises Full."""
        texts = [json.dumps(request, sort_keys=True) for request in requests]
        names = [hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts]
        asked = dict(zip(names, texts))
        with self._changed:
            states = {name: row[0] for name in asked if (row := self._row("state", name))}
            new = [name for name in asked if name not in states]
            if new and self.waiting() + len(new) > self.most_waiting:
                raise Full
            if new:
                with self._all_or_none():
                    self._database.executemany(
                        "insert into submissions (id, state, request, taken) values (?, 'waiting', ?, ?)",
                        [(name, asked[name], time.time()) for name in new])
                self._changed.notify_all()
        return [(name, states.get(name, "waiting")) for name in names]

    def _row(self, columns: str, name: str):
        return self._database.execute(f"select {columns} from submissions where id = ?", (name,)).fetchone()

    @contextlib.contextmanager
    def _all_or_none(self):
        self._database.execute("begin immediate")
        try:
            yield
            self._database.execute("commit")
        except sqlite3.Error:
            if self._database.in_transaction:  # a full disk has ended it already
                self._database.execute("rollback")
            raise

    def next(self) -> tuple[str, dict] | None:
        """Waits for one, oldest first, and marks it as running; None once closed."""
        with self._changed:
            while not self._closed:
                row = self._database.execute("select id, request from submissions where state = 'waiting'"
                                             " order by number limit 1").fetchone()
                if row:
                    self._database.execute("update submissions set state = 'running' where id = ?", (row[0],))
                    return row[0], json.loads(row[1])
                self._changed.wait()
        return None

    def answer(self, name: str, record: dict) -> None:
        """The first answer stands."""
        with self._changed:
            self._database.execute("update submissions set state = 'done', record = ? where id = ? and state != 'done'",
                                   (json.dumps(record), name))
            told = list(self._told.get(name, ()))
            self._changed.notify_all()
        for function in told:
            function()

    @contextlib.contextmanager
    def telling(self, names: list[str], function: Callable[[], None]):
        """Within the block `function` is called, on any thread, whenever one of these is done."""
        with self._changed:
            for name in names:
                self._told.setdefault(name, []).append(function)
        try:
            yield
        finally:
            with self._changed:
                for name in names:
                    self._told[name].remove(function)
                    if not self._told[name]:
                        del self._told[name]

    def look(self, name: str) -> tuple[str, dict | None] | None:
        """State and record. None: there is no such submission."""
        with self._changed:
            row = self._row("state, record", name)
        return row and (row[0], row[1] and json.loads(row[1]))

    def waiting(self) -> int:
        with self._changed:
            return self._database.execute("select count(*) from submissions where state = 'waiting'").fetchone()[0]

    def counts(self) -> dict[str, int]:
        with self._changed:
            return dict(self._database.execute("select state, count(*) from submissions group by state"))

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._database.close()
        self._lock_file.close()
