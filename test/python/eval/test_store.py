import json
import sqlite3

import pytest

from tegula_eval.store import Store, StoreError


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


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_half_a_line_is_dropped(tmp_path, cut):
    filled(tmp_path).close()
    lines = tmp_path / "results.jsonl"
    lines.write_bytes(lines.read_bytes()[:-cut])
    store = Store(tmp_path)
    assert list(store.records) == ["a"]
    store.add(record("c", "wrong"))
    store.close()
    assert [json.loads(line)["key"] for line in lines.read_text().splitlines()] == ["a", "c"]
    assert rows(tmp_path) == [("a", "right"), ("c", "wrong")]


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
