#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Grain: ArrayRecord files of `group_size:1`, shuffled as a whole, worker processes with shared memory."""

import os
import pathlib

os.environ["ABSL_MIN_LOG_LEVEL"] = "2"

import common
import grain.python as grain
import numpy
from array_record.python.array_record_module import ArrayRecordWriter


class ToArray(grain.MapTransform):
    """The bytes of a record as an array."""

    def map(self, element):
        return numpy.frombuffer(element, numpy.uint8)


class ToImage(grain.MapTransform):
    """A JPEG file as a normalised crop, decoded by PIL."""

    augment = None

    def map(self, element):
        import io

        import peer_torch
        from PIL import Image

        self.augment = self.augment or peer_torch.augmentation([])
        peer_torch.torch.set_num_threads(1)
        return self.augment(Image.open(io.BytesIO(element)).convert("RGB")).numpy()


def loader_of(work, contents, transform):
    def write(path):
        writer = ArrayRecordWriter(path, "group_size:1")
        for content in contents:
            writer.write(content)
        writer.close()

    path = work.once("records.array_record", write)
    numbers = iter(range(1_000_000))

    def open_loader():
        def epoch():
            data = grain.MapDataset.source(grain.ArrayRecordDataSource([path]))
            if work.shuffled or work.kind == "jpeg":
                data = data.shuffle(seed=next(numbers))
            data = data.map(transform).batch(work.batch).to_iter_dataset()
            if work.workers:
                data = data.mp_prefetch(grain.MultiprocessingOptions(num_workers=work.workers))
            return iter(data)

        return epoch

    return open_loader


def raw(work):
    return loader_of(work, (row.tobytes() for row in work.rows()), ToArray())


def jpeg(work):
    return loader_of(work, (pathlib.Path(name).read_bytes() for name in work.photos()), ToImage())


SETTINGS = {"raw": "ArrayRecord of group_size:1, MapDataset, full shuffle, mp_prefetch",
            "jpeg": "the same, PIL, torchvision.transforms.v2"}


def main():
    from absl import flags

    flags.FLAGS(["grain"])  # Grain's workers need flags that have been parsed
    common.main(["grain", "array-record"], SETTINGS, raw, jpeg)


if __name__ == "__main__":
    main()
