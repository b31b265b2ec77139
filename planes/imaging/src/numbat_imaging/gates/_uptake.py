"""What a uniform PET phantom's uptake is, by the closed formula; part of IMG-G28."""

from __future__ import annotations

import numpy as np

from numbat_gates import Check
from numbat_imaging.volume import Volume

#: What the phantom holds: 5000 Bq/ml, 350 MBq, 70 kg, F-18 of 6586.2 s.
BQ_ML, DOSE_BQ, WEIGHT_G, HALF_LIFE_S = 5000.0, 350e6, 70000.0, 6586.2


def expected(elapsed_s: float, *, half_life_s: float = HALF_LIFE_S, bq_ml: float = BQ_ML) -> float:
    """SUVbw of the phantom when the images are corrected to `elapsed_s` after the injection."""
    dose_then_bq = DOSE_BQ * np.exp(-np.log(2.0) * elapsed_s / half_life_s)
    return float(bq_ml * WEIGHT_G / dose_then_bq)


def check_uptake(check: Check, name: str, volume: Volume, required: float) -> None:
    values = volume.values()
    check.close(
        name,
        measured=[float(values.min()), float(values.max())],
        required=[required, required],
        atol=1e-6 * max(1.0, required),
        unit="g/ml",
    )
