"""The command tegula-eval."""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import missing
from .commands import audit, export, kernelbench, launches, options as shared, profile, suites, times, trial
from .commands.exit_codes import STOPPED, WRONG_CALL
from .records import report
from .records.store import StoreError
from .rule.tasks import DTYPES, TaskError


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        missing.check(*_needed(options))
        return options.function(options)
    except missing.Missing as error:
        print(f"tegula-eval: {error}", file=sys.stderr)
        return STOPPED
    except (TaskError, StoreError, RuntimeError) as error:
        print(f"tegula-eval: {error}", file=sys.stderr)
        return STOPPED if isinstance(error, StoreError) else WRONG_CALL
    except OSError as error:  # a file that is not there, or one that cannot be written
        print(f"tegula-eval: {error}", file=sys.stderr)
        return WRONG_CALL if isinstance(error, (FileNotFoundError, NotADirectoryError, PermissionError)) else STOPPED
    except KeyboardInterrupt:
        print("\ntegula-eval: stopped; the same command goes on from here", file=sys.stderr)
        return STOPPED


def _needed(options) -> list[str]:
    """Packages that the command imports, here or in a process of its own."""
    if options.function is _report:
        return []
    needed = ["torch"]
    if options.function is _serve:
        needed += ["fastapi", "uvicorn"]
    if getattr(options, "model", None):
        needed.append("openai")
    if getattr(options, "ray", None):
        needed.append("ray")
    return needed if getattr(options, "plain", True) else [*needed, "rich"]


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tegula-eval", description="Judges Tegula programs on PyTorch modules.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    bench = commands.add_parser(
        "kernelbench", help="programs on KernelBench's tasks, or a folder of tasks in its form",
        epilog="Exit codes: 0 all right, 1 some are not, 2 wrong arguments, 3 stopped (run it again to go on).")
    bench.set_defaults(function=_kernelbench)
    shared.add_root(bench)
    source = bench.add_mutually_exclusive_group(required=True)
    shared.add_programs(source)
    source.add_argument("--candidates", type=Path, help="folder of Python files with ModelNew (PyTorch, Triton, CUDA)")
    shared.add_asking(bench, source)
    bench.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    shared.add_devices(bench)
    bench.add_argument("--dtype", choices=tuple(DTYPES), default="f32",
                       help="of inputs, parameters and buffers that are floating point (f32: as the task has them)")
    shared.add_judging(bench)
    bench.add_argument("--seeds", type=int, default=2, help="sets of inputs for each size")
    shared.add_own(bench)
    shared.add_certify(bench)
    bench.add_argument("--time", action="store_true", default=None, help="time them (default on cuda)")
    bench.add_argument("--no-time", dest="time", action="store_false")
    bench.add_argument("--torch-compile", action="store_true", help="time torch.compile too")
    shared.add_run(bench, "tegula-eval")
    bench.add_argument("--ray", metavar="ADDRESS", help="judge on the machines of a Ray cluster (auto: this machine's)")
    shared.add_audit(bench)
    written = commands.add_parser("export", help="write programs as ModelNew files for KernelBench's own scripts",
                                  epilog="Exit codes: 0 all are written, 1 some are not, 2 wrong arguments.")
    written.set_defaults(function=_export)
    shared.add_root(written)
    source = written.add_mutually_exclusive_group(required=True)
    shared.add_programs(source)
    source.add_argument("--run", type=Path, help="folder of a run: what was right there")
    written.add_argument("--out", type=Path, required=True, help="folder of the files, such as KernelBench/runs/NAME")
    shared.add_judging(written)
    suites.add_command(commands)
    times.add_command(commands)
    trial.add_command(commands)
    launches.add_command(commands)
    profile.add_command(commands)
    audited = commands.add_parser("audit", help="tasks on which an answer without the work passes",
                                  epilog="Exit codes: 0 all tasks ran, 1 some did not, 2 wrong arguments, 3 stopped.")
    audited.set_defaults(function=_audit, target="cpu", candidates=None, seeds=1, time=False, torch_compile=False)
    shared.add_root(audited)
    shared.add_run(audited, "tegula-audit")
    shared.add_judging(audited)
    shared.add_own(audited)
    shown = commands.add_parser("report", help="a run as one HTML file, beside another run",
                                epilog="Exit codes: 0 the page is written, 2 wrong arguments.")
    shown.set_defaults(function=_report)
    shown.add_argument("run", type=Path, help="folder of a run of kernelbench or time")
    shown.add_argument("--against", type=Path, help="folder of a run to compare with")
    shown.add_argument("--out", type=Path, help="where to write (RUN/report.html)")
    again = commands.add_parser("replay", help="do what a record holds again, and say what differs",
                                epilog="Exit codes: 0 verdict, code and results are the same, 1 something differs, "
                                       "2 wrong arguments.")
    again.set_defaults(function=_replay)
    again.add_argument("record", type=Path, help="results.jsonl of a run of kernelbench or time, or one record (.json)")
    shared.add_tasks(again)
    shared.add_limits(again)
    again.add_argument("--out", type=Path, help="file that the new records are added to")
    serve = commands.add_parser("serve", help="judge over HTTP", epilog="The token is TEGULA_EVAL_TOKEN, or printed.")
    serve.set_defaults(function=_serve)
    serve.add_argument("--host", default="127.0.0.1", help="address to listen at (127.0.0.1: this machine alone)")
    serve.add_argument("--port", type=int, default=8080)
    serve.add_argument("--queue", type=shared.count, default=10000, help="submissions that may wait")
    serve.add_argument("--rate", type=shared.count, default=6000, help="submissions a minute of one client")
    serve.add_argument("--out", type=Path, default=Path("tegula-eval-serve"), help="folder of the queue")
    shared.add_judging(serve)
    return parser.parse_args(arguments)


def _kernelbench(options) -> int:
    return kernelbench.run(options)


def _serve(options) -> int:
    from .service import serve  # which needs fastapi and uvicorn
    return serve.run(options)


def _export(options) -> int:
    return export.run(options)


def _replay(options) -> int:
    from .commands import replay
    return replay.run(options)


def _report(options) -> int:
    return report.run(options)


def _audit(options) -> int:
    return audit.run(options)


if __name__ == "__main__":
    sys.exit(main())
