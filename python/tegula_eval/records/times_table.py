"""What a timed run found, as a table: of text, and as a page of Markdown."""
from __future__ import annotations

import math
import re

from . import summary
from .baseline import Baseline

SIDES = (("eager", "eager"), ("eager_f32", "without TF32"), ("compile", "torch.compile"))


def _ratios(record: dict, recorded: dict[str, float]) -> dict[str, float]:
    """Time of each side over the program's."""
    timing = record.get("timing") or {}
    if record["outcome"] != summary.GOOD or "program_s" not in timing:
        return {}
    found = {name: timing[f"{name}_ratio"] for name, _ in SIDES if f"{name}_ratio" in timing}
    ours = timing.get("program_tf32_s", timing["program_s"])
    found.update({f"recorded {name}": seconds / ours for name, seconds in recorded.items()})
    return found


def rows(records: list[dict], recorded: Baseline) -> list[list[str]]:
    header = ["task", "verdict", "tegula us", "at TF32 us", "eager us", "ratio", "TF32 off us", "ratio", "compile us", "ratio",
              "recorded eager us", "ratio", "recorded compile us", "ratio", "bytes %", "bound %"]
    found = [header]
    for record in records:
        timing, earlier = record.get("timing") or {}, recorded.of(record["task"])
        ratios = _ratios(record, earlier)
        verdict = record["outcome"]
        if verdict != summary.GOOD:
            verdict += f" ({record['reason']})"
        elif timing.get("failed"):
            verdict = "wrong while timed"
        if any(one.get("reference") == "float32" for one in record.get("cases", [])):
            verdict += " against float32"
        row = [record["task"], verdict, _us(timing.get("program_s")), _us(timing.get("program_tf32_s"))]
        for name, _ in SIDES:
            row += [_us(timing.get(f"{name}_s")), _ratio(ratios.get(name))]
        for name in ("eager", "compile"):
            row += [_us(earlier.get(name)), _ratio(ratios.get(f"recorded {name}"))]
        found.append([*row, _share(timing.get("bytes_share")), _share(timing.get("roofline_share"))])
    used = [place for place in range(len(header)) if place in (0, 1, 2, 4, 5) or any(row[place] != "-" for row in found[1:])]
    return [[row[place] for place in used] for row in found]


def medians(record: dict) -> str:
    """`542 us, at TF32 301 us, eager 1210 us (4.02)`: the times that a record has, each side's with its ratio."""
    timing = record.get("timing") or {}
    if timing.get("failed"):
        return f"wrong while timed: {timing['failed']}"
    if "program_s" not in timing:
        return ""
    ratios = _ratios(record, {})
    found = [f"{_us(timing['program_s'])} us"]
    if "program_tf32_s" in timing:
        found.append(f"at TF32 {_us(timing['program_tf32_s'])} us")
    found += [f"{title} {_us(timing[f'{name}_s'])} us ({_ratio(ratios[name])})" for name, title in SIDES if name in ratios]
    return ", ".join(found)


def short_name(task: str) -> str:
    """`1/19` for level1/19_ReLU."""
    found = re.match(r"level(\d+)/(\d+)_", task)
    return f"{found[1]}/{found[2]}" if found else task


def _us(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:.1f}" if seconds < 1e-4 else f"{seconds * 1e6:.0f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def speeds(records: list[dict], recorded: Baseline) -> list[str]:
    """For each level and side: fast_p, and the geometric mean of those that are right, and of all."""
    lines = []
    levels = sorted({one["level"] for one in records})
    names = [name for name, _ in SIDES] + ["recorded eager", "recorded compile"]
    for level in [*levels, None] if len(levels) > 1 else levels:
        ones = [one for one in records if level is None or one["level"] == level]
        good = sum(one["outcome"] == summary.GOOD for one in ones)
        title = "all" if level is None else f"level {level}"
        lines.append(f"{title}: {good} of {len(ones)} right")
        ratios = [_ratios(one, recorded.of(one["task"])) for one in ones]
        for name in names:
            told = [one.get(name) for one in ratios]
            if name == "eager_f32":  # of tasks without a convolution it is the same
                told = [one.get(name, one.get("eager")) for one in ratios]
                if not any(name in one for one in ratios):
                    continue
            # What has no time here and there (a task that torch.compile does not take) is not counted.
            # Nor is what nobody can judge; what is not right is a failure.
            counted = [ratio for ratio, one in zip(told, ones) if one["outcome"] != "unjudged" and (
                       ratio is not None or not (one.get("timing") or {}).get("program_s"))]
            known = [ratio for ratio in counted if ratio is not None]
            if not known:
                continue
            fast = ", ".join(f"{p}: {100 * sum(r > p for r in known) / len(counted):.0f} %"
                             for p in summary.THRESHOLDS)
            of_known = math.exp(sum(map(math.log, known)) / len(known))
            of_all = math.exp(sum(math.log(r or summary.FAILED_RATIO) for r in counted) / len(counted))
            lines.append(f"  {dict(SIDES).get(name, name):16} fast_p {fast}; geometric mean {of_known:.3f} of "
                         f"{len(known)} timed, {of_all:.3f} of {len(counted)} with failures")
    return lines


def as_text(records: list[dict], told: dict, recorded: Baseline) -> str:
    """A short one: numbers for names, ratios alone where the page has times too."""
    table = rows(records, recorded)
    kept = [place for place, name in enumerate(table[0])
            if name not in ("TF32 off us", "compile us", "recorded eager us", "recorded compile us", "bytes %")]
    before = {"TF32 off us": "no TF32", "compile us": "compile", "recorded eager us": "rec. eager",
              "recorded compile us": "rec. compile"}
    table[0] = [before.get(table[0][place - 1], name) if name == "ratio" else name
                for place, name in enumerate(table[0])]
    table = [[short_name(row[0]), *(row[place] for place in kept[1:])] for row in table]
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(width) if place < 2 else cell.rjust(width)
                       for place, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in table]
    return "\n".join([*lines, "", *_notes(records, recorded), *speeds(records, recorded),
                      *summary.flag_lines(told)])


def _notes(records: list[dict], recorded: Baseline) -> list[str]:
    lines = []
    if recorded.source:
        lines.append(f"recorded: {recorded.source}")
    for record in records:
        timing = record.get("timing") or {}
        if record["outcome"] != summary.GOOD:
            lines.append(f"{record['task']}: {record['outcome']} ({record['reason']}): {record['message'][:160]}")
        elif "failed" in timing:
            lines.append(f"{record['task']}: {timing['failed']}")
        for case in record.get("cases", []):
            if case.get("variant") == "tf32" and case.get("outcome") == "wrong":
                lines.append(f"{record['task']}: wrong at TF32, so timed without: {case['message'][:120]}")
            if case.get("reference") == "float32":
                lines.append(f"{record['task']}: against float32, itself off by {case['reference_error']:.1e}: "
                             f"{case['reference_why']}")
    reasons: dict[str, int] = {}
    for record in records:
        why = (record.get("timing") or {}).get("compile_failed")
        if why:
            reasons[why] = reasons.get(why, 0) + 1
    lines += [f"torch.compile failed for {count}: {why}" for why, count in reasons.items()]
    return lines


def as_markdown(records: list[dict], told: dict, recorded: Baseline) -> str:
    versions = next((one["versions"] for one in records if one.get("versions")), {})
    rate = next((one["timing"] for one in records if (one.get("timing") or {}).get("bytes_per_s")), {})
    machine = ", ".join(f"{name} {value}" for name, value in versions.items() if value)
    table = rows(records, recorded)
    lines = ["# KernelBench's tasks at their own sizes", "",
             "What `tegula-eval time` found ([eval.md](../eval.md), \"Times at a task's own sizes\").", "",
             f"- {machine}"]
    if rate:
        lines.append(f"- measured then: {rate['bytes_per_s'] / 1e12:.2f} TB/s of a copy, "
                     f"{rate['flops_per_s'] / 1e12:.1f} TFLOP/s of float32 products")
    lines += ["- times are medians in microseconds; a ratio is the other side's time over Tegula's, more than 1 is "
              "faster"]
    if any("program_tf32_s" in (one.get("timing") or {}) for one in records):
        lines.append("- at TF32: Tegula with products of TF32, where the module's convolutions take that as PyTorch "
                     "runs them; eager, compile and recorded times stand beside it there, TF32 off beside the other")
        apart = [short_name(one["task"]) for one in records
                 if any(case.get("precision") == "conv_tf32" for case in one.get("cases", []))]
        if apart:
            lines.append(f"- at TF32 in convolutions alone, since the module has matrix products: {', '.join(apart)}")
    lines += ["- bytes %: the time for moving inputs and outputs once over Tegula's; bound %: the larger "
              "of that and of the float32 products"]
    if recorded.source:
        lines.append(f"- recorded: {recorded.source}, measured earlier")
    lines += ["", "```", *speeds(records, recorded), *summary.flag_lines(told), "```", ""]
    notes = _notes(records, recorded)
    lines += [f"- {line}" for line in notes]
    lines += [""] if notes else []
    lines += ["| " + " | ".join(table[0]) + " |", "|" + "---|" * 2 + "---:|" * (len(table[0]) - 2)]
    lines += ["| " + " | ".join(row) + " |" for row in table[1:]]
    return "\n".join(lines) + "\n"
