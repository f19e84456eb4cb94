"""architectures.py KERNELS: compiles kernels, one for each kind of strategy, for every architecture that the command says it
takes. KERNELS is the library's folder."""
import pathlib
import re
import subprocess
import sys

LIBRARY = pathlib.Path(sys.argv[1])
KERNELS = {
    LIBRARY / "attention/causal_attention.tgl": ["--type=T=bf16"],
    LIBRARY / "linear/f8_matmul.tgl": [],
    LIBRARY / "linear/matmul.tgl": ["--type=T=bf16"],
    LIBRARY / "rnn/gru.tgl": ["-d", "L=512,B=10,I=128,H=256"],
    LIBRARY / "scan/cumsum.tgl": ["-d", "M=4,N=100000"],
    LIBRARY / "softmax/softmax.tgl": [],
    pathlib.Path(__file__).with_name("weights.tgl"): ["-d", "M=8,N=4096,K=4096"],
}


def compile_for(target, kernel):
    return subprocess.run(["tegula", "compile", kernel, f"--target={target}", "--emit=ptx", *KERNELS[kernel]],
                          capture_output=True, text=True)


told = compile_for("sm_0", next(iter(KERNELS))).stderr
targets = re.findall(r"\bsm_\d+[af]?(?=[,)])", told)
for target in targets:
    for kernel in KERNELS:
        done = compile_for(target, kernel)
        if done.returncode or f".target {target}\n" not in done.stdout:
            sys.exit(f"{kernel.name} for {target}: exit code {done.returncode}\n{done.stderr[:2000]}{done.stdout[:300]}")
    print(f"{target}: {len(KERNELS)} kernels")
print(f"{len(targets)} architectures")
