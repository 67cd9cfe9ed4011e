#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""reader_rate.py mds FOLDER | tfrecord FILE...: samples a second of a format's own reader with one worker process, in
batches of 64, shuffled as it does, over five seconds or an epoch, after its first 16 batches."""

import sys
import time

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


def main():
    kind, arguments = sys.argv[1], sys.argv[2:]
    dataset = mds(arguments[0]) if kind == "mds" else tfrecord(arguments)
    loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=1, persistent_workers=True,
                                         collate_fn=lambda batch: batch)
    begin, seen = 0.0, 0
    for number, batch in enumerate(loader):
        if number == WARM_UP:
            begin, seen = time.perf_counter(), 0
        seen += sum(1 for sample in batch if len(sample["bin"]) >= 1024)
        if begin and time.perf_counter() - begin > 5:
            break
    print(seen / (time.perf_counter() - begin))


if __name__ == "__main__":
    main()
