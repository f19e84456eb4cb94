"""Arguments that several commands of tegula-eval take, each defined once, and the types of arguments."""
from __future__ import annotations

import argparse
import json
from pathlib import Path


def count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def price(text: str) -> tuple[float, float]:
    of_prompts, of_answers = map(float, text.split(","))
    return of_prompts, of_answers


def levels(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def names(text: str) -> list[str]:
    return text.split(",")


def size(text: str) -> int:
    """Bytes, such as 8M."""
    units = {"K": 10, "M": 20, "G": 30}
    return int(float(text[:-1]) * (1 << units[text[-1]])) if text[-1:] in units else int(text)


def add_root(parser) -> None:
    """Which tasks: of which folder, level and name."""
    parser.add_argument("--root", type=Path, required=True, help="KernelBench's repository, or a folder of tasks")
    parser.add_argument("--level", type=levels, help="such as 1,2,3; default: all")
    add_tasks(parser)


def add_tasks(parser) -> None:
    parser.add_argument("--tasks", type=names, help="names, globs or numbers, with commas")


def add_programs(parser, **more) -> None:
    parser.add_argument("--programs", type=Path, help="folder of programs: level<N>/TASK.tgl, or TASK.tgl", **more)


def add_asking(parser, source) -> None:
    """A model, or a record of its answers, as one of the `source`s of programs, and how it is asked."""
    source.add_argument("--model", help="name of the model to ask for programs")
    source.add_argument("--replay", type=Path, help="recorded answers, such as another run's results.jsonl")
    asking = parser.add_argument_group("asking a model")
    asking.add_argument("--base-url", help="of an endpoint that speaks OpenAI's protocol; its key in OPENAI_API_KEY")
    asking.add_argument("--samples", type=count, default=1, help="conversations for each task")
    asking.add_argument("--turns", type=count, default=1, help="at most so many programs in each")
    asking.add_argument("--examples", type=int, default=3, help="examples beside the page")
    asking.add_argument("--temperature", type=float, help="default: the endpoint's")
    asking.add_argument("--max-tokens", type=count, help="of an answer")
    asking.add_argument("--max-completion-tokens", type=count,
                        help="of an answer and what is thought before it, as models that think want it named")
    asking.add_argument("--reasoning-effort", help="such as low, medium or high; default: the endpoint's")
    asking.add_argument("--extra-body", type=json_object, metavar="JSON",
                        help="further fields of each request, such as '{\"top_k\": 20}'")
    asking.add_argument("--seed", type=int, help="of the first sample; the next ones count up")
    asking.add_argument("--requests", type=count, default=16, help="conversations at once")
    asking.add_argument("--timeout", type=float, default=600, help="seconds for an answer")
    asking.add_argument("--retries", type=int, default=5, help="of a request that failed and may pass")
    asking.add_argument("--no-probe", dest="probe", action="store_false",
                        help="begin without the short request that tells whether address, key and name are right")
    asking.add_argument("--price", type=price, metavar="IN,OUT",
                        help="of a million tokens of prompts and of answers: the summary tells the cost")
    asking.add_argument("--budget", type=count, help="tokens, prompts included, after which nothing more is asked")


def json_object(text: str) -> dict:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"no JSON: {error}") from error
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"{text} is no JSON object")
    return found


def add_devices(parser) -> None:
    parser.add_argument("--devices", type=names,
                        help="numbers of the CUDA devices, one process at a time on each; default: all")


def add_own(parser) -> None:
    parser.add_argument("--own", action="store_true", help="also at the task's own sizes")


def add_certify(parser) -> None:
    parser.add_argument("--certify", action="store_true",
                        help="say of what is right whether `tegula prove` finds it equal to the module, with certificates")


def add_run(parser, folder: str) -> None:
    """Where records go, and how it is told."""
    parser.add_argument("--out", type=Path, default=Path(folder),
                        help=f"folder of the run ({folder}); what it holds is not done again")
    parser.add_argument("--retry", type=names, default=[], help="outcomes to take again, such as timeout,crashed")
    parser.add_argument("--plain", action="store_true", help="one line for each task, also in a terminal")


def add_audit(parser) -> None:
    parser.add_argument("--audit", type=Path, help="folder of an audit: its flags count in the summary")


def add_limits(parser) -> None:
    parser.add_argument("--memory", type=size, default=8 << 30, help="limit of each child (8G)")
    parser.add_argument("--deadline", type=float, default=180, help="seconds for each")


def add_judging(parser) -> None:
    """How programs are judged at sizes that are found for them."""
    parser.add_argument("--jobs", type=count, default=1, help="programs judged at once")
    parser.add_argument("--threads", type=count, default=1, help="threads of each (CPU)")
    parser.add_argument("--bytes", type=size, default=8 << 20, help="about what a variant may touch (8M)")
    parser.add_argument("--flops", type=float, default=2.0 ** 28, help="and multiply")
    add_limits(parser)
    parser.add_argument("--timed-turns", type=count, default=20, help="how often a call is timed")
