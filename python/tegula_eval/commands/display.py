"""What a run shows while it goes: a live table in a terminal, one line a program elsewhere."""
from __future__ import annotations

import sys
from collections import Counter

from ..records import times_table

COLOURS = {"right": "green", "audited": "green", "wrong": "red", "unjudged": "yellow", "task": "yellow"}


class Plain:
    def __init__(self, total: int, done: int):
        self.total, self.count = total, done

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def begin(self, key: str) -> None:
        pass

    def end(self, record: dict) -> None:
        print(f"[{self.count + 1}/{self.total}] {line(record)}", flush=True)

    def done(self, key: str) -> None:
        self.count += 1


class Live:
    def __init__(self, total: int, done: int):
        from rich.console import Group
        from rich.live import Live as RichLive
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        self.group = Group
        self.progress = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                                 TimeRemainingColumn())
        self.bar = self.progress.add_task("programs", total=total, completed=done)
        self.counts: Counter[str] = Counter()
        self.running: list[str] = []
        self.live = RichLive(self._render(), refresh_per_second=4)

    def __enter__(self):
        self.live.__enter__()
        return self

    def __exit__(self, *details):
        return self.live.__exit__(*details)

    def _render(self):
        from rich.text import Text
        counts = Text("  ".join(f"{number} {outcome}" for outcome, number in self.counts.most_common()))
        return self.group(self.progress, counts, Text("now: " + ", ".join(self.running), style="dim"))

    def begin(self, key: str) -> None:
        self.running.append(key)
        self.live.update(self._render())

    def done(self, key: str) -> None:
        self.running.remove(key)
        self.progress.advance(self.bar)
        self.live.update(self._render())

    def end(self, record: dict) -> None:
        from rich.text import Text
        self.counts[record["outcome"]] += 1
        if record["outcome"] not in ("right", "audited") or times_table.medians(record):
            self.live.console.print(Text(line(record), style=COLOURS.get(record["outcome"], "magenta")))
        self.live.update(self._render())


def line(record: dict) -> str:
    """`level1/3_Scale#1.0: right (1.8 s): 542 us, eager 1210 us (2.23)`: sample and turn where a model was asked."""
    asked = record.get("asked")
    name = record["task"] + (f"#{asked['sample']}.{asked['turn']}" if asked else "")
    flags = f" [{', '.join(record['flags'])}]" if record.get("flags") else ""
    if record["outcome"] in ("right", "audited"):
        times = times_table.medians(record)
        return f"{name}: {record['outcome']}{flags} ({record['seconds']:.1f} s){f': {times}' if times else ''}"
    return f"{name}: {record['outcome']} ({record['reason']}){flags}: {record['message']}"


def make(total: int, done: int, plain: bool):
    return Plain(total, done) if plain or not sys.stdout.isatty() else Live(total, done)
