"""Measures a case on a CUDA device: errors at full sizes, times beside others', and the compiler's reasons."""
import json
import pathlib
import subprocess
import tempfile
import time

import torch

from tegula_eval.commands.launches import kernel_times

from . import judge, timing


class Measure:
    def __init__(self, options, clock=None, target="cuda"):
        self.options, self.target = options, target
        self.clock = clock or timing.Clock()
        self.rates = self.clock.rates()
        self.tegula = options.tegula if pathlib.Path(options.tegula).exists() else None

    def run(self, kernel, case, row):
        """Fills the row: right, errors, microseconds, and what is missing."""
        begin = time.perf_counter()
        compiled = judge.Compiled(kernel, case, self.target)
        row["compile_ms"] = round((time.perf_counter() - begin)*1e3, 1)
        given = judge.copied({one.name: case.tensors[one.name] for one in compiled.program.parameters if one.role == "inout"})
        found = compiled.results()
        with torch.no_grad():
            wanted = judge.values(case.eager(**{**case.tensors, **given}))
        row["errors"], row["right"] = judge.errors(kernel, found, wanted, judge.norm_error)
        calls = {"tegula": compiled.launch}
        if not self.options.alone:
            self.add_others(calls, row, kernel, case, wanted)
        del found, wanted
        with torch.no_grad():
            row["times"] = {name: round(taken, 2) for name, taken in self.clock.medians(calls, self.options.seconds).items()}
        if self.options.launches:
            row["launch_times"] = kernel_times(compiled.launch, calls=5)
        row["bound"] = round(timing.bound(case, self.rates), 2)
        if self.tegula:
            row["launches"] = self.launches(kernel, compiled)

    def add_others(self, calls, row, kernel, case, wanted):
        calls["eager"] = self.eager(case)
        if kernel.compiled and case.timed is None and not self.options.no_compile:
            self.add(calls, row, "torch.compile", lambda: self.compiled(case))
        for name, make in case.peers.items():
            self.add(calls, row, name, make, wanted)

    def eager(self, case):
        return case.timed() if case.timed else lambda: case.eager(**case.tensors)

    def compiled(self, case):
        torch._dynamo.reset()
        fast = torch.compile(case.eager)
        return lambda: fast(**case.tensors)

    def add(self, calls, row, name, make, wanted=None):
        """Adds another's call, or says why it is not there: one whose first result is another computes something else."""
        try:
            call = make()
            with torch.no_grad():
                results = judge.values(call())
            if self.target == "cuda":
                torch.cuda.synchronize()
        except Exception as error:  # missing, too old, or not for these sizes
            row.setdefault("missing", {})[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            return
        if wanted and isinstance(results[0], torch.Tensor) and results[0].shape == wanted[0].shape:
            off = judge.norm_error(results[0], wanted[0])
            if not off <= 0.1:
                row.setdefault("missing", {})[name] = f"gives another result: off by {off:.2g} of its norm"
                return
        calls[name] = call

    def launches(self, kernel, compiled):
        """What `tegula compile --why` says of each launch: its strategy, its bound, and why not another strategy."""
        machine = "h200" if torch.cuda.is_available() and "H200" in torch.cuda.get_device_name() else "h100"
        sizes = ",".join(f"{name}={size}" for name, size in compiled.sizes().items())
        constants = [word for name, value in compiled.case.constants.items() for word in ("-p", f"{name}={value}")]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([self.tegula, "compile", str(kernel.file), "--target=sm_90a", "--why=json",
                                   f"--machine={machine}",
                                   "-d", sizes, *constants], capture_output=True, text=True, cwd=folder)
        if done.returncode:
            return [{"name": "?", "error": done.stderr.strip()[:300]}]
        return [{"name": one["name"], "strategy": one["strategy"], "bound": one.get("boundMicroseconds"),
                 "reasons": [f"{it['strategy']}: {it['reason']}" for it in one["mismatches"] if not it["nothingHere"]]}
                for one in json.loads(done.stdout)]
