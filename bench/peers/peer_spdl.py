#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SPDL: a pipeline of threads, which reads whole tar shards; photos by FFmpeg, with its filters."""

import pathlib
import random

import common
import numpy
import peer_tar
import spdl.io
from spdl.pipeline import PipelineBuilder


def pipeline_of(work, source, *stages):
    """The batches of an epoch; a stage is an operation and its concurrency, or a number to aggregate."""
    builder = PipelineBuilder().add_source(source)
    for stage in stages:
        builder = builder.aggregate(stage) if isinstance(stage, int) else builder.pipe(stage[0], concurrency=stage[1])
    pipeline = builder.add_sink(8).build(num_threads=max(work.workers, 1))
    with pipeline.auto_stop():
        yield from pipeline.get_iterator()


def raw(work):
    """Shuffled within a shard, for SPDL has no shuffling of samples of its own."""
    names = peer_tar.shards(work, 16, "bin", (row.tobytes() for row in work.rows()))
    chance = random.Random(common.SEED)

    def batches(name):
        views = [content for _, content in spdl.io.iter_tarfile(pathlib.Path(name).read_bytes())]
        if work.shuffled:
            chance.shuffle(views)
        for begin in range(0, len(views), work.batch):
            yield numpy.stack([numpy.frombuffer(view, numpy.uint8) for view in views[begin:begin + work.batch]])

    def source():
        return chance.sample(names, len(names)) if work.shuffled else names

    return lambda: lambda: pipeline_of(work, source(), (batches, max(work.workers, 1)))


def crop(width, height, chance):
    """The window that torchvision's RandomResizedCrop draws, and whether it is mirrored."""
    for _ in range(10):
        area, ratio = chance.uniform(0.08, 1) * width * height, numpy.exp(chance.uniform(-0.2877, 0.2877))
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            return w, h, chance.randint(0, width - w), chance.randint(0, height - h)
    side = min(width, height)
    return side, side, (width - side) // 2, (height - side) // 2


def jpeg(work):
    names = work.photos()
    chance = random.Random(common.SEED)
    mean, std = (255 * numpy.array(values, numpy.float32) for values in (common.MEAN, common.STD))
    scale, offset = 1 / std, -mean / std

    def decode(name):
        packets = spdl.io.demux_image(name)
        w, h, x, y = crop(packets.width, packets.height, chance)
        mirror = ",hflip" if chance.random() < 0.5 else ""
        steps = f"crop={w}:{h}:{x}:{y},scale={common.SIDE}:{common.SIDE}:flags=bilinear{mirror},format=pix_fmts=rgb24"
        return spdl.io.decode_packets(packets, filter_desc=steps)

    def normalise(frames):
        array = spdl.io.to_numpy(spdl.io.convert_frames(frames))
        return array.astype(numpy.float32) * scale + offset

    return lambda: lambda: pipeline_of(work, chance.sample(names, len(names)), (decode, max(work.workers, 1)), work.batch,
                                       (normalise, max(work.workers, 1)))


SETTINGS = {"raw": "16 tar shards, each read whole and parsed by iter_tarfile, shuffled within a shard, threads",
            "jpeg": "files, FFmpeg's crop, bilinear scale and flip, normalised with NumPy, channels last, threads"}

if __name__ == "__main__":
    common.main(["spdl"], SETTINGS, raw, jpeg)
