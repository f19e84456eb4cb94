"""Small files in the forms of other benchmarks, written for the tests of `tegula-eval run`."""
import json

from conftest import TREE
from tegula_eval import cli

RMS_REFERENCE = '''import torch

@torch.no_grad()
def run(hidden_states, weight):
    x = hidden_states.to(torch.float32)
    r = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
    return (x * r * weight.to(torch.float32)).to(hidden_states.dtype)
'''
RMS = '''
kernel rmsnorm(hidden_states: T[M, N], weight: T[N]) -> (output: T[M, N]) {
  v[i] = rsqrt(mean(square(f32(hidden_states[i, j])) for j) + 1e-5)
  output[i, j] = T(hidden_states[i, j] * v[i] * weight[j])
}
'''


def rms_definition(name="rmsnorm_h32", **more):
    return {"name": name, "op_type": "rmsnorm",
            "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 32}},
            "inputs": {"hidden_states": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"},
                       "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}},
            "outputs": {"output": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}},
            "reference": RMS_REFERENCE, **more}


def workload(uuid, axes, **inputs):
    return {"uuid": uuid, "axes": axes, "inputs": inputs}


def flashinfer(folder, definition, *workloads):
    """Adds a definition and its workloads to a folder in flashinfer-trace's form."""
    kind, name = definition["op_type"], definition["name"]
    for place in ("definitions", "workloads"):
        (folder / place / kind).mkdir(parents=True, exist_ok=True)
    (folder / "definitions" / kind / f"{name}.json").write_text(json.dumps(definition))
    (folder / "workloads" / kind / f"{name}.jsonl").write_text("".join(json.dumps(
        {"definition": name, "solution": None, "workload": one, "evaluation": None}) + "\n" for one in workloads))
    return folder


def safetensors(path, **tensors):
    """Writes tensors in that form."""
    names = {"torch.int32": "I32", "torch.int64": "I64", "torch.float32": "F32", "torch.bfloat16": "BF16"}
    header, data = {}, b""
    for name, one in tensors.items():
        import torch
        raw = one.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": names[str(one.dtype)], "shape": list(one.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def run(suite, folder, out, *more):
    """The exit code, and what is told of the suite."""
    code = cli.main(["run", f"--suite={suite}", str(folder), f"--out={out}", "--plain", "--bytes=64K", "--flops=1e6", *more])
    path = out / suite / "suite.json"
    return code, json.loads(path.read_text()) if path.exists() else None


def outcomes(told):
    return {one["task"]: one["outcome"] for one in told["tasks"]}


def records(out, suite):
    return [json.loads(line) for line in (out / suite / "results.jsonl").read_text().splitlines()]


OWN_PROGRAMS = TREE / "bench" / "suites" / "programs"
