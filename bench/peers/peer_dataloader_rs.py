#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dataloader-rs: whole batches (`__getitems__`) of a memory-mapped npy file, made by threads of Rust."""

import common
import numpy
from dataloader_rs import PyDataloader, PyDataset


class Rows(PyDataset):
    """The rows of the file."""

    def __init__(self, path):
        super().__init__()
        self.rows = numpy.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        return self.rows[place]

    def __getitems__(self, places):
        """A batch at once: views of what one read has copied."""
        return list(self.rows[places])


def whole(rows):
    """The array whose rows `__getitems__` gave, so that they are not copied again."""
    return rows[0].base


def raw(work):
    path = work.once_rows()

    def open_loader():
        order = {"shuffle": True, "seed": common.SEED} if work.shuffled else {}
        loader = PyDataloader(Rows(path), batch_size=work.batch, num_workers=work.workers, prefetch_depth=8,
                              collate_fn=whole, **order)
        return lambda: iter(loader)

    return open_loader


SETTINGS = {"raw": "memory-mapped npy, `__getitems__`, prefetch_depth 8, threads"}

if __name__ == "__main__":
    common.main(["dataloader-rs", "numpy"], SETTINGS, raw)
