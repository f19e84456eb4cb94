#!/usr/bin/env python3
"""Tokens per second and the error of logits: eager mode, torch.compile, and with modules swapped for programs.

    measure.py [MODEL...] [--device=cpu|cuda] [--size=small|large] [--dtype=f32|bf16|f16] [--batch=2] [--tokens=16]
               [--steps=8] [--compile=BACKEND] [--mode=MODE]

MODEL: decoder, experts, state_space, vision; all without one. A prefill is one call with --tokens tokens (of vision: with
images, each a token), a decode --steps calls with one token each. An error is the norm of the difference to the model in
float64, as a part of the norm. Exit code 1 where a module is not swapped, or falls back.
"""
import argparse
import copy
import importlib
import pathlib
import statistics
import sys
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import tegula  # noqa: E402

ATTENTION = {"layers.*.norm*": "norm.tgl", "norm": "norm.tgl", "layers.*.attention.rotate": "rotate.tgl",
             "layers.*.attention.core": "core.tgl"}
PROGRAMS = {
    "decoder": {**ATTENTION, "layers.*.mlp": "mlp.tgl"},
    "experts": {**ATTENTION, "layers.*.mlp.routed": "experts.tgl"},
    "state_space": {"layers.*.norm": "norm.tgl", "norm": "norm.tgl", "layers.*.scan": "scan.tgl"},
    "vision": {"layers.*.norm*": "vision_norm.tgl", "norm": "vision_norm.tgl", "layers.*.core": "vision_core.tgl",
               "layers.*.mlp": "vision_mlp.tgl"},
}
TIMED = 3  # calls, of which medians are taken
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


class Work:
    """What a model is given, and what is timed."""

    def __init__(self, name, size, options):
        self.device, self.steps = options.device, options.steps if name in ("decoder", "experts") else 0
        self.tokens = options.batch * (1 if name == "vision" else options.tokens)
        generator = torch.Generator().manual_seed(1)
        if name == "vision":
            shape = options.batch, 3, size["image"], size["image"]
            self.input = torch.randn(shape, generator=generator).to(options.device, DTYPES[options.dtype])
            self.step = None
        else:
            self.input, self.step = (torch.randint(size["vocab"], (options.batch, count), generator=generator).to(options.device)
                                     for count in (options.tokens, 1))
        self.batch = options.batch

    def prefill(self, model):
        return model(self.input)

    def decode(self, model, past):
        for _ in range(self.steps):
            logits, past = model(self.step, past)
        return logits

    def examples(self, model):
        """A prefill and all steps of a decode: the programs are compared on the shortest and the longest."""
        found = self.prefill(model)
        if self.steps:
            self.decode(model, found[1])

    def logits(self, model):
        """Of the prefill, and of the last step."""
        with torch.no_grad():
            found = self.prefill(model)
            return torch.cat([found[0], self.decode(model, found[1])], 1) if self.steps else found

    def seconds(self, call):
        found = []
        for _ in range(1 + TIMED):  # the first warms up
            if self.device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            if self.device == "cuda":
                torch.cuda.synchronize()
            found.append(time.perf_counter() - start)
        return statistics.median(found[1:])

    def rates(self, model):
        """Tokens per second, of the prefill and of the decode."""
        with torch.no_grad():
            rates = [self.tokens / self.seconds(lambda: self.prefill(model))]
            if self.steps:
                past = self.prefill(model)[1]
                rates.append(self.batch * self.steps / self.seconds(lambda: self.decode(model, past)))
            return rates


def error(found, exact):
    return float((found.double() - exact).norm() / exact.norm())


def measure(name, options):
    """Rows (what, tokens per second, error of logits), and the report of the swap."""
    module = importlib.import_module(name)
    size = module.SIZES[options.size]
    torch.manual_seed(0)
    model = module.Model(**size).to(options.device, DTYPES[options.dtype]).eval()
    work = Work(name, size, options)
    exact_work = copy.copy(work)
    if work.input.is_floating_point():
        exact_work.input = work.input.double()
    exact_model = copy.deepcopy(model).double()
    wide = torch.Tensor.float
    torch.Tensor.float = lambda self: self if self.dtype == torch.float64 else wide(self)  # norms ask for float32
    try:
        exact = exact_work.logits(exact_model)
    finally:
        torch.Tensor.float = wide
    del exact_model
    rows = []

    def add(what, model):
        rows.append((what, work.rates(model), error(work.logits(model), exact)))

    def compiled(model):
        torch.compiler.reset()
        return torch.compile(model, backend=options.compile, mode=options.mode)

    add("eager", model)
    if options.compile:
        add(f"torch.compile ({options.compile})", compiled(model))
    programs = {pattern: HERE / file for pattern, file in PROGRAMS[name].items()}
    swap = tegula.swap(model, programs, work.examples, gradients=False)
    add("swapped", model)
    report = swap.report()
    if options.compile:
        add(f"swapped, torch.compile ({options.compile})", compiled(model))
    return rows, report


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", choices=[*PROGRAMS, []], default=[])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--size", choices=("small", "large"), default="small")
    parser.add_argument("--dtype", choices=tuple(DTYPES), default="f32")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--compile", metavar="BACKEND", help="time torch.compile too, with this backend (inductor)")
    parser.add_argument("--mode", help="of torch.compile, such as reduce-overhead")
    options = parser.parse_args(arguments)
    status = 0
    for name in options.models or PROGRAMS:
        try:
            rows, report = measure(name, options)
        except tegula.SwapError as refused:
            print(f"{name}: not swapped\n{refused}")
            status = 1
            continue
        print(f"{name} {options.size}, {options.dtype} on {options.device}: batch {options.batch}, {options.tokens} tokens, "
              f"{options.steps} steps; {len(report)} modules swapped")
        print(f"  {'':32} {'prefill tok/s':>14} {'decode tok/s':>14} {'error of logits':>16}")
        for what, rates, off in rows:
            cells = [f"{rate:14,.0f}" for rate in rates] + ["             -"] * (2 - len(rates))
            print(f"  {what:32} {' '.join(cells)} {off:16.2e}")
        for one in report:
            if one.fallbacks or not one.calls:
                print(f"  {one.name}: {one.calls} calls, fell back: {one.fallbacks}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
