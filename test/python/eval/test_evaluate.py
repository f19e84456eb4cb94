"""Programs judged on tasks, in this process, with the compiler of the build."""
import pytest
import torch
from conftest import RIGHT, SCALE, module

from tegula_eval.judge.evaluate import VariantCache, derived_seed, evaluate, find_cached_variants
from tegula_eval.program import provenance, runner
from tegula_eval.rule.variants import build, find_variants, from_json, to_json
from tegula_eval.suites import kernelbench, results

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

NEGATE = "kernel negate(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = -x[i, j] }"


def judged(task, program, **options):
    return evaluate({"task": task, "program": program, "secret": "s", "seeds": 2, "bytes": 1 << 16,
                     "flops": 1 << 20, **options})


def test_right():
    record = judged(SCALE, RIGHT)
    assert (record["outcome"], record["flags"]) == ("right", [])
    assert [(one["variant"], one["distribution"]) for one in record["cases"]] == \
        [*(("ragged", one) for one in ("task", "normal", "large", "negative", "special")), ("small", "task"), ("small", "large")]
    assert all(one["kernelbench"] for one in record["cases"])
    assert len({one["seed"] for one in record["cases"]}) == 7


@pytest.mark.parametrize("given", [float("inf"), float("nan"), 2.5, 1 << 63])
def test_scalar_that_is_no_integer(given):
    """Is the call's fault, whatever it is, and not the judge's."""
    kernel = runner.Program("kernel k(x: f32[N], n: i64) -> (y: f32[N]) { y[i] = x[i]*f32(n) }").compile({})
    with pytest.raises(runner.Refused, match="the scalar 'n' is an integer, got"):
        kernel.prepare({"x": torch.ones(3)}, {"n": given})


@pytest.mark.parametrize("old, new, reason", [
    ("relu(", "(", "value"),
    ("factor*relu", "0.2501*relu", "value"),
    ("+ fc_bias[j]", "+ fc_bias[0]*0 + fc_bias[j]*1.00001", "value"),
    ("y[i, j] = factor", "y[i, j] = (0.0/0.0)*factor", "not-finite"),
    ("(y: f32[M, N])", "(y: f32[M, 1 + N - 1])", None),
])
def test_slightly_wrong(old, new, reason):
    record = judged(SCALE, RIGHT.replace(old, new))
    assert (record["outcome"], record["reason"]) == (("wrong", reason) if reason else ("right", ""))
    if reason == "value":
        first = record["cases"][-1]["wrong"][0]
        assert first["expected"] != first["got"] and len(first["index"]) == 2


DOUBLE = module("return 2*x", "torch.rand(1024, 2048)")


@pytest.mark.parametrize("result, outcome, ran, passes", [
    ("2*x[i, j]", ("right", ""), 2, True),
    # Refused, or wrong, at the second of two sizes.
    (None, ("call", "C0002"), 1, False), ("where(N <= {N}, 2*x[i, j], 0.0)", ("wrong", "value"), 2, False),
    # Wrong at inputs that the benchmark does not draw; the second is wrong at a size, too, with those that it does.
    ("where(x[i, j] > 100, 7.0, 2*x[i, j])", ("wrong", "value"), 2, True),
    ("where(x[i, j] > 100 or N > {N}, 7.0, 2*x[i, j])", ("wrong", "value"), 2, False)])
def test_all_sizes_decide_by_their_tolerance(result, outcome, ran, passes):
    """Also those after our own verdict is wrong, and those that a program does not come to."""
    found = find_variants(DOUBLE, 1 << 16, 1 << 20, False)[:2]
    rows, columns = (int(size) for size in build(found[0].source).inputs[0].shape)
    sizes = ("N", "M") if result else (rows, columns)
    program = f"kernel double(x: f32[{sizes[0]}, {sizes[1]}]) -> (y: f32[{sizes[0]}, {sizes[1]}]) {{\n" \
              f"  y[i, j] = {(result or '2*x[i, j]').replace('{N}', str(rows))}\n}}"
    record = evaluate({"task": DOUBLE, "program": program, "secret": "s", "seeds": 2, "rule": kernelbench.RULE,
                       "variants": to_json(found)})
    assert (record["outcome"], record["reason"]) == outcome, record["message"]
    assert record["task_cases"] == 2
    assert sum("theirs" in one for one in record["cases"] if one["distribution"] == "task") == ran
    assert results.passes_theirs(record) is passes
    assert outcome[0] != "wrong" or record["cases"][-1]["wrong"]  # what a model is told of


def test_wrong_only_where_inputs_are_negative():
    record = judged(module("return torch.relu(x)", "torch.rand(rows, 9)"), NEGATE.replace("-x", "x"))
    assert record["outcome"] == "wrong" and record["cases"][-1]["distribution"] == "normal"
    assert record["cases"][0]["outcome"] == "right"


def test_wrong_shape_and_type():
    assert judged(module("return -x"), NEGATE.replace("(y: f32[N, M]) { y[i, j]", "(y: f32[M, N]) { y[j, i]"),
                  )["reason"] == "shape"
    record = judged(module("return (x > 0.5).long()"), NEGATE)
    assert (record["outcome"], record["reason"]) == ("wrong", "dtype")


def test_refused_with_the_diagnostics():
    record = judged(SCALE, RIGHT.replace("relu(", "rellu("))
    assert record["outcome"] == "refused" and record["reason"].startswith("E0")
    assert any("rellu" in one["message"] for one in record["diagnostics"])
    assert judged(SCALE, "no program")["outcome"] == "refused"
    assert judged(SCALE, "")["outcome"] == "refused"


def test_binding_and_call():
    assert judged(SCALE, RIGHT.replace("fc_bias", "bias"))["outcome"] == "binding"
    record = judged(SCALE, RIGHT.replace("x: f32[M, K]", "x: f32[M, 3]"))
    assert record["outcome"] == "call", record
    record = judged(module("return x.double()"), NEGATE.replace("x: f32", "x: f16"))
    assert record["outcome"] == "call", record


def test_subscript_outside():
    text = module("return x[idx[0]]", "torch.rand(rows, 4), torch.tensor([3, 1])").replace("self, x", "self, x, idx")
    gather = "kernel take(x: f32[N, M], idx: i64[K]) -> (y: f32[M]) { y[j] = x[idx[0] + 100000, j] }"
    record = judged(text, gather)
    assert (record["outcome"], record["reason"]) == ("call", "subscript")
    assert judged(text, gather.replace(" + 100000", ""))["outcome"] == "right"


def test_updated_in_place_when_there_is_no_output():
    assert judged(module("return x + 1"), "kernel bump(x: inout f32[N, M]) { x[i, j] = x[i, j] + 1 }",
                  )["outcome"] in ("right", "refused")


def test_buffers_that_a_state_dict_leaves_out():
    text = SCALE.replace("        self.factor = factor", "        self.factor = factor\n"
                         "        self.register_buffer('shift', torch.rand(2 * features), persistent=False)")
    text = text.replace("* self.factor", "* self.factor + self.shift")
    program = RIGHT.replace("factor: float", "shift: f32[N], factor: float")
    program = program.replace("fc_bias[j])", "fc_bias[j]) + shift[j]")
    assert judged(text, program)["outcome"] == "right"
    assert judged(text, program.replace("+ shift[j]", "+ 2*shift[j]"))["outcome"] == "wrong"


def test_tasks_that_say_nothing():
    random = judged(module("return x + torch.rand_like(x)"), NEGATE)
    assert (random["outcome"], random["reason"]) == ("unjudged", "random")
    broken = judged("this is no Python", NEGATE)
    assert (broken["outcome"], broken["reason"]) == ("task", "broken")
    raises = judged(module("raise ValueError('no')"), NEGATE)
    assert raises["outcome"] == "task"


def test_precision_below_the_modules_is_flagged():
    low = RIGHT.replace("{\n", "{\n  precision tf32\n", 1)
    for program, told in ((RIGHT, []), (low, ["tf32"]), (RIGHT.replace("x[i, k]*", "bf16(x[i, k])*"), ["bf16"])):
        record = judged(SCALE, program)
        assert record["kernels"][0]["lowered"] == told, record
        assert ("lower-precision" in record["flags"]) == bool(told)
    assert provenance.lowered("tgl.tensor<[N], f16>", {torch.float16, torch.float32}) == []


def test_seeds_depend_on_the_secret():
    assert derived_seed("a", "small", 0) != derived_seed("b", "small", 0) != derived_seed("b", "small", 1)
    assert derived_seed("a", "small", 0) == derived_seed("a", "small", 0) < 1 << 56


def test_variants_are_kept(tmp_path):
    request = {"task": SCALE, "bytes": 1 << 16, "flops": 1 << 20}
    cache = VariantCache(str(tmp_path), request)
    assert cache.read() is None
    found = find_cached_variants(request)
    cache.write(request["variants"])
    assert from_json(cache.read()) == from_json(request["variants"]) == found
    assert VariantCache(str(tmp_path), {**request, "own": True}).read() is None
    for damaged in ("[", "[3]", "{}x", '[{"name": "small"}]'):
        cache.path.write_text(damaged)
        assert cache.read() is None
    cache.write([{"name": "of a task's process"}])
    assert cache.read() is None


def test_times_beside_eager():
    record = judged(SCALE, RIGHT, time={"turns": 3})
    timing = record["timing"]
    assert timing["eager_s"] > 0 and timing["program_s"] > 0 and timing["turns"] == 3
    assert timing["eager_ratio"] > 0


@pytest.mark.parametrize("body, distribution", [
    ("x[i, j] + where(x[i, j] == 0, 1.0, 0.0)", "normal"), ("relu(x[i, j])", "special"),
    ("relu(x[i, j]) + where(x[i, j] == 0, 1.0, 0.0)", None)])
def test_a_distribution_finds_what_the_others_do_not(body, distribution):
    program = f"kernel k(x: f32[N, M]) -> (y: f32[N, M]) {{ y[i, j] = {body} }}"
    record = judged(module("return torch.relu(x) + (x == 0)"), program, seeds=5)
    if distribution is None:
        assert record["outcome"] == "right" and len(record["cases"]) == 10, record
    else:
        assert (record["outcome"], record["cases"][-1]["distribution"]) == ("wrong", distribution), record


def test_numbers_on_which_the_module_overflows_are_left_out():
    """A product near the largest float overflows on the way or not, as its order has it."""
    task = module("return x*3e37", "torch.rand(rows, 9)", "rows = 400")
    record = judged(task, "kernel k(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = 3e37*x[i, j] }")
    told = [one["distribution"] for one in record["cases"]]
    assert record["outcome"] == "right" and "large" not in told and told.count("task") >= 1
    record = judged(module("return x*3e33", "torch.rand(rows, 9)", "rows = 400"),
                    "kernel k(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = 3e33*x[i, j] }")
    assert "large" in [one["distribution"] for one in record["cases"]]
