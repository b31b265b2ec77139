"""Memory that numpy, DLPack and the buffer protocol share with a tensor."""

import numpy as np

import numbat as nb
from numbat.tensors.dtypes import DTYPES
from numbat_gates import Check, gate


@gate(
    "CORE-G04",
    phase=1,
    discharges=["CORE-R004"],
    title="Memory is exchanged without copying, or refused",
)
def interchange(check: Check) -> None:
    for dtype in DTYPES:
        held = nb.ones(2, 3, dtype=dtype)
        if dtype is not nb.bfloat16:
            array = held.numpy()
            check.true(f"numpy shares {dtype.name}", np.shares_memory(array, held.array))
        back = nb.from_dlpack(held)
        check.true(f"DLPack shares {dtype.name}", np.shares_memory(back.array, held.array))
        check.equal(f"DLPack keeps the type {dtype.name}", back.dtype.name, dtype.name)
    source = np.arange(6.0).reshape(2, 3)[:, ::2]
    tensor = nb.from_numpy(source)
    source[0, 1] = 77
    check.equal("a write to numpy's array is seen", tensor.tolist(), [[0, 77], [3, 5]])
    tensor.mul_(2)
    check.equal("a write to the tensor is seen", source.tolist(), [[0, 154], [6, 10]])
    taken = np.from_dlpack(nb.arange(5))
    check.equal("numpy takes DLPack", taken.tolist(), [0, 1, 2, 3, 4])
    check.equal(
        "a buffer has its elements", memoryview(nb.arange(3).numpy().data).tolist(), [0, 1, 2]
    )
    with check.refuses("CORE-0112", "numpy of what requires a gradient"):
        nb.ones(2, requires_grad=True).numpy()
    with check.refuses("CORE-0109", "a foreign byte order"):
        nb.from_numpy(np.zeros(2, ">f8"))
    with check.refuses("CORE-0101", "a type that is no element type"):
        nb.from_numpy(np.zeros(2, complex))
