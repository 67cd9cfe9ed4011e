#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch_rate.py FILE SAMPLES BYTES: samples per second that PyTorch's DataLoader delivers in batches of 64, fully
shuffled, from a memory-mapped npy file, whole batches at a time (`__getitems__`).

FILE is written first if it does not exist. The best of 0, 1 and 2 worker processes counts, each in its second
epoch."""

import os
import sys
import time

import numpy
import torch

path, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if not os.path.exists(path):
    rows = numpy.random.default_rng(1).integers(0, 256, (count, size), dtype=numpy.uint8)
    numpy.save(path + ".new.npy", rows)
    os.rename(path + ".new.npy", path)


class Rows(torch.utils.data.Dataset):
    """The rows of the file."""

    def __init__(self):
        self.rows = numpy.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.rows)

    def __getitems__(self, places):
        """A batch at once."""
        return torch.from_numpy(self.rows[places])


def rate(workers):
    """Samples a second of the second epoch."""
    more = {"persistent_workers": True, "prefetch_factor": 8} if workers else {}
    loader = torch.utils.data.DataLoader(Rows(), batch_size=64, shuffle=True, num_workers=workers,
                                         collate_fn=lambda batch: batch, **more)
    best = 0
    for _ in range(2):
        begin = time.perf_counter()
        seen = sum(len(batch) for batch in loader)
        best = seen / (time.perf_counter() - begin)
    if seen != count:
        sys.exit(f"{seen} samples instead of {count}")
    return best


print(max(rate(workers) for workers in (0, 1, 2)))
