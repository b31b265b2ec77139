"""A softmax over many classes in clusters: frequent classes in the head, rare ones behind narrow
layers.

Source: Grave et al., "Efficient softmax approximation for GPUs", 2016 (arXiv 1609.04309).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numbat import ops
from numbat.nn.containers import ModuleList, Sequential
from numbat.nn.linear import Linear
from numbat.nn.module import Module
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class AdaptiveLoss(NamedTuple):
    """The log-probability of each target, (N) or (), and minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes sorted by frequency, cut into clusters at `cutoffs`.

    Cluster i behind the head has width in_features / div_value ** (i + 1). Raises CORE-0608 for
    cutoffs that do not rise between 1 and n_classes - 1, CORE-0609 for other inputs, CORE-0240 for
    a target that is no class.
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
        head_bias: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        edges = list(cutoffs)
        if not edges or edges != sorted(set(edges)) or edges[0] < 1 or edges[-1] > n_classes - 1:
            raise refuse(
                "CORE-0608", module="AdaptiveLogSoftmaxWithLoss", argument="cutoffs",
                value=str(edges), wanted=f"rising numbers from 1 to {n_classes - 1}",
            )  # fmt: skip
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*edges, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = edges[0]
        self.n_clusters = len(edges)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, dtype=dtype)
        self.tail = ModuleList()
        for at in range(self.n_clusters):
            width = int(in_features // (div_value ** (at + 1)))
            size = self.cutoffs[at + 1] - self.cutoffs[at]
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, dtype=dtype),
                    Linear(width, size, bias=False, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> AdaptiveLoss:
        """The log-probabilities of the targets, and the loss. Input (N, in_features) or
        (in_features)."""
        alone = target.ndim == 0
        if input.ndim != target.ndim + 1 or input.shape[:-1] != target.shape or target.ndim > 1:
            raise refuse(
                "CORE-0609", module="AdaptiveLogSoftmaxWithLoss", shape=list(input.shape),
                wanted=f"a row for each target of shape {list(target.shape)}",
            )  # fmt: skip
        rows = input.unsqueeze(0) if alone else input
        kinds = target.array.reshape(-1)
        for kind in kinds:
            if not 0 <= kind < self.n_classes:
                raise refuse(
                    "CORE-0240", operator="AdaptiveLogSoftmaxWithLoss", index=int(kind), dim=0,
                    extent=self.n_classes,
                )  # fmt: skip
        cluster = np.searchsorted(self.cutoffs, kinds, side="right")
        inside = np.where(cluster == 0, kinds, self.shortlist_size + cluster - 1)
        head = ops.log_softmax(self.head(rows), 1)
        output = ops.gather(head, 1, wrap(inside[:, None])).squeeze(1)
        for at, layers in enumerate(self.tail):
            places = np.nonzero(cluster == at + 1)[0]
            if len(places):
                chosen = wrap(places)
                found = ops.log_softmax(layers(ops.index_select(rows, 0, chosen)), 1)
                within = wrap((kinds[places] - self.cutoffs[at])[:, None])
                output = ops.index_add(output, 0, chosen, ops.gather(found, 1, within).squeeze(1))
        loss = -output.mean()
        return AdaptiveLoss(output.squeeze(0) if alone else output, loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, (N, n_classes)."""
        head = self.head(input)
        whole = ops.log_softmax(head, 1)
        parts = [whole[:, : self.shortlist_size]]
        for at, layers in enumerate(self.tail):
            of_cluster = whole[:, self.shortlist_size + at : self.shortlist_size + at + 1]
            parts.append(ops.log_softmax(layers(input), 1) + of_cluster)
        return ops.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each row, (N)."""
        return wrap(self.log_prob(input).array.argmax(1))
