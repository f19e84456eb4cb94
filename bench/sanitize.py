#!/usr/bin/env python3
"""Runs every strategy at ragged small sizes under compute-sanitizer, on a machine with a CUDA device.

    bench/sanitize.py [--tegula=PATH] [--tools=memcheck,racecheck,initcheck,synccheck] [--only=TEXT] [--part=1/1] [--jobs=8]
                      [--repeat=1000]

Each case is a process of `tegula run --target=cuda`, once under each tool and once without one. What the last one writes
is held against `--target=emulate`, bit for bit where a case's sums are exact: device and emulator agree. --plain leaves
the tools out, --target=emulate the device as well: then cases are held against `--target=cpu`.

--repeat runs each case, and some that fill a device, so many times in place of all that, from shared memory full of NaNs and
with blocks that begin in other orders (`tegula run --repeat`); all runs have to give the same bits.

Exit code: 0 nothing was found, 4 something was, 3 where compute-sanitizer or a device is missing.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOLS = "memcheck,racecheck,initcheck,synccheck"
FOUND = 9  # compute-sanitizer's exit code for errors


class Case(NamedTuple):
    strategy: str
    file: str
    sizes: str
    outputs: str = ""  # with commas: those that have to agree, bit for bit
    flags: tuple[str, ...] = ()
    type: str = ""  # that stands for T in files whose T is no parameter

    @property
    def name(self) -> str:
        return " ".join([self.strategy + ":", pathlib.Path(self.file).stem, self.type, self.sizes, *self.flags])


CODEGEN, GPU, E2E = "test/codegen/Inputs/", "test/gpu/Inputs/", "test/e2e/Inputs/"
PRODUCTS = "nn,nt,tn,tt,more,both"
BYTES, INTEGERS = PRODUCTS + ",mixed,other,wide", PRODUCTS + ",mixed,other"
CASES = [
    Case("pointwise", "dsl/kernels/pointwise/gelu_tanh.tgl", "...=(3, 1031)"),
    Case("pointwise, transposing", "dsl/kernels/pointwise/transpose_add.tgl", "N=67", "y"),
    Case("row in a team", E2E + "rows.tgl", "M=5,N=33", "y,z,n"),
    Case("row in a block", "dsl/kernels/softmax/softmax.tgl", "M=3,N=1031"),
    Case("row in shared memory", E2E + "rows.tgl", "M=3,N=9001", "y,z,n"),
    Case("row in a cluster", E2E + "rows.tgl", "M=2,N=65537", "y,z,n"),
    Case("rows in clusters, of odd lengths", CODEGEN + "rows.tgl", "N=130,D=33001", "y", ("--kernel=both",)),
    Case("rows in clusters, of two bytes", CODEGEN + "rows.tgl", "N=130,D=70001", "y", ("--kernel=small",)),
    Case("places in pieces", CODEGEN + "places.tgl", "M=3,N=100003", "y", ("--kernel=rows",)),
    Case("row in pieces", GPU + "longest.tgl", "N=300007", "total,most"),
    Case("columns", "dsl/kernels/reduce/sum_columns.tgl", "M=517,N=37"),
    Case("columns, shared", "dsl/kernels/reduce/argmax.tgl", "B=2,M=517,N=37", "y"),
    Case("variances", "dsl/kernels/norm/group_norm.tgl", "N=3,C=12,H=7,W=9,G=3"),
    Case("batch statistics", "dsl/kernels/norm/batch_norm_relu.tgl", "N=3,C=5,H=17,W=19"),
    Case("loss", "dsl/kernels/loss/cross_entropy.tgl", "B=7,C=133"),
    Case("sorting", "dsl/kernels/reduce/topk.tgl", "M=5,N=77", "v,e"),
    Case("scan in a team", E2E + "totals.tgl", "M=3,N=2052", "s,r,e,m,p,t"),
    Case("scan over blocks", E2E + "totals.tgl", "M=1,N=70001", "s,r,e,m,p,t"),
    Case("scan in tiles", CODEGEN + "scan-integers.tgl", "N=2,D=300007", "y", ("--kernel=rows",)),
    Case("scan of columns in tiles", CODEGEN + "scan-integers.tgl", "N=4099,D=133", "y", ("--kernel=column",)),
    Case("scan of columns, of 64 bits", CODEGEN + "scan-doubles.tgl", "N=1031,D=36", "y"),
    Case("scan of columns", "dsl/kernels/scan/cumprod_columns.tgl", "M=37,N=35"),
    Case("recurrence, first order", "dsl/kernels/scan/linear_recurrence.tgl", "B=2,L=37,D=35"),
    Case("windows", "dsl/kernels/pool/max_pool2d.tgl", "N=2,C=3,H=19,W=23", "y"),
    Case("mean over two dims", "dsl/kernels/pool/avg_pool_flat.tgl", "N=2,C=3,H=19,W=23,K=5"),
    Case("windows, several", "test/e2e/codegen/windows.tgl", "N=2,C=3,H=19,W=23"),
    Case("depthwise", "dsl/kernels/conv/depthwise_separable.tgl", "N=2,C=5,H=19,W=23,O=7,KH=3,KW=3"),
    Case("gather", GPU + "gather.tgl", "V=11,D=35,N=37", "y"),
    Case("accumulation", E2E + "counts.tgl", "M=35,N=37", "y,c", ("-p", "K=40")),
    Case("copies of few elements", CODEGEN + "few-targets.tgl", "B=3,N=5003", "bytes,rows,sums,most,least,columns,both"),
    Case("rows of lengths that data gives", CODEGEN + "row-ranges.tgl", "R=131,Z=4099", "sums,counts,most"),
    Case("product", CODEGEN + "products.tgl", "M=65,N=131,K=77", PRODUCTS, type="f32"),
    Case("product", CODEGEN + "products.tgl", "M=72,N=136,K=104", PRODUCTS, type="f16"),
    Case("product", CODEGEN + "products.tgl", "M=64,N=129,K=65", PRODUCTS, type="bf16"),
    Case("product, parts of sums", CODEGEN + "products.tgl", "M=17,N=23,K=1025", PRODUCTS, type="f32"),
    Case("product, warpgroups", CODEGEN + "products.tgl", "M=130,N=190,K=133", PRODUCTS,
         ("--tensor-tile=64x128-warpgroups",), "f32"),
    Case("product, warpgroups", CODEGEN + "products.tgl", "M=136,N=264,K=136", PRODUCTS,
         ("--tensor-tile=128x128-warpgroups",), "bf16"),
    Case("product, planes", CODEGEN + "products.tgl", "M=130,N=190,K=133", PRODUCTS,
         ("--tensor-tile=128x128-packed",), "f32"),
    Case("product, planes", CODEGEN + "products.tgl", "M=130,N=190,K=133", PRODUCTS,
         ("--tensor-tile=128x128-packed",), "bf16"),
    Case("product, pairs", CODEGEN + "products.tgl", "M=130,N=190,K=533", PRODUCTS,
         ("--tensor-tile=128x128-packed/2",), "f32"),
    Case("product, pairs", CODEGEN + "products.tgl", "M=130,N=72,K=1032", PRODUCTS,
         ("--tensor-tile=128x64-warpgroups/2",), "bf16"),
    Case("product, few tiles of a sum", CODEGEN + "products.tgl", "M=130,N=72,K=1544", PRODUCTS,
         ("--tensor-tile=128x64-warpgroups/3",), "bf16"),
    Case("product, clusters of four", CODEGEN + "products.tgl", "M=72,N=136,K=1096", PRODUCTS,
         ("--tensor-tile=64x128-warpgroups/4",), "bf16"),
    Case("product, clusters of four", CODEGEN + "products.tgl", "M=130,N=136,K=517", PRODUCTS,
         ("--tensor-tile=128x128-packed/4",), "f32"),
    Case("product, clusters of eight", CODEGEN + "products.tgl", "M=13,N=77,K=1291", PRODUCTS, ("--tensor-tile=16x128/8",), "bf16"),
    Case("product, several tiles", CODEGEN + "products.tgl", "M=261,N=650,K=96", PRODUCTS,
         ("--tensor-tile=64x256-packed",), "f32"),
    Case("product, careful sums", CODEGEN + "infinite.tgl", "M=65,N=131,K=77", type="f32"),
    Case("product, careful sums", CODEGEN + "infinite.tgl", "M=65,N=131,K=77", flags=("--tensor-tile=64x128-packed",), type="f32"),
    Case("product, careful sums", CODEGEN + "infinite.tgl", "M=65,N=131,K=77", flags=("--tensor-tile=64x128-warpgroups",), type="f32"),
    Case("product of f8", CODEGEN + "bytes.tgl", "M=136,N=264,K=272", BYTES, ("--tensor-tile=128x256-warpgroups",),
         "f8e4m3"),
    Case("product of f8, planes", CODEGEN + "bytes.tgl", "M=130,N=190,K=133", BYTES, ("--tensor-tile=128x128-packed",),
         "f8e5m2"),
    Case("product of f8, warps", CODEGEN + "bytes.tgl", "M=65,N=63,K=144", BYTES, ("--tensor-tile=64x64",), "f8e4m3"),
    Case("product of i8", CODEGEN + "integers.tgl", "M=136,N=264,K=272", INTEGERS,
         ("--tensor-tile=128x256-warpgroups",), "i8"),
    Case("product of i8, planes", CODEGEN + "integers.tgl", "M=130,N=190,K=133", INTEGERS,
         ("--tensor-tile=64x128-packed",), "u8"),
    Case("product of i8, warps", CODEGEN + "integers.tgl", "M=65,N=63,K=144", INTEGERS, ("--tensor-tile=64x64",), "i8"),
    Case("convolution", CODEGEN + "windows.tgl", "N=2,C=9,H=13,W=14,O=40", "same,apart,point", type="f32"),
    Case("convolution, planes", CODEGEN + "windows.tgl", "N=3,C=9,H=23,W=24,O=40", "same,apart,point",
         ("--tensor-tile=64x128-packed",), "f32"),
    Case("convolution, transposed", "dsl/kernels/conv/conv_transpose2d.tgl", "N=2,C=7,H=9,W=11,O=5"),
    Case("few rows", CODEGEN + "few-rows.tgl", "B=2,G=2,R=4,N=1031,D=128", "o,ol,ow", ("-p", "C=20"), "bf16"),
    Case("few rows of short lines", CODEGEN + "few-rows.tgl", "B=2,G=1,R=9,N=300,D=24", "o,ol,ow", type="f16"),
    Case("few rows of pages", CODEGEN + "few-rows-pages.tgl", "B=3,G=2,R=4,N=40,S=16,P=11,D=64", "o", type="bf16"),
    Case("few rows of a packed weight", CODEGEN + "skinny-words.tgl", "M=7,N=100,K=2080", "y,yn,ye,yi,yr",
         ("--tensor-tile=64-columns",), "bf16"),
    Case("few rows of words across", CODEGEN + "skinny-bytes.tgl", "M=17,N=72,K=160,G=3", "y,yf,yl,yp,yh,yb,yv",
         ("--tensor-tile=32-columns",), "f16"),
    Case("rows of tiles", CODEGEN + "tile-loop.tgl", "G=2,R=2,S=65,N=136,D=40", "o,ot", type="f16"),
    Case("rows of tiles", CODEGEN + "tile-loop.tgl", "G=1,R=1,S=127,N=264,D=64", "o,ot", ("-p", "C=100,W=40"), "bf16"),
    Case("rows of tiles, several to a block", CODEGEN + "tile-loop.tgl", "G=48,R=1,S=261,N=136,D=16", "o,ot", ("-p", "C=-60"), "f16"),
    Case("rows of tiles, two blocks", CODEGEN + "tile-loop.tgl", "G=1,R=1,S=200,N=136,D=264", "o,ot", ("-p", "C=-70"), "bf16"),
    Case("rows of tiles, four blocks", CODEGEN + "tile-loop.tgl", "G=33,R=1,S=65,N=136,D=1024", "o,ot", type="f16"),
    Case("rows of tiles, planes", CODEGEN + "tile-loop.tgl", "G=1,R=1,S=127,N=264,D=64", "o,ot", type="f32"),
    Case("grouped product", CODEGEN + "grouped.tgl", "N=300,K=128,M=256,E=4", "y,z,q,t,o", type="bf16"),
    Case("grouped product, planes", CODEGEN + "grouped.tgl", "N=150,K=128,M=256,E=5", "y,z,q,t,o", type="f32"),
    Case("recurrence", "dsl/kernels/rnn/gru.tgl", "L=5,B=3,I=7,H=68"),
    Case("recurrence", "dsl/kernels/rnn/lstm.tgl", "L=5,B=3,I=7,H=68"),
    Case("broadcasts", "dsl/kernels/pointwise/gated_residual.tgl", "M=5,N=37"),
]

KERNELS = "dsl/kernels/"
F32, F16, BF16 = (("--type=T=" + name,) for name in ("f32", "f16", "bf16"))
# What fills a device, for --repeat: alone, and beside an emulator, these take too long.
LARGE = [
    Case("product", KERNELS + "linear/matmul.tgl", "M=1000,N=1000,K=1000", flags=F32),
    Case("product", KERNELS + "linear/matmul.tgl", "M=1024,N=1024,K=1024", flags=F32),
    Case("product", KERNELS + "linear/matmul.tgl", "M=2048,N=1024,K=512", flags=BF16),
    Case("product, clusters", KERNELS + "linear/matmul.tgl", "M=16,N=4096,K=4096", flags=BF16),
    Case("product, clusters", KERNELS + "linear/matmul.tgl", "M=128,N=4096,K=4096", flags=BF16),
    Case("product, pairs", KERNELS + "linear/matmul.tgl", "M=512,N=512,K=512", flags=F32),
    Case("product, tails", KERNELS + "linear/matmul.tgl", "M=2304,N=4096,K=1024", flags=(*BF16, "--tensor-tile=128x256-tail")),
    Case("product, parts of sums", KERNELS + "linear/matmul.tgl", "M=256,N=256,K=16384", flags=F32),
    Case("product, parts of sums", KERNELS + "linear/linear_gelu.tgl", "M=64,K=4096,N=1024", flags=F16),
    Case("product of f8", KERNELS + "linear/f8_matmul.tgl", "M=1024,N=1024,K=1024"),
    Case("product of i8", KERNELS + "linear/int8_matmul.tgl", "M=1024,N=1024,K=1024"),
    Case("grouped product", CODEGEN + "grouped.tgl", "N=1000,K=512,M=512,E=8", type="bf16"),
    Case("rows of tiles", KERNELS + "attention/online_attention.tgl", "B=2,H=8,G=4,S=1000,S2=1000,D=64", flags=BF16),
    Case("rows of tiles", KERNELS + "attention/causal_attention.tgl", "B=2,H=8,S=1024,D=128", flags=F16),
    Case("rows of tiles, planes", KERNELS + "attention/causal_attention.tgl", "B=1,H=8,S=1000,D=64", flags=F32),
    Case("convolution", KERNELS + "conv/conv2d_relu.tgl", "N=4,C=32,H=56,W=56,O=64,KH=3,KW=3"),
    Case("convolution, few channels", KERNELS + "conv/conv2d_relu.tgl", "N=4,C=3,H=112,W=112,O=64,KH=3,KW=3"),
    Case("rows in clusters", KERNELS + "softmax/softmax.tgl", "M=40,N=131072", flags=F32),
    Case("row in a block", KERNELS + "norm/layer_norm.tgl", "M=2000,N=4099", flags=F32),
    Case("scan over blocks", KERNELS + "scan/cumsum.tgl", "M=1,N=3000001", flags=F32),
    Case("scan in tiles", KERNELS + "scan/cumsum.tgl", "M=64,N=65537", flags=F32),
    Case("columns", KERNELS + "reduce/sum_columns.tgl", "M=65536,N=64"),
    Case("recurrence", KERNELS + "rnn/lstm.tgl", "L=50,B=16,I=128,H=512"),
    Case("recurrence", KERNELS + "rnn/gru.tgl", "L=50,B=4,I=64,H=256"),
    Case("sorting", KERNELS + "reduce/topk.tgl", "M=1024,N=3000"),
]


def find_sanitizer() -> str:
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    for place in (shutil.which("compute-sanitizer"), f"{home}/bin/compute-sanitizer",
                  f"{home}/compute-sanitizer/compute-sanitizer"):
        if place and os.access(place, os.X_OK):
            return place
    return ""


def prepare(case: Case, folder: pathlib.Path) -> list[str]:
    """What follows `tegula run`. A file whose T is no parameter is written anew with a type for it."""
    file = ROOT / case.file
    if case.type:
        text = re.sub(r": T\[", f": {case.type}[", file.read_text())
        file = folder / f"{file.stem}-{case.type}.tgl"
        file.write_text(re.sub(r"\bT\(", f"{case.type}(", text))
    sizes = ["-d", case.sizes] if case.sizes else []
    return [str(file), *sizes, "--seed=3", *case.flags]


class Outcome(NamedTuple):
    case: Case
    tool: str
    found: str  # empty: nothing
    seconds: float


def execute(command: list[str], deadline: float) -> tuple[int, str]:
    environment = {**os.environ, "TEGULA_CACHE_DIR": ""}
    try:
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               timeout=deadline, env=environment)
    except subprocess.TimeoutExpired:
        return 124, f"not done after {deadline:.0f} s"
    return ended.returncode, ended.stdout


def told(code: int, text: str) -> str:
    """The lines that say what was found, and the exit code."""
    lines = [line.removeprefix("=========").strip() for line in text.splitlines()]
    telling = [line for line in lines if re.search(r"Error|Invalid|Uninit|Race|hazard|Barrier|error:|not done|other bits", line)]
    return f"exit code {code}: " + " | ".join(dict.fromkeys((telling or lines)[:4]))


def run_tool(case: Case, tool: str, options, sanitizer: str, folder: pathlib.Path) -> Outcome:
    """`tool`: of compute-sanitizer, `agree` or `repeat`."""
    start = time.monotonic()
    mine = folder / re.sub(r"\W+", "-", f"{case.name} {tool}")
    mine.mkdir()
    arguments, found = prepare(case, mine), ""
    if tool == "agree":
        targets = ["cuda", "emulate"] if options.target == "cuda" else ["emulate", "cpu"]
        names = case.outputs.split(",") if case.outputs else []
        for target in targets:
            out = [f"--out={name}={mine}/{target}.{name}.npy" for name in names]
            code, text = execute([options.tegula, "run", *arguments, f"--target={target}", *out], options.deadline)
            if code:
                found = f"{target}: {told(code, text)}"
                break
        else:
            differ = [name for name in names
                      if (mine / f"{targets[0]}.{name}.npy").read_bytes() != (mine / f"{targets[1]}.{name}.npy").read_bytes()]
            found = f"{' and '.join(targets)} differ in {', '.join(differ)}" if differ else ""
    elif tool == "repeat":
        code, text = execute([options.tegula, "run", *arguments, f"--target={options.target}", f"--repeat={options.repeat}"],
                             options.deadline)
        found = told(code, text) if code else ""
    else:
        command = [sanitizer, f"--tool={tool}", f"--error-exitcode={FOUND}", "--target-processes=all",
                   options.tegula, "run", *arguments, "--target=cuda", "--deadline=0"]
        code, text = execute(command, options.deadline)
        (mine / "log").write_text(text)
        found = told(code, text) if code else ""
        if "Device not supported" in text:
            found = "compute-sanitizer: this device is not supported"
    return Outcome(case, tool, found, time.monotonic() - start)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tegula", default=shutil.which("tegula") or str(ROOT / "build/release/bin/tegula"))
    parser.add_argument("--tools", default=TOOLS)
    parser.add_argument("--target", choices=("cuda", "emulate"), default="cuda")
    parser.add_argument("--plain", action="store_true", help="no compute-sanitizer: whether results agree, alone")
    parser.add_argument("--only", default="", help="cases that have this text in their names")
    parser.add_argument("--part", default="1/1", help="1/3: every third case from the first on")
    parser.add_argument("--repeat", type=int, default=0, help="runs of each case, which have to give the same bits")
    parser.add_argument("--jobs", type=int, default=8, help="processes at a time")
    parser.add_argument("--deadline", type=float, default=120, help="seconds for a process")
    options = parser.parse_args()
    sanitizer = find_sanitizer()
    plain = options.plain or options.repeat or options.target == "emulate"
    if not plain and not sanitizer:
        print("sanitize.py: there is no compute-sanitizer in PATH or $CUDA_HOME/bin", file=sys.stderr)
        return 3
    tools = ["repeat"] if options.repeat else ["agree", *([] if plain else options.tools.split(","))]
    part, parts = (int(number) for number in options.part.split("/"))
    all_cases = CASES + (LARGE if options.repeat and options.target == "cuda" else [])
    cases = [case for case in all_cases if options.only in case.name][part - 1::parts]
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(run_tool, case, tool, options, sanitizer, pathlib.Path(folder))
                for tool in tools for case in cases]
        for job in concurrent.futures.as_completed(jobs):
            outcomes.append(job.result())
            if outcomes[-1].found:
                one = outcomes[-1]
                print(f"{one.tool}, {one.case.name}: {one.found}", flush=True)
    if any("not supported" in one.found for one in outcomes):
        return 3
    print(f"{'':10}{'cases':>7}{'clean':>7}{'seconds':>9}")
    for tool in tools:
        ours = [one for one in outcomes if one.tool == tool]
        print(f"{tool:10}{len(ours):7}{sum(not one.found for one in ours):7}{sum(one.seconds for one in ours):9.0f}")
    return 4 if any(one.found for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
