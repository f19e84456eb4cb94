"""tegula-eval replay: takes what a record holds, does it again, and says what differs.

A record of `kernelbench` or `time` holds its request (task, program, settings, the secret that seeds are drawn
from), the instances that were compiled with a hash of their IR and their PTX, hashes of results, versions, clocks
and times. The verdict, the IR, the PTX and the results' bits are compared; versions, clocks, errors and times are told.
"""
from __future__ import annotations

import difflib
import json
from pathlib import Path

from ..program import provenance
from ..records.outcomes import outcome_record
from ..rule.tasks import Task, TaskError, matches
from ..workers import device, pool

SAME, DIFFERENT = 0, 1


def run(options) -> int:
    records = _read(options.record, options.tasks)
    judges, status = pool.Pool(1, options.deadline, options.memory), SAME
    try:
        for record in records:
            again = _again(record, judges, options.deadline)
            lines, is_same = compare(record, again)
            print("\n".join([f"{record['task']}: {'the same' if is_same else 'differs'}",
                             *(f"  {line}" for line in lines)]))
            if options.out:
                with open(options.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(again) + "\n")
            status = status if is_same else DIFFERENT
    finally:
        judges.stop()
    return status


def _read(path: Path, patterns: list[str] | None) -> list[dict]:
    try:
        text = path.read_text(encoding="utf-8")
        records = [json.loads(line) for line in text.splitlines() if line.strip()] if path.suffix == ".jsonl" \
            else [json.loads(text)]
        chosen = [one for one in records if not patterns or any(matches(_task(one), each) for each in patterns)]
        whole = [one for one in chosen if one.get("request")]
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"cannot read {path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TaskError(f"{path} is no record: {error}") from error
    if not whole:
        raise TaskError(f"{path} holds no such record" if not chosen else
                        f"{path}: these records do not hold what was asked; they are of an older version")
    return list({one["key"]: one for one in whole}.values())


def _task(record: dict) -> Task:
    level, _, name = record["task"].rpartition("/")
    return Task(int(level[5:]) if level else 0, name, Path(name))


def _again(record: dict, judges: pool.Pool, deadline_s: float) -> dict:
    request = record["request"]
    if "device" not in request:  # of `kernelbench`
        outcome = judges.judge(request)
        return {**outcome_record(outcome), "seconds": outcome["seconds"], "task": record["task"],
                "key": record["key"], "request": request}
    found: list[dict] = []
    job = {name: request[name] for name in ("task", "program", "program_name", "secret")} | {"key": record["key"]}
    kind = request["device"]
    device.DeviceRun([kind if kind == "cpu" else f"{kind}:0"], {**request, "seconds": 0}, deadline_s, 1e9,
                     lambda job, told: found.append(told)).run([job])
    return {**found[0], "task": record["task"], "key": record["key"], "request": request}


def compare(before: dict, after: dict) -> tuple[list[str], bool]:
    """What there is to say, and whether verdict, code and results are the same."""
    lines: list[str] = []
    differ = [_differing(lines, name, before.get(name), after.get(name)) for name in ("outcome", "reason")]
    if len(before.get("kernels", [])) != len(after.get("kernels", [])):
        differ.append(True)
        lines.append(f"instances: {len(before.get('kernels', []))} -> {len(after.get('kernels', []))}")
    for old, new in zip(before.get("kernels", []), after.get("kernels", [])):
        for name in ("settings", "optionals", "ellipsis_rank", "ir_sha256", "ptx_sha256"):
            differ.append(_differing(lines, name, old.get(name), new.get(name)))
        if old.get("ptx_sha256") != new.get("ptx_sha256") and "ptx" in old and "ptx" in new:
            texts = [provenance.unpack(one["ptx"]).splitlines() for one in (old, new)]
            changes = [line for line in difflib.unified_diff(*texts, "then", "now", lineterm="", n=1)]
            lines += [f"  {line}" for line in changes[:20]]
            if len(changes) > 20:
                lines.append(f"  and {len(changes) - 20} more lines")
    differ.append(_differing(lines, "cases", len(before["cases"]), len(after["cases"])))
    for old, new in zip(before["cases"], after["cases"]):
        where = f"{old['variant']}, {old['distribution']}"
        for name in ("seed", "outcome", "flags", "reference", "result_sha256"):
            differ.append(_differing(lines, f"{where}: {name}", old.get(name), new.get(name)))
        _differing(lines, f"{where}: error", (old.get("error") or {}).get("norm"), (new.get("error") or {}).get("norm"))
    for group in ("versions", "clocks"):
        names = {**(before.get(group) or {}), **(after.get(group) or {})}
        for name in names:
            _differing(lines, f"{group}: {name}", (before.get(group) or {}).get(name), (after.get(group) or {}).get(name))
    old, new = before.get("timing") or {}, after.get("timing") or {}
    for name in ("program", "eager", "eager_f32", "compile"):
        if f"{name}_s" in old and f"{name}_s" in new:
            then, now = old[f"{name}_s"], new[f"{name}_s"]
            lines.append(f"time of {name}: {then * 1e6:.1f} -> {now * 1e6:.1f} us ({now / then:.2f} times)")
    return lines, not any(differ)


def _differing(lines: list[str], name: str, before, after) -> bool:
    if before == after:
        return False
    lines.append(f"{name}: {_short(before)} -> {_short(after)}")
    return True


def _short(value) -> str:
    return str(value)[:16] if isinstance(value, str) and len(value) == 64 else str(value)
