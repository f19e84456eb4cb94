"""Gradients of operators by the programs that `tegula grad` writes of their kernels.

The operator NAME of a kernel has a second one, "NAME_backward_auto", for its gradients, and that one a third,
"NAME_backward_auto_2", for gradients of gradients. They take all that the one before takes, a gradient for each of its
results, and a word, names of the tensors whose gradients they give. Which program computes these follows from the
arguments alone, so that a graph that torch.compile has traced means the same in any process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Sequence

from ._kernel import Kernel, constant_text
from ._operators import put


@dataclass
class Level:
    """An operator that has gradients."""

    name: str
    tensors: list[str]  # what it takes
    numbers: list[tuple[str, str]]  # with PyTorch's types
    order: list[str]  # names of both as its schema has them; words follow
    words: int
    results: list[str]  # all that it can give
    chosen: Callable[[Sequence[str]], list[str]]  # those that it gives for these words
    # For these arguments and words; with False one that takes no results of operators before.
    kernel: Callable[[dict[str, Any], Sequence[str], bool], Kernel]
    cache: dict[Any, Kernel] = field(default_factory=dict)


def _constants(kernel: Kernel, values: dict[str, Any]) -> dict[str, str]:
    return {one.name: constant_text(values[one.name]) for one in kernel.parameters
            if one.role == "constant" and values.get(one.name) is not None}


def _left_out(kernel: Kernel, values: dict[str, Any]) -> tuple[str, ...]:
    return tuple(one.name for one in kernel.parameters
                 if one.role in ("in", "scalar") and one.default is not None and values.get(one.name) is None)


def _rank(kernel: Kernel, values: dict[str, Any]) -> Optional[int]:
    """The dims that `...` stands for."""
    for one in kernel.parameters:
        if one.role == "in" and "..." in one.dims and values.get(one.name) is not None:
            return max(values[one.name].dim() - len(one.dims) + 1, 0)
    return None


def _gradient_of(level: Level, values: dict[str, Any], words: Sequence[str], wrt: Sequence[str],
                 takes_results: bool) -> Optional[Kernel]:
    """The kernel of the gradients of what the operator gives; None where it takes none of these tensors."""
    kernel = level.kernel(values, words, False)
    taken = {one.name for one in kernel.parameters if one.role == "in"}
    wanted = [one for one in wrt if one in taken]
    if not wanted:
        return None
    constants, left_out, rank = _constants(kernel, values), _left_out(kernel, values), _rank(kernel, values)
    key = (kernel.text, tuple(wanted), tuple(constants.items()), left_out, rank, takes_results)
    if key not in level.cache:
        level.cache[key] = kernel.grad(wanted, left_out=left_out, ellipsis_rank=rank,
                                       save=None if takes_results else False, **constants)
    return level.cache[key]


def _next(level: Level, name: str) -> Level:
    """The operator of the gradients of `level`."""
    def kernel(values: dict[str, Any], words: Sequence[str], takes_results: bool) -> Kernel:
        made = _gradient_of(level, values, words[:-1], words[-1].split(","), takes_results and level.words == 0)
        assert made is not None, "it is called for tensors that the kernel takes"
        return made

    outputs = level.results if level.words == 0 else []  # what the gradients may take as it was computed
    tensors = level.tensors + outputs + [f"grad_{one}" for one in level.results]
    return Level(name, tensors, level.numbers, tensors + [one for one, _ in level.numbers], level.words + 1,
                 [f"grad_{one}" for one in level.tensors],
                 lambda words: [f"grad_{one}" for one in words[-1].split(",")], kernel)


def _define(level: Level) -> Any:
    """Registers the operator of some gradients, which gives them as a list."""
    import torch

    declared = [f"Tensor? {one}" for one in level.tensors] + [f"{kind}? {one}" for one, kind in level.numbers]
    declared += [f"str wrt_{number + 1}" for number in range(level.words)]
    torch.library.define(level.name, f"({', '.join(declared)}) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag,))

    def call(*arguments: Any) -> Any:
        values, words = dict(zip(level.order, arguments)), arguments[len(level.order):]
        kernel = level.kernel(values, words, True)
        made = kernel(**{one.name: values[one.name] for one in kernel.parameters
                         if one.role != "out" and values.get(one.name) is not None})
        found = dict(zip([one.name for one in kernel.outputs], made if isinstance(made, tuple) else (made,)))
        # What a program does not take has the gradient 0.
        return [found[f"grad_{one}"] if f"grad_{one}" in found else
                torch.zeros(values[one].shape, dtype=values[one].dtype, device=values[one].device)
                for one in words[-1].split(",")]

    def fake(*arguments: Any) -> Any:
        values = dict(zip(level.order, arguments))
        return [torch.empty(values[one].shape, dtype=values[one].dtype, device=values[one].device)
                for one in arguments[-1].split(",")]

    torch.library.impl(level.name, ("CPU", "CUDA"), put(level.name, "kernel", call))
    torch.library.register_fake(level.name, put(level.name, "fake", fake))
    namespace, operator = level.name.split("::")
    return getattr(getattr(torch.ops, namespace), operator)


def register_orders(level: Level, name: str, orders: int = 2) -> None:
    """Gives the operator of `level` gradients, these too, and so on: `orders` times, as operators `name`, `name`_2, ..."""
    import torch

    if orders == 0:
        def refuse(ctx: Any, *gradients: Any) -> Any:
            raise RuntimeError(f"operator {level.name}, a gradient of a gradient, has no gradient: that needs PyTorch's own "
                               "operators")

        torch.library.register_autograd(level.name, put(level.name, "backward", refuse))
        return
    following = _next(level, name)
    operator = _define(following)

    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        values, words = dict(zip(level.order, inputs)), inputs[len(level.order):]
        wrt = [one for one, is_needed in zip(level.order, ctx.needs_input_grad) if is_needed]
        kernel = _gradient_of(level, values, words, wrt, level.words == 0)
        taken = {one.name for one in kernel.parameters} if kernel else set()
        if level.words == 0:
            values.update(zip(level.results, (output,) if len(level.results) == 1 else output))
        # The tensors that it takes, and those whose shapes the gradients have.
        saved = [one for one in following.tensors
                 if values.get(one) is not None and (one in taken or kernel and one in wrt)]
        ctx.save_for_backward(*(values[one] for one in saved))
        ctx.call = saved, wrt if kernel else [], words, [values[one] for one, _ in level.numbers], taken

    def backward(ctx: Any, *given: Any) -> Any:
        saved, wrt, words, numbers, taken = ctx.call
        values = dict(zip(saved, ctx.saved_tensors))
        gradients = given if level.words == 0 else given[0]
        for one, gradient in zip(level.chosen(words), gradients):
            if f"grad_{one}" in taken:
                values[f"grad_{one}"] = gradient
        found: dict[str, Any] = {}
        if wrt:
            made = operator(*(values.get(one) for one in following.tensors), *numbers, *words, ",".join(wrt))
            found = dict(zip(wrt, made))
        results = tuple(found.get(one) for one in level.order) + (None,) * level.words
        return results if len(results) > 1 else results[0]

    torch.library.register_autograd(level.name, put(level.name, "backward", backward),
                                    setup_context=put(level.name, "setup_context", setup_context))
    register_orders(following, f"{name.removesuffix(f'_{level.words + 1}')}_{level.words + 2}", orders - 1)


def register_gradient(forward: Kernel, name: str, numbers: list[tuple[str, str]]) -> None:
    """Gives the operator `name` of the kernel the gradients that `tegula grad` writes. Raises ProgramError where the kernel has
    none, for the settings that it has and defaults."""
    if any(one.role == "inout" for one in forward.parameters):
        raise ValueError(f"kernel '{forward.name}' updates a tensor in place: it can have no gradient")
    forward.grad()
    inputs = [one for one in forward.parameters if one.role != "out"]
    outputs = [one.name for one in forward.outputs]
    tensors = [one.name for one in inputs if one.is_tensor]
    level = Level(name, tensors, numbers, [one.name for one in inputs], 0, outputs,
                  lambda words: outputs, lambda values, words, takes_results: forward)
    register_orders(level, f"{name}_backward_auto")
