"""Operators of one's own, checkpointing, and derivatives of functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbat as nb
from numbat.autograd import (
    Function,
    checkpoint,
    checkpoint_sequential,
    functional,
    grad,
    once_differentiable,
)
from numbat_registries import Refusal


class Exp(Function):
    """Saves its own result."""

    @staticmethod
    def forward(ctx: Any, x: nb.Tensor) -> nb.Tensor:
        out = x.exp()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: nb.Tensor) -> nb.Tensor:
        (out,) = ctx.saved_tensors
        return grad * out


class SumAndProduct(Function):
    """Two results, and an argument that is no tensor."""

    @staticmethod
    def forward(ctx: Any, x: nb.Tensor, y: nb.Tensor, factor: float) -> tuple[nb.Tensor, ...]:
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return (x + y) * factor, x * y

    @staticmethod
    def backward(ctx: Any, to_sum: nb.Tensor, to_product: nb.Tensor) -> tuple[Any, ...]:
        x, y = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, True, False)
        return to_sum * ctx.factor + to_product * y, to_sum * ctx.factor + to_product * x, None


class Square(Function):
    """Keeps its inputs by `setup_context`."""

    @staticmethod
    def forward(x: nb.Tensor) -> nb.Tensor:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: nb.Tensor) -> nb.Tensor:
        return 2 * ctx.saved_tensors[0] * grad


def leaf(*values: float) -> nb.Tensor:
    return nb.tensor(list(values), dtype=nb.float64, requires_grad=True)


def test_a_saved_result_serves_every_order() -> None:
    x = leaf(0.5, -1.0)
    out = Exp.apply(x)
    assert out.grad_fn.name == "Exp"
    (first,) = grad(out.sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x, create_graph=True)
    (third,) = grad(second.sum(), x)
    for one in (first, second, third):
        np.testing.assert_allclose(one.array, np.exp(x.array))


def test_a_saved_result_that_was_written_over_is_refused() -> None:
    x = leaf(1.0)
    out = Exp.apply(x)
    out.mul_(2)
    with pytest.raises(Refusal, match="CORE-0304"):
        out.sum().backward()


def test_several_results_gather_their_gradients() -> None:
    x, y = leaf(2.0), leaf(3.0)
    total, product = SumAndProduct.apply(x, y, 10.0)
    (total + product).sum().backward()
    assert (x.grad.item(), y.grad.item()) == (13.0, 12.0)
    x.grad = None
    SumAndProduct.apply(x, y, 10.0)[1].sum().backward()
    assert x.grad.item() == 3.0


def test_contexts_may_be_set_up_apart_from_forward() -> None:
    x = leaf(3.0)
    (first,) = grad(Square.apply(x), x, create_graph=True)
    assert first.item() == 6.0
    assert grad(first, x)[0].item() == 2.0


def test_nothing_is_recorded_where_nothing_is_wanted() -> None:
    assert Exp.apply(nb.ones(1)).grad_fn is None
    with nb.no_grad():
        assert Exp.apply(leaf(1.0)).grad_fn is None


def test_results_without_gradient_are_marked() -> None:
    class Sorted(Function):
        @staticmethod
        def forward(ctx: Any, x: nb.Tensor) -> tuple[nb.Tensor, nb.Tensor]:
            places = nb.from_numpy(np.argsort(x.array))
            rank = places.to(nb.float64)
            ctx.mark_non_differentiable(rank)
            ctx.places = places
            return nb.from_numpy(np.sort(x.array)), rank

        @staticmethod
        def backward(ctx: Any, grad: nb.Tensor, _: Any) -> nb.Tensor:
            out = np.zeros(grad.shape)
            out[ctx.places.array] = grad.array
            return nb.from_numpy(out)

    x = leaf(3.0, 1.0)
    values, rank = Sorted.apply(x)
    assert not rank.requires_grad
    (values * nb.tensor([1.0, 5.0])).sum().backward()
    np.testing.assert_array_equal(x.grad.array, [5, 1])


def test_an_input_written_over_takes_the_history() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: nb.Tensor) -> nb.Tensor:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, grad: nb.Tensor) -> nb.Tensor:
            return grad * 2

    x = leaf(3.0)
    y = x * 1
    assert Double.apply(y) is y
    (y * 5).sum().backward()
    assert x.grad.item() == 10.0


def test_a_derivative_marked_once_is_refused_twice() -> None:
    class Cube(Function):
        @staticmethod
        def forward(ctx: Any, x: nb.Tensor) -> nb.Tensor:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad: nb.Tensor) -> nb.Tensor:
            return 3 * ctx.saved_tensors[0] ** 2 * grad

    x = leaf(2.0)
    (first,) = grad(Cube.apply(x), x, create_graph=True)
    assert first.item() == 12.0
    with pytest.raises(Refusal, match="CORE-0322"):
        first.backward()


def test_gradients_in_the_wrong_number_are_refused() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: nb.Tensor, y: float) -> nb.Tensor:
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: nb.Tensor) -> nb.Tensor:
            return grad

    with pytest.raises(Refusal, match="CORE-0321"):
        Wrong.apply(leaf(1.0), 2.0).backward()
    with pytest.raises(Refusal, match="CORE-0320"):
        Function.apply(nb.ones(1))


# -- checkpointing ----------------------------------------------------------------------------


def test_checkpointed_gradients_are_bitwise_the_same() -> None:
    rng = np.random.default_rng(0)
    weight = nb.tensor(rng.normal(size=(4, 4)), requires_grad=True)
    x = nb.tensor(rng.normal(size=(3, 4)), requires_grad=True)

    def block(x: nb.Tensor) -> nb.Tensor:
        return (x @ weight).tanh() + x

    def gradients(call: Any) -> list[Any]:
        weight.grad = x.grad = None
        out = call(call(x))
        (out * out).sum().backward()
        return [weight.grad.array.copy(), x.grad.array.copy()]

    plain = gradients(block)
    kept = gradients(lambda x: checkpoint(block, x, use_reentrant=False))
    for one, other in zip(plain, kept, strict=True):
        np.testing.assert_array_equal(one, other)


def test_checkpointing_without_wanted_arguments_still_reaches_parameters() -> None:
    weight = leaf(2.0)
    checkpoint(lambda x: x * weight, nb.ones(1, dtype=nb.float64)).sum().backward()
    assert weight.grad.item() == 1.0


def test_checkpointed_functions_are_differentiable_twice() -> None:
    x = leaf(2.0)
    (first,) = grad(checkpoint(lambda x: x * x * x, x), x, create_graph=True)
    assert first.item() == 12.0
    assert grad(first, x)[0].item() == 12.0


def test_checkpoints_take_a_skip_connection_from_outside() -> None:
    x = leaf(2.0)
    y = x * 3
    out = checkpoint(lambda one, two: one * two, y, x * y)
    out.sum().backward()
    assert x.grad.item() == pytest.approx(27 * 4)  # 9 x**3 has the slope 27 x**2


def test_checkpointed_structures_come_back_whole() -> None:
    x = leaf(2.0)
    found = checkpoint(lambda x: {"a": x * 2, "b": [x * x, "text", 3]}, x)
    assert found["b"][1:] == ["text", 3]
    (found["a"] + found["b"][0]).sum().backward()
    assert x.grad.item() == 6.0


def test_random_numbers_are_drawn_again() -> None:
    x = nb.ones(1000, requires_grad=True)
    nb.manual_seed(5)
    out = checkpoint(lambda x: nb.dropout(x, 0.5), x)
    after = nb.rand(1).item()
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.array, out.array)
    nb.manual_seed(5)
    nb.dropout(nb.ones(1000), 0.5)
    assert nb.rand(1).item() == after


def test_a_second_run_that_differs_is_refused() -> None:
    sizes = iter([2, 3])
    out = checkpoint(lambda x: x * nb.ones(next(sizes)), nb.ones(1, requires_grad=True))
    with pytest.raises(Refusal, match="CORE-0323"):
        out.sum().backward()


def test_an_argument_written_over_is_refused() -> None:
    x, y = nb.ones(2, requires_grad=True), nb.ones(2)
    out = checkpoint(lambda x, y: x * y, x, y)
    y.add_(1)
    with pytest.raises(Refusal, match="CORE-0304"):
        out.sum().backward()


def test_a_row_of_functions_in_segments() -> None:
    weight = leaf(1.5)
    row = [lambda x: x * weight, lambda x: x.tanh(), lambda x: x * weight, lambda x: x + 1]
    x = leaf(0.3)
    checkpoint_sequential(row, 2, x).sum().backward()
    kept = weight.grad.item(), x.grad.item()
    weight.grad = x.grad = None
    out = x
    for one in row:
        out = one(out)
    out.sum().backward()
    assert kept == (weight.grad.item(), x.grad.item())


def test_less_is_kept_where_checkpointed() -> None:
    x = nb.ones(256, 1024, requires_grad=True)

    def block(x: nb.Tensor) -> nb.Tensor:
        for _ in range(8):
            x = x.tanh()
        return x

    def held(call: Any) -> int:
        before = nb.memory_stats()["used_bytes"]
        out = call(x)
        kept = nb.memory_stats()["used_bytes"] - before
        del out
        return int(kept)

    assert held(lambda x: checkpoint(block, x)) * 4 < held(block)


# -- functional -------------------------------------------------------------------------------


def test_jacobian_and_products_agree() -> None:
    rng = np.random.default_rng(1)
    matrix = nb.tensor(rng.normal(size=(3, 2)))
    x = nb.tensor(rng.normal(size=2))
    v, w = nb.tensor(rng.normal(size=3)), nb.tensor(rng.normal(size=2))

    def function(x: nb.Tensor) -> nb.Tensor:
        return (matrix @ x).tanh()

    wanted = (1 - np.tanh(matrix.array @ x.array) ** 2)[:, None] * matrix.array
    np.testing.assert_allclose(functional.jacobian(function, x).array, wanted)
    np.testing.assert_allclose(functional.vjp(function, x, v)[1].array, v.array @ wanted)
    value, product = functional.jvp(function, x, w)
    np.testing.assert_allclose(product.array, wanted @ w.array)
    np.testing.assert_allclose(value.array, np.tanh(matrix.array @ x.array))


def test_hessian_and_its_products() -> None:
    x, y = nb.tensor([1.0, 2.0]), nb.tensor([3.0, 4.0])

    def function(x: nb.Tensor, y: nb.Tensor) -> nb.Tensor:
        return (x * x * x * y).sum()

    (xx, xy), (yx, yy) = functional.hessian(function, (x, y))
    np.testing.assert_allclose(xx.array, np.diag(6 * x.array * y.array))
    np.testing.assert_allclose(xy.array, np.diag(3 * x.array**2))
    np.testing.assert_allclose(yx.array, xy.array)
    np.testing.assert_allclose(yy.array, np.zeros((2, 2)))
    vectors = (nb.tensor([1.0, 0.0]), nb.tensor([0.0, 1.0]))
    value, (to_x, to_y) = functional.hvp(function, (x, y), vectors)
    assert value.item() == 35.0
    np.testing.assert_allclose(to_x.array, [18, 12])
    np.testing.assert_allclose(to_y.array, [3, 0])
    assert not to_x.requires_grad


def test_products_may_be_differentiated_further() -> None:
    x = nb.tensor([2.0], requires_grad=True)
    found = functional.jacobian(lambda x: x * x * x, x, create_graph=True)
    found.sum().backward()
    assert x.grad.item() == 12.0


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(Refusal, match="CORE-0324"):
        functional.vjp(lambda x: x * 2, nb.ones(3), nb.ones(2))
    with pytest.raises(Refusal, match="CORE-0325"):
        functional.jacobian(lambda x: 1.0, nb.ones(3))
    with pytest.raises(Refusal, match="CORE-0310"):
        functional.jacobian(lambda x: nb.ones(2, requires_grad=True) * 1, nb.ones(3), strict=True)
    with pytest.raises(Refusal, match="CORE-0103"):
        functional.hessian(lambda x: x * 2, nb.ones(3))
