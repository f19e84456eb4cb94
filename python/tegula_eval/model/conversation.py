"""A conversation with a model about one task: what is said, turn by turn.

The first message is what `tegula prompt --task` prints. Each later one says what became of the last program: the
compiler's messages with a wrong and a right example of each, the parameters that do not stand for the module's,
the first wrong elements and where they lie; and only once the program is right, how fast it is.
"""
from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from ..program.library import command_path

# Element types, as --type takes them.
TYPES = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool")
AGAIN = "\n\nWrite the whole program again, in one code block.\n"
# After these a model could do better; anything else is no fault of its program.
REPAIRABLE = ("wrong", "refused", "binding", "call", "no-program", "timeout", "memory", "crashed")


def _prompt(*arguments: str) -> str:
    done = subprocess.run([command_path(), "prompt", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tegula prompt: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def first_message(task_source: str, examples: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.py"
        path.write_text(task_source)
        return _prompt(f"--task={path}", f"--examples={examples}")


def next_message(record: dict, program: str | None) -> str | None:
    """What to say after a turn that ended like this; None where there is nothing to say."""
    outcome = record["outcome"]
    if outcome == "right":
        timing = record.get("timing") or {}
        return performance(timing, remarks(program or "", timing)) + AGAIN if timing.get("program_s") else None
    if outcome not in REPAIRABLE:
        return None
    if outcome == "no-program":
        return f"{_sentence(record['message'])}{AGAIN}"
    if outcome == "refused" and record.get("diagnostics"):
        return _refused(record["diagnostics"], program or "")
    if outcome == "binding":
        return ("The program's parameters do not stand for the module's: " + record["message"] + ". (forward's inputs "
                "in order; parameters and buffers by state-dict name, dots as underscores; constructor arguments by "
                "their names.)" + AGAIN)
    if outcome == "wrong":
        return _wrong(record) + AGAIN
    if outcome == "timeout":
        return f"The program was not done in time, in stage '{record['reason']}'." + AGAIN
    return f"The program fails when it is called: {record['message']}." + AGAIN


def next_message_of_module(record: dict) -> str | None:
    """As next_message, of a Python file with ModelNew that is not right."""
    outcome, again = record["outcome"], AGAIN.replace("program", "file")
    if outcome not in (*REPAIRABLE, "tampered"):
        return None
    if outcome == "wrong":
        return _wrong(record).replace("The program compiles, but its result is wrong", "The result is wrong") + again
    if outcome == "timeout":
        return f"It was not done in time, in stage '{record['reason']}'." + again
    if outcome == "no-program":
        return _sentence(record["message"]) + again
    what = "The file does not load" if (outcome, record["reason"]) == ("refused", "load") else \
        "The file is refused" if outcome == "refused" else "It fails when it is called"
    return f"{what}: {record['message']}" + again


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _refused(diagnostics: list[dict], program: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        said, text = Path(folder) / "said.jsonl", Path(folder) / "program.tgl"
        said.write_text("".join(json.dumps(one) + "\n" for one in diagnostics))
        text.write_text(program)
        return _prompt(f"--program={text}", f"--repair={said}")


def _wrong(record: dict) -> str:
    case = record["cases"][-1]
    lines = [f"The program compiles, but its result is wrong: {record['message']}."]
    for one in case.get("wrong", []):
        lines.append(f"  at {one['index']}: expected {one['expected']}, got {one['got']}")
    if case.get("pattern"):
        lines.append(f"Wrong are: {case['pattern']}.")
    return "\n".join(lines)


# The cards of `tegula compile --machine`.
MACHINES = {"NVIDIA H100": "h100", "NVIDIA H200": "h200"}


def remarks(program: str, timing: dict) -> list[str]:
    """What the compiler says of launches that it expects far from their bound, at the sizes that were timed: nothing
    where these are not known, or it has no model of the device."""
    known = timing.get("compiled_for") or {}
    machine = next((name for title, name in MACHINES.items() if known.get("device", "").startswith(title)), None)
    if machine is None:
        return []
    command = [command_path(), "compile", f"--target={known['target']}", f"--machine={machine}", "--why=json"]
    if known["sizes"]:
        command += ["-d", ",".join(f"{name}={size}" for name, size in known["sizes"].items())]
    for name, value in known["settings"].items():
        command += ["--type" if value in TYPES else "-p", f"{name}={value.strip('()').replace(' ', '')}"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.tgl"
        path.write_text(program)
        done = subprocess.run([*command, str(path)], capture_output=True, text=True, cwd=folder)
    if done.returncode:  # sizes that no dim names alone, an optional tensor
        return []
    return [f"{one['place']}: {one['remark']}".replace(f"{path}:", "") for one in json.loads(done.stdout) if "remark" in one]


def performance(timing: dict, said: list[str] = ()) -> str:
    text = f"The program is right. It takes {_time(timing['program_s'])}"
    for name, what in (("eager", "PyTorch's eager mode"), ("compile", "torch.compile")):
        if f"{name}_ratio" in timing:
            text += f", {what} {_time(timing[f'{name}_s'])} ({timing[f'{name}_ratio']:.2f} times as long)"
    if "roofline_s" in timing:
        text += (f". Moving its inputs and outputs once and doing its arithmetic would take "
                 f"{_time(timing['roofline_s'])} on this device")
    lines = [f"  {one}" for one in said]
    if lines:
        text += ".\nThe compiler says of launches that are far from what the device could do:\n" + "\n".join(lines) + "\n"
    else:
        text += ". "
    return text + "Make it faster, if that can be."


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds < 1 else f"{seconds:.2f} s"
