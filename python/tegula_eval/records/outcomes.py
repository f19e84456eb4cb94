"""The record of a judgement from how its process ended: child.py's outcome as that of judge/evaluate.py."""
from __future__ import annotations


def no_record(outcome: str, reason: str, message: str) -> dict:
    """Of what was not judged."""
    return {"outcome": outcome, "reason": reason, "message": message, "flags": [], "cases": [], "timing": None}


def outcome_record(outcome: dict) -> dict:
    if outcome["kind"] == "done":
        return outcome["answer"]
    return {**no_record(outcome["kind"], outcome["stage"], outcome["message"]),
            **({"trace": outcome["trace"]} if "trace" in outcome else {})}
