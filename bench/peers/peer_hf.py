#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hugging Face datasets: an Arrow file, rows by PyTorch's DataLoader in whole batches.

The column is converted by hand, since the numpy format makes int64 of uint8."""

import io
import pathlib

import common
import datasets
import numpy
import torch

datasets.disable_progress_bars()


def table(work, feature, column, contents):
    """The data set in the format that `save_to_disk` writes."""

    def write(path):
        from datasets.arrow_writer import ArrowWriter

        pathlib.Path(path).mkdir()
        features = datasets.Features({column: feature})
        with ArrowWriter(path=f"{path}/rows.arrow", features=features, writer_batch_size=256) as out:
            for content in contents():
                out.write({column: content})
            out.finalize()

    return datasets.Dataset.from_file(work.once("arrow", write) + "/rows.arrow").with_format("arrow")


class Batches(torch.utils.data.Dataset):
    """Gives whole batches to PyTorch's DataLoader."""

    def __init__(self, rows, convert):
        self.rows, self.convert = rows, convert

    def __len__(self):
        return len(self.rows)

    def __getitems__(self, places):
        """A batch at once."""
        return self.convert(self.rows[places])


def loader_of(work, rows, convert):
    def open_loader():
        more = {"persistent_workers": True, "prefetch_factor": 8} if work.workers else {}
        loader = torch.utils.data.DataLoader(
            Batches(rows, convert), shuffle=work.shuffled or work.kind == "jpeg", batch_size=work.batch,
            num_workers=work.workers, collate_fn=lambda batch: batch, **more)
        return lambda: iter(loader)

    return open_loader


def raw(work):
    rows = table(work, datasets.Sequence(datasets.Value("uint8"), length=work.bytes), "bin", work.rows)

    def convert(batch):
        column = batch["bin"].combine_chunks()
        column = column.chunk(0) if hasattr(column, "chunk") else column
        return torch.from_numpy(numpy.array(column.flatten()).reshape(-1, work.bytes))

    return loader_of(work, rows, convert)


def jpeg(work):
    import peer_torch
    from PIL import Image

    rows = table(work, datasets.Value("binary"), "jpg", lambda: (pathlib.Path(name).read_bytes() for name in work.photos()))
    augment = peer_torch.augmentation([])
    torch.set_num_threads(1)

    def image(file):
        with Image.open(io.BytesIO(file)) as opened:
            return augment(opened.convert("RGB"))

    return loader_of(work, rows, lambda batch: torch.stack([image(file.as_py()) for file in batch["jpg"]]))


SETTINGS = {"raw": "Arrow file, memory-mapped, arrow format, whole batches by `__getitems__` of PyTorch's DataLoader",
            "jpeg": "the same, PIL, torchvision.transforms.v2"}

if __name__ == "__main__":
    common.main(["datasets", "pyarrow", "torch"], SETTINGS, raw, jpeg)
