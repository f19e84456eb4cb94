"""Compares what a published folder launches with what the compiler's own runtime does, on the device that test/fakecuda
pretends: for each kernel and many sizes the same functions, grids and sizes, or both refuse.

    launches.py --tegula=bin/tegula --library=libtegula.so --fake=FOLDER_OF_LIBCUDA
"""
import argparse
import base64
import ctypes as c
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import types

# Sizes in the order of SIZES; tiles of products are 64 to 256 wide, rows of teams some thousands.
KERNELS = {
    "product": ("M, N, K", [(1, 1, 1), (0, 64, 64), (63, 64, 65), (64, 128, 64), (257, 1030, 129), (4096, 4096, 64),
                            (128, 128, 16384)], """
kernel product(x: f16[M, K], w: f16[N, K], b: f16[N]) -> (y: f16[M, N]) {
  y[i, j] = relu(sum(x[i, k]*w[j, k] for k) + b[j])
}"""),
    "rows": ("M, N", [(1, 1), (2, 31), (0, 5), (7, 1024), (1000, 4097), (33, 131072)], """
kernel rows(x: f32[M, N], s: f32) -> (y: f32[M, N], m: f32[M]) {
  m[i] = max(x[i, j] for j)
  e[i, j] = exp(x[i, j] - m[i])
  y[i, j] = s*e[i, j]/sum(e[i, k] for k)
}"""),
    "scans": ("M, N", [(1, 1), (3, 1000), (1, 300000), (0, 3), (2, 0)], """
kernel scans(x: f32[M, N]) -> (y: f32[M, N]) {
  y[i, j] = cumsum(x[i, j], over=j)
}"""),
    "loops": ("T, N", [(0, 4), (1, 1), (5, 300), (17, 70000)], """
kernel loops(x: f32[T, N]) -> (y: f32[N]) {
  state h[i in N] = 0.0
  for t in T {
    g[i] = h[i] + x[t, i]
    h[i] = 0.5*g[i] + 0.5*g[(i + 1) % N]
  }
  y[i] = h[i]
}"""),
    "windows": ("N", [(2,), (3,), (4,), (5,), (1000,), (65537,)], """
kernel windows(x: f32[N]) -> (y: f32[P]) where P = (N - 3)//2 + 1 {
  assert(N != 5)
  y[i] = sum(x[2*i + r] for r in 3)
}"""),
    "chosen": ("N, M", [(1, 1), (0, 3), (100, 7), (50000, 1000)], """
kernel chosen(ids: i32[N], x: f32[M], c: inout f32[M]) {
  c[ids[i]] += x[ids[i]]
}"""),
    "floats": ("N, K", [(1, 1), (10, 2), (1000, 8), (4096, 2)], """
kernel floats(x: f32[N, K]) -> (y: f32[C, K]) where C = maximum(1, int(1.25*N*K//8)) {
  y[i, k] = x[i % N, k]
}"""),
}


class Setting(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_char_p)]


class CompileOptions(c.Structure):
    _fields_ = [("struct_bytes", c.c_size_t), ("kernel", c.c_char_p), ("target", c.c_char_p),
                ("settings", c.POINTER(Setting)), ("num_settings", c.c_size_t), ("ellipsis_rank", c.c_uint),
                ("optionals", c.c_void_p), ("num_optionals", c.c_size_t), ("checked", c.c_int),
                ("stages", c.c_void_p), ("num_stages", c.c_size_t), ("any_sizes", c.c_int),
                ("dependent_launches", c.c_int), ("tuned", c.c_int), ("precision", c.c_char_p)]


class Value(c.Structure):
    _fields_ = [("data", c.c_void_p), ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
                ("rank", c.c_size_t), ("dtype", c.c_int), ("number", c.c_double), ("integer", c.c_int64)]


DTYPES = {"f32": 1, "f16": 2, "i32": 7}
BYTES = {"f32": 4, "f16": 2, "i32": 4}


def check(condition, what):
    if not condition:
        sys.exit(f"launches.py: {what}")


class Launches:
    """What the driver was asked to launch since the last look."""

    def __init__(self, path):
        self.path, self.seen = path, 0

    def since(self):
        with open(self.path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        new, self.seen = lines[self.seen:], len(lines)
        return [line.split() for line in new]


def kinds_of(steps):
    """By function of a plan, what its parameters are."""
    kinds = {}
    for step in steps:
        if step["kind"] == "loop":
            kinds.update(kinds_of(step["body"]))
        elif step["kind"] == "launch":
            for one in [step["thread"], step["team"], *step["tiles"]["launches"]]:
                if one:
                    kinds[one.get("name") or one["function"]] = [argument[0] for argument in step["arguments"]]
    return kinds


def without_addresses(launches, kinds):
    """Memory is another one in both: what counts is whether there is any."""
    return [[*launch[:3], *(value if kind in ("size", "scalar") else value != "0"
                            for value, kind in zip(launch[3:], kinds[launch[0]], strict=True))] for launch in launches]


class Runtime:
    """A kernel through libtegula, with code for any sizes."""

    def __init__(self, library, context, text):
        self.library = library
        program, self.kernel = c.c_void_p(), c.c_void_p()
        data = text.encode()
        check(not library.tegula_parse(data, c.c_size_t(len(data)), b"k.tgl", c.byref(program), None), "parse")
        options = CompileOptions(struct_bytes=c.sizeof(CompileOptions), target=b"cuda", any_sizes=1)
        status = library.tegula_compile(context, program, c.byref(options), c.byref(self.kernel), None)
        check(not status, f"tegula_compile gives {status}")

    def launch(self, arguments, shapes, addresses):
        """Whether it launched; false where it refused."""
        values = (Value * len(arguments))()
        kept = []
        for value, argument, shape, address in zip(values, arguments, shapes, addresses):
            value.dtype = DTYPES[argument["dtype"]]
            value.data = address
            if argument["role"] == "scalar":
                value.number = 1.5
            elif shape is not None:
                kept.append((c.c_int64 * max(len(shape), 1))(*shape))
                value.shape, value.rank = kept[-1], len(shape)
            else:
                value.rank = len(argument["dims"])
        status = self.library.tegula_launch(self.kernel, values, c.c_size_t(len(values)), None, None)
        check(status in (0, 2), f"tegula_launch gives {status}")
        return status == 0


def load(folder, name):
    """The plan and driver modules of a published folder, without torch; what they were published for."""
    package = types.ModuleType(name)
    package.__path__ = [folder]
    sys.modules[name] = package
    made = []
    for part in ("_plan", "_driver"):
        spec = importlib.util.spec_from_file_location(f"{name}.{part}", os.path.join(folder, part + ".py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[f"{name}.{part}"] = module
        setattr(package, part, module)
        spec.loader.exec_module(module)
        made.append(module)
    with open(os.path.join(folder, "kernel.json"), encoding="utf-8") as file:
        return (*made, json.load(file))


def check_folder(folder, name):
    """The files, and that their digests are those of metadata.json."""
    build = os.path.join(folder, "build", "torch-cuda")
    with open(os.path.join(build, "metadata.json"), encoding="utf-8") as file:
        metadata = json.load(file)
    check(metadata["id"].isidentifier() and metadata["name"] == name, "metadata: id, name")
    check(metadata["backend"] == {"type": "cuda", "archs": ["8.0+PTX", "9.0a"]}, "metadata: backend")
    found = {os.path.relpath(os.path.join(at, one), build) for at, _, files in os.walk(build) for one in files}
    digests = metadata["digest"]["files"]
    check(found == {"metadata.json", *digests}, f"files: {sorted(found)}")
    check({"__init__.py", "_launch.py", "_ops.py", f"{name}/__init__.py"} <= found, "Python files")
    for one, digest in digests.items():
        with open(os.path.join(build, one), "rb") as file:
            contents = file.read()
        check(base64.b64encode(hashlib.sha256(contents).digest()).decode() == digest, f"digest of {one}")
        check(not one.endswith(".py") or b"KERNEL_" not in contents, f"names in {one}")
        if one.endswith(".py"):
            compile(contents, one, "exec")
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
        check(file.read().startswith("---\nlicense: mit\n"), "the card's licence")
    return build


def compare(tegula, library, context, fake, launches, name, case, folder):
    sizes_text, all_sizes, text = case
    names = sizes_text.split(", ")
    path = os.path.join(folder, name + ".tgl")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    fixed = dict(zip(names, all_sizes[-1]))
    subprocess.run([tegula, "publish", path, "-o", os.path.join(folder, name), "--license=mit",
                    "-d", ",".join(f"{one}={value}" for one, value in fixed.items())], check=True)
    build = check_folder(os.path.join(folder, name), name)
    plan, driver_module, kernel = load(build, "published_" + name)
    driver = driver_module.Driver(fake)
    runtime = Runtime(library, context, text)
    codes, ran, refused = {}, 0, 0
    for sizes in all_sizes:
        given = dict(zip(names, sizes))
        general = [one for one in kernel["variants"] if not one["fixed"] and one["target"] == "sm_90a"][0]
        arguments = general["arguments"]
        kinds = kinds_of(general["plan"]["steps"])
        shapes, wanted = [], []
        for argument in arguments:
            is_given = argument["role"] in ("in", "inout")
            shapes.append([plan.evaluate(dim, given) for dim in argument["dims"]] if is_given else None)
        try:
            bound = plan.bind(general, shapes)
            wanted = [plan.shape_of(one, bound) for one in arguments]
        except plan.Refused:
            bound = None
            wanted = [()] * len(arguments)
        addresses, memory = [], []
        for argument, shape in zip(arguments, wanted):
            elements = 1
            for dim in shape:
                elements *= dim
            address = c.c_uint64()
            check(not driver.library.cuMemAlloc_v2(c.byref(address), c.c_size_t(max(elements, 1) * BYTES[argument["dtype"]])),
                  "cuMemAlloc")
            memory.append(address)
            addresses.append(address.value)
        launches.since()
        did = runtime.launch(arguments, shapes, addresses)
        expected = launches.since()
        check(did == (bound is not None), f"{name} at {given}: the runtime {'launches' if did else 'refuses'}")
        if not did:
            refused += 1
            continue
        exact = [one for one in kernel["variants"] if one["fixed"] == given and one["target"] == "sm_90a"]
        for variant in [general, *exact]:
            code = codes.setdefault(variant["code"], None) or driver_module.Code(driver, build, variant, 0)
            codes[variant["code"]] = code
            call = driver_module.Call(code, plan.bind(variant, shapes))
            workspace, errors = c.c_uint64(), c.c_uint64()
            for address, size in ((workspace, call.workspace_bytes or 1), (errors, 16)):
                check(not driver.library.cuMemAlloc_v2(c.byref(address), c.c_size_t(size)), "cuMemAlloc")
            tensors = [address for argument, address in zip(arguments, addresses) if argument["role"] != "scalar"]
            call.run(tensors, [c.c_float(1.5)], 0, errors.value if variant["errors"] else 0, workspace.value)
            found = launches.since()
            if variant is general:
                found, expected = without_addresses(found, kinds), without_addresses(expected, kinds)
                check(found == expected, f"{name} at {given}: expected {expected}, found {found}")
            else:
                check(bool(found) == bool(expected), f"{name} at {given}, fixed: {found}")
            for address in (workspace, errors):
                driver.library.cuMemFree_v2(address)
        for address in memory:
            driver.library.cuMemFree_v2(address)
        ran += bool(expected)
    check(ran >= 2, f"{name}: only {ran} sizes launched anything")
    print(f"{name}: {ran} sizes alike, {refused} refused by both")


def main():
    parser = argparse.ArgumentParser()
    for name in ("tegula", "library", "fake", "ptxas"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    fake = os.path.join(options.fake, "libcuda.so.1")
    if "FAKE_CUDA_LAUNCHES" not in os.environ:  # the loader and the driver read the environment when they start
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "launches")
            open(log, "w", encoding="utf-8").close()
            environment = {**os.environ, "LD_LIBRARY_PATH": options.fake, "FAKE_CUDA_LAUNCHES": log,
                           "TEGULA_PTXAS": options.ptxas, "TEGULA_CACHE_DIR": "", "PYTHONDONTWRITEBYTECODE": "1"}
            sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode)
    library = c.CDLL(options.library)
    context = c.c_void_p()
    check(not library.tegula_context_create(None, c.byref(context), None), "tegula_context_create")
    launches = Launches(os.environ["FAKE_CUDA_LAUNCHES"])
    cuda = c.CDLL(fake)
    primary = c.c_void_p()
    check(not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(c.byref(primary), 0) and
          not cuda.cuCtxSetCurrent(primary), "the device that is pretended")
    with tempfile.TemporaryDirectory() as folder:
        for name, case in KERNELS.items():
            compare(options.tegula, library, context, fake, launches, name, case, folder)
        # What cannot be published is refused, with the exit code of a wrong call.
        packed = os.path.join(folder, "packed.tgl")
        with open(packed, "w", encoding="utf-8") as file:
            file.write("kernel packed(q: i4[N]) -> (y: f32[N]) {\n  y[i] = q[i]\n}\n")
        for arguments in ([packed, "-o", os.path.join(folder, "p")], [packed, "-o", folder],
                          [packed, "-o", os.path.join(folder, "q"), "--dtypes=f16"],
                          [packed, "-o", os.path.join(folder, "r"), "--targets=sm_20"]):
            made = subprocess.run([options.tegula, "publish", *arguments], capture_output=True, check=False)
            check(made.returncode == 2 and made.stderr, f"{arguments}: {made.returncode}")


if __name__ == "__main__":
    main()
