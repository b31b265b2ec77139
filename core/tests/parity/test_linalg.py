"""Linear algebra against PyTorch's sample inputs; vectors, whose signs are free, by what they
make up."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opinfo import compare, databases, tensor_of

import numbat as nb
from numbat.ops.registry import OPERATORS

APART = {
    "cholesky_solve": "torch's gradient has values in the triangle that is not read",
    "cholesky_inverse": "torch's gradient has values in the triangle that is not read",
    "linalg.eigh": "signs of vectors",
    "linalg.svd": "signs of vectors",
    "linalg.lstsq": "below",
    "linalg.pinv": "torch's second variant is of a product, below",
    "linalg.matrix_exp": "float32 is compared within torch's own error, below",
}
NAMES = [
    name
    for name, entry in OPERATORS.items()
    if entry.family in {"factorising", "matrix_functions"}
    and entry.torch in databases()
    and name not in APART
]
TYPES = (torch.float32, torch.float64)


def _plain(name):
    return [info for info in databases()[name] if not info.variant_test_name]


@pytest.mark.parametrize("name", NAMES)
def test_samples(name):
    tally = compare(name, dtypes=TYPES, limit=30, scale=10)
    assert not tally.faults, tally.faults[:3]
    assert tally.compared > 0


@pytest.mark.parametrize("name", ["cholesky_solve", "cholesky_inverse"])
def test_values_alone(name):
    tally = compare(name, dtypes=TYPES, gradients=False, scale=10)
    assert not tally.faults, tally.faults[:3]


def test_matrix_exp():
    tally = compare("linalg.matrix_exp", dtypes=(torch.float64,))
    assert not tally.faults, tally.faults[:3]
    tally = compare("linalg.matrix_exp", dtypes=(torch.float32,), gradients=False, scale=100)
    assert not tally.faults, tally.faults[:3]


def _matrices(name):
    yield from _plain(name)[0].sample_inputs("cpu", torch.float64, requires_grad=True)


@pytest.mark.parametrize("upper", ["L", "U"])
def test_eigh_by_invariants(upper):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 4, 4))
    weights = rng.normal(size=(2, 4, 4))
    theirs = torch.tensor(values, requires_grad=True)
    mine = nb.tensor(values, requires_grad=True)
    for one, library, weigh in (
        (theirs, torch, torch.tensor(weights)),
        (mine, nb, nb.tensor(weights)),
    ):
        found, vectors = library.linalg.eigh(one, UPLO=upper)
        (vectors * vectors * weigh).sum().backward()
        del found
    np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), atol=1e-9)
    np.testing.assert_allclose(
        nb.linalg.eigh(mine, upper).eigenvalues.detach().numpy(),
        torch.linalg.eigh(theirs, UPLO=upper).eigenvalues.detach().numpy(),
        atol=1e-10,
    )


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (2, 3, 5)])
@pytest.mark.parametrize("full", [False, True])
def test_svd_by_invariants(shape, full):
    rng = np.random.default_rng(1)
    values = rng.normal(size=shape)
    theirs = torch.tensor(values, requires_grad=True)
    mine = nb.tensor(values, requires_grad=True)
    u, s, vh = nb.linalg.svd(mine, full_matrices=full)
    v, t, wh = torch.linalg.svd(theirs, full_matrices=full)
    assert [tuple(one.shape) for one in (u, s, vh)] == [tuple(one.shape) for one in (v, t, wh)]
    k = min(shape[-2:])
    narrow = (u[..., :k], vh[..., :k, :]), (v[..., :k], wh[..., :k, :])
    np.testing.assert_allclose(
        ((narrow[0][0] * s[..., None, :]) @ narrow[0][1]).detach().numpy(), values, atol=1e-10
    )
    ((narrow[0][0] ** 2).sum(-1) ** 2 * 3).sum().backward(retain_graph=True)
    ((narrow[1][0] ** 2).sum(-1) ** 2 * 3).sum().backward(retain_graph=True)
    (s * s * s).sum().backward(retain_graph=True)
    (t * t * t).sum().backward(retain_graph=True)
    ((narrow[0][1] ** 2)[..., 0]).sum().backward()
    ((narrow[1][1] ** 2)[..., 0]).sum().backward()
    np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), atol=1e-8)


def test_pinv():
    compared = 0
    for info in _plain("linalg.pinv"):
        for sample in info.sample_inputs("cpu", torch.float64, requires_grad=True):
            if sample.args:
                continue
            keywords = {
                key: tensor_of(one) if isinstance(one, torch.Tensor) else one
                for key, one in sample.kwargs.items()
            }
            mine = tensor_of(sample.input).requires_grad_()
            wanted = torch.linalg.pinv(sample.input, **sample.kwargs)
            found = nb.linalg.pinv(mine, **keywords)
            np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), atol=1e-8)
            compared += 1
    assert compared >= 5


def test_pinv_of_a_singular_matrix_and_its_gradient():
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    grads = []
    for library, make in ((nb, nb.tensor), (torch, torch.tensor)):
        a, b = make(left, requires_grad=True), make(right, requires_grad=True)
        found = library.linalg.pinv(a @ b.mT)
        (found * found).sum().backward()
        grads.append((a.grad.numpy(), b.grad.numpy()))
    for one, other in zip(*grads, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 5, 3), (4, 4)])
@pytest.mark.parametrize("driver", ["gelsy", "gelsd"])
def test_lstsq(shape, driver):
    rng = np.random.default_rng(3)
    values, right = rng.normal(size=shape), rng.normal(size=(*shape[:-1], 2))
    found = nb.linalg.lstsq(nb.tensor(values), nb.tensor(right), driver=driver)
    wanted = torch.linalg.lstsq(torch.tensor(values), torch.tensor(right), driver=driver)
    for name in ("solution", "residuals", "rank", "singular_values"):
        mine, theirs = getattr(found, name), getattr(wanted, name)
        assert tuple(mine.shape) == tuple(theirs.shape), name
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-9)


def test_second_derivatives_of_solutions():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(3, 3)) + 3 * np.eye(3)
    seconds = []
    for library, make in ((nb, nb.tensor), (torch, torch.tensor)):
        a = make(values, requires_grad=True)
        grad = library.autograd.grad(library.linalg.inv(a).sum(), a, create_graph=True)[0]
        seconds.append(library.autograd.grad((grad * grad).sum(), a)[0].numpy())
    np.testing.assert_allclose(*seconds, atol=1e-9)
