"""The namespace of this build's operators, which no other version of the kernel has."""
import torch

ops = getattr(torch.ops, "KERNEL_ID")


def add_op_namespace_prefix(name: str) -> str:
    return f"KERNEL_ID::{name}"
