#!/usr/bin/env python3
"""Holds the bounds on errors that certificates have against errors that are measured.

    test/prove/numeric.py BUILD

Each program runs on the CPU in f32 on inputs as `tegula prove` draws them (normal data: up to 2, of both signs), and in float64
in numpy. The largest error must be within the bound of the certificate's points of such data, and the bound no more than
1,000 times as large: one that says nothing would pass otherwise.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

PROGRAMS = {
    "product": ("kernel f(x: f32[M, K], w: f32[N, K]) -> (y: f32[M, N]) { y[i, j] = sum(x[i, k]*w[j, k] for k) }",
                {"M": 5, "N": 6, "K": 64}, lambda x, w: x @ w.T),
    "softmax": ("kernel f(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = softmax(x[i, j], over=j) }",
                {"M": 7, "N": 40}, lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "norm": ("kernel f(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = x[i, j]*rsqrt(mean(x[i, k]*x[i, k] for k) + 1e-5) }",
             {"M": 7, "N": 40}, lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5)),
    "powers": ("kernel f(x: f32[M]) -> (y: f32[M]) { y[i] = exp(x[i])*tanh(x[i]) + x[i]*x[i]*x[i] }",
               {"M": 500}, lambda x: np.exp(x) * np.tanh(x) + x**3),
}


def main():
    tegula, failures = pathlib.Path(sys.argv[1]) / "bin/tegula", 0
    rng = np.random.default_rng(1)
    for name, (text, sizes, exact) in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "f.tgl"
            program.write_text(text)
            given = "-d=" + ",".join(f"{size}={value}" for size, value in sizes.items())
            told = subprocess.run([tegula, "prove", program, "--scheduled", "--json", given], capture_output=True, text=True)
            points = [one for one in json.loads(told.stdout)["equal"]["points"] if one["data"] == "normal"]
            bound = max(one["error_at_most"] for one in points)
            shapes = [[sizes[dim] for dim in part.split("]")[0].split(", ")] for part in text.split("->")[0].split("f32[")[1:]]
            inputs = [rng.uniform(-2, 2, shape).astype(np.float32) for shape in shapes]
            options = []
            for one, values in zip("xw", inputs):
                np.save(f"{folder}/{one}.npy", values)
                options.append(f"--in={one}={folder}/{one}.npy")
            subprocess.run([tegula, "run", program, *options, f"--out=y={folder}/y.npy"], check=True, capture_output=True)
            error = np.abs(np.load(f"{folder}/y.npy") - exact(*(one.astype(np.float64) for one in inputs))).max()
        is_right = 0 < error <= bound <= 1000 * error
        failures += not is_right
        print(f"{'' if is_right else 'FAILS '}{name}: measured {error:.3g}, bound {bound:.3g}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
