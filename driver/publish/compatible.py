"""For loaders that look for the kernel in a folder of its name: the package around this one, under that name."""
import importlib.util
import os
import sys

_name = "KERNEL_ID"
if _name not in sys.modules:
    _path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__init__.py")
    _spec = importlib.util.spec_from_file_location(_name, _path)
    assert _spec is not None and _spec.loader is not None
    _module = importlib.util.module_from_spec(_spec)
    sys.modules[_name] = _module
    _spec.loader.exec_module(_module)
globals().update({name: getattr(sys.modules[_name], name) for name in sys.modules[_name].__all__})
__all__ = sys.modules[_name].__all__
