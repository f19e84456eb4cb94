"""What PyTorch is given to call for an operator.

Its dispatcher holds on to functions for good, even where a library is destroyed, and with them to all that they
can reach. So these reach nothing: they find what to do by name, in a table that is emptied when the interpreter
ends, and kernels are freed in order.
"""

import atexit
from typing import Any, Callable

_table: dict[tuple[str, str], Callable] = {}
atexit.register(_table.clear)


def put(name: str, role: str, function: Callable) -> Callable:
    """A function that calls `function`, as what the operator `name` does as `role`."""
    key = name, role
    _table[key] = function

    def call(*arguments: Any, **named: Any) -> Any:
        return _table[key](*arguments, **named)

    return call
