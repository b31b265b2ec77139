"""Tables of vectors, looked up by whole numbers."""

from __future__ import annotations

from typing import Any, Self

from numbat.nn import functional as F
from numbat.nn import init
from numbat.nn.module import Module
from numbat.nn.parameter import Parameter
from numbat.tensors.creation import empty
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """What both share: a weight of shape (num_embeddings, embedding_dim), drawn from N(0, 1)."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def _make(
        self, given: Tensor | None, freeze: bool, padding_idx: int | None, dtype: Any
    ) -> None:
        count = self.num_embeddings
        if padding_idx is not None:
            if not -count <= padding_idx < count:
                raise refuse(
                    "CORE-0608", module=type(self).__name__, argument="padding_idx",
                    value=str(padding_idx), wanted=f"a row of {count}",
                )  # fmt: skip
            padding_idx %= count
        self.padding_idx = padding_idx
        shape = (count, self.embedding_dim)
        if given is None:
            self.weight = Parameter(empty(*shape, dtype=dtype), requires_grad=not freeze)
            self.reset_parameters()
            return
        if given.shape != shape:
            raise refuse(
                "CORE-0608", module=type(self).__name__, argument="_weight",
                value=str(list(given.shape)), wanted=f"a table of shape {list(shape)}",
            )  # fmt: skip
        self.weight = Parameter(given, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draws the table anew; the row of `padding_idx` is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.array[self.padding_idx] = 0

    @classmethod
    def _from(cls, embeddings: Tensor, freeze: bool, **options: Any) -> Self:
        if embeddings.ndim != 2:
            raise refuse(
                "CORE-0609", module=cls.__name__, shape=list(embeddings.shape), wanted="two axes"
            )
        rows, columns = embeddings.shape
        kind: Any = cls
        made: Self = kind(rows, columns, _weight=embeddings, _freeze=freeze, **options)
        return made


class Embedding(_Table):
    """The rows of a table that the input names.

    Input: whole numbers of any shape. Result: that shape and embedding_dim after it.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make(_weight, _freeze, padding_idx, dtype)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:  # fmt: skip
        """A module over a table of shape (rows, columns); it does not learn unless `freeze` is
        False."""
        return cls._from(
            embeddings, freeze, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """Shape (*input, embedding_dim)."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Its sizes, and options that differ from the defaults."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text + ", sparse=True" if self.sparse else text


class EmbeddingBag(_Table):
    """Sums, means or maxima of rows of a table, bag by bag.

    Input: (bags, length), or one axis with `offsets` at which the bags begin.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, _weight: Tensor | None = None, include_last_offset: bool = False,
        padding_idx: int | None = None, device: Any = None, dtype: Any = None,
        _freeze: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._make(_weight, _freeze, padding_idx, dtype)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, include_last_offset: bool = False, padding_idx: int | None = None,
    ) -> Self:  # fmt: skip
        """A module over a table of shape (rows, columns); it does not learn unless `freeze` is
        False."""
        return cls._from(
            embeddings, freeze, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, mode=mode, sparse=sparse,
            include_last_offset=include_last_offset, padding_idx=padding_idx,
        )  # fmt: skip

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """Shape (bags, embedding_dim)."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Its sizes, and options that differ from the defaults."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
