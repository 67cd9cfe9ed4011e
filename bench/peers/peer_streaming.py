#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MosaicML Streaming: MDS shards with a column of ndarray or of JPEG bytes, shuffled in blocks by `py1e`."""

import io
import pathlib

import common
import streaming
import torch
from streaming.base.util import clean_stale_shared_memory


def shards(work, name, column, encoding, contents):
    """A folder of MDS shards."""

    def write(path):
        with streaming.MDSWriter(out=path, columns={column: encoding}, size_limit="64mb") as out:
            for content in contents():
                out.write({column: content})

    return work.once(name, write)


def data_set(work, path, kind=streaming.StreamingDataset):
    clean_stale_shared_memory()  # of a program that was stopped
    return kind(local=path, shuffle=work.shuffled or work.kind == "jpeg", batch_size=work.batch,
                shuffle_seed=common.SEED, num_canonical_nodes=1)


def loader_of(work, data, collate=None):
    return streaming.StreamingDataLoader(data, batch_size=work.batch, num_workers=work.workers, collate_fn=collate,
                                         **({"persistent_workers": True, "prefetch_factor": 8} if work.workers else {}))


def rows(work):
    encoding = f"ndarray:uint8:{work.bytes}"
    return shards(work, "mds", "bin", encoding, work.rows)


def raw(work):
    path = rows(work)

    def open_loader():
        loader = loader_of(work, data_set(work, path))
        return lambda: (batch["bin"] for batch in loader)

    return open_loader


class Photos(streaming.StreamingDataset):
    """Decodes with PIL."""

    def __init__(self, **more):
        import peer_torch

        super().__init__(**more)
        self.augment = peer_torch.augmentation([])

    def __getitem__(self, place):
        from PIL import Image

        with Image.open(io.BytesIO(super().__getitem__(place)["jpg"])) as image:
            return self.augment(image.convert("RGB"))


def jpeg(work):
    path = shards(work, "mds", "jpg", "bytes", lambda: (pathlib.Path(name).read_bytes() for name in work.photos()))
    torch.set_num_threads(1)

    def open_loader():
        loader = loader_of(work, data_set(work, path, Photos))
        return lambda: iter(loader)

    return open_loader


def resume(work):
    path = rows(work)

    def restart():
        before = work.samples // work.batch // 2 * work.batch
        data = data_set(work, path)
        next(iter(loader_of(work, data)))  # a state belongs to an epoch that has begun
        state = data.state_dict(before, from_beginning=True)

        def rest():
            loader = loader_of(work, data_set(work, path))
            loader.load_state_dict(state)
            return (batch["bin"] for batch in loader)

        return before, rest

    return restart


SETTINGS = {"raw": "MDS of ndarray, shuffled by py1e, persistent workers, prefetch_factor 8",
            "jpeg": "MDS, shuffled by py1e, PIL, torchvision.transforms.v2, persistent workers, prefetch_factor 8",
            "resume": "MDS of ndarray, shuffled by py1e"}

if __name__ == "__main__":
    common.main(["mosaicml-streaming", "torch"], SETTINGS, raw, jpeg, resume)
