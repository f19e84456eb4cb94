"""State as training or loading could make it.

Weights that start as ones, zeros or as copies of others hide a program that leaves them out, or reads another in their
place. So the program is compared once more on a copy of the module in which all of them differ.
"""
from __future__ import annotations

from typing import Collection

import torch

SEED = 0x7E6


def state_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def groups_of(module: torch.nn.Module) -> list[tuple[torch.Tensor, list[str]]]:
    """Each tensor of the module with its names: several, where it is tied."""
    groups: dict[int, tuple[torch.Tensor, list[str]]] = {}
    for name, one in state_of(module).items():
        groups.setdefault(id(one), (one, []))[1].append(name)
    return list(groups.values())


def move(module: torch.nn.Module, read: Collection[str]) -> None:
    """Changes each tensor of the module. Signs stay, since a variance must not become negative, and zeros become
    positive. Whole numbers, which may be subscripts, change where the program does not read them (`read`), and in the
    range that they have."""
    generator = torch.Generator().manual_seed(SEED)  # not what the model draws from
    with torch.no_grad():
        for one, names in groups_of(module):
            if one.is_floating_point() or one.is_complex():
                value = one.float() if one.element_size() < 4 else one
                by = torch.rand(one.shape, generator=generator).to(one.device, value.real.dtype)
                one.data = torch.where(value == 0, 0.25 * by, value * (1 - 0.25 * by)).to(one.dtype)  # `one` may be expanded
            elif not any(name in read for name in names):
                one.data = _changed(one)


def _changed(one: torch.Tensor) -> torch.Tensor:
    """Other values for whole numbers and truth values."""
    if one.dtype == torch.bool:
        return one.logical_not()
    if one.dim() == 0:  # a count
        return torch.where(one > 0, one - 1, torch.ones_like(one))
    return one.flatten().flip(0).view(one.shape)
