"""A user's own layer as a target: an instance, a class, a factory, or a KernelBench-style file."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

from ..spec.errors import UnknownOperator, WrongSignature, one_line
from ..spec.operators import OPERATORS
from .declarations import Declarations
from .frameworks import SLOW, adapter, full_name
from .layers.build import binding_of, operator_of
from .layers.constructor import Constructor, folder_of_factory, is_factory
from .layers.kit import Kit
from .layers.trial import DIVISIBLE_SIZE, GROUPS, SIZE
from .target import Target

#: The base class of each framework's layers, as (module, name), and the folder of adapters/ that has its kit.
_BASES = {
    ("torch.nn.modules.module", "Module"): "torch",
    ("keras.src.layers.layer", "Layer"): "keras",
    ("flax.nnx.module", "Module"): "flax",
    ("flax.linen.module", "Module"): "flax",
    ("equinox._module._module", "Module"): "equinox",
    ("equinox._module", "Module"): "equinox",
}


def folder_of_layer(value: Any) -> str | None:
    """The folder of adapters/ for a layer or layer class, found from its base classes; None for any other value."""
    kind = value if inspect.isclass(value) else type(without_state(value))
    for base in getattr(kind, "__mro__", ()):
        folder = _BASES.get((getattr(base, "__module__", ""), base.__name__))
        if folder is not None:
            return folder
    return None


def without_state(value: Any) -> Any:
    """The layer in an Equinox pair of layer and state; any other value unchanged."""
    paired = isinstance(value, tuple) and len(value) == 2 and type(value[1]).__module__.startswith("equinox.")
    return value[0] if paired else value


def layer_target(
    label: str,
    value: Any,
    module: ModuleType | None,
    operators: tuple[str, ...] | None,
    declared: Declarations,
    file: str = "",
) -> Target:
    """
    The target for a layer, a layer class or a factory.

    Raises UnknownOperator if its names do not say which operator it is, and WrongSignature if it cannot be called or is
    a block, whose parts a composed operator takes as arguments.
    """
    arguments = _initial_arguments(module, label)
    kind = value
    if folder_of_layer(value) is None:  # a factory
        example = _example(value, label, declared)
        kind = type(without_state(example))
        if not inspect.signature(value).parameters:
            value = example
    name = folder_of_layer(kind)
    if name is None:
        raise WrongSignature(
            f"{label} returned {kind.__name__}: a function without arguments has to make a layer and return it; one"
            " that is the operator takes x first"
        )
    folder = adapter(name)
    kind = kind if inspect.isclass(kind) else type(without_state(kind))
    kit = kit_of(folder, kind)
    operator = _operator(kit, without_state(value) if kit.is_layer(value) else kind, label, file, operators)
    if OPERATORS[operator].composed:
        raise WrongSignature(
            f"{label} is a class of layers, and which of them take the parts of {operator} from their caller is not"
            f" known: give a function, or an instance of a layer, that is called as {OPERATORS[operator].signature}"
        )
    binding = binding_of(kit, value, operator, label, declared, arguments)
    slow = full_name(kit.framework) in SLOW
    return Target(label, kit.framework, folder.BRIDGE.version, folder.BRIDGE, (binding,), slow=slow)


def kit_of(folder: ModuleType, kind: type) -> Kit:
    """The kit, from the framework's folder, for layers of this class."""
    return next(kit for kit in folder.KITS if issubclass(kind, kit.base))


def is_layer_like(value: Any) -> bool:
    """Whether a value is a layer, a layer class, or a function with the arguments of a layer's constructor."""
    return folder_of_layer(value) is not None or is_factory(value)


def which_operator(label: str) -> UnknownOperator:
    """The error for a layer or function that does not say which operator it is."""
    return UnknownOperator(f"which operator is {label}? Say so with --op, one of {', '.join(OPERATORS)}")


def _operator(kit: Kit, value: Any, label: str, file: str, operators: tuple[str, ...] | None) -> str:
    if operators is not None and len(operators) == 1:
        return operators[0]
    found = operator_of(kit, value, (label.rpartition(":")[2], Path(file or label.rpartition(":")[0]).stem))
    if found is None or found not in (operators or OPERATORS):
        raise which_operator(label)
    return found


def _example(make: Any, label: str, declared: Declarations) -> Any:
    """
    The layer that a factory makes for ordinary settings, and for the declared size and groups.

    If the ordinary size fails, one that most numbers of groups divide is tried, then a tuple.
    """
    handed = _handed(make)
    constructor, failed = Constructor.of(make, label, handed), None
    settings = {"eps": 1e-5, "momentum": 0.25, "groups": declared.value("groups") or GROUPS}
    shape = declared.value("shape") or (declared.value("channels") or SIZE * (declared.value("groups") or 1),)
    sizes = (shape[0], DIVISIBLE_SIZE, shape) if len(shape) == 1 else (shape,)
    for size in sizes:
        try:
            return constructor(handed, size=size, **settings, affine=True, scale=True, center=True)
        except Exception as error:
            failed = failed or error
    assert failed is not None
    raise WrongSignature(f"{label} raises {one_line(failed)} when it is called to make a layer") from failed


def _handed(make: Any) -> dict[str, Any]:
    """What normspec passes to a factory that needs an argument of Flax or Equinox; nothing for any other."""
    folder = folder_of_factory(make)
    kits = () if folder is None else adapter(folder).KITS
    return {name: value for kit in kits for name, value in kit.handed("float32").items()}


def _initial_arguments(module: ModuleType | None, label: str) -> tuple[Any, ...] | None:
    """The result of ``get_init_inputs`` in a KernelBench-style file; None if there is no such function."""
    get = getattr(module, "get_init_inputs", None)
    if not inspect.isfunction(get):
        return None
    try:
        return tuple(get())
    except Exception as error:
        raise WrongSignature(f"get_init_inputs beside {label} raises {one_line(error)}") from error
