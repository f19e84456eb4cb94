"""Holds every stage of the compiler against the emitted IR: stages.py PROGRAM.tgl...

Each program is compiled to IR as emitted and as scheduled, both are interpreted on the same data at a
few sizes, ragged ones, 1 and 0 among them, and must give the same outputs, whatever the order of points
and the size of tiles.
"""
import os
import random
import re
import subprocess
import sys
import tempfile

SIZES = [1, 2, 3, 4, 5, 6, 7, 0]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def compiled(program, stage, folder):
    """Path and text of the program's IR at a stage."""
    result = run("tegula", "compile", program, f"--emit={stage}")
    if result.returncode:
        sys.exit(f"{program}: compile --emit={stage} failed\n{result.stderr}{result.stdout}")
    path = os.path.join(folder, f"{stage}.mlir")
    with open(path, "w") as file:
        file.write(result.stdout)
    return path, result.stdout


def check(program, folder):
    emitted, text = compiled(program, "tgl", folder)
    scheduled, _ = compiled(program, "scheduled", folder)
    entry = [line for line in text.splitlines() if line.strip().startswith("sizes [")]
    symbols = re.findall(r"(\w+) = \d+ : \d+", entry[-1]) if entry else []
    # Subscripts from data are 0 to 3: sizes of at least 4 keep them inside.
    choices = [4, 5, 6, 8] if "checked" in text else SIZES
    data = "--data=indices" if "checked" in text else "--data=integers"
    generator = random.Random(os.path.basename(program))
    wanted, done = (2, 0) if symbols else (1, 0)
    for attempt in range(200):
        # Sizes that must divide or match each other are met by equal and even ones.
        if attempt % 4 == 3:
            value = generator.choice([4, 8, 12, 32])
            sizes = {symbol: value for symbol in symbols}
        else:
            sizes = {symbol: generator.choice(choices) for symbol in symbols}
        call = ["-d", ",".join(f"{s}={n}" for s, n in sizes.items())] if sizes else []
        first = run("tegula-interpret", emitted, "--quiet", data, *call)
        if first.returncode == 2:
            continue
        where = f"{program} at {call}"
        if first.returncode:
            sys.exit(f"{where}: as emitted\n{first.stderr}")
        for variant in (["--tile=3", "--reverse"], [scheduled, "--reverse"]):
            file = variant.pop(0) if variant[0] == scheduled else emitted
            other = run("tegula-interpret", file, "--quiet", data, *call, *variant,
                        f"--against={emitted}", "--tolerance=2e-6")
            if other.returncode:
                sys.exit(f"{where}: {os.path.basename(file)} {variant}\n{other.stderr}")
        done += 1
        if done == wanted:
            return
    if done == 0:
        sys.exit(f"{program}: no sizes found that its guards admit")


for argument in sys.argv[1:]:
    with tempfile.TemporaryDirectory() as scratch:
        check(argument, scratch)
print(f"{len(sys.argv) - 1} programs agree at every stage")
