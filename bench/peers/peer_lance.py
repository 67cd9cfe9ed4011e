#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lance: scanned in order with `to_batches`; shuffled by `take` in whole batches of PyTorch's DataLoader."""

import io
import pathlib

import common
import lance
import numpy
import pyarrow
import torch


def table(work, kind, contents):
    """A data set of one column, x."""

    def write(path):
        schema = pyarrow.schema([("x", kind)])

        def batches():
            waiting = []
            for content in contents():
                waiting.append(content)
                if len(waiting) == 64:
                    yield pyarrow.record_batch([pyarrow.array(waiting, kind)], schema=schema)
                    waiting = []
            if waiting:
                yield pyarrow.record_batch([pyarrow.array(waiting, kind)], schema=schema)

        lance.write_dataset(pyarrow.RecordBatchReader.from_batches(schema, batches()), path)

    return work.once("lance", write)


class Rows(torch.utils.data.Dataset):
    """Opens the data set in each worker: Lance's handles do not survive fork."""

    def __init__(self, path, count, convert):
        self.path, self.count, self.convert, self.data = path, count, convert, None

    def __len__(self):
        return self.count

    def __getitems__(self, places):
        """A batch at once."""
        if self.data is None:
            self.data = lance.dataset(self.path)
        return self.convert(self.data.take(places, columns=["x"])["x"].combine_chunks())


def first(batch):
    """Workers that are spawned need a function with a name."""
    return batch


class ToArray:
    """A column of fixed lists as one array."""

    def __init__(self, length):
        self.length = length

    def __call__(self, column):
        column = column.chunk(0) if hasattr(column, "chunk") else column
        return numpy.array(column.flatten()).reshape(-1, self.length)


class ToImages:
    """A column of JPEG files as normalised crops, decoded by PIL."""

    augment = None

    def __call__(self, column):
        import peer_torch
        from PIL import Image

        self.augment = self.augment or peer_torch.augmentation([])
        torch.set_num_threads(1)
        return torch.stack([self.augment(Image.open(io.BytesIO(file.as_py())).convert("RGB")) for file in column])


def taken(work, path, convert):
    more = {"persistent_workers": True, "prefetch_factor": 8, "multiprocessing_context": "spawn"} if work.workers else {}
    loader = torch.utils.data.DataLoader(Rows(path, work.samples, convert), shuffle=True, batch_size=work.batch,
                                         num_workers=work.workers, collate_fn=first, **more)
    return lambda: iter(loader)


def raw(work):
    path = table(work, pyarrow.list_(pyarrow.uint8(), work.bytes), work.rows)
    convert = ToArray(work.bytes)

    def scan():
        data = lance.dataset(path)
        return lambda: (convert(batch["x"]) for batch in data.to_batches(batch_size=work.batch))

    return (lambda: taken(work, path, convert)) if work.shuffled else scan


def jpeg(work):
    path = table(work, pyarrow.binary(), lambda: (pathlib.Path(name).read_bytes() for name in work.photos()))
    return lambda: taken(work, path, ToImages())


SETTINGS = {"raw": "to_batches in order; shuffled: take of whole batches from PyTorch's DataLoader, spawned workers",
            "jpeg": "the same, PIL, torchvision.transforms.v2"}

if __name__ == "__main__":
    common.main(["pylance", "torch"], SETTINGS, raw, jpeg)
