"""Writes a program as a `ModelNew` that KernelBench's own evaluation runs.

The file holds the task's text, whose `Model` gives `ModelNew` its constructor and parameters (drawn in the same
order from the same seed, which is how KernelBench gives both the same weights), the program's text, and a forward
that calls it. It needs the package tegula and nothing of this one.
"""
from __future__ import annotations

import textwrap
from typing import Callable

import torch

from ..program import runner
from ..program.binding import Binding, bind
from ..program.runner import Parameter
from ..rule.reference import Case, evaluate_reference, make_case
from .evaluate import caught, derived_seed, find_cached_variants


def export(request: dict, stage: Callable[[str], None] = lambda name: None) -> dict:
    """A record as `evaluate` gives, with the file as `text` where the outcome is `right`: the program binds to the
    module. Whether it is right is for others to say."""
    torch.set_num_threads(1)
    record: dict = {"outcome": "right", "reason": "", "message": "", "flags": [], "cases": [], "timing": None}
    with caught(record):
        stage("parse")
        program = runner.Program(request["program"], request.get("program_name", "program.tgl"))
        stage("check")
        program.check()
        stage("variants")
        variant = find_cached_variants(request)[0]
        stage("bind")
        record["text"] = bound_text(request["name"], request, program, variant.source)
    return record


def bound_text(name: str, request: dict, program: runner.Program, source: str) -> str:
    """The file for a checked program, which is bound to the task at the sizes of `source`. Raises BindingError."""
    case = make_case(source, derived_seed(request["secret"], "export"))
    evaluate_reference(case, 0, audit=False)
    binding = bind(program.parameters, case)
    return module_text(name, request["task"], request["program"], program.parameters, binding, case)


def module_text(name: str, task: str, program: str, parameters: list[Parameter], binding: Binding,
                case: Case) -> str:
    """The file. `binding` is that of any of the task's sizes: only where values come from is taken of it."""
    inputs = case.input_names()
    arguments, held, before = [], [], []
    for parameter in parameters:
        if parameter.role == "out":
            continue
        kind, source = binding.sources.get(parameter.name, ("default", ""))
        if kind == "input":
            given = case.inputs[inputs.index(source)]
            is_tensor = isinstance(given, torch.Tensor)
            arguments.append(f"{source}.item()" if is_tensor and parameter.role == "scalar" else source)
            if is_tensor and not given.is_floating_point():  # KernelBench gives masks and labels as floats
                before.append(f"{source} = {source}.to({given.dtype})")
            if parameter.role == "inout":
                before.append(f"{source} = {source}.clone()")
        elif kind == "state":
            arguments.append(f"held[{len(held)}]" + (".item()" if parameter.role == "scalar" else ""))
            held.append(source)
        elif kind == "constant":
            arguments.append(f"self.given[{source!r}]")
        else:
            arguments.append("None")
    while arguments and arguments[-1] == "None":
        arguments.pop()
    call = f"KERNEL({', '.join(arguments)})"
    if binding.outputs:
        last = [f"return {call}"]
    else:
        written = [argument for argument, one in
                   zip(arguments, (one for one in parameters if one.role != "out")) if one.role == "inout"]
        last = [call, f"return {', '.join(written)}"]
    if held:
        before.insert(0, "held = [owner[key] for owner, key in self.places]")
    lines = [
        f'"""{name}, forward as a Tegula program. Written by tegula-eval export; needs the package tegula."""',
        "import inspect", "", "import tegula", "import torch", "", f"KERNEL = tegula.compile({_quoted(program)})", "",
        "# The task: constructor and parameters are its own.", task.strip("\n"), "", "",
        "class ModelNew(Model):",
        "    def __init__(self, *args, **named):",
        "        super().__init__(*args, **named)",
        "        given = inspect.signature(Model).bind(*args, **named)",
        "        given.apply_defaults()",
        "        self.given = dict(given.arguments)",
    ]
    if held:
        lines += [
            "        # Not the tensors: buffers become others when the module is moved.",
            "        self.places = []",
            "        for name in (", *textwrap.wrap(", ".join(map(repr, held)) + ",", 100,
                                                    initial_indent=" " * 12, subsequent_indent=" " * 12), "        ):",
            '            path, _, key = name.rpartition(".")',
            "            owner = self.get_submodule(path)",
            "            self.places.append((owner._parameters if key in owner._parameters else owner._buffers, key))",
        ]
    lines += ["", f"    def forward(self, {', '.join(inputs)}):" if inputs else "    def forward(self):",
              *(f"        {line}" for line in [*before, *last])]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    if "'''" in text or "\\" in text:
        return repr(text)
    return f"'''\\\n{text}'''"
