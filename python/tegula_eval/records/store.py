"""Results that survive a kill at any moment.

A run is a folder: `results.jsonl` is the truth, one record a line, each on the disk before the next program is
begun; `results.sqlite` is the same for queries, made again from the lines where it is missing or behind; `run.json`
holds the settings and the secret of the seeds. A line cut off by a kill is dropped and its program judged again.
One process at a time may hold a run.
"""
from __future__ import annotations

import fcntl
import json
import os
import secrets
import sqlite3
from pathlib import Path


class StoreError(Exception):
    """The run's folder cannot be used: held by another process, of another version, or on a full disk."""


COLUMNS = ("key", "task", "level", "program", "outcome", "reason", "message", "seconds")
VERSION = 1


class Store:
    def __init__(self, folder: Path):
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "variants").mkdir(exist_ok=True)
            self._lock = open(folder / "lock", "a")
        except OSError as error:
            raise StoreError(f"{folder}: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreError(f"{folder} is in use by another process") from error
        self.records: dict[str, dict] = {}
        try:
            self.secret = self._settings()["secret"]
            self._lines = self._open_lines()
            self._database = self._open_database()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cannot write {folder}: {getattr(error, 'strerror', None) or error}") from error

    def _settings(self) -> dict:
        path = self.folder / "run.json"
        try:
            settings = json.loads(path.read_text())
            if settings["version"] != VERSION:
                raise StoreError(f"{self.folder} was written by another version: {settings['version']}")
            return settings
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path} is damaged: {error}") from error
        settings = {"version": VERSION, "secret": secrets.token_hex(16)}
        part = path.with_suffix(".part")
        part.write_text(json.dumps(settings))
        part.replace(path)
        return settings

    def _open_lines(self):
        path = self.folder / "results.jsonl"
        lines = open(path, "a+b", buffering=0)  # what could not be written must not come again later
        lines.seek(0)
        end = 0
        for line in lines.read().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            try:
                record = json.loads(line)
                self.records[record["key"]] = record
            except (ValueError, KeyError, TypeError) as error:
                raise StoreError(f"{path}: line at byte {end} is damaged: {error}") from error
            end += len(line)
        lines.truncate(end)
        return lines

    def _open_database(self) -> sqlite3.Connection:
        path = self.folder / "results.sqlite"
        try:
            return self._fill_database(path)
        except sqlite3.DatabaseError:  # damaged: made again from the lines
            path.unlink(missing_ok=True)
            return self._fill_database(path)

    def _fill_database(self, path: Path) -> sqlite3.Connection:
        database = sqlite3.connect(path)
        database.execute("create table if not exists results (key text primary key, task text, level int, "
                         "program text, outcome text, reason text, message text, seconds real, record text)")
        known = {key for (key,) in database.execute("select key from results")}
        if known != self.records.keys():
            database.execute("delete from results")
            database.executemany(_INSERT, map(_row, self.records.values()))
            database.commit()
        return database

    def add(self, record: dict) -> None:
        """Raises StoreError where it cannot be written; what was there before stays whole."""
        line = json.dumps(record).encode() + b"\n"
        end = self._lines.seek(0, os.SEEK_END)
        try:
            left = line
            while left:
                left = left[self._lines.write(left):]
            os.fsync(self._lines.fileno())
        except OSError as error:
            try:
                os.ftruncate(self._lines.fileno(), end)
            except OSError:
                pass  # the next start drops the half line
            raise StoreError(f"cannot write {self.folder}/results.jsonl: {error.strerror}") from error
        self.records[record["key"]] = record
        try:
            self._database.execute(_INSERT, _row(record))
            self._database.commit()
        except sqlite3.Error as error:
            raise StoreError(f"cannot write {self.folder}/results.sqlite: {error}") from error

    def close(self) -> None:
        self._database.close()
        self._lines.close()
        self._lock.close()


_INSERT = f"insert or replace into results values ({', '.join('?' * (len(COLUMNS) + 1))})"


def _row(record: dict) -> tuple:
    return tuple(record.get(column) for column in COLUMNS) + (json.dumps(record),)
