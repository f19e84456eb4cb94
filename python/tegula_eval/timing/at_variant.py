"""Times a program against its module, in turns.

Every turn draws new inputs, runs PyTorch and the program on them one after the other, and checks what the program
wrote while it was being timed. On CUDA an event stands before and after each call, with the L2 cache overwritten
before it; on the CPU the clock does. Speedups are medians of the turns' own ratios, so that a machine that
changes speed during the run harms neither side.
"""
from __future__ import annotations

import statistics

import torch

from ..program import runner
from ..program.binding import bind
from ..rule.reference import make_case, results
from ..rule.variants import Variant, state_of
from ..rule.verdict import kernelbench_rule
from .clock import Clock
from .roofline import least_seconds


def compiled_for(program: runner.Program, binding) -> dict:
    """What the compiler's model of times asks for: the sizes that dims name, constants and types, and the device."""
    major, minor = torch.cuda.get_device_capability()
    return {"sizes": {dim: size for one in program.parameters if one.name in binding.tensors
                      for dim, size in zip(one.dims, binding.tensors[one.name].shape) if dim.isidentifier()},
            "settings": binding.settings, "device": torch.cuda.get_device_name(),
            "target": f"sm_{major}{minor}" + "a"*(major >= 9)}


def time_program(program: runner.Program, variant: Variant, request: dict) -> dict:
    """Medians in seconds of the program, of eager mode and, where asked for, of torch.compile."""
    target, turns = request.get("target", "cpu"), request["time"].get("turns", 20)
    clock, kernel = Clock(target), None
    times: dict[str, list[float]] = {"program": [], "eager": []}
    if request["time"].get("compile"):
        times["compile"] = []
    # Parameters once, inputs anew for each turn.
    base = make_case(variant.source, request["seed"], "task", target)
    model = base.built.model
    fast, failed = torch.compile(model) if "compile" in times else None, ""
    for turn in range(-3, turns):
        torch.manual_seed(request["seed"] + 1000 + turn)
        base.inputs = [one.to(target) if isinstance(one, torch.Tensor) else one
                       for one in base.built.module.get_inputs()]
        base.state = state_of(model)
        binding = bind(program.parameters, base)
        if kernel is None:
            kernel = program.compile(binding.settings, binding.optionals, binding.ellipsis_rank, target,
                                     request.get("threads", 1))
        launch = kernel.prepare({name: one.clone() for name, one in binding.tensors.items()}, binding.scalars)
        one_turn = {"program": clock(launch)[0]}
        launch.wait()
        with torch.no_grad():
            one_turn["eager"], expected = clock(lambda: model(*base.inputs))
            if fast is not None:
                try:
                    one_turn["compile"] = clock(lambda: fast(*base.inputs))[0]
                except Exception as error:  # whatever a peer's compiler raises says nothing about the program
                    fast, failed = None, f"{type(error).__name__}: {error}"[:2000]
                    times.pop("compile")
        written = [launch.outputs[name] for name in binding.outputs]
        if not all(kernelbench_rule(a, b) for a, b in zip(written, results(expected))):
            return {"failed": f"turn {turn}: the timed call's result is not the module's"}
        if turn >= 0:
            for name, value in one_turn.items():
                times[name].append(value)
    told = {f"{name}_s": statistics.median(values) for name, values in times.items()}
    for name in times:
        if name != "program":
            told[f"{name}_ratio"] = statistics.median(
                theirs / ours for theirs, ours in zip(times[name], times["program"]))
    moved = sum(one.nbytes for one in [*binding.tensors.values(), *launch.outputs.values()])
    told["roofline_s"] = least_seconds(target, moved, variant.cost.flops)
    if target == "cuda":
        told["compiled_for"] = compiled_for(program, binding)
    if failed:
        told["compile_failed"] = failed
    told.update(turns=turns, variant=variant.name, tf32_convolutions=torch.backends.cudnn.allow_tf32,
                tf32_products=torch.backends.cuda.matmul.allow_tf32)
    return told
