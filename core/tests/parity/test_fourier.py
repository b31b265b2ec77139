"""Fourier transforms, short-time spectra and windows against PyTorch's, over pairs as
`view_as_real`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opinfo import compare

import numbat as nb

NORMS = (None, "backward", "ortho", "forward")


def _theirs(value):
    value = value.resolve_conj()
    return torch.view_as_real(value) if value.is_complex() else value


def _check(mine, theirs, my_leaf, their_leaf):
    wanted = _theirs(theirs)
    assert tuple(mine.shape) == tuple(wanted.shape)
    np.testing.assert_allclose(mine.detach().numpy(), wanted.detach().numpy(), atol=1e-10)
    weights = np.random.default_rng(7).normal(size=tuple(wanted.shape))
    (mine * nb.tensor(weights)).sum().backward()
    (wanted * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(my_leaf.grad.numpy(), their_leaf.grad.numpy(), atol=1e-10)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 4, 5, 8])
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", ["fft", "ifft", "irfft", "hfft", "rfft", "ihfft"])
def test_along_one_axis(name, dim, n, norm):
    real = name in ("rfft", "ihfft")
    values = np.random.default_rng(0).normal(size=(4, 6) if real else (4, 6, 2))
    mine, theirs = nb.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    given = theirs if real else torch.view_as_complex(theirs)
    _check(
        getattr(nb.fft, name)(mine, n, dim, norm), getattr(torch.fft, name)(given, n, dim, norm),
        mine, theirs,
    )  # fmt: skip


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("s", "dim"), [(None, None), ((3, 4), None), ((3, 7), (0, 2)), (None, (1,))]
)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "irfftn", "rfftn"])
def test_over_axes(name, s, dim, norm):
    real = name == "rfftn"
    values = np.random.default_rng(0).normal(size=(3, 4, 5) if real else (3, 4, 5, 2))
    mine, theirs = nb.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    given = theirs if real else torch.view_as_complex(theirs)
    _check(
        getattr(nb.fft, name)(mine, s, dim, norm), getattr(torch.fft, name)(given, s, dim, norm),
        mine, theirs,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["fft.fftshift", "fft.ifftshift"])
def test_shifts(name):
    tally = compare(name)
    assert not tally.faults, tally.faults[:3]
    assert tally.compared > 0


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies(n):
    for name in ("fftfreq", "rfftfreq"):
        found, wanted = getattr(nb.fft, name)(n, 0.5), getattr(torch.fft, name)(n, 0.5)
        assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows(name, length, periodic):
    found = getattr(nb, f"{name}_window")(length, periodic, dtype=nb.float64)
    wanted = getattr(torch, f"{name}_window")(length, periodic, dtype=torch.float64)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), atol=1e-12)


SETTINGS = [
    {}, {"center": False}, {"normalized": True}, {"onesided": False}, {"hop_length": 3},
    {"win_length": 6}, {"pad_mode": "constant"}, {"pad_mode": "circular"},
    {"pad_mode": "replicate"},
]  # fmt: skip


@pytest.mark.parametrize("given", SETTINGS, ids=str)
@pytest.mark.parametrize("shape", [(40,), (2, 41)])
def test_short_time_spectra(given, shape):
    values = np.random.default_rng(1).normal(size=shape)
    window = np.random.default_rng(2).uniform(0.5, 1, given.get("win_length", 8))
    mine, theirs = nb.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    spectra = torch.stft(theirs, 8, window=torch.tensor(window), return_complex=True, **given)
    found = nb.stft(mine, 8, window=nb.tensor(window), **given)
    _check(found, spectra, mine, theirs)
    back = {key: one for key, one in given.items() if key != "pad_mode"}
    for length in (None, 35):
        wanted = torch.istft(
            spectra.detach(), 8, window=torch.tensor(window), length=length, **back
        )
        again = nb.istft(found.detach(), 8, window=nb.tensor(window), length=length, **back)
        np.testing.assert_allclose(again.numpy(), wanted.numpy(), atol=1e-10)


def test_round_trip_gradient():
    values = np.random.default_rng(3).normal(size=(5, 8, 2))
    window = np.random.default_rng(4).uniform(0.5, 1, 8)
    mine, theirs = nb.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    _check(
        nb.istft(mine, 8, window=nb.tensor(window)),
        torch.istft(torch.view_as_complex(theirs), 8, window=torch.tensor(window)),
        mine, theirs,
    )  # fmt: skip
