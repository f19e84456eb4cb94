"""Counts of outcomes, and fast_p where times were taken."""
from __future__ import annotations

import math
from collections import Counter

THRESHOLDS = (0, 0.5, 0.8, 1, 1.5, 2)
GOOD = "right"
# Nothing is known of a program, or there was none to judge: no answer came, a device or a driver is missing, the
# evaluation itself failed. What a model or a candidate does wrong is not among these.
INFRASTRUCTURE = ("unanswered", "missing", "failed")


def is_known(record: dict) -> bool:
    """Whether the record says something of its program: not where the judge, a device or an endpoint failed, nor where the
    task itself is broken."""
    return record["outcome"] not in (*INFRASTRUCTURE, "task") and (record["outcome"], record["reason"]) != ("crashed", "worker")


FAILED_RATIO = 0.01  # a failure's speedup: leaving it out would reward failing where it is slow


def final(records: list[dict]) -> list[dict]:
    """Of each conversation the turn that counts: the fastest of those that are right, else the last."""
    best: dict[tuple, dict] = {}
    for record in records:
        asked = record.get("asked") or {}
        place = (record["task"], asked.get("sample", 0))
        if place not in best or _worth(record) >= _worth(best[place]):
            best[place] = record
    return list(best.values())


def _worth(record: dict) -> tuple:
    is_right = record["outcome"] == GOOD
    seconds = (record.get("timing") or {}).get("program_s", math.inf)
    return (is_right, -seconds if is_right else 0, (record.get("asked") or {}).get("turn", 0))


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def interval(share: float, count: int) -> list[float]:
    """Wilson's, of 95 %. For a mean of numbers from 0 to 1, which vary at most as much as yes and no do, it is not too
    narrow."""
    z = 1.96
    middle, width = share + z * z / (2 * count), z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return [max(0.0, (middle - width) / (1 + z * z / count)), min(1.0, (middle + width) / (1 + z * z / count))]


def pass_at(records: list[dict], samples: int, price: tuple[float, float] | None = None) -> dict:
    """For a model: pass@k by the unbiased estimator of Chen et al. 2021 (1 - C(n-c, k)/C(n, k), n samples of which
    c are right) with an interval of 95 % over tasks, the share that is right after each turn, tokens, and what they
    cost (`price` of a million tokens of prompts and of answers)."""
    right: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    lost = 0
    for record in final(records):
        if not is_known(record):
            lost += 1
            continue
        right[record["task"]] += record["outcome"] == GOOD
        judged[record["task"]] += 1
    at = {}
    for k in sorted({1, samples}):
        enough = [task for task in right if judged[task] >= k]
        if enough:
            at[k] = sum(1 - math.comb(judged[task] - right[task], k) / math.comb(judged[task], k)
                        for task in enough) / len(enough)
    turns = 1 + max(record["asked"]["turn"] for record in records)
    first: dict[tuple, int] = {}
    for record in records:
        if record["outcome"] == GOOD:
            place = (record["task"], record["asked"]["sample"])
            first[place] = min(first.get(place, turns), record["asked"]["turn"])
    by_turn = [sum(turn <= last for turn in first.values()) / max(sum(judged.values()), 1) for last in range(turns)]
    tokens = Counter()
    for record in records:
        tokens.update(record["asked"].get("tokens") or {})
    told = {"pass_at": {str(k): value for k, value in at.items()},
            "pass_at_interval": {str(k): interval(min(max(value, 0.0), 1.0), len(right)) for k, value in at.items()},
            "right_by_turn": by_turn, "tokens": dict(tokens), "not_judged": lost}
    if price is not None:
        told["cost"] = sum(tokens[name] * each for name, each in zip(("prompt", "completion"), price)) / 1e6
    return told


def summarize(records: list[dict], samples: int | None = None, price: tuple[float, float] | None = None) -> dict:
    """`samples`: conversations for each task, where a model was asked."""
    told = _summarize(final(records))
    if samples is not None and records:
        told["model"] = pass_at(records, samples, price)
    return told


def _summarize(records: list[dict]) -> dict:
    levels: dict[str, list[dict]] = {}
    for record in records:
        levels.setdefault(f"level{record['level']}" if record["level"] else "tasks", []).append(record)
    flags = sorted({flag for one in records for flag in one.get("flags", [])})
    return {"levels": {name: _count(ones) for name, ones in sorted(levels.items())}, "all": _count(records),
            # A right program says less where another answer would pass too, or nobody knows the right one.
            "unflagged": _count([one for one in records if not one.get("flags")]),
            "flagged": {flag: _count([one for one in records if flag in one.get("flags", [])]) for flag in flags},
            "reasons": dict(Counter(f"{one['outcome']}: {one['reason']}" for one in records
                                    if one["outcome"] != GOOD).most_common()),
            "flags": dict(Counter(flag for one in records for flag in one.get("flags", [])).most_common())}


def _count(records: list[dict]) -> dict:
    outcomes = Counter(one["outcome"] for one in records)
    result = {"total": len(records), "right": outcomes[GOOD], "outcomes": dict(outcomes),
              "infrastructure": sum(outcomes[one] for one in INFRASTRUCTURE)}
    records = [one for one in records if one["outcome"] not in INFRASTRUCTURE]
    for against in ("eager", "compile"):
        ratios = [speedup(one, against) for one in records]
        if any(ratio is not None for ratio in ratios):
            result[against] = {
                "fast_p": {str(p): sum(ratio is not None and ratio > p for ratio in ratios) / len(records)
                           for p in THRESHOLDS},
                "geometric_mean": geometric_mean([ratio or FAILED_RATIO for ratio in ratios])}
    shares = [one["timing"]["roofline_s"] / one["timing"]["program_s"] for one in records
              if one["outcome"] == GOOD and (one.get("timing") or {}).get("roofline_s")]
    if shares:  # of what is right and was timed
        result["roofline_share"] = geometric_mean(shares)
    return result


def speedup(record: dict, against: str) -> float | None:
    """Time of the module over the program's; None for what is not right or was not timed."""
    timing = record.get("timing") or {}
    if record["outcome"] != GOOD or f"{against}_s" not in timing:
        return None
    return timing.get(f"{against}_ratio")  # there is none where an answer without the work passes


def flag_lines(summary: dict) -> list[str]:
    if not summary.get("flags"):
        return []
    rest = summary["unflagged"]
    apart = ", ".join(f"{flag} {summary['flagged'][flag]['right']} of {number}"
                      for flag, number in summary["flags"].items())
    return [f"apart: {rest['right']} of {rest['total']} right on tasks without a flag; right with one: {apart}"]


def model_lines(model: dict) -> list[str]:
    at = []
    for k, value in model["pass_at"].items():
        low, high = model["pass_at_interval"][k]
        at.append(f"{k}: {100 * value:.1f} % ({100 * low:.1f} to {100 * high:.1f})")
    lines = ["pass@k: " + (", ".join(at) or "nothing was judged"),
             "right by turn: " + ", ".join(f"{100 * value:.1f} %" for value in model["right_by_turn"])]
    if model["tokens"]:
        lines.append("tokens: " + ", ".join(f"{name} {count}" for name, count in model["tokens"].items())
                     + (f"; cost {model['cost']:.2f}" if "cost" in model else ""))
    return lines


def as_text(summary: dict) -> str:
    lines = []
    for name, count in [*summary["levels"].items(), ("all", summary["all"])]:
        share = 100 * count["right"] / max(count["total"] - count["infrastructure"], 1)
        rest = ", ".join(f"{number} {outcome}" for outcome, number in sorted(count["outcomes"].items())
                         if outcome != GOOD)
        lines.append(f"{name:8} {count['right']:4} of {count['total']:4} right ({share:.1f} %)"
                     + (f"; {rest}" if rest else "")
                     + (f"; {count['infrastructure']} not judged for reasons that are not theirs" if count["infrastructure"]
                        else ""))
        for against in ("eager", "compile"):
            if against in count:
                told = ", ".join(f"{p}: {100 * value:.0f} %" for p, value in count[against]["fast_p"].items())
                lines.append(f"         fast_p against {against}: {told}; geometric mean "
                             f"{count[against]['geometric_mean']:.2f}")
        if "roofline_share" in count:
            lines.append(f"         share of the roofline, of what is right: {100 * count['roofline_share']:.1f} %")
    if "model" in summary:
        lines += model_lines(summary["model"])
    if summary["reasons"]:
        lines.append("not right, by reason:")
        lines += [f"  {number:4}  {reason}" for reason, number in summary["reasons"].items()]
    lines += flag_lines(summary)
    return "\n".join(lines)
