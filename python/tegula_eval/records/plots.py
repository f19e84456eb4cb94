"""Plots as SVG text, for a page that stands alone."""
from __future__ import annotations

import math
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, BELOW, ABOVE = 500, 260, 52, 100, 34, 28
COLOURS = ("#2a7f62", "#c8553d", "#3d5a80", "#e0a458", "#7d5ba6", "#6b6b6b", "#a3b18a", "#b56576")


def _frame(title: str, parts: list[str]) -> str:
    return (f'<svg role="img" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
            f'<title>{escape(title)}</title><text x="{LEFT}" y="16" font-weight="bold">{escape(title)}</text>'
            + "".join(parts) + "</svg>")


def _x(share: float) -> float:
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _y(share: float) -> float:
    return round(HEIGHT - BELOW - share * (HEIGHT - BELOW - ABOVE), 1)


def _axes(ticks_x: list[tuple[float, str]], ticks_y: list[tuple[float, str]]) -> list[str]:
    parts = [f'<path d="M{LEFT} {ABOVE}V{_y(0)}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>']
    parts += [f'<text x="{_x(place)}" y="{HEIGHT - 14}" text-anchor="middle">{escape(label)}</text>'
              for place, label in ticks_x]
    parts += [f'<text x="{LEFT - 6}" y="{_y(place) + 4}" text-anchor="end">{escape(label)}</text>'
              f'<path d="M{LEFT} {_y(place)}H{WIDTH - RIGHT}" stroke="#eee"/>' for place, label in ticks_y]
    return parts


PERCENTS = [(share, f"{100 * share:.0f} %") for share in (0, 0.25, 0.5, 0.75, 1)]


def _legend(names: list[str]) -> list[str]:
    return [f'<text x="{WIDTH - RIGHT + 10}" y="{ABOVE + 14 * (place + 1)}" fill="{COLOURS[place % len(COLOURS)]}">'
            f"{escape(name)}</text>" for place, name in enumerate(names)]


def bars(title: str, groups: dict[str, dict[str, int]]) -> str:
    """For each group shares of its kinds, one over the other; the most frequent kind of all lowest."""
    total: dict[str, int] = {}
    for counts in groups.values():
        for kind, count in counts.items():
            total[kind] = total.get(kind, 0) + count
    kinds = sorted(total, key=lambda kind: -total[kind])
    parts, step = _axes([((place + 0.35) / len(groups), name) for place, name in enumerate(groups)], PERCENTS), 1 / len(groups)
    for place, counts in enumerate(groups.values()):
        base, whole = 0.0, max(sum(counts.values()), 1)
        for number, kind in enumerate(kinds):
            share = counts.get(kind, 0) / whole
            if share:
                parts.append(f'<rect x="{_x(step * (place + 0.1))}" y="{_y(base + share)}" '
                             f'width="{_x(step * 0.5) - LEFT:.1f}" height="{_y(base) - _y(base + share):.1f}" '
                             f'fill="{COLOURS[number % len(COLOURS)]}"><title>{escape(kind)}: {counts[kind]}</title></rect>')
            base += share
    return _frame(title, parts + _legend(kinds))


def shares_above(title: str, curves: dict[str, list[float]]) -> str:
    """For each curve the share of its numbers above p, over p in powers of two."""
    low, high = -4, 4
    parts = _axes([((power - low) / (high - low), f"{2.0 ** power:g}") for power in range(low, high + 1, 2)], PERCENTS)
    for number, values in enumerate(curves.values()):
        points = []
        for place in range(129):
            p = 2.0 ** (low + (high - low) * place / 128)
            points.append(f"{_x(place / 128)},{_y(sum(value > p for value in values) / len(values))}")
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke-width="2" '
                     f'stroke="{COLOURS[number % len(COLOURS)]}"/>')
    return _frame(title, parts + _legend(list(curves)))


def line(title: str, shares: list[float]) -> str:
    places = [place / max(len(shares) - 1, 1) for place in range(len(shares))]
    points = " ".join(f"{_x(place)},{_y(share)}" for place, share in zip(places, shares))
    ticks = [(place, str(number + 1)) for number, place in enumerate(places)]
    return _frame(title, _axes(ticks, PERCENTS) + [
        f'<polyline points="{points}" fill="none" stroke="{COLOURS[0]}" stroke-width="2"/>'])


def scatter(title: str, points: list[tuple[float, float]]) -> str:
    """Positive numbers, both axes in powers of ten, and the line on which both are the same."""
    logs = [math.log10(value) for point in points for value in point]
    low, high = math.floor(min(logs)), max(math.ceil(max(logs)), math.floor(min(logs)) + 1)

    def at(value: float) -> float:
        return (math.log10(value) - low) / (high - low)

    ticks = [((power - low) / (high - low), f"1e{power}") for power in range(low, high + 1)]
    parts = _axes(ticks, ticks) + [f'<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="#bbb"/>']
    parts += [f'<circle cx="{_x(at(a))}" cy="{_y(at(b))}" r="2.5" fill="{COLOURS[2]}"/>' for a, b in points]
    return _frame(title, parts)
