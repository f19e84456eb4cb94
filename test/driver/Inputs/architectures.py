"""architectures.py KERNELS: compiles kernels of the library, one for each kind of strategy, for every architecture that the
command says it takes."""
import pathlib
import re
import subprocess
import sys

KERNELS = ("attention/causal_attention.tgl", "linear/f8_matmul.tgl", "linear/matmul.tgl", "scan/cumsum.tgl",
           "softmax/softmax.tgl")
TYPED = {"attention/causal_attention.tgl": ["--type=T=bf16"], "linear/matmul.tgl": ["--type=T=bf16"]}


def compile_for(target, kernel):
    return subprocess.run(["tegula", "compile", pathlib.Path(sys.argv[1], kernel), f"--target={target}", "--emit=ptx",
                           *TYPED.get(kernel, [])], capture_output=True, text=True)


told = compile_for("sm_0", KERNELS[0]).stderr
targets = re.findall(r"\bsm_\d+[af]?(?=[,)])", told)
for target in targets:
    for kernel in KERNELS:
        done = compile_for(target, kernel)
        if done.returncode or f".target {target}\n" not in done.stdout.replace(", debug", ""):
            sys.exit(f"{kernel} for {target}: exit code {done.returncode}\n{done.stderr[:2000]}{done.stdout[:300]}")
    print(f"{target}: {len(KERNELS)} kernels")
print(f"{len(targets)} architectures")
