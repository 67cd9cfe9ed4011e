#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LitData: its own chunks, read by StreamingDataLoader; shuffled as its StreamingDataset does."""

import functools
import os

# By default it decodes many samples for each one used in a shuffled reading of large ones.
os.environ["LITDATA_BATCH_DECODE"] = "0"

import common
import litdata
import torch


def numbered_row(work, place):
    return {"bin": torch.from_numpy(work.row(place).copy())}


def photo(names, place):
    with open(names[place], "rb") as file:
        return {"jpg": file.read()}


def chunks(work, name, function):
    """A folder of chunks."""

    def write(path):
        litdata.optimize(fn=function, inputs=list(range(work.samples)), output_dir=path, chunk_bytes="64MB",
                         num_workers=1, start_method="fork")

    return work.once(name, write)


def loader_of(work, path, kind=litdata.StreamingDataset):
    """Opens a loader over the chunks."""

    def open_loader():
        data = kind(path, shuffle=work.shuffled or work.kind == "jpeg", seed=common.SEED)
        loader = litdata.StreamingDataLoader(
            data, batch_size=work.batch, num_workers=work.workers,
            **({"persistent_workers": True, "prefetch_factor": 8} if work.workers else {}))
        return lambda: (batch["bin"] if isinstance(batch, dict) else batch for batch in loader)

    return open_loader


def raw(work):
    return loader_of(work, chunks(work, "chunks", functools.partial(numbered_row, work)))


class Photos(litdata.StreamingDataset):
    """Decodes with PIL."""

    def __getitem__(self, place):
        import io

        from PIL import Image

        with Image.open(io.BytesIO(super().__getitem__(place)["jpg"])) as image:
            return augmentation()(image.convert("RGB"))


@functools.cache
def augmentation():
    import peer_torch

    return peer_torch.augmentation([])


def jpeg(work):
    torch.set_num_threads(1)
    return loader_of(work, chunks(work, "chunks", functools.partial(photo, work.photos())), Photos)


SETTINGS = {"raw": "its chunks, LITDATA_BATCH_DECODE=0, persistent workers, prefetch_factor 8",
            "jpeg": "its chunks, PIL, torchvision.transforms.v2, persistent workers, prefetch_factor 8"}

if __name__ == "__main__":
    common.main(["litdata", "torch"], SETTINGS, raw, jpeg)
