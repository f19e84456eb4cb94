"""Measures kernels that people serve and train, beside eager mode, torch.compile and other projects' kernels.

    TEGULA_LIBRARY=libtegula.so python3 bench/real [--only=decode_gqa,...] [--class=decode,...] [--part=1/1]
                        [--no-compile] [--alone] [--launches] [--seconds=2] [--tegula=build/release/bin/tegula] [--json=FILE] [--deadline=300]
                        [--budget=540]
    python3 bench/real --check [--target=cpu|emulate|cuda] [--only=...] [--class=...] [--part=1/1]
    python3 bench/real --table=FILE,... [--beside=PAGE]
    python3 bench/real --list

The first takes a CUDA device, each kernel at its full sizes: the results are held against eager mode's, and then all take
turns in one process, the second-level cache emptied before each call; times are medians of up to 9 calls, fewer where they do
not fit into --seconds. The *bound* is the larger of the bytes that must move, at the rate of a copy, and the operations, at the
rate of cuBLAS's bf16 or f32 products (twice bf16's for 8 bits); both rates are measured in the same run. Peers (Liger,
flash-linear-attention, cuSPARSE, torch's own fused kernels) are taken where they can be imported, and said to be missing where
not. Where --tegula is there, `tegula compile --why` tells the reason for each kernel that is slower than twice its bound.

--check runs each kernel at small sizes and holds every element against the reference in float64; --target=cpu and emulate do
that alone. --launches adds what each launch of ours takes, one after the other with whatever the one before left in the caches
(CUPTI's times). --part=2/3 takes the second of three parts of the kernels, and no kernel is begun after --budget seconds. --json
appends a line for each kernel to a file, and --table prints the table of such files; with --beside, others' times are those of an
earlier table, which a page holds, where they were shorter then or are not in the file, as after --alone.

Kernels run in a process of their own, which is begun anew when one of them ends it or takes longer than --deadline. Exit code:
0 all is right, 2 the call is wrong, 3 a device or a program is missing, 4 a result is wrong or a kernel failed.
"""
import argparse
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]

from real import table, worker  # noqa: E402


def arguments(given):
    parser = argparse.ArgumentParser(prog="bench/real", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--class", dest="groups", default="")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--target", default=None, choices=["cuda", "cpu", "emulate"])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--alone", action="store_true", help="time no others, whose steps or tuning may take minutes")
    parser.add_argument("--launches", action="store_true", help="what each launch takes, too")
    parser.add_argument("--seconds", type=float, default=2.0, help="for the calls of one kernel")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which no kernel is begun")
    parser.add_argument("--deadline", type=float, default=300.0, help="seconds for one kernel, compilation included")
    parser.add_argument("--tegula", type=os.path.abspath, default=str(ROOT / "build/release/bin/tegula"))
    parser.add_argument("--json", default="")
    parser.add_argument("--table", default="")
    parser.add_argument("--beside", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    options.target = options.target or ("cpu" if options.check else "cuda")
    options.check |= options.target != "cuda"
    return parser, options


def main(given=None):
    parser, options = arguments(given)
    if options.table:
        rows = [json.loads(line) for file in options.table.split(",") for line in open(file)]
        print(table.times(table.with_shorter(rows, pathlib.Path(options.beside).read_text()) if options.beside else rows))
        return 0
    if options.worker:
        return worker.serve(options)
    rows, out = [], open(options.json, "a") if options.json else None
    for row in worker.rows(options):
        if "wrong" in row:
            parser.error(row["wrong"])
        if "no" in row:
            print(row["no"], file=sys.stderr)
            return 3
        if "left" in row:
            print(f"not begun within --budget: --only={','.join(row['left'])}")
            continue
        print(table.line(row), flush=True)
        if out and not options.list:
            print(json.dumps(row), file=out, flush=True)
        rows.append(row)
    if options.list:
        return 0
    print("\n" + (table.checks(rows) if options.check else table.times(rows)))
    return 0 if all(row.get("right", True) for row in rows) else 4


if __name__ == "__main__":
    sys.exit(main())
