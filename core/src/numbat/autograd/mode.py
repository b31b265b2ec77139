"""Whether operators are recorded: one switch a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class _Mode(threading.local):
    recording = True
    anomaly = False


MODE = _Mode()


class _Switch:
    """A context and a decorator that holds one attribute of the mode at a value."""

    _attribute = "recording"

    def __init__(self, value: bool) -> None:
        self._value = value
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(getattr(MODE, self._attribute))
        setattr(MODE, self._attribute, self._value)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        setattr(MODE, self._attribute, self._before.pop())

    def __call__(self, function: F) -> F:
        @wraps(function)
        def switched(*args: Any, **keywords: Any) -> Any:
            with self._fresh():
                return function(*args, **keywords)

        return switched  # type: ignore[return-value]

    def _fresh(self) -> _Switch:
        fresh = object.__new__(type(self))
        fresh._value, fresh._before = self._value, []
        return fresh


class no_grad(_Switch):
    """Within it no operator is recorded, so its results require no gradient."""

    def __init__(self) -> None:
        super().__init__(value=False)


class enable_grad(_Switch):
    """Within it operators are recorded, also inside `no_grad`."""

    def __init__(self) -> None:
        super().__init__(value=True)


class inference_mode(_Switch):
    """`no_grad` under the name by which inference code asks for it."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__(value=not mode)


class set_grad_enabled(_Switch):
    """Records or does not record from here on, or within it when used as a context."""

    def __init__(self, mode: bool) -> None:
        super().__init__(value=mode)
        self._before.append(MODE.recording)
        MODE.recording = mode

    def __enter__(self) -> None:
        MODE.recording = self._value


class detect_anomaly(_Switch):
    """Within it each operator remembers its call site, and a gradient that is NaN is refused with
    it."""

    _attribute = "anomaly"

    def __init__(self) -> None:
        super().__init__(value=True)


def is_grad_enabled() -> bool:
    """Whether operators are recorded in this thread."""
    return MODE.recording
