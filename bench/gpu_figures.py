#!/usr/bin/env python3
"""Measures tables of docs/results on a machine with a CUDA device and prints them as Markdown.

    TEGULA_TORCH=libtegula_torch.so bench/gpu_figures.py [--tegula=PATH] [--rows=TEXT] [--seconds=0.2]
                                                         [--only=products,uneven,f32,tf32,accuracy,wide,attention,
                                                                 f32attention,equations,grouped,memory,small,compile]

Kernel and torch's call take turns in this process (TEGULA_LIBRARY, PYTHONPATH=python), the L2 cache emptied before each, medians
of ten; results are checked. --rows takes those rows alone whose name has the text in it.

products      bf16 and f16 beside torch.matmul (cuBLAS); f8 and i8 beside torch._scaled_mm (scales of 1, a result of bf16) and
              torch._int_mm; errors in relation to the norm of the result in float64. From 2048 on also the rates of either
              side alone in a loop of half a second, after another one: what the device's power allows
uneven        the same of sizes whose tiles are no multiple of the multiprocessors
f32           the same, at f32's accuracy beside cuBLAS's f32 (TF32 off)
tf32          the same, `precision tf32` beside cuBLAS's TF32
accuracy      f32 products of several kinds of data beside cuBLAS's f32: errors of the whole in relation to the norm of the result
              in float64, and of the worst element in relation to the sum of its terms' absolute values
wide          f32 products of data that asks for care, columns of one operand in units of 2^-20 to 2^20, which rows of the other take
              out again: whole products are added up without tensor cores, beside cuBLAS's f32; errors as of `accuracy`
attention     beside scaled_dot_product_attention by cuDNN and by flash attention, or, which alone takes head dims beyond 256, its
              memory-efficient backend; the ratio is to the fastest, the difference to cuDNN's result, or that, in relation to its norm
f32attention  the same kernels in f32, 2 x 8 heads of 4096 rows, beside the backends that take it, without TF32: the
              memory-efficient one and equations; the ratio is to the faster, the error beside its in relation to the norm of the
              result in float64, in 2048 rows
equations     f32 attention as the library's function, without tiles, beside scaled_dot_product_attention's memory-efficient
              backend (TF32 off); errors as of `f32attention`
grouped       rows times the matrices that data chooses for them, beside torch._grouped_mm with the sort that it needs, without it,
              and a loop over the matrices
memory        sums of columns, scans and places of the largest elements of many shapes beside torch.sum, cumsum and argmax; a call
              is made twice, and has to give the same bits
small         `tegula bench` of calls captured in CUDA graphs, on both sides (--tegula, TEGULA_TORCH, --seconds each; docs/bench.md)
compile       source to cubin as a process, and by the C interface in this one, nothing cached, medians of 9

A row that is wrong, or ends in an error, says so and makes the exit code 4.
"""
import argparse
import sys

from gpu.measure import ROOT, Measure
from gpu.sections import SECTIONS


def print_section(section, measure, rows):
    """Whether all rows are right whose name has the text in it."""
    all_right = True
    print(f"| {' | '.join(section.columns)} |\n|{'---|' * len(section.columns)}")
    for name, *case in section.cases():
        if rows not in name:
            continue
        try:
            cells, right = section.row(measure, name, *case)
        except Exception as error:  # whatever a backend, the compiler or a process of it says
            cells, right = [f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"], False
        print(f"| {name if right else f'{name}, wrong'} | {' | '.join(cells)} |", flush=True)
        all_right &= right
    return all_right


def main(arguments=None, make=Measure):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tegula", default=ROOT / "build/release/bin/tegula")
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("--rows", default="")
    parser.add_argument("--seconds", default="0.2")
    options = parser.parse_args(arguments)
    names = options.only.split(",")
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        parser.error(f"no such section: {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    measure, all_right = make(options.tegula, options.seconds), True
    for name in names:
        print(f"\n### {name}\n")
        all_right &= print_section(SECTIONS[name], measure, options.rows)
    return 0 if all_right else 4


if __name__ == "__main__":
    sys.exit(main())
