"""A pytest plugin for processes that import SGLang where there is no GPU: `-p tests.engines.sglang.without_gpu`.

Stands in for two packages while SGLang is imported: sgl_kernel, whose wheels are built for CUDA, and torchvision, whose
wheel on PyPI is. Everything else is SGLang's own; its Triton kernels run in Triton's interpreter.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import types
from collections.abc import Sequence

STOOD_IN_FOR = ("sgl_kernel", "torchvision")

os.environ["TRITON_INTERPRET"] = "1"


class _Anything:
    """What such a package offers. SGLang imports and stores it, and uses it on a GPU only."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __call__(self, *_: object, **__: object) -> "_Anything":
        return self

    def __getattr__(self, name: str) -> "_Anything":
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in STOOD_IN_FOR:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class _StandIn(types.ModuleType):
    __version__ = "0"  # transformers asks torchvision

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


sys.meta_path.insert(0, _StandIns())
