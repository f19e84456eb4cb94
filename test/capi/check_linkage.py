#!/usr/bin/env python3
"""What `tegula` and libtegula.so need and show: one file each.

  check_linkage.py --tegula=PATH --library=PATH --header=tegula.h --llvm-bin=FOLDER --source=FOLDER

- both need a C library alone, of glibc 2.28 at most;
- the library exports the functions of tegula.h and nothing else;
- a copy of `tegula`, alone in an empty folder and without environment, runs a kernel that uses the
  standard library, and makes PTX;
- neither file names the folder that it was built from.
Prints the size of each file. Exit code 0 where all holds.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

# The last two are empty from glibc 2.34 on, parts of the C library before.
NEEDED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2"}
GLIBC = (2, 28)  # what the wheel's tag says, whatever this machine has (cmake/OldGlibc.c)
PROGRAM = """kernel mlp(x: f32[M, K], w: f32[N, K], b: f32[N]) -> (y: f32[M, N]) {
  h = linear(x, w, b)
  y = layer_norm(h, N)
}
"""


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("tegula", "library", "header", "llvm-bin", "source"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    problems = []

    for path in (args.tegula, args.library):
        dynamic = output(os.path.join(args.llvm_bin, "llvm-readelf"), "--dynamic", path)
        needed = set(re.findall(r"\(NEEDED\).*\[(.+?)\]", dynamic))
        if not needed or needed - NEEDED:
            problems.append(f"{path} needs {sorted(needed)}")
        if re.search(r"\((RPATH|RUNPATH|TEXTREL)\)", dynamic):
            problems.append(f"{path} has a run path or text relocations")
        symbols = output(os.path.join(args.llvm_bin, "llvm-nm"), "-D", path)
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"@+GLIBC_([0-9.]+)", symbols)}
        if not versions or max(versions) > GLIBC:
            problems.append(f"{path} needs glibc {max(versions, default=None)}")
        with open(path, "rb") as file:
            if args.source.encode() + b"/" in file.read():
                problems.append(f"{path} names {args.source}")
        print(f"{os.path.basename(path)}: {os.path.getsize(os.path.realpath(path)) / 1e6:.1f} MB, "
              f"glibc {'.'.join(map(str, max(versions)))}, needs {' '.join(sorted(needed))}")

    symbols = output(os.path.join(args.llvm_bin, "llvm-nm"), "-D", "--defined-only", args.library)
    exported = {line.split()[-1] for line in symbols.splitlines()}
    with open(args.header) as file:
        declared = set(re.findall(r"TEGULA_API [^;]*?\b(tegula_\w+)\(", file.read()))
    if exported != declared or len(declared) < 20:
        problems.append(f"exported but not declared: {sorted(exported - declared)}, "
                        f"declared but not exported: {sorted(declared - exported)}")

    with tempfile.TemporaryDirectory() as folder:
        alone = shutil.copy(args.tegula, os.path.join(folder, "tegula"))
        with open(os.path.join(folder, "mlp.tgl"), "w") as file:
            file.write(PROGRAM)
        options = {"cwd": folder, "env": {}}
        shown = output(alone, "run", "mlp.tgl", "-d", "M=2,N=3,K=4", **options)
        if not re.match(r"y: f32\[2, 3\] =( -?[0-9.]+){6}\n", shown):
            problems.append(f"a copy of tegula printed {shown!r}")
        if ".visible .entry" not in output(alone, "compile", "mlp.tgl", "--target=sm_90a", "--emit=ptx",
                                           **options):
            problems.append("a copy of tegula made no PTX")

    for problem in problems:
        print("error:", problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
