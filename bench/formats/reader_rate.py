#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""reader_rate.py mds FOLDER | tfrecord FILE... | litdata FOLDER | ffcv FILE | datasets FILE | petastorm FILE: samples a second
of a format's own reader with one worker, in batches of 64, shuffled as it does, over five seconds or an epoch, after its
first 16 batches. Of Parquet two columns, "label" and "v", in order, in batches of 1,024 rows. FFCV and Petastorm read with a
thread, the others with a process."""

import contextlib
import os
import sys
import time
import warnings

import torch

BATCH, WARM_UP = 64, 16


def mds(folder):
    """MosaicML's StreamingDataset over a local folder."""
    from streaming import StreamingDataset

    return StreamingDataset(local=folder, shuffle=True, batch_size=BATCH)


def tfrecord(paths):
    """The package tfrecord, with a shuffle buffer of 1,000."""
    from tfrecord.torch.dataset import MultiTFRecordDataset, TFRecordDataset

    if len(paths) == 1:
        return TFRecordDataset(paths[0], None, {"bin": "byte"}, shuffle_queue_size=1000)
    folder, names = paths[0].rsplit("/", 1)[0], [path.rsplit("/", 1)[1] for path in paths]
    return MultiTFRecordDataset(folder + "/{}", None, {name: 1 / len(names) for name in names}, {"bin": "byte"},
                                shuffle_queue_size=1000, infinite=False)


def rate(batches, size, warm_up):
    """Rows a second."""
    begin, seen = 0.0, 0
    for number, batch in enumerate(batches):
        if number == warm_up:
            begin, seen = time.perf_counter(), 0
        seen += size(batch)
        if begin and time.perf_counter() - begin > 5:
            break
    return seen / (time.perf_counter() - begin)


def litdata_rate(folder):
    """LitData's StreamingDataset and its loader."""
    # By default it decodes many samples for each one used in a shuffled reading of large ones.
    os.environ["LITDATA_BATCH_DECODE"] = "0"
    import litdata

    # Samples are memoryviews, which one process cannot hand to another.
    def owned(batch):
        return [{"bin": bytes(sample["bin"])} for sample in batch]

    loader = litdata.StreamingDataLoader(litdata.StreamingDataset(folder, shuffle=True), batch_size=BATCH, num_workers=1,
                                         persistent_workers=True, prefetch_factor=8, collate_fn=owned)
    return rate(loader, lambda batch: sum(1 for sample in batch if len(sample["bin"]) >= 1024), WARM_UP)


def ffcv_rate(path):
    """FFCV's Loader, its file in the page cache."""
    from ffcv.fields.bytes import BytesDecoder
    from ffcv.loader import Loader, OrderOption

    loader = Loader(path, batch_size=BATCH, num_workers=1, order=OrderOption.RANDOM, os_cache=True,
                    pipelines={"bin": [BytesDecoder()]})
    return rate(loader, lambda batch: len(batch[0]), WARM_UP)


def datasets_rate(path):
    """Hugging Face's datasets, streaming, as tensors."""
    from datasets import load_dataset

    rows = load_dataset("parquet", data_files=path, split="train", streaming=True, columns=["label", "v"]).with_format("torch")
    loader = torch.utils.data.DataLoader(rows, batch_size=1024, num_workers=1, persistent_workers=True)
    return rate(loader, lambda batch: len(batch["label"]), 4)


def petastorm_rate(path):
    """Petastorm's batch reader and its loader for PyTorch."""
    from petastorm import make_batch_reader
    from petastorm.pytorch import BatchedDataLoader

    # It prints when it closes, and warns of its own calls.
    warnings.simplefilter("ignore")
    url = "file://" + os.path.abspath(path)
    with contextlib.redirect_stdout(sys.stderr), \
            make_batch_reader(url, schema_fields=["label", "v"], workers_count=1, num_epochs=None,
                              shuffle_row_groups=False) as reader:
        return rate(BatchedDataLoader(reader, batch_size=1024), lambda batch: len(batch["label"]), 4)


def main():
    kind, arguments = sys.argv[1], sys.argv[2:]
    whole = {"litdata": litdata_rate, "ffcv": ffcv_rate, "datasets": datasets_rate, "petastorm": petastorm_rate}
    if kind in whole:
        print(whole[kind](arguments[0]))
        return
    dataset = mds(arguments[0]) if kind == "mds" else tfrecord(arguments)
    loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=1, persistent_workers=True,
                                         collate_fn=lambda batch: batch)
    print(rate(loader, lambda batch: sum(1 for sample in batch if len(sample["bin"]) >= 1024), WARM_UP))


if __name__ == "__main__":
    main()
