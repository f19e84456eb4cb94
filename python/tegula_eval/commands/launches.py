"""tegula-eval launches: where a program's time on the device goes, launch by launch, beside eager mode's kernels.

CUPTI's times, which torch.profiler collects, of kernels that run one after the other with whatever the one before left
in the L2 cache; their sum is therefore less than what `tegula-eval time` says of the whole call.
"""
from __future__ import annotations

import argparse
import collections
import re
import statistics
from typing import Callable

from ..rule.tasks import TaskError, find_tasks
from . import options as shared
from .program_files import find_program

DONE = 0


def add_command(commands) -> None:
    launches = commands.add_parser(
        "launches", help="where a program's time on the device goes, launch by launch",
        epilog="Exit codes: 0 done, 1 a program is refused, 2 wrong arguments or no CUDA device.")
    launches.set_defaults(function=run)
    shared.add_root(launches)
    shared.add_programs(launches, required=True)
    launches.add_argument("--calls", type=shared.count, default=5, help="of which medians are taken")
    launches.add_argument("--precision", choices=("f32", "tf32", "conv_tf32", "bf16"), default="f32",
                          help="of products, for programs that do not say")
    launches.add_argument("--eager", action="store_true", help="kernels of eager mode too")


def kernel_times(call: Callable[[], object], calls: int) -> list[tuple[str, float]]:
    """Name and microseconds of each kernel, in the order in which a call starts them; medians over `calls`."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
    kernels = sorted((one for one in profiled.events() if one.device_type == torch.autograd.DeviceType.CUDA),
                     key=lambda one: one.time_range.start)
    return per_launch([(one.name, one.time_range.elapsed_us()) for one in kernels], calls)


def per_launch(kernels: list[tuple[str, float]], calls: int) -> list[tuple[str, float]]:
    """Of one call, from the kernels of `calls` calls in order: the median of each launch. Where calls differ, as where
    a library measures its choices, the mean of all launches of a name."""
    each, rest = divmod(len(kernels), calls)
    turns = [kernels[turn * each:(turn + 1) * each] for turn in range(calls)]
    if rest or any([name for name, _ in turn] != [name for name, _ in turns[0]] for turn in turns):
        times = collections.defaultdict(float)
        for name, time in kernels:
            times[name] += time / calls
        return list(times.items())
    return [(one[0][0], statistics.median(time for _, time in one)) for one in zip(*turns)]


def show(title: str, times: list[tuple[str, float]]) -> None:
    print(f"{title}: {sum(time for _, time in times):.0f} us")
    for name, time in times:
        print(f"  {time:9.1f}  {re.sub(r'[(<].*', '', name)[:100]}")


def run(options: argparse.Namespace) -> int:
    """Raises TaskError."""
    import torch

    from ..judge import own_sizes
    from ..program import runner
    from ..program.binding import BindingError, bind
    tasks = find_tasks(options.root, options.level, options.tasks)
    if not torch.cuda.is_available():
        raise TaskError("torch sees no CUDA device")
    status = DONE
    for task in tasks:
        path = find_program(options.programs, task)
        if path is None:
            continue
        case = own_sizes.make_case(task.source(), 0, "cuda")
        try:
            program = runner.Program(path.read_text(encoding="utf-8"), path.name)
            binding = bind(program.parameters, case)
            kernel = program.compile(binding.settings, binding.optionals, binding.ellipsis_rank, "cuda", 1,
                                     precision=options.precision)
        except (runner.Refused, BindingError) as error:
            print(f"{task.key}: refused: {error}")
            status = 1
            continue
        launch = kernel.prepare(binding.tensors, binding.scalars)
        show(task.key, kernel_times(launch, options.calls))
        if options.eager:
            with torch.no_grad():
                show("  eager mode", kernel_times(lambda: case.built.model(*case.inputs), options.calls))
        del launch, kernel, case, binding
        own_sizes.free()
    return status
