"""The process that kernels run in, and the one that reads what it says: a JSON object a line."""
import gc
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent


def rows(options):
    """Yields what the worker says. Where it ends too early, the kernel that it was at has failed, and another one goes on."""
    left, begin = None, time.monotonic()
    while left is None or left:
        budget = options.budget - (time.monotonic() - begin)
        command = [sys.executable, str(HERE), "--worker", f"--budget={budget}", *flags(options, left)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        late = threading.Event()
        at = None
        try:
            while True:
                timer = threading.Timer(options.deadline, lambda: (late.set(), process.kill()))
                timer.start()
                said = process.stdout.readline()
                timer.cancel()
                if not said:
                    break
                row = json.loads(said)
                if "names" in row:
                    left = row["names"]
                elif "begin" in row:
                    at = row["begin"]
                elif not row.keys().isdisjoint(("wrong", "no", "left")):
                    yield row
                    return
                else:
                    if at is not None:
                        left, at = [name for name in left if name != at], None
                    yield row
        finally:
            process.kill()
            process.wait()
        if left is None or (at is None and left):
            raise RuntimeError(f"the process of the kernels ended before the first: exit code {process.returncode}")
        if at is not None:
            left = [name for name in left if name != at]
            how = f"ended the process: exit code {process.returncode}"
            if late.is_set():
                how = f"took longer than {options.deadline:g} s"
            yield {"case": at, "right": False, "error": how}


def flags(options, left):
    given = [f"--target={options.target}", f"--seconds={options.seconds}", f"--tegula={options.tegula}"]
    given += ["--check"]*options.check + ["--no-compile"]*options.no_compile + ["--alone"]*options.alone
    given += ["--launches"]*options.launches
    given += ["--list"]*options.list
    if left is not None:
        return [*given, f"--only={','.join(left)}"]
    return [*given, f"--only={options.only}", f"--class={options.groups}", f"--part={options.part}"]


def selected(kernels, options):
    """The kernels that the options name; raises ValueError where they name none that there is."""
    only, groups = ([one for one in text.split(",") if one] for text in (options.only, options.groups))
    known = {kernel.group for kernel in kernels.values()}
    unknown = [name for name in only if name not in kernels] + [name for name in groups if name not in known]
    if unknown:
        raise ValueError(f"there is no {', '.join(unknown)}; --list tells the kernels and their classes")
    chosen = [kernel for kernel in kernels.values()
              if (not only or kernel.name in only) and (not groups or kernel.group in groups)]
    part, parts = map(int, options.part.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(f"--part={options.part}: parts are 1/{parts} to {parts}/{parts}")
    return chosen[part - 1::parts]


def what_is_missing(options, runner, torch):
    """What no kernel can run without, or None."""
    try:
        runner.version()
    except (FileNotFoundError, OSError) as error:
        return str(error)
    if options.target == "cuda" and not torch.cuda.is_available():
        return "there is no CUDA device; --check runs small sizes on the CPU"
    if options.target == "emulate" and not pathlib.Path(options.tegula).exists():
        return f"there is no {options.tegula} to emulate device code; --tegula names the program"
    return None


def serve(options):
    """Runs the kernels and says a row for each."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no row

    def say(**row):
        print(json.dumps(row), file=out, flush=True)
    from . import suite
    try:
        chosen = selected(suite.load(), options)
    except ValueError as error:
        say(wrong=str(error))
        return 2
    say(names=[kernel.name for kernel in chosen])
    if options.list:
        for kernel in chosen:
            say(case=kernel.name, group=kernel.group, about=(kernel.make.__doc__ or "").strip())
        say(names=[])
        return 0
    import torch
    from tegula_eval.program import runner
    missing = what_is_missing(options, runner, torch)
    if missing:
        say(no=missing)
        return 3
    from .measure import Measure
    from . import judge
    measure = None
    if not options.check:
        measure = Measure(options)
        say(device=torch.cuda.get_device_name(), torch=torch.__version__, rates=measure.rates)
    begin = time.monotonic()
    for place, kernel in enumerate(chosen):
        if time.monotonic() - begin > options.budget:
            say(left=[one.name for one in chosen[place:]])
            return 0
        say(begin=kernel.name)
        row = {"case": kernel.name, "group": kernel.group}
        try:
            data = suite.Data("cuda" if options.target == "cuda" else "cpu", seed=1)
            if options.check:
                row["errors"], row["right"] = judge.check(kernel, kernel.case(data, small=True), options.target,
                                                                   options.tegula)
            else:
                measure.run(kernel, kernel.case(data, small=False), row)
        except Exception as error:  # whatever the compiler, torch or a driver says: the other kernels are run all the same
            row.update(right=False, error=f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
            if not isinstance(error, runner.Refused):
                traceback.print_exc(limit=3)
        say(**row)
        if options.target == "cuda":
            gc.collect()
            torch.cuda.empty_cache()
    return 0
