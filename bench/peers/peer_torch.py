#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's DataLoader: whole batches (`__getitems__`) of a memory-mapped npy file; photos as files, which PIL
decodes; torchdata's StatefulDataLoader for the restart."""

import common
import numpy
import torch


class Rows(torch.utils.data.Dataset):
    """The rows of the file."""

    def __init__(self, path):
        self.rows = numpy.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.rows)

    def __getitems__(self, places):
        """A batch at once."""
        return torch.from_numpy(self.rows[places])


def options(work):
    """Of every loader here."""
    more = {"persistent_workers": True, "prefetch_factor": 8} if work.workers else {}
    return {"batch_size": work.batch, "num_workers": work.workers, **more}


def raw(work):
    path = work.once_rows()

    def open_loader():
        loader = torch.utils.data.DataLoader(Rows(path), shuffle=work.shuffled, collate_fn=lambda batch: batch,
                                             **options(work))
        return lambda: iter(loader)

    return open_loader


def augmentation(first):
    """Torchvision's, for tensors of uint8 or for images of PIL."""
    from torchvision.transforms import v2

    return v2.Compose([*first, v2.RandomResizedCrop(common.SIDE, antialias=True), v2.RandomHorizontalFlip(), v2.ToImage(),
                       v2.ToDtype(torch.float32, scale=True), v2.Normalize(common.MEAN, common.STD)])


class Photos(torch.utils.data.Dataset):
    """The files of the folder, decoded by PIL."""

    def __init__(self, names):
        self.names = names
        self.augment = augmentation([])

    def __len__(self):
        return len(self.names)

    def __getitem__(self, place):
        from PIL import Image

        with Image.open(self.names[place]) as image:
            return self.augment(image.convert("RGB"))


def jpeg(work, photos=Photos):
    torch.set_num_threads(1)

    def open_loader():
        loader = torch.utils.data.DataLoader(photos(work.photos()), shuffle=True, **options(work))
        return lambda: iter(loader)

    return open_loader


def resume(work):
    from torchdata.stateful_dataloader import StatefulDataLoader

    path = work.once_rows()

    def make():
        return StatefulDataLoader(Rows(path), shuffle=True, collate_fn=lambda batch: batch, **options(work))

    def restart():
        loader = make()
        half = work.samples // work.batch // 2
        for place, _ in enumerate(loader, 1):
            if place == half:
                break
        state = loader.state_dict()

        def rest():
            again = make()
            again.load_state_dict(state)
            return iter(again)

        return half * work.batch, rest

    return restart


SETTINGS = {"raw": "memory-mapped npy, `__getitems__`, persistent workers, prefetch_factor 8",
            "jpeg": "files, PIL, torchvision.transforms.v2, persistent workers, prefetch_factor 8",
            "resume": "torchdata's StatefulDataLoader over a memory-mapped npy, `__getitems__`"}

if __name__ == "__main__":
    common.main(["torch", "torchvision", "torchdata"], SETTINGS, raw, jpeg, resume)
