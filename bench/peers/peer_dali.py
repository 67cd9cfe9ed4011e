#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVIDIA DALI on the CPU: tar shards with index files, a shuffle buffer, and the decoder that crops."""

import pathlib
import tarfile

import common
import numpy
import peer_tar
from nvidia import dali
from nvidia.dali import fn

SHARDS = 4
BUFFER = 1024


def index_of(name, field):
    """The name of a shard's index, which is written here if it is not there, as DALI's wds2idx does."""
    path = pathlib.Path(name.replace(".tar", ".idx"))
    if not path.exists():
        with tarfile.open(name) as tar:
            members = [f"{field} {m.offset_data} {m.size} {m.name}" for m in tar]
        path.write_text(f"v1.2 {len(members)}\n" + "\n".join(members) + "\n", encoding="utf-8")
    return str(path)


def loader_of(work, field, contents, finish):
    """Opens a pipeline; `finish` makes the output of what the reader gives."""
    names = peer_tar.shards(work, SHARDS, field, contents)
    indexes = [index_of(name, field) for name in names]

    def open_loader():
        @dali.pipeline_def(batch_size=work.batch, num_threads=max(work.workers, 1), device_id=None, seed=common.SEED,
                           prefetch_queue_depth=4)
        def samples():
            return finish(fn.readers.webdataset(
                paths=names, index_paths=indexes, ext=[field], missing_component_behavior="error", name="reader",
                random_shuffle=work.shuffled or work.kind == "jpeg", initial_fill=BUFFER, prefetch_queue_depth=4))

        pipeline = samples()
        pipeline.build()
        batches = work.samples // work.batch
        return lambda: (numpy.asarray(pipeline.run()[0].as_tensor()) for _ in range(batches))

    return open_loader


def raw(work):
    return loader_of(work, "bin", (row.tobytes() for row in work.rows()), lambda bytes_: bytes_)


def jpeg(work):
    def finish(file):
        images = fn.decoders.image_random_crop(file, device="cpu", output_type=dali.types.RGB)
        images = fn.resize(images, size=(common.SIDE, common.SIDE), interp_type=dali.types.INTERP_LINEAR, antialias=True)
        return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), output_layout="CHW", dtype=dali.types.FLOAT,
                                        mean=[255 * m for m in common.MEAN], std=[255 * s for s in common.STD])

    return loader_of(work, "jpg", (pathlib.Path(name).read_bytes() for name in work.photos()), finish)


SETTINGS = {"raw": f"readers.webdataset with indexes, {SHARDS} shards, initial_fill {BUFFER}, device_id None, queues of 4",
            "jpeg": "the same, image_random_crop, antialiased resize, crop_mirror_normalize"}

if __name__ == "__main__":
    common.main(["nvidia-dali-cuda120"], SETTINGS, raw, jpeg)
