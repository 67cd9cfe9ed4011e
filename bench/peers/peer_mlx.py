#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mlx-data: samples of a tar file by `read_from_tar`, shuffled as a whole, batched and prefetched by its threads."""

import pathlib

import common
import numpy
import peer_tar
from mlx import data as dx


def loader_of(work, field, contents, finish):
    """Opens a buffer over the members of one tar file."""
    path = peer_tar.shards(work, 1, field, contents)[0]
    names = [{"file": f"{place:09}.{field}".encode()} for place in range(work.samples)]

    def open_loader():
        samples = dx.buffer_from_vector(names)

        def epoch():
            read = samples.shuffle() if work.shuffled or work.kind == "jpeg" else samples
            read = finish(read.read_from_tar(path, "file", "x").to_stream())
            return (batch["x"] for batch in read.batch(work.batch).prefetch(8, max(work.workers, 1)))

        return epoch

    return open_loader


def raw(work):
    return loader_of(work, "bin", (row.tobytes() for row in work.rows()), lambda stream: stream)


def jpeg(work):
    mean, std = (255 * numpy.array(values, numpy.float32) for values in (common.MEAN, common.STD))

    def finish(stream):
        return (stream.load_image("x", from_memory=True)
                .image_random_area_crop("x", (0.08, 1.0), (3 / 4, 4 / 3)).image_resize("x", common.SIDE, common.SIDE)
                .image_random_h_flip("x", 0.5).key_transform("x", lambda x: (x.astype(numpy.float32) - mean) / std))

    return loader_of(work, "jpg", (pathlib.Path(name).read_bytes() for name in work.photos()), finish)


SETTINGS = {"raw": "one tar file, read_from_tar, full shuffle, prefetch(8)",
            "jpeg": "one tar file, load_image, image_random_area_crop, image_resize, key_transform, channels last"}

if __name__ == "__main__":
    common.main(["mlx-data"], SETTINGS, raw, jpeg)
