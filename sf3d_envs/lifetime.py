"""What the owners of device memory and threads share: one thread at a time, memory freed at the end, no pickling."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar

Params = ParamSpec("Params")
Result = TypeVar("Result")


_owners: weakref.WeakSet[DeviceOwner] = weakref.WeakSet()


def _renew_locks() -> None:
    """In a forked child no thread is left that could release the parent's locks."""
    for owner in _owners:
        owner.__dict__["_lock"] = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class DeviceOwner:
    """Base of objects that hold device memory and threads until they are closed.

    Methods marked :func:`exclusive` run on one thread at a time, so closing waits for a running step.
    """

    _kept: frozenset[str] = frozenset()
    """Attributes that outlive :meth:`_free`."""

    _fixed: frozenset[str] = frozenset()
    """Attributes that are set once, by the constructor."""

    _instead = "make a new one"
    """What to do instead of pickling."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Give every object its lock before anything else can fail."""
        self = super().__new__(cls)
        self.__dict__["_lock"] = threading.RLock()
        self.__dict__["_freed"] = False
        _owners.add(self)
        return self

    @property
    def lock(self) -> threading.RLock:
        """What lets one thread at a time in."""
        return self.__dict__["_lock"]

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute.

        Raises:
            AttributeError: If it is fixed at construction.
        """
        if name in self._fixed and name in self.__dict__:
            raise AttributeError(f"{name} is fixed at construction; make a new {type(self).__name__}")
        super().__setattr__(name, value)

    def _free(self) -> None:
        """Drop every attribute but those that are kept: arrays live on only in the views that a user holds."""
        self._freed = True
        for name in set(vars(self)) - self._kept - {"_lock", "_freed"}:
            delattr(self, name)

    def __getstate__(self) -> NoReturn:
        """Refuse to be pickled or copied.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"a live {type(self).__name__} can't be pickled or copied: {self._instead}")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say why an attribute of a closed object is missing."""
            if self.__dict__.get("_freed") and not name.startswith("__"):
                raise AttributeError(f"{name!r} is gone: this {type(self).__name__} is closed; make a new one")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def exclusive(method: Callable[Concatenate[Any, Params], Result]) -> Callable[Concatenate[Any, Params], Result]:
    """Let one thread at a time into the methods of a :class:`DeviceOwner`."""

    @wraps(method)
    def locked(self: Any, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return locked
