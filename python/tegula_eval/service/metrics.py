"""What the service counts, as text that Prometheus reads (version 0.0.4 of its format)."""
from __future__ import annotations

import collections
import os
import threading

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Counters:
    """Numbers by name and one label's value. May be counted from any thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self._numbers: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)

    def add(self, name: str, label: str = "", count: float = 1) -> None:
        with self._lock:
            self._numbers[name][label] += count

    def of(self, name: str) -> dict[str, float]:
        with self._lock:
            return dict(self._numbers[name])


def page(families: list[tuple[str, str, str, str, dict[str, float]]]) -> str:
    """Of families (name, type, help, name of the label, values by the label's)."""
    lines = []
    for name, kind, text, label, values in families:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        for value, number in sorted(values.items()):
            escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
            place = f'{name}{{{label}="{escaped}"}}' if label else name
            lines.append(f"{place} {number:.17g}")
    return "\n".join(lines) + "\n"


def resident_bytes() -> int:
    """Of this process (Linux)."""
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
