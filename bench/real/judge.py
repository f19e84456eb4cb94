"""Runs a case through the compiler and holds its results against the reference."""
import math
import pathlib
import subprocess
import tempfile

import numpy
import torch

from tegula_eval.program import runner

from .suite import Case, Kernel


def values(result) -> tuple:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def copied(tensors, dtype=None):
    """The tensors, floats of all widths in another type if one is named."""
    return {name: one.to(dtype, copy=True) if dtype and one.is_floating_point() else one.clone()
            for name, one in tensors.items()}


class Compiled:
    """A kernel's text, compiled for a target, and its call on a case's tensors."""

    def __init__(self, kernel: Kernel, case: Case, target: str):
        self.case = case
        self.program = runner.Program(kernel.file.read_text(), str(kernel.file))
        self.launch = self.program.compile(case.constants, target=target).prepare(case.tensors)

    def results(self) -> list[tuple[str, torch.Tensor]]:
        """Of a first call: what the reference returns, by name."""
        self.launch()
        self.launch.wait()
        updated = [one.name for one in self.program.parameters if one.role == "inout"]
        return [*self.launch.outputs.items(), *((name, self.case.tensors[name]) for name in updated)]

    def sizes(self) -> dict[str, int]:
        """The sizes that dims name, as `-d` takes them."""
        return {dim: size for one in self.program.parameters if one.name in self.case.tensors
                for dim, size in zip(one.dims, self.case.tensors[one.name].shape) if dim.isidentifier()}


class Emulated:
    """The same in the emulator, as device code: a run of the command, which takes arrays from files."""

    def __init__(self, kernel: Kernel, case: Case, tegula: str):
        self.kernel, self.case, self.tegula = kernel, case, tegula
        self.program = runner.Program(kernel.file.read_text(), str(kernel.file))

    def results(self) -> list[tuple[str, torch.Tensor]]:
        types = {name: dtype for dtype, name in runner.DTYPE_NAMES.items()}
        with tempfile.TemporaryDirectory() as name:
            folder, command = pathlib.Path(name), [self.tegula, "run", str(self.kernel.file), "--target=emulate"]
            for tensor, value in self.case.tensors.items():
                numpy.save(folder / f"{tensor}.npy", bits(value).numpy())
                command.append(f"--in={tensor}={folder / tensor}.npy")
            parameters = self.program.parameters
            written = [(one.name, types[one.type]) for role in ("out", "inout") for one in parameters if one.role == role]
            command += [f"--out={one}={folder / one}-out.npy" for one, _ in written]
            command += [word for one, value in self.case.constants.items() for word in ("-p", f"{one}={value}")]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"tegula run: exit code {done.returncode}: {done.stderr.strip()[:500]}")
            return [(one, from_bits(numpy.load(folder / f"{one}-out.npy"), dtype)) for one, dtype in written]


def bits(tensor):
    """A tensor that NumPy can hold: types that it does not have as unsigned integers of their width."""
    return tensor.view({torch.bfloat16: torch.uint16}.get(tensor.dtype, torch.uint8)) if tensor.dtype in (
        torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2) else tensor


def from_bits(array, dtype):
    if array.dtype.kind == "V":
        array = array.view({1: numpy.uint8, 2: numpy.uint16}[array.dtype.itemsize])
    tensor = torch.from_numpy(array)
    return tensor if tensor.dtype == dtype else tensor.view(dtype)


def norm_error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """The norm of the difference in relation to the norm of what is wanted."""
    got, wanted = got.double(), wanted.double()
    return ((got - wanted).norm()/wanted.norm().clamp(min=1e-30)).item()


def worst_error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest difference of an element in relation to it and to the size of all; equal infinities are no difference."""
    got, wanted = got.double(), wanted.double()
    got, wanted = (torch.where(got == wanted, 0.0, one) for one in (got, wanted))
    size = wanted.square().mean().sqrt()
    return ((got - wanted).abs()/(wanted.abs() + size).clamp(min=1e-30)).max().item() if got.numel() else 0.0


def errors(kernel: Kernel, found, wanted, measure) -> tuple[dict[str, float], bool]:
    """Errors by output, and whether all are small enough: of integers the share that differs."""
    told, right = {}, len(found) == len(wanted)
    for (name, got), want in zip(found, wanted):
        if got.shape != want.shape:
            raise ValueError(f"{name} is {list(got.shape)}, the reference gives {list(want.shape)}")
        if got.is_floating_point():
            error, allowed = measure(got, want), kernel.tolerance
        else:
            error, allowed = (got != want).double().mean().item() if got.numel() else 0.0, kernel.mismatches
        told[name] = error
        right &= not math.isnan(error) and error <= allowed
    return told, right


def check(kernel: Kernel, case: Case, target: str, tegula: str) -> tuple[dict[str, float], bool]:
    """Errors of each output's worst element against the reference in float64."""
    truth = copied(case.tensors, torch.float64)
    found = (Emulated(kernel, case, tegula) if target == "emulate" else Compiled(kernel, case, target)).results()
    with torch.no_grad():
        return errors(kernel, found, values(case.eager(**truth)), worst_error)


def check_reference(kernel: Kernel, case: Case) -> tuple[dict[str, float], bool]:
    """Errors of the whole of what the reference gives in the case's own types, as it is timed, against itself in float64."""
    truth, own = copied(case.tensors, torch.float64), copied(case.tensors)
    with torch.no_grad():
        wanted, found = values(case.eager(**truth)), values(case.eager(**own))
    return errors(kernel, [(str(place), one) for place, one in enumerate(found)], wanted, norm_error)
