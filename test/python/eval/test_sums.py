"""The verdict on modules that take nearly all of a sum away: whatever order a program adds up in, it is right; what
rounds its operands or leaves a term out is wrong."""
import math

import pytest
import torch
from conftest import SCALE, module

from tegula_eval.judge.evaluate import derived_seed, judge_case
from tegula_eval.rule.reference import evaluate_reference, make_case
from tegula_eval.rule.tasks import DTYPES, LOWER

TERMS = 48


def linear(then: str, inputs: str = "torch.rand(rows, 48)") -> str:
    return module(then, inputs, "rows = 9").replace(
        "def forward", "def __init__(self):\n        super().__init__()\n"
        "        self.weight = torch.nn.Parameter(torch.rand(7, 48) - 0.5)\n\n    def forward").replace("linear", "x @ self.weight.T")


def sum_up(products: torch.Tensor, order: str) -> torch.Tensor:
    """Over the last dim, in float32."""
    terms = products.shape[-1]
    if order == "in pairs":
        while products.shape[-1] > 1:
            odd = products[..., -1:] if products.shape[-1] % 2 else products[..., :0]
            half = products.shape[-1] // 2
            products = torch.cat([products[..., :half] + products[..., half:2 * half], odd], -1)
        return products[..., 0]
    if order == "in eight parts":
        return sum_up(torch.stack([sum_up(products[..., lane::8], "forward") for lane in range(8)], -1), "forward")
    places = {"forward": range(terms), "backward": reversed(range(terms)),
              "large first": products.abs().sum(tuple(range(products.dim() - 1))).argsort(descending=True).tolist()}
    total = torch.zeros(products.shape[:-1])
    for place in places[order]:
        total = total + products[..., place]
    return total


ORDERS = ("forward", "backward", "large first", "in pairs", "in eight parts")


def dot(x, weight, order="forward"):
    return sum_up(x[:, None, :] * weight[None], order)


def gelu_by_halves(x):
    half = 0.5 * x
    return half + half * torch.erf(x * math.sqrt(0.5))


# Of a task its text, and the module's rest as a program may compute it from the sums.
TASKS = {
    "few live elements": (linear("return torch.nn.functional.gelu((linear + 2.0).clamp(max=0))*2"),
                          lambda sums: gelu_by_halves(torch.clamp(sums + 2.0, max=0)) * 2),
    "a sum less a constant": (linear("return linear - 1.5"), lambda sums: sums - 1.5),
    "a norm": (linear("return torch.nn.functional.layer_norm(linear + 3, (7,))"),
               lambda sums: (sums + 3 - (sums + 3).mean(1, keepdim=True))
               * torch.rsqrt((sums + 3).var(1, unbiased=False, keepdim=True) + 1e-5)),
    "large inputs": (linear("y = linear\n        return y - y.mean(1, keepdim=True)", "100 + torch.rand(rows, 48)"),
                     lambda sums: sums - sum_up(sums, "forward")[:, None] / sums.shape[1]),
    "a mish": (linear("return torch.nn.functional.mish(linear - 8)"),
               lambda sums: (sums - 8) * torch.tanh(torch.log1p(torch.exp(sums - 8)))),
}


def case_of(task: str, secret: int, dtype: str = "f32"):
    return case_from(TASKS[task][0], derived_seed(str(secret), task), dtype)


def case_from(source: str, seed: int, dtype: str):
    case = make_case(source + (LOWER.format(name=DTYPES[dtype]) if dtype != "f32" else ""), seed)
    evaluate_reference(case, seed, audit=False)
    return case


def outcome(result: torch.Tensor, case) -> dict:
    told: dict = {}
    judge_case([result], case, 1.0 + TERMS, told)
    return told


@pytest.mark.parametrize("task", TASKS)
def test_any_order_of_additions_is_right(task):
    for secret in range(40 if task == "few live elements" else 10):
        case = case_of(task, secret)
        for order in ORDERS:
            result = TASKS[task][1](dot(case.inputs[0], case.state["weight"], order))
            told = outcome(result, case)
            assert told["outcome"] == "right", (secret, order, told["message"])


def to_tf32(one):
    return ((one.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


CHEATS = {
    "tf32": lambda x, weight: dot(to_tf32(x), to_tf32(weight)),
    "f16": lambda x, weight: dot(x.half().float(), weight.half().float()),
    "bf16": lambda x, weight: dot(x.bfloat16().float(), weight.bfloat16().float()),
    "a term less": lambda x, weight: dot(x[:, :-1], weight[:, :-1]),
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("cheat", CHEATS)
def test_less_than_the_sum_is_wrong(task, cheat):
    """Where one element alone is live it may be near the truth by chance; a program is judged on several cases."""
    caught, judged = 0, 0
    for secret in range(20):
        case = case_of(task, secret)
        if int((case.exact[0] != 0).sum()) < 2:
            continue
        judged += 1
        result = TASKS[task][1](CHEATS[cheat](case.inputs[0], case.state["weight"]))
        caught += outcome(result, case)["outcome"] == "wrong"
    assert judged >= 8 and caught >= 0.95 * judged, f"{caught} of {judged}"


def in_single(case) -> list[torch.Tensor]:
    return [case.inputs[0].float(), case.state["weight"].float()]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_fewer_roundings_or_the_module_s_are_right(task, dtype):
    """Below float32: all of it in float32, from a sum that is rounded, or every operator's result rounded."""
    for secret in range(20 if task == "few live elements" else 5):
        case = case_of(task, secret, dtype)
        kind = case.inputs[0].dtype
        for order in ORDERS:
            sums, rest = dot(*in_single(case), order), TASKS[task][1]
            for result in (rest(sums), rest(sums.to(kind).float()), rest(sums.to(kind))):
                told = outcome(result.to(kind), case)
                assert told["outcome"] == "right", (secret, order, told["message"])


def to_f8(one):
    return one.to(torch.float8_e4m3fn).float()


# A layer norm takes a factor of its sums away, and of a mish of -8 two hundredths of the sum are less than a rounding.
@pytest.mark.parametrize("task", [one for one in TASKS if one not in ("a norm", "a mish")])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_less_than_the_sum_is_wrong_below_float32(task, dtype):
    cheats = {"off": lambda x, weight: 1.02 * dot(x, weight), "f8": lambda x, weight: dot(to_f8(x), to_f8(weight)),
              "a term less": CHEATS["a term less"]}
    for name, cheat in cheats.items():
        caught, judged = 0, 0
        for secret in range(40 if task == "few live elements" else 10):
            case = case_of(task, secret, dtype)
            if int((case.exact[0] != 0).sum()) < 2:
                continue
            judged += 1
            result = TASKS[task][1](cheat(*in_single(case))).to(case.inputs[0].dtype)
            caught += outcome(result, case)["outcome"] == "wrong"
        share = 0.8 if task == "few live elements" else 0.9
        assert judged >= 8 and caught >= share * judged, f"{name}: {caught} of {judged}"


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_a_bias_off_by_two_hundredths_is_wrong_whatever_the_secret(dtype):
    """It is off everywhere in a column, where roundings to the type are off at random: no sensitivity excuses it."""
    source = SCALE.replace("1024 * 4", "128").replace("512", "32")
    for secret in range(60):
        case = case_from(source, derived_seed(str(secret), "bias"), dtype)
        x, weight, bias = case.inputs[0].float(), case.state["fc.weight"].float(), case.state["fc.bias"].float()
        for off, wanted in ((1.0, "right"), (1.02, "wrong")):
            result = 0.25 * torch.relu(x @ weight.T + off * bias)
            assert outcome(result.to(case.inputs[0].dtype), case)["outcome"] == wanted, (secret, off)
