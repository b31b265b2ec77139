"""Modules that learn their sizes from their first input."""

from __future__ import annotations

from typing import Any

from numbat.nn.parameter import is_unshaped

__all__ = ["Lazy"]


class Lazy:
    """Added to a module class whose parameters wait for their shapes.

    The first call gives `infer_sizes` the input, makes the parameters, and turns the module into
    one of `eager`, the class without this one.
    """

    eager: Any

    def infer_sizes(self, *args: Any, **keywords: Any) -> None:
        """Takes what sizes are missing from the first input."""
        raise NotImplementedError

    def has_uninitialized_params(self: Any) -> bool:
        """Whether a parameter or buffer waits for its shape."""
        return any(
            is_unshaped(one) for one in (*self._parameters.values(), *self._buffers.values())
        )

    def initialize_parameters(self: Any, *args: Any, **keywords: Any) -> None:
        """Makes the parameters from the sizes of an input, with the values of
        `reset_parameters`."""
        from numbat.autograd.mode import no_grad

        if self.has_uninitialized_params():
            with no_grad():
                self.infer_sizes(*args, **keywords)
                self.reset_parameters()
        else:
            # The state was loaded before any input came.
            self.adopt_sizes()

    def adopt_sizes(self) -> None:
        """Takes the sizes from parameters that were loaded."""

    def __call__(self: Any, *args: Any, **keywords: Any) -> Any:
        if type(self).eager is not None and isinstance(self, Lazy):
            self.initialize_parameters(*args, **keywords)
            self.__class__ = type(self).eager
        return self(*args, **keywords)
