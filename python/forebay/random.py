"""Random numbers for what is done to a sample, drawn from no global state."""

from __future__ import annotations

from . import _core, check
from .errors import InvalidArgumentError

_U64 = 2**64 - 1


class rng:  # noqa: N801 (a generator, named as what it gives)
    """Random numbers that are a pure function of (seed, op, epoch, sample, occurrence).

    >>> random = fb.rng(seed=7, op="crop", epoch=1, sample=5)
    >>> random.u32(), random.below(10), random.uniform(-1, 1)

    The same on any worker, rank, thread count and restart, and the same as ``KeyedRandom`` of
    ``forebay/random.h``: Philox 4x32-10, frozen by the test vectors in docs/order.md. Nothing is
    drawn from, or seeded in, torch's, NumPy's or Python's global generators.

    Args:
        seed: the run's.
        op: what the numbers are for; two ops of one sample are independent.
        epoch, sample: of a batch's ``_epoch`` and ``_sample``.
        occurrence: 0, but for a sample that comes again in its epoch.
    """

    __slots__ = ("_core", "_sample", "_occurrence")

    def __init__(self, *, seed=0, op, epoch=0, sample, occurrence=0):
        if not isinstance(op, str):
            raise InvalidArgumentError(f"op={op!r} must be a string")
        self._sample = check.integer("sample", sample, 0, _U64)
        self._occurrence = check.integer("occurrence", occurrence, 0, 2**32 - 1)
        seed, epoch = check.integer("seed", seed, 0, _U64), check.integer("epoch", epoch, 0, _U64)
        self._core = _core.KeyedRandom(seed, op, epoch, self._sample, self._occurrence)

    def u32(self):
        """The next 32 bits."""
        return self._core.u32()

    def u64(self):
        """The next 64 bits: two of ``u32``, the first one low."""
        return self._core.u64()

    def random(self):
        """A float in [0, 1), a multiple of 2**-53, from one ``u64``."""
        return self._core.random()

    def uniform(self, low, high):
        """``low + (high - low) * random()``."""
        return self._core.uniform(low, high)

    def below(self, n):
        """An integer in [0, n), every one as likely as the others; 1 <= n < 2**64."""
        return self._core.below(check.integer("n", n, 1, _U64))

    def numpy(self):
        """A ``numpy.random.Generator`` of its own for the same place.

        Its numbers are NumPy's: those of ``numpy.random.Philox`` with the key (hash of seed, op and
        epoch; sample) and the counter (0, 0, 0, occurrence). NumPy keeps the bit stream between
        versions, but not what its distributions make of it: record NumPy's version with the run.
        """
        import numpy as np  # takes longer to import than everything of ours

        key = np.array([self._core.key, self._sample], np.uint64)
        counter = np.array([0, 0, 0, self._occurrence], np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=counter))
