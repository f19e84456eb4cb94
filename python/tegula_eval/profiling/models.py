"""A model and its inputs, and how each of its modules was made."""
from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.utils._pytree import tree_map

from ..rule.tasks import TaskError
from ..rule.variants import build


@dataclass
class Loaded:
    name: str
    model: torch.nn.Module
    inputs: list
    named: dict[str, torch.Tensor] = field(default_factory=dict)
    # The constructor's arguments of each module, as it was called.
    made: dict[torch.nn.Module, tuple[tuple, dict]] = field(default_factory=dict)
    source: str | None = None  # of the file; None: all classes can be imported

    def __call__(self):
        return self.model(*self.inputs, **self.named)


_record: dict[torch.nn.Module, tuple[tuple, dict]] | None = None


def _make(kind, *arguments, **named):
    made = object.__new__(kind)
    if _record is not None:
        _record[made] = arguments, named
    return made


class _Arguments(dict):
    """By identity: a module that is not initialised yet has no hash of its own to rely on."""

    def __setitem__(self, module, arguments):
        super().__setitem__(id(module), (module, arguments))


@contextlib.contextmanager
def recording():
    """Within it modules leave the arguments of their constructors in what this gives."""
    global _record
    # It stays: Python does not give a class without __new__ its former behaviour back.
    torch.nn.Module.__new__ = staticmethod(_make)
    _record = _Arguments()
    try:
        yield _record
    finally:
        _record = None


def load(path: Path, device: str, dtype: torch.dtype | None, batch: int, tokens: int) -> Loaded:
    """Raises TaskError."""
    with recording() as found:
        loaded = _of_configuration(path, batch, tokens) if path.suffix == ".json" else _of_file(path)
    loaded.made = dict(found.values())

    def place(one):
        if not isinstance(one, torch.Tensor):
            return one
        return one.to(device, dtype if dtype is not None and one.is_floating_point() else one.dtype)

    loaded.model.to(device)
    if dtype is not None:
        loaded.model.to(dtype)
    loaded.inputs, loaded.named = tree_map(place, loaded.inputs), tree_map(place, loaded.named)
    return loaded


def _of_file(path: Path) -> Loaded:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TaskError(f"cannot read {path}: {error}") from error
    torch.manual_seed(0)
    built = build(text)
    return Loaded(path.stem, built.model, built.inputs, source=text)


def _of_configuration(path: Path, batch: int, tokens: int) -> Loaded:
    """A model of the library transformers with random weights, and inputs of its kind."""
    try:
        import transformers
    except ImportError:
        raise TaskError(f"{path} is a configuration, for which the package transformers is needed: `pip install "
                        "transformers`") from None
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    except (ValueError, KeyError, TypeError) as error:
        raise TaskError(f"{path} is no configuration of transformers: {error}") from error
    torch.manual_seed(0)
    for kind in (transformers.AutoModelForCausalLM, transformers.AutoModelForImageClassification, transformers.AutoModel):
        if type(config) in kind._model_mapping.keys():
            model = kind.from_config(config).eval()
            break
    else:
        raise TaskError(f"transformers has no model for {type(config).__name__}")
    if hasattr(config, "image_size") or not hasattr(config, "vocab_size"):
        size = getattr(config, "image_size", 224)
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        return Loaded(path.stem, model, [], {"pixel_values": torch.randn(batch, config.num_channels, height, width)})
    return Loaded(path.stem, model, [], {"input_ids": torch.randint(0, config.vocab_size, (batch, tokens))})
