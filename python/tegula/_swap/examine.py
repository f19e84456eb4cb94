"""One call of a module, and of its program, side by side.

The module's own call is left as it is: what is compared runs on copies. Whatever the program would do silently in another
way (state that forward changes, random numbers, attributes that it sets, memory that its results share) is a Refusal.
"""
from __future__ import annotations

import collections
import copy
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from tegula_eval.program.binding import BindingError, bind
from tegula_eval.rule import reference, variants, verdict

from .._errors import Error
from .calls import PLAIN, Form, Refusal, containers, flatten, form_of, has_containers, in_order, names_of, rebuild
from .guards import FIXED, INPUT, OWN, STATE, Checked, NumberGuard, Part, TensorGuard, few, global_state, inner_hooks
from .module import ATTRIBUTE_NAME, kinds_of
from .moved import groups_of, move, state_of
from .program import Program
from .snapshot import hold, is_same

TWICE = 2  # calls with the same shapes that are compared


@dataclass
class Target:
    """A module that is to run as a program, and what its calls have told."""

    name: str
    base: type
    program: Program
    constants: dict[str, Any]
    tolerance: float
    checked: list[Checked] = field(default_factory=list)
    refusal: Optional[str] = None
    calls: int = 0
    seen: collections.Counter = field(default_factory=collections.Counter)
    # The largest errors seen (norms against float64), of the program and of the module.
    errors: dict[str, float] = field(default_factory=lambda: {"program": 0.0, "module": 0.0})


class _Case:
    """What tegula-eval binds a program's parameters to."""

    def __init__(self, names: list[str], inputs: list[Any], state: dict[str, torch.Tensor], constants: dict[str, Any]):
        self.names, self.inputs, self.state, self.known = names, inputs, state, constants
        self.expected: list = []

    def input_names(self) -> list[str]:
        return self.names

    def constants(self) -> dict[str, Any]:
        return self.known


def observe(target: Target, module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The module's own results; compares the program's with them."""
    target.calls += 1
    if target.refusal is not None:
        return target.base.forward(module, *args, **kwargs)
    try:
        call = _Call(target, module, args, kwargs)
    except Refusal as refusal:
        target.refusal = str(refusal)
        return target.base.forward(module, *args, **kwargs)
    results = target.base.forward(module, *args, **kwargs)
    if target.seen[call.key()] < TWICE:
        target.seen[call.key()] += 1
        try:
            call.compare(results)
        except Refusal as refusal:
            target.refusal = str(refusal)
    return results


def _attributes(module: torch.nn.Module) -> dict[tuple[str, ...], Any]:
    """All that forward may read beside parameters, buffers and parts."""
    found = {}
    for path, one in module.named_modules(remove_duplicate=False):
        place = tuple(path.split(".")) if path else ()
        found.update(((*place, name), value) for name, value in _own(one).items())
    return found


def _own(module: torch.nn.Module) -> dict[str, Any]:
    """The attributes of a module, and those of its class that are no functions."""
    found = {name: value for name, value in vars(module).items() if name not in OWN}
    for kind in type(module).__mro__:
        if kind.__module__.partition(".")[0] in ("torch", "abc", "typing", "builtins"):
            continue
        for name, value in vars(kind).items():
            if not name.startswith(("__", "_abc_")) and not hasattr(type(value), "__get__") and name not in vars(module):
                found.setdefault(name, value)
    return found


def _part(module: torch.nn.Module, kind: type, path: tuple[str, ...], held: dict[tuple[str, ...], Any]) -> Part:
    """The module as guards compare it; which state the program reads is filled in by its binding."""
    state = {**module._parameters, **module._buffers}
    return Part(kind, getattr(kind, "forward", None), module.training, frozenset(vars(module)),
                {name: held[(*path, name)] for name in _own(module)}, {name: one is not None for name, one in state.items()},
                {}, tuple(module._parameters),
                {name: None if one is None else _part(one, type(one), (*path, name), held)
                 for name, one in module._modules.items()})


def _is_plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or isinstance(value, (tuple, list)) and all(isinstance(one, PLAIN) for one in value)


def _version(value: Any) -> int:
    """How often a tensor was changed in place. Those of inference mode do not count."""
    return value._version if isinstance(value, torch.Tensor) and not value.is_inference() else 0


def _random_state(device: torch.device) -> list[torch.Tensor]:
    states = [torch.get_rng_state()]
    return states + [torch.cuda.get_rng_state(device)] if device.type == "cuda" else states


class _Call:
    """A call before it runs: its inputs, and copies of all that forward might change. Raises Refusal."""

    def __init__(self, target: Target, module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]):
        self.target, self.module, self.args, self.kwargs = target, module, args, kwargs
        values = [*args, *kwargs.values()]
        names, self.defaults = names_of(target.base.forward.__get__(module), len(args), tuple(kwargs))
        self.order = in_order(target.base.forward.__get__(module), names)
        self.names, self.inputs = flatten(names, values)
        self.layout = self._layout()
        self.containers = [found for one in values for found in containers(one)]
        self._refuse_unknown()
        tensors = [one for one in self.inputs if isinstance(one, torch.Tensor)]
        self.device = tensors[0].device if tensors else torch.device("cpu")
        for kind in kinds_of(self.inputs, module):
            reason = global_state(kind)
            if reason is not None:
                raise Refusal(f"{reason} is on during the example: a program does not follow it")
        self.attributes = _attributes(module)
        self.held = {path: hold(value, ".".join(path)) for path, value in self.attributes.items()}
        self.copies = [one.detach().clone() if isinstance(one, torch.Tensor) else one for one in self.inputs]
        self.state = state_of(module)
        self.state_copies = {name: one.detach().clone() for name, one in self.state.items()}
        self.versions = [_version(one) for one in self.inputs]
        self.state_versions = {name: _version(one) for name, one in self.state.items()}
        self.random = _random_state(self.device)
        self.needs = [place for place, one in enumerate(self.inputs)
                      if torch.is_grad_enabled() and isinstance(one, torch.Tensor) and one.requires_grad]
        self.parameters = [name for name, one in module.named_parameters(remove_duplicate=False)
                           if torch.is_grad_enabled() and one.requires_grad]

    def _layout(self) -> tuple[str, ...]:
        values = [*self.args, *self.kwargs.values()]
        if not has_containers(values):
            return ()
        return flatten([str(place) for place in range(len(self.args))] + list(self.kwargs), values, repr)[0]

    def _refuse_unknown(self) -> None:
        for path, one in self.module.named_modules():
            if path and inner_hooks(one):
                raise Refusal(f"'{path}' in it has hooks, or a forward of its own, that the program would not call")
        for name, one in zip(self.names, self.inputs):
            if isinstance(one, torch.Tensor):
                if type(one) not in (torch.Tensor, torch.nn.Parameter):
                    raise Refusal(f"the input '{name}' is a {type(one).__name__}: only plain tensors are taken")
                if one.layout != torch.strided or one.is_neg() or one.is_complex():
                    raise Refusal(f"the input '{name}' is no plain strided tensor")
            elif not isinstance(one, PLAIN) and one not in (tuple, list, dict):
                raise Refusal(f"the input '{name}' is a {type(one).__name__}, which a program cannot take and a guard "
                              "cannot compare")

    def key(self) -> tuple:
        return (len(self.args), tuple(self.kwargs), self.names, tuple(self.needs), tuple(self.parameters), tuple(
            (one.dtype, tuple(one.shape)) if isinstance(one, torch.Tensor) else (type(one), one) for one in self.inputs))

    def compare(self, results: Any) -> None:
        """Raises Refusal."""
        self._refuse_containers(results)
        updated = self._side_effects()
        tensors: list[torch.Tensor] = []
        form = form_of(results, tensors)
        checked = self._bound(updated, tensors, form)
        program = self.target.program
        given = checked.values(self.module, self._cloned_inputs())
        with torch.no_grad():
            made = self._run(given)
        conditions = program.conditions()
        checked.conditions = sorted((place, dim) for name, kind, place in checked.arguments if kind == INPUT
                                    for other, dim in conditions if other == name)
        expected = tensors[:len(tensors) - len(checked.returned)] if checked.returned else tensors
        if len(made) != len(expected):
            raise Refusal(f"forward returns {len(expected)} tensors, the program {len(made)}")
        depth = self._judge_all(checked, self.module, made, given, tensors, self.inputs)
        if self.needs or self.parameters:
            self._compare_gradients(checked, self.module, tensors, depth)
            checked.gradients = frozenset([*self.needs, *self.parameters])
        if self.state and self.target.seen[self.key()] == 1:
            self._compare_moved(checked)
        for one in self.target.checked:
            if one.same_class(checked):
                one.widen(checked)
                return
        self.target.checked.append(checked)

    def _judge_all(self, checked: Checked, module: torch.nn.Module, made: list[torch.Tensor], given: dict[str, Any],
                   tensors: list[torch.Tensor], inputs: list[Any]) -> float:
        """Judges the program's results `made`, and the arguments in `given` that it has updated, by the module's results and
        its inputs after the call. Returns how many terms an element is a sum of. Raises Refusal."""
        exact, exact_inputs, depth = self._in_float64(module)
        exact_results: list[torch.Tensor] = []
        form_of(exact, exact_results)
        for name, ours, theirs, truth in zip(self.target.program.outputs, made, tensors, exact_results):
            self._judge(name, ours, theirs.detach(), truth, depth)
        for name, kind, place in checked.arguments:
            if name in self.target.program.updated:
                self._judge(name, given[name], inputs[place].detach(), exact_inputs[place], depth)
        return depth

    def _compare_moved(self, checked: Checked) -> None:
        """The same with other values of all parameters and buffers. Raises Refusal."""
        read = {".".join(of) for _, kind, of in checked.arguments if kind == STATE}
        module = self._copy(self.module)
        move(module, read)
        unread = [name for _, names in groups_of(module) if not read & set(names) for name in names]
        try:
            inputs = [_leaf(one) if place in self.needs else one for place, one in enumerate(self._cloned_inputs())]
            tensors: list[torch.Tensor] = []
            with torch.set_grad_enabled(bool(self.needs or self.parameters)):
                form = form_of(self._forward(self._copy(module), inputs), tensors)
            if form != checked.form:
                raise Refusal("forward returns something else")
            given = checked.values(module, self._cloned_inputs())
            with torch.no_grad():
                made = self._run(given)
            depth = self._judge_all(checked, module, made, given, tensors, inputs)
            if self.needs or self.parameters:
                self._compare_gradients(checked, module, tensors, depth)
        except (Refusal, RuntimeError, TypeError, ValueError, IndexError, AssertionError) as error:
            among = f"; the program does not read {', '.join(map(repr, unread))}" if unread else ""
            raise Refusal(f"with other values of the parameters and buffers: {error}{among}") from error

    def _cloned_inputs(self) -> list[Any]:
        return [one.clone() if isinstance(one, torch.Tensor) else one for one in self.copies]

    def _refuse_containers(self, results: Any) -> None:
        """Raises Refusal where forward has changed tuples, lists and dicts among its inputs, or returns one of them."""
        values = [*self.args, *self.kwargs.values()]
        now = [found for one in values for found in containers(one)]
        leaves = flatten(self.names, values, repr)[1]
        if len(now) != len(self.containers) or any(one is not other for one, other in zip(now, self.containers)) \
                or len(leaves) != len(self.inputs) or any(one is not other for one, other in zip(leaves, self.inputs)) \
                or self.layout != self._layout():
            raise Refusal("forward changes a list or a dict among its inputs: a program would leave it as it was")
        if any(one is other for one in containers(results) for other in now if other != ()):
            raise Refusal("forward returns a list or a dict of its inputs itself: a program's results come in new ones")

    def _side_effects(self) -> set[int]:
        """The places of inputs that forward has changed. Raises Refusal for what a program cannot do."""
        if not all(torch.equal(a, b) for a, b in zip(self.random, _random_state(self.device))):
            raise Refusal("forward draws random numbers (an active dropout): use model.eval()")
        now = state_of(self.module)
        for name, one in self.state_copies.items():
            if now.get(name) is not self.state[name] or _version(now[name]) != self.state_versions[name] \
                    or not reference.is_equal(one, now[name].detach()):
                raise Refusal(f"forward changes '{name}' of the module (a batch norm in training mode does): a program "
                              "would leave it as it was")
        after = _attributes(self.module)
        for path in {*self.held, *after}:
            is_left = path in self.held and path in after and is_same(after[path], self.held[path])
            if not is_left or not isinstance(after[path], PLAIN) and after[path] is not self.attributes[path]:
                raise Refusal(f"forward sets the attribute '{'.'.join(path)}' of the module: a program would not")
        changed = {place for place, (one, copied) in enumerate(zip(self.inputs, self.copies))
                   if isinstance(one, torch.Tensor) and not reference.is_equal(one.detach(), copied)}
        # A tensor counts the changes of all views of its memory: of those that changed too, the others are as they were.
        known = {self.inputs[place].untyped_storage().data_ptr() for place in changed}
        return changed | {place for place, one in enumerate(self.inputs) if _version(one) != self.versions[place]
                          and one.untyped_storage().data_ptr() not in known}

    def _bound(self, updated: set[int], tensors: list[torch.Tensor], form: Form) -> Checked:
        """The class of this call, with the program's arguments. Raises Refusal."""
        checked = Checked(len(self.args), tuple(self.kwargs), self.layout, self.names, [
            TensorGuard(one.dtype, one.device.type, [(size, size) for size in one.shape], tuple(map(few, one.shape)))
            if isinstance(one, torch.Tensor) else one for one in self.inputs],
            _part(self.module, object, (), self.held), form=form)
        checked.compared = [tuple(tuple(one.shape) for one in self.inputs if isinstance(one, torch.Tensor))]
        checked.part.forward, checked.default_dtype = self.target.base.forward, torch.get_default_dtype()
        checked.part.names |= {ATTRIBUTE_NAME}
        self._bind(checked)
        read = {of for _, kind, of in checked.arguments if kind == STATE}
        for _, names in groups_of(self.module):
            paths = [tuple(name.split(".")) for name in names]
            if len(paths) > 1 and read.intersection(paths):
                checked.tied.append(paths)
        places = {name: place for name, kind, place in checked.arguments if kind == INPUT}
        for place in updated:
            if not any(places.get(name) == place for name in self.target.program.updated):
                raise Refusal(f"forward changes its input '{self.names[place]}' in place, and the program has no inout for it")
        for name in self.target.program.updated:
            if name not in places:
                raise Refusal(f"the program updates '{name}', which is no input of forward")
            if places[name] not in updated:
                raise Refusal(f"the program updates '{name}', which forward leaves as it is")
        if updated and (self.needs or self.parameters):
            raise Refusal("forward changes an input in place where gradients are recorded: swap with gradients=False")
        self._refuse_aliases(checked, updated, tensors)
        return checked

    def _refuse_aliases(self, checked: Checked, updated: set[int], tensors: list[torch.Tensor]) -> None:
        """Results that are an updated input itself are given back so; other memory that results share is refused."""
        while len(tensors) > len(checked.returned):
            last = tensors[len(tensors) - 1 - len(checked.returned)]
            same = [place for place in updated if self.inputs[place] is last]
            if not same:
                break
            checked.returned.insert(0, same[0])
        owners = [(f"the input '{name}'", one) for name, one in zip(self.names, self.inputs) if isinstance(one, torch.Tensor)]
        owners += [(f"'{name}' of the module", one) for name, one in self.state.items()]
        for place, one in enumerate(tensors[:len(tensors) - len(checked.returned)]):
            for owner, other in owners:
                if one.numel() and one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr():
                    raise Refusal(f"result {place} of forward shares memory with {owner}; a program's result is memory of "
                                  "its own, so that later changes in place would differ")
            owners.append((f"result {place}", one))

    def _bind(self, checked: Checked) -> None:
        """Fills `arguments`, and the state that is read. Raises Refusal."""
        program = self.target.program
        known = dict(self.defaults)  # an attribute's value is guarded, an argument that is left out stays so
        known.update(("_".join(path), value) for path, value in self.attributes.items() if _is_plain(value))
        known.update(self.target.constants)
        names = [name.replace(".", "_") for name in self.names]
        # By forward's declaration, though keyword arguments come in any order.
        top = {self.names[place]: place for place in range(len(self.names))}
        leading = list(dict.fromkeys(name.split(".")[0] for name in self.names))
        order = sorted(range(len(names)), key=lambda place: (self.order.index(leading.index(self.names[place].split(".")[0])),
                                                             top[self.names[place]]))
        wanted = {one.name for one in program.inputs}
        # Numbers that no parameter is named after are guards, unless the program takes numbers by their order.
        by_order = any(not one.is_tensor and one.name not in names and one.name not in known and one.name not in
                       {name.replace(".", "_") for name in self.state} for one in program.inputs)
        taken = [place for place in order if isinstance(self.inputs[place], torch.Tensor) or isinstance(
            self.inputs[place], (bool, int, float)) and (by_order or names[place] in wanted)]
        case = _Case([names[place] for place in taken], [self.inputs[place] for place in taken],
                     {name: one.detach() for name, one in self.state.items()}, known)
        try:
            binding = bind(list(program.parameters), case)
        except BindingError as error:
            raise Refusal(str(error)) from error
        for one in program.inputs:
            if one.name not in binding.sources:
                continue
            kind, of = binding.sources[one.name]
            if kind == "input":
                place = taken[case.names.index(of)]
                if not one.is_tensor and isinstance(self.inputs[place], torch.Tensor):
                    raise Refusal(f"the scalar '{one.name}' stands for a tensor, which would be read at each call: declare "
                                  "it as a tensor")
                checked.arguments.append((one.name, INPUT, place))
                if one.role == "scalar" and type(self.inputs[place]) in (int, float):
                    checked.inputs[place] = NumberGuard(type(self.inputs[place]), [self.inputs[place]])
            elif kind == "state":
                if not one.is_tensor:
                    raise Refusal(f"the scalar '{one.name}' stands for a tensor, which would be read at each call: declare "
                                  "it as a tensor")
                *path, last = of.split(".")
                checked.arguments.append((one.name, STATE, (*path, last)))
                part = checked.part
                for name in path:
                    part = part.inner[name]
                part.state[last] = self.state[of].dtype, self.state[of].shape
            else:
                checked.arguments.append((one.name, FIXED, known[one.name]))

    def _run(self, given: dict[str, Any]) -> list[torch.Tensor]:
        """The program's results. Raises Refusal."""
        try:
            made = self.target.program.operator(**given)
        except (Error, RuntimeError, TypeError) as error:
            raise Refusal(f"the program does not take this call: {error}") from error
        return [made] if isinstance(made, torch.Tensor) else [] if made is None else list(made)

    def _copy(self, module: torch.nn.Module) -> torch.nn.Module:
        try:
            made = copy.deepcopy(module)
        except (RuntimeError, TypeError) as error:
            raise Refusal(f"the module cannot be copied for a run in float64: {error}") from error
        made.__class__ = self.target.base
        vars(made).pop(ATTRIBUTE_NAME, None)
        return made

    def _forward(self, module: torch.nn.Module, inputs: list[Any]) -> Any:
        values = rebuild([*self.args, *self.kwargs.values()], iter(inputs))
        return self.target.base.forward(module, *values[:len(self.args)], **dict(zip(self.kwargs, values[len(self.args):])))

    def _in_float64(self, subject: torch.nn.Module) -> tuple[Any, list[Any], float]:
        """Results, inputs as they are afterwards, and how many terms an element is a sum of."""
        for types in reference.WIDENED:
            module, counted = self._copy(subject), variants.Measure()
            inputs = [reference.to_float64(one).clone() if isinstance(one, torch.Tensor) else one for one in self.copies]
            try:
                with torch.no_grad(), reference.exactly(module, types), counted:
                    results = self._forward(module, inputs)
                self.widened = types
                break
            except (RuntimeError, TypeError, NotImplementedError) as error:
                if types is reference.WIDENED[-1]:
                    raise Refusal(f"the module does not run in float64, so that the program cannot be judged: {error}") from error
        return results, inputs, counted.depth

    def _judge(self, name: str, ours: torch.Tensor, theirs: torch.Tensor, exact: torch.Tensor, depth: float) -> None:
        """Raises Refusal where the program is less accurate than the module."""
        if ours.dtype != theirs.dtype:
            raise Refusal(f"'{name}' is {_dtype(ours)}, the module's is {_dtype(theirs)}")
        found = verdict.judge(ours, theirs, exact, depth)
        if found.ours is not None and found.reference is not None:
            self.target.errors["program"] = max(self.target.errors["program"], found.ours.norm)
            self.target.errors["module"] = max(self.target.errors["module"], found.reference.norm)
            times = self.target.tolerance
            if found.ours.norm <= times * found.reference.norm and found.ours.worst <= times * found.reference.worst:
                return
        if not found.right:
            raise Refusal(f"'{name}' is not as accurate as the module: {found.message}")

    def _compare_gradients(self, checked: Checked, module: torch.nn.Module, tensors: list[torch.Tensor], depth: float) -> None:
        """Raises Refusal."""
        state = state_of(module)
        tied = {name: names for one, names in groups_of(module) for name in names}
        wanted = [(INPUT, place) for place in self.needs] + [
            (STATE, name) for name in self.parameters if tied[name][0] == name]
        generator = torch.Generator(self.device).manual_seed(0)  # not what the model draws from
        along = [torch.randn(one.shape, generator=generator, device=self.device).to(one.dtype)
                 if one.is_floating_point() else None for one in tensors]
        theirs = self._gradients_of(self._copy(module), self.copies, wanted, along)
        with reference.exactly(wide := self._copy(module), self.widened):
            exact = self._gradients_of(wide, [reference.to_float64(one) for one in self.copies], wanted,
                                       [None if one is None else one.double() for one in along])
        program = self.target.program
        # The program's arguments that each of these tensors is.
        arguments = {key: [name for name, kind, of in checked.arguments
                           if kind == key[0] and (of == key[1] if kind == INPUT else ".".join(of) in tied[key[1]])]
                     for key in wanted}
        for key, one in zip(wanted, theirs):
            name = key[1] if key[0] == STATE else self.names[key[1]]
            if one is not None and not (arguments[key] and set(arguments[key]) <= program.differentiable):
                raise Refusal(f"a gradient of '{name}' is needed, and the program has no backward kernel that gives it: name "
                              "one of its file with tegula.Replacement(..., backward=...) (`tegula grad` writes them), or swap "
                              "with gradients=False")
        leaves = {key: _leaf(self.copies[key[1]] if key[0] == INPUT else state[key[1]]) for key in wanted}
        given = {name: leaves[key] for key in wanted for name in arguments[key]}
        made = self._run({**checked.values(module, self._cloned_inputs()), **given})
        if any(a.requires_grad != b.requires_grad for a, b in zip(made, tensors)):
            raise Refusal("the program's results need gradients where the module's do not, or the other way round")
        ours = _gradients(made, list(leaves.values()), along)
        for key, found, one, truth in zip(wanted, ours, theirs, exact):
            name = key[1] if key[0] == STATE else self.names[key[1]]
            if (found is None) != (one is None):
                raise Refusal(f"the program gives {'no' if found is None else 'a'} gradient of '{name}', the module "
                              f"{'none' if one is None else 'one'} (a detach(), or no_grad() in forward): swap with "
                              "gradients=False")
            if found is not None:
                self._judge(f"grad_{arguments[key][0]}", found, one, truth, depth + self._rows())

    def _rows(self) -> float:
        """Terms that the gradient of a parameter adds up beside those of forward."""
        return float(max((one.numel() // max(one.shape[-1], 1) for one in self.copies
                          if isinstance(one, torch.Tensor) and one.dim()), default=1))

    def _gradients_of(self, module: torch.nn.Module, inputs: list[Any], wanted: list, along: list) -> list:
        state = dict(module.named_parameters(remove_duplicate=False))
        given = [one.clone() if isinstance(one, torch.Tensor) else one for one in inputs]
        for kind, of in wanted:
            if kind == INPUT:
                given[of] = _leaf(given[of])
        results: list[torch.Tensor] = []
        form_of(self._forward(module, given), results)
        return _gradients(results, [given[of] if kind == INPUT else state[of] for kind, of in wanted], along)


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone().requires_grad_()


def _gradients(results: list[torch.Tensor], leaves: list[torch.Tensor], along: list) -> list:
    pairs = [(one, by) for one, by in zip(results, along) if one.requires_grad]
    if not pairs or not leaves:
        return [None] * len(leaves)
    return list(torch.autograd.grad([one for one, _ in pairs], leaves, [by for _, by in pairs], allow_unused=True))


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
