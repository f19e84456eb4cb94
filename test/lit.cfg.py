# How lit runs the tests below this folder.
import glob
import os
import shutil
import sys

import lit.formats

config.name = "tegula"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".ll", ".tgl", ".test"]
config.excludes = ["Inputs", "unit", "fuzz"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.build_root, "test")

path = [config.tools_dir, os.path.dirname(config.filecheck), config.llvm_tools_dir]
if not shutil.which("ptxas"): # torch brings one
    path += [os.path.dirname(one) for one in glob.glob(os.path.join(
        config.source_root, ".venv/lib/python3*/site-packages/torch/bin/ptxas"))]
config.environment["PATH"] = os.pathsep.join(path + [config.environment.get("PATH", os.environ["PATH"])])
for name in ("HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH", "PYTHONPYCACHEPREFIX"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.environment["TEGULA_CACHE_DIR"] = ""  # every test makes its own code

# A device that runs nothing, for what does not depend on results: test/fakecuda.
fake = os.path.join(config.build_root, "fakecuda")
config.substitutions.append(("%fakecuda", f"env LD_LIBRARY_PATH={fake} TEGULA_PTXAS=" +
                             os.path.join(config.test_source_root, "fakecuda", "ptxas.sh")))
if os.path.exists(os.path.join(fake, "libcuda.so.1")):
    config.available_features.add("fakecuda")
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%std", os.path.join(config.source_root, "dsl", "std")))
config.substitutions.append(("%kernels", os.path.join(config.source_root, "dsl", "kernels")))
config.substitutions.append((r"\bFileCheck\b", config.filecheck))

# What a test may demand with REQUIRES.
for tool in ("tegula-opt", "tegula-interpret", "tegula-device-opt", "tegula", "tegula-lsp"):
    if os.path.exists(os.path.join(config.tools_dir, tool)):
        config.available_features.add(tool)
if shutil.which("nvidia-smi"):
    config.available_features.add("gpu")
if shutil.which("ptxas", path=config.environment["PATH"]):
    config.available_features.add("ptxas")

# Tests of a tool that this build lacks cannot run: a folder's tool is its stage's.
needs = {"ir": "tegula-opt", "passes": "tegula-opt", "frontend": "tegula", "driver": "tegula", "prove": "tegula", "rejected": "tegula", "e2e": "tegula", "gpu": "tegula"}
for folder, tool in needs.items():
    if tool not in config.available_features:
        config.excludes.append(folder)
        lit_config.note(f"test/{folder} is left out: {tool} is not built")
