"""A run as one HTML file: tables and plots, and of each task its programs, diagnostics, turns and times; beside another
run where one is given. Nothing is loaded from elsewhere, so that the file can be kept and sent."""
from __future__ import annotations

import json
from html import escape
from pathlib import Path

from ..rule.tasks import TaskError
from . import plots, summary

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: .2rem .7rem; text-align: right }
td:first-child, th:first-child { text-align: left } tr { border-bottom: 1px solid #ddd }
pre { background: #f6f6f6; padding: .6rem; overflow-x: auto; font-size: 13px }
details { border-bottom: 1px solid #ddd; padding: .25rem 0 } details details { border: 0; margin-left: 1rem }
summary { cursor: pointer } .right { color: #17723a } .not { color: #b02a20 } .flag { color: #777 }
svg { margin-right: 1.5rem; max-width: 100% } svg text { font: 12px system-ui, sans-serif }
"""


def read(folder: Path) -> list[dict]:
    """The records of a run that count: of each conversation its turns, else the last of a task. Raises TaskError."""
    try:
        lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        records = [json.loads(line) for line in lines if line.endswith("\n")]  # not one that is being written
        found = {}
        for record in records:
            asked = record.get("asked") or {}
            found[record["task"], asked.get("sample", 0), asked.get("turn", 0)] = record
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TaskError(f"{folder} is no run: {error}") from error
    if not found:
        raise TaskError(f"{folder} is a run without results")
    return [found[key] for key in sorted(found, key=lambda key: (found[key]["level"], _number(key[0]), key))]


def run(options) -> int:
    records = read(options.run)
    others = read(options.against) if options.against else None
    out = options.out or options.run / "report.html"
    out.write_text(page(options.run.name, records, options.against and options.against.name, others), encoding="utf-8")
    print(out)
    return 0


def page(name: str, records: list[dict], other_name: str | None = None, others: list[dict] | None = None) -> str:
    is_asked = any(record.get("asked") for record in records)
    samples = 1 + max((record["asked"].get("sample", 0) for record in records if record.get("asked")), default=0)
    told = summary.summarize(records, samples if is_asked else None)
    best = summary.final(records)
    body = [f"<h1>{escape(name)}</h1>", _levels(told), _plots(told, best)]
    if "model" in told:
        body.append("<pre>" + escape("\n".join(summary.model_lines(told["model"]))) + "</pre>")
    if told["reasons"]:
        body += ["<h2>Not right, by reason</h2>", _table([["reason", "programs"], *map(list, told["reasons"].items())])]
    if others is not None:
        body += [f"<h2>Beside {escape(other_name or '')}</h2>", *_comparison(best, summary.final(others))]
    body.append("<h2>Tasks</h2>")
    by_task: dict[str, list[dict]] = {}
    for record in records:
        by_task.setdefault(record["task"], []).append(record)
    counts = {}
    for record in best:
        counts.setdefault(record["task"], record)
        if record["outcome"] == summary.GOOD:
            counts[record["task"]] = record
    body += [_task(task, ones, counts[task]) for task, ones in by_task.items()]
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(name)}</title>'
            f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n")


def _number(task: str) -> int:
    digits = task.rpartition("/")[2].partition("_")[0]
    return int(digits) if digits.isdigit() else 1 << 30


def _table(rows: list[list]) -> str:
    head, *rest = ["".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in row)
                   for row, tag in zip(rows, ["th", *["td"] * len(rows)])]
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in [head, *rest]) + "</table>"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _levels(told: dict) -> str:
    counts = [*told["levels"].items(), ("all", told["all"]), ("without a flag", told["unflagged"])]
    sides = [side for side in ("eager", "compile") if side in told["all"]]
    head = ["", "programs", "right", ""]
    for side in sides:
        head += [f"{side}: fast_{p}" for p in summary.THRESHOLDS] + ["geometric mean"]
    rows = [[*head, *(["of the roofline"] if "roofline_share" in told["all"] else [])]]
    for name, count in counts:
        row = [name, count["total"], count["right"], _percent(count["right"] / max(count["total"], 1))]
        for side in sides:
            fast = count.get(side)
            row += [_percent(fast["fast_p"][str(p)]) if fast else "" for p in summary.THRESHOLDS]
            row.append(f"{fast['geometric_mean']:.2f}" if fast else "")
        if "roofline_share" in told["all"]:
            row.append(_percent(count["roofline_share"]) if "roofline_share" in count else "")
        rows.append(row)
    return _table(rows)


def _plots(told: dict, best: list[dict]) -> str:
    found = [plots.bars("outcomes by level", {name: count["outcomes"] for name, count in told["levels"].items()})]
    curves = {}
    for side in ("eager", "compile"):
        ratios = [summary.speedup(record, side) for record in best]
        if any(ratio is not None for ratio in ratios):
            curves[side] = [ratio or 0.0 for ratio in ratios]
    if curves:
        found.append(plots.shares_above("share of programs right and faster than", curves))
    if "model" in told and len(told["model"]["right_by_turn"]) > 1:
        found.append(plots.line("share right after each turn", told["model"]["right_by_turn"]))
    return "<div>" + "".join(found) + "</div>"


def _comparison(ours: list[dict], theirs: list[dict]) -> list[str]:
    """Of conversations and tasks that both runs have."""
    def places(records):
        return {(record["task"], (record.get("asked") or {}).get("sample", 0)): record for record in records}

    mine, other = places(ours), places(theirs)
    both = [place for place in mine if place in other]
    rows = [["task", "here", "there", "time here / there"]]
    ratios, same = [], 0
    for place in both:
        a, b = mine[place], other[place]
        times = [(one.get("timing") or {}).get("program_s") if one["outcome"] == summary.GOOD else None for one in (a, b)]
        ratio = times[0] / times[1] if all(times) else None
        if ratio is not None:
            ratios.append((ratio, times))
        if a["outcome"] == b["outcome"] and (ratio is None or 1 / 1.05 < ratio < 1.05):
            same += 1
            continue
        label = place[0] + (f" #{place[1]}" if place[1] else "")
        rows.append([label, _verdict(a), _verdict(b), "" if ratio is None else f"{ratio:.2f}"])
    right = [sum(run[place]["outcome"] == summary.GOOD for place in both) for run in (mine, other)]
    words = (f"{len(both)} programs in both: {right[0]} right here, {right[1]} there; {same} with one outcome and, where "
            f"both were timed, times within 5 %. Only here: {len(mine) - len(both)}, only there: {len(other) - len(both)}.")
    told = []
    if ratios:
        mean = summary.geometric_mean([ratio for ratio, _ in ratios])
        words += f" Time here over there, geometric mean of {len(ratios)}: {mean:.3f}."
        told.append(plots.scatter("seconds of a program: there and here", [(b, a) for _, (a, b) in ratios]))
    return [f"<p>{words}</p>", *told, *([_table(rows)] if len(rows) > 1 else [])]


def _verdict(record: dict) -> str:
    return record["outcome"] + (f" ({record['reason']})" if record.get("reason") else "")


def _task(task: str, records: list[dict], best: dict) -> str:
    kind = "right" if best["outcome"] == summary.GOOD else "not"
    speed = summary.speedup(best, "eager")
    head = f'{escape(task)}: <span class="{kind}">{escape(_verdict(best))}</span>'
    head += f", {speed:.2f} times as fast as eager mode" if speed is not None else ""
    head += "".join(f' <span class="flag">[{escape(flag)}]</span>' for flag in best.get("flags", []))
    inner = [_record(record, len(records) > 1) for record in records]
    return f"<details><summary>{head}</summary>{''.join(inner)}</details>"


def _record(record: dict, is_one_of_many: bool) -> str:
    parts, asked = [], record.get("asked") or {}
    if record.get("message"):
        parts.append(f"<p>{escape(record['message'])}</p>")
    for one in record.get("diagnostics") or []:
        span = one.get("span") or {}
        place = f" at {span.get('line')}:{span.get('column')}" if span.get("line") else ""
        parts.append(f"<p>{escape(str(one.get('severity', '')))} {escape(str(one.get('code') or ''))}{escape(place)}: "
                     f"{escape(str(one.get('message', '')))}</p>")
    cases = record.get("cases") or []
    if cases and cases[-1].get("wrong"):
        rows = [["index", "expected", "got", "PyTorch"]]
        rows += [[one["index"], one["expected"], one["got"], one.get("pytorch", "")] for one in cases[-1]["wrong"]]
        parts.append(_table(rows) + (f"<p>{escape(cases[-1]['pattern'])}</p>" if cases[-1].get("pattern") else ""))
    timing = {name: value for name, value in (record.get("timing") or {}).items()
              if isinstance(value, (int, float)) and (name.endswith(("_s", "_ratio", "_share")) or name == "turns")}
    if timing:
        parts.append(_table([list(timing), [f"{value:.4g}" for value in timing.values()]]))
    tokens = asked.get("tokens") or {}
    if tokens:
        parts.append(f"<p>tokens: {escape(', '.join(f'{name} {count}' for name, count in tokens.items()))}</p>")
    program = record.get("text") or (record.get("request") or {}).get("program")
    if program:
        parts.append(f"<pre>{escape(program)}</pre>")
    if asked.get("turn"):  # the first message is the page
        parts.append(f"<details><summary>what was asked</summary><pre>{escape(asked.get('message', ''))}</pre></details>")
    if not is_one_of_many:
        return "".join(parts)
    place = f"sample {asked.get('sample', 0)}, turn {asked.get('turn', 0)}: {_verdict(record)}"
    return f"<details><summary>{escape(place)}</summary>{''.join(parts)}</details>"
