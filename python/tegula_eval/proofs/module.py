"""A task's module as a function of a program's parameters: the REF.py that `tegula prove --against` takes.

The text is the task's own and a function `ref` behind it, so that a certificate can be repeated without this package.
Parameters and inputs may have other sizes than the task's: the module runs with whatever its operators take.
"""
from __future__ import annotations

import inspect

import torch

from ..program.binding import Binding
from ..program.runner import Parameter
from ..rule.reference import Case

# What stands behind the task's text. A batch norm in training mode computes the same without the statistics that it
# keeps, whose sizes would be the task's. What a layer knows of its widths beside its parameters (groups of a depthwise
# convolution, sizes of recurrent layers and norms) follows the parameters that are given. Tensors that a module keeps as
# plain attributes, which forward may change, are at each call what the constructor made, and fix the inputs' sizes.
CALL = """

# The module as a function of the parameters of a program.
import torch as _torch

def _made():
    _torch.manual_seed(0)
    init = get_init_inputs()
    model = Model(**init) if isinstance(init, dict) else Model(*init)
    for part in model.modules():
        if isinstance(part, _torch.nn.modules.dropout._DropoutNd):
            part.eval()
    for name, part in model.named_modules():
        if isinstance(part, _torch.nn.modules.batchnorm._NormBase) and part.training and name not in {kept}:
            part.running_mean = part.running_var = part.num_batches_tracked = None
    return model, list(get_inputs())

_model, _inputs = _made()
_given = {given}
_depthwise = {{part: 1 if part.transposed else part.out_channels // part.in_channels for part in _model.modules()
              if isinstance(part, _torch.nn.modules.conv._ConvNd) and part.groups == part.in_channels > 1}}
_attributes = [(part, name, value) for part in _model.modules() for name, value in vars(part).items()
               if isinstance(value, _torch.Tensor)]

def _prepare(state):
    owned = {{}}
    for key, value in state.items():
        owned.setdefault(key.rpartition(".")[0], {{}})[key.rpartition(".")[2]] = value
    for name, part in _model.named_modules():
        own = owned.get(name, {{}})
        if part in _depthwise and "weight" in own:
            part.groups = own["weight"].shape[0] // _depthwise[part]
        if isinstance(part, _torch.nn.RNNBase) and part.proj_size == 0 and "weight_hh_l0" in own and "weight_ih_l0" in own:
            part.input_size, part.hidden_size = own["weight_ih_l0"].shape[1], own["weight_hh_l0"].shape[1]
        if isinstance(part, (_torch.nn.LayerNorm, _torch.nn.RMSNorm)) and "weight" in own:
            part.normalized_shape = tuple(own["weight"].shape)
    for part, name, value in _attributes:
        setattr(part, name, _torch.zeros(value.shape, dtype=value.dtype).copy_(value))

def ref({names}):
    inputs = list(_inputs)
    for place, value in {inputs}:
        if _attributes and value.shape != inputs[place].shape:
            raise ValueError("the module keeps tensors of its own sizes")
        inputs[place] = value
    state = {{{state}}}
    _prepare(state)
    found = _torch.func.functional_call(_model, state, tuple(inputs))
    found = [one for one in _torch.utils._pytree.tree_leaves(found) if one is not None]
    return [one if isinstance(one, _torch.Tensor) else _torch.tensor(one) for one in found]
"""


class NoReference(Exception):
    """A parameter stands for what no function of tensors can be given."""


def reference_text(source: str, case: Case, binding: Binding, parameters: list[Parameter]) -> str:
    """`binding`: of the program's parameters to the case, which was made of `source`. Raises NoReference."""
    names, inputs, state, given, kept = [], [], [], [], set()
    places = {name: place for place, name in enumerate(case.input_names())}
    for parameter in parameters:
        name = parameter.name
        kind, origin = binding.sources.get(name, ("", ""))
        if parameter.role == "constant" or not kind:
            continue
        if kind == "constant":
            raise NoReference(f"'{name}' is a number that the constructor takes, and a run-time scalar of the program")
        names.append(name)
        if kind == "input":
            inputs.append(f"({places[origin]}, {name})")
            continue
        value = name if parameter.role != "scalar" else f"_torch.tensor({name}).reshape({list(case.state[origin].shape)})"
        state.append(f"{origin!r}: {value}")
        given.append(origin)
        kept.add(origin.rpartition(".")[0] if origin.rpartition(".")[2].startswith("running_") else None)
    kept.discard(None)
    tail = CALL.format(names=", ".join(names), state=", ".join(state), given=given, kept=sorted(kept),
                       inputs="(" + "".join(f"{one}, " for one in inputs) + ")")
    return source.rstrip() + "\n" + inspect.cleandoc(tail) + "\n"


def sizes_of(binding: Binding, parameters: list[Parameter]) -> dict[str, int]:
    """What the sizes are that the program names as whole dims."""
    sizes: dict[str, int] = {}
    for parameter in parameters:
        tensor = binding.tensors.get(parameter.name)
        if tensor is None or "..." in parameter.dims:
            continue
        for dim, extent in zip(parameter.dims, tensor.shape):
            if dim.isidentifier():
                sizes.setdefault(dim, extent)
    return sizes


def kernel_sizes_of(case: Case, binding: Binding, parameters: list[Parameter]) -> dict[str, int]:
    """Sizes that are extents of a convolution's kernel: the module was made for these, with its paddings."""
    sizes: dict[str, int] = {}
    for parameter in parameters:
        kind, origin = binding.sources.get(parameter.name, ("", ""))
        tensor = binding.tensors.get(parameter.name)
        owner = origin.rpartition(".")[0] if kind == "state" else None
        if owner is None or tensor is None or len(parameter.dims) != tensor.dim():
            continue
        if isinstance(case.built.model.get_submodule(owner), torch.nn.modules.conv._ConvNd):
            sizes |= {dim: extent for dim, extent in zip(parameter.dims[2:], tensor.shape[2:]) if dim.isidentifier()}
    return sizes
