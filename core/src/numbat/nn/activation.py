"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from numbat.nn import functional as F
from numbat.nn import init
from numbat.nn.module import Module
from numbat.nn.parameter import Parameter
from numbat.tensors.creation import empty
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]  # fmt: skip


class _InPlace(Module):
    """What activations share that may write over their input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """`inplace=True`, where it is so."""
        return "inplace=True" if self.inplace else ""


def _with_inplace(text: str, inplace: bool) -> str:
    return f"{text}, inplace=True" if inplace else text


class ReLU(_InPlace):
    """x above zero, zero below."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.relu(input, self.inplace)


class Hardtanh(Module):
    """x held between `min_val` and `max_val`. Raises CORE-0608 where they are out of order."""

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
        min_value: float | None = None, max_value: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if not self.max_val > self.min_val:
            raise refuse(
                "CORE-0608", module=type(self).__name__, argument="max_val",
                value=str(self.max_val), wanted=f"more than min_val, {self.min_val}",
            )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """Its options."""
        return _with_inplace(f"min_val={self.min_val}, max_val={self.max_val}", self.inplace)


class ReLU6(Hardtanh):
    """x held between 0 and 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.relu6(input, self.inplace)

    def extra_repr(self) -> str:
        """`inplace=True`, where it is so."""
        return "inplace=True" if self.inplace else ""


class RReLU(Module):
    """`LeakyReLU` with slopes drawn from U(lower, upper) while training, and their mean
    afterwards."""

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Its options."""
        return _with_inplace(f"lower={self.lower}, upper={self.upper}", self.inplace)


class LeakyReLU(Module):
    """x above zero, `negative_slope` x below."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """Its options."""
        return _with_inplace(f"negative_slope={self.negative_slope}", self.inplace)


class ELU(Module):
    """x above zero, `alpha (exp(x) - 1)` below."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """Its options."""
        return _with_inplace(f"alpha={self.alpha}", self.inplace)


class CELU(Module):
    """x above zero, `alpha (exp(x / alpha) - 1)` below."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """Its options."""
        return _with_inplace(f"alpha={self.alpha}", self.inplace)


class SELU(_InPlace):
    """`ELU` scaled so that mean 0 and variance 1 stay (Klambauer et al., 2017, arXiv
    1706.02515)."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.selu(input, self.inplace)


class SiLU(_InPlace):
    """x times its sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """x tanh(softplus(x))."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.mish(input, self.inplace)


class Hardswish(_InPlace):
    """x relu6(x + 3) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        """Nothing, as in torch."""
        return ""


class Hardsigmoid(_InPlace):
    """relu6(x + 3) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        """Nothing, as in torch."""
        return ""


class GELU(Module):
    """x times the normal distribution function of x; `approximate` may be "tanh"."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Its options."""
        return f"approximate={self.approximate!r}"


class GLU(Module):
    """The first half of an axis times the sigmoid of the second."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """Its options."""
        return f"dim={self.dim}"


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.tanh(input)


class LogSigmoid(Module):
    """The logarithm of the sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.tanhshrink(input)


class Softplus(Module):
    """`log(1 + exp(beta x)) / beta`, and x itself where beta x is above `threshold`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Its options."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardshrink(Module):
    """Zero between -lambd and lambd, x elsewhere."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """Its options."""
        return f"{self.lambd}"


class Softshrink(Module):
    """x moved towards zero by `lambd`, zero between."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """Its options."""
        return f"{self.lambd}"


class Threshold(Module):
    """x above `threshold`, `value` elsewhere."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """Its options."""
        return _with_inplace(f"threshold={self.threshold}, value={self.value}", self.inplace)


class Softmax(Module):
    """exp(x) over its sum along an axis."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """Its options."""
        return f"dim={self.dim}"


class Softmin(Module):
    """`Softmax` of -x."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.softmin(input, self.dim)

    def extra_repr(self) -> str:
        """Its options."""
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of `Softmax`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        """Its options."""
        return f"dim={self.dim}"


class Softmax2d(Module):
    """`Softmax` over the channels of (N, C, H, W) or (C, H, W). Raises CORE-0609 for other
    inputs."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        if input.ndim not in (3, 4):
            raise refuse(
                "CORE-0609", module="Softmax2d", shape=list(input.shape), wanted="3 or 4 axes"
            )
        return F.softmax(input, -3)


class PReLU(Module):
    """`LeakyReLU` whose slopes, one or one a channel, are learnt."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Every slope `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """How many slopes."""
        return f"num_parameters={self.num_parameters}"
