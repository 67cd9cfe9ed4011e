#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ffcv_rate.py FILE SAMPLES BYTES: samples per second that FFCV's Loader delivers in batches of 64, fully
shuffled (RANDOM), with `os_cache`.

FILE, in FFCV's own format, is written first if it does not exist. The best of 1 and 2 worker threads counts,
each in its second epoch, when everything is compiled."""

import os
import sys
import time

os.environ["TQDM_DISABLE"] = "1"  # no bars

import numpy
from ffcv.fields import NDArrayField
from ffcv.fields.decoders import NDArrayDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.writer import DatasetWriter

path, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


class Rows:
    """Made-up rows."""

    def __init__(self):
        self.rows = numpy.random.default_rng(1).integers(0, 256, (count, size), dtype=numpy.uint8)

    def __len__(self):
        return count

    def __getitem__(self, place):
        return (self.rows[place],)


if not os.path.exists(path):
    fields = {"bin": NDArrayField(dtype=numpy.dtype("uint8"), shape=(size,))}
    DatasetWriter(path + ".new", fields, num_workers=2).from_indexed_dataset(Rows())
    os.rename(path + ".new", path)


def rate(workers):
    """Samples a second of the second epoch."""
    loader = Loader(path, batch_size=64, num_workers=workers, order=OrderOption.RANDOM, os_cache=True,
                    drop_last=False, pipelines={"bin": [NDArrayDecoder()]})
    best = 0
    for _ in range(2):
        begin = time.perf_counter()
        seen = sum(len(batch[0]) for batch in loader)
        best = seen / (time.perf_counter() - begin)
    if seen != count:
        sys.exit(f"{seen} samples instead of {count}")
    return best


print(max(rate(workers) for workers in (1, 2)))
