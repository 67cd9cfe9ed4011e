#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""WebDataset: tar shards, a shuffle buffer, and batches made in the workers of WebLoader."""

import io
import pathlib
import warnings

import common
import numpy
import torch
import webdataset

SHARDS = 4
BUFFER = 1000
warnings.filterwarnings("ignore", module="webdataset")


def shards(work, name, field, contents):
    """The names of shards with one member for each sample."""

    def write(path):
        pathlib.Path(path).mkdir()
        each = work.samples // SHARDS
        with webdataset.ShardWriter(f"{path}/%04d.tar", maxcount=each, verbose=0) as out:
            for place, content in enumerate(contents()):
                out.write({"__key__": f"{place:09}", field: content})

    return sorted(map(str, pathlib.Path(work.once(name, write)).glob("*.tar")))


def loader_of(work, names, decode, collate):
    """Opens a loader over the shards."""

    def open_loader():
        data = webdataset.WebDataset(names, shardshuffle=SHARDS if work.shuffled or work.kind == "jpeg" else False,
                                     workersplitter=webdataset.split_by_worker, seed=common.SEED)
        if work.shuffled or work.kind == "jpeg":
            data = data.shuffle(BUFFER)
        data = decode(data).batched(work.batch, collation_fn=collate)
        loader = webdataset.WebLoader(data, batch_size=None, num_workers=work.workers,
                                      **({"persistent_workers": True, "prefetch_factor": 8} if work.workers else {}))
        return lambda: iter(loader)

    return open_loader


def raw(work):
    names = shards(work, "shards", "bin", lambda: (row.tobytes() for row in work.rows()))

    def collate(samples):
        return torch.from_numpy(numpy.stack([numpy.frombuffer(sample[0], numpy.uint8) for sample in samples]))

    return loader_of(work, names, lambda data: data.to_tuple("bin"), collate)


def jpeg(work):
    import peer_torch
    from PIL import Image

    names = shards(work, "shards", "jpg", lambda: (pathlib.Path(name).read_bytes() for name in work.photos()))
    augment = peer_torch.augmentation([])
    torch.set_num_threads(1)

    def decode(sample):
        with Image.open(io.BytesIO(sample[0])) as image:
            return augment(image.convert("RGB"))

    return loader_of(work, names, lambda data: data.to_tuple("jpg").map(decode), torch.stack)


SETTINGS = {"raw": f"{SHARDS} shards, shuffle({BUFFER}), batches made in the workers",
            "jpeg": f"{SHARDS} shards, shuffle({BUFFER}), PIL, torchvision.transforms.v2, batches made in the workers"}

if __name__ == "__main__":
    common.main(["webdataset", "torch"], SETTINGS, raw, jpeg)
