"""What the service takes and gives: the bodies of its requests and answers, which are also its OpenAPI description."""
from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_IN_A_BATCH = 256
State = Literal["waiting", "running", "done"]


def _is_text(value: str) -> str:
    """JSON can write half of a surrogate pair, which is no character and in no file."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"no text: character {error.start} is a lone surrogate") from None
    return value


Text = Annotated[str, AfterValidator(_is_text)]


class Submission(BaseModel):
    """A program and the task that it claims to do."""
    model_config = ConfigDict(extra="forbid")
    task: Text = Field(description="Python: class Model(nn.Module), get_inputs(), get_init_inputs()", min_length=1)
    program: Text = Field(description="Tegula")
    target: Literal["cpu", "cuda"] = "cpu"
    seeds: int = Field(2, ge=1, le=16, description="sets of inputs for each size")
    own: bool = Field(False, description="also at the task's own sizes")
    certify: bool = Field(False, description="once it is right, ask `tegula prove` whether it is equal to the module")
    timed: bool = Field(False, description="time it beside eager mode once it is right")
    salt: Text = Field("", max_length=64, description="the same question with another salt is judged anew")


class Batch(BaseModel):
    """Submissions that are taken together, or none of them."""
    model_config = ConfigDict(extra="forbid")
    submissions: list[Submission] = Field(min_length=1, max_length=MOST_IN_A_BATCH)


class Taken(BaseModel):
    id: str
    state: State


class TakenBatch(BaseModel):
    evaluations: list[Taken] = Field(description="in the order of the submissions")


class Reward(BaseModel):
    """What a program is worth. `reward` is 1 where it is right and 0 where it is not; of the other fields a
    training run makes what it likes."""
    model_config = ConfigDict(populate_by_name=True, strict=True, allow_inf_nan=False)
    schema_: Literal["tegula.reward"] = Field("tegula.reward", alias="schema")
    version: Literal[1] = 1
    right: bool
    reward: float
    outcome: str
    reason: str
    message: str
    diagnostics: list[dict] = []
    wrong: list[dict] = Field([], description="the first wrong elements: index, expected, got")
    pattern: str = Field("", description="where wrong elements lie")
    speedup: float | None = Field(None, description="time of eager mode over the program's")
    proof: dict | None = Field(None, description="of a submission to certify: verdict, what it says, reason, sizes, and "
                                                 "certificates of `tegula prove` with the reference that they are about")
    seconds: float = Field(description="that judging took")


class Evaluation(BaseModel):
    id: str
    state: State
    reward: Reward | None = Field(None, description="once it is done")


class Evaluations(BaseModel):
    evaluations: list[Evaluation] = Field(description="in the order of the ids")


class Health(BaseModel):
    version: str
    workers: int
    submissions: dict[str, int]


class Refusal(BaseModel):
    detail: Any = Field(description="why, in words or as a list of places in the body")


def plain(value):
    """What every reader of JSON reads: a number that is not finite as text, and no half of a surrogate pair."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {plain(name) if isinstance(name, str) else str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def reward_of(record: dict) -> dict:
    """Of a record of judge/evaluate.py. Raises ValueError (pydantic's), LookupError, TypeError or AttributeError where it is none."""
    record = plain(record)
    right = record["outcome"] == "right"
    case = record["cases"][-1] if record.get("cases") else {}
    return Reward(right=right, reward=float(right), outcome=record["outcome"], reason=record["reason"],
                  message=record["message"], diagnostics=record.get("diagnostics", []), wrong=case.get("wrong", []),
                  pattern=case.get("pattern", ""), speedup=(record.get("timing") or {}).get("eager_ratio"), proof=record.get("proof"),
                  seconds=record["seconds"]).model_dump(by_alias=True)
