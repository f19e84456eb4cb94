import json
import sqlite3
import subprocess
import sys

import pytest
from conftest import TREE

from tegula_eval.records.store import Store, StoreError


def record(key, outcome="right"):
    return {"key": key, "task": key, "level": 1, "program": "p.tgl", "outcome": outcome, "reason": "", "message": "",
            "seconds": 0.5}


def keys(folder):
    store = Store(folder)
    found = list(store.records)
    store.close()
    return found


def rows(folder):
    with sqlite3.connect(folder / "results.sqlite") as database:
        return database.execute("select key, outcome from results order by key").fetchall()


def filled(folder):
    store = Store(folder)
    for key in ("a", "b"):
        store.add(record(key))
    return store


def test_comes_back(tmp_path):
    store = filled(tmp_path)
    secret = store.secret
    store.close()
    again = Store(tmp_path)
    assert list(again.records) == ["a", "b"] and again.secret == secret and len(secret) == 32
    again.close()
    assert rows(tmp_path) == [("a", "right"), ("b", "right")]


def test_half_a_line_is_dropped(tmp_path):
    """Wherever it was cut off; the database may be ahead of the lines, or behind them."""
    filled(tmp_path).close()
    lines = tmp_path / "results.jsonl"
    whole = lines.read_bytes()
    for length in range(whole.index(b"\n") + 1, len(whole)):
        lines.write_bytes(whole[:length])
        store = Store(tmp_path)
        assert list(store.records) == ["a"]
        store.add(record("c", "wrong"))
        store.close()
        assert [json.loads(line)["key"] for line in lines.read_text().splitlines()] == ["a", "c"]
        assert rows(tmp_path) == [("a", "right"), ("c", "wrong")]


ADDS = """
import sys
sys.path.insert(0, sys.argv[1])
from tegula_eval.records.store import Store
store = Store(__import__("pathlib").Path(sys.argv[2]))
for number in range(len(store.records), 100000):
    store.add({"key": str(number), "task": "t" * 2000, "outcome": "right"})
    print(number, flush=True)
"""


def test_killed_at_any_moment(tmp_path):
    """While it writes, again and again: what add() has come back from is there, in order, and in the database too."""
    sure = -1
    for lines in (1, 2, 3, 5, 8, 13, 21, 34):
        process = subprocess.Popen([sys.executable, "-c", ADDS, str(TREE / "python"), str(tmp_path / "run")],
                                   stdout=subprocess.PIPE, text=True)
        for _ in range(lines):
            sure = int(process.stdout.readline())
        process.kill()
        process.wait()
        sure = max([sure, *(int(line) for line in process.stdout.read().splitlines(keepends=True) if line[-1:] == "\n")])
        process.stdout.close()
        found = keys(tmp_path / "run")
        assert found == [str(number) for number in range(len(found))] and sure < len(found) <= sure + 2
        assert len(rows(tmp_path / "run")) == len(found)


def test_damage_elsewhere_is_told(tmp_path):
    filled(tmp_path).close()
    lines = tmp_path / "results.jsonl"
    lines.write_text("garbage\n" + lines.read_text())
    with pytest.raises(StoreError, match="byte 0 is damaged"):
        Store(tmp_path)


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"x" * 5000)])
def test_database_is_made_again(tmp_path, damage):
    filled(tmp_path).close()
    damage(tmp_path / "results.sqlite")
    assert keys(tmp_path) == ["a", "b"]
    assert rows(tmp_path) == [("a", "right"), ("b", "right")]


def test_one_process_at_a_time(tmp_path):
    store = filled(tmp_path)
    with pytest.raises(StoreError, match="in use"):
        Store(tmp_path)
    store.close()
    assert keys(tmp_path) == ["a", "b"]


def test_full_disk(tmp_path):
    store = filled(tmp_path)
    with open("/dev/full", "wb", buffering=0) as full:
        whole, store._lines = store._lines, full
        with pytest.raises(StoreError, match="No space"):
            store.add(record("c"))
        store._lines = whole
    store.close()
    assert keys(tmp_path) == ["a", "b"]


def test_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        Store(tmp_path / "file")
