"""Philox 4x32-10 against the known answers of Random123."""

import numpy as np

from numbat.random.philox import philox4x32
from numbat_gates import Check, gate

#: Counter, key and result, from Random123's kat_vectors.
KNOWN = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


@gate(
    "CORE-G11",
    phase=1,
    discharges=["CORE-R011"],
    title="Philox gives the known answers of Random123",
)
def counters(check: Check) -> None:
    for counter, key, required in KNOWN:
        found = philox4x32(np.array(counter, np.uint32), np.array(key, np.uint32))
        measured = [int(one) for one in np.asarray(found).reshape(-1)]
        check.equal(f"counter {counter[0]:#x}, key {key[0]:#x}", measured, list(required))
