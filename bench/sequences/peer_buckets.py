#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""peer_buckets.py FILE LIMIT EPOCHS BUCKETS|EDGE...: Lhotse's DynamicBucketingSampler over the lengths in a file of 32-bit
numbers. A line for each epoch: the padding of its batches, and how many of them are above the limit, both in percent."""

import random
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy as np
import torch

torch.utils.data.Sampler.__init__ = lambda self, data_source=None: None  # before PyTorch 2.1 it wants an argument

from lhotse import CutSet, MonoCut
from lhotse.dataset.sampling import DynamicBucketingSampler


def main():
    lengths = np.fromfile(sys.argv[1], np.uint32)
    limit, epochs, edges = int(sys.argv[2]), int(sys.argv[3]), [float(edge) for edge in sys.argv[4:]]
    buckets, bins = (int(edges[0]), None) if len(edges) == 1 else (len(edges) + 1, edges)
    cuts = CutSet.from_cuts(MonoCut(id=str(i), start=0, duration=float(n), channel=0) for i, n in enumerate(lengths))
    for epoch in range(epochs):
        sampler = DynamicBucketingSampler(cuts.shuffle(random.Random(epoch)), max_duration=float(limit),
                                          num_buckets=buckets, duration_bins=bins, shuffle=True, seed=epoch,
                                          world_size=1, rank=0)
        tokens = slots = samples = above = batches = 0
        for batch in sampler:
            durations = [cut.duration for cut in batch]
            padded = max(durations) * len(durations)
            above += padded > limit  # its last cut may be longer than those before
            batches += 1
            tokens += sum(durations)
            slots += padded
            samples += len(durations)
        assert samples == len(lengths)
        print(100 * (1 - tokens / slots), 100 * above / batches)


main()
