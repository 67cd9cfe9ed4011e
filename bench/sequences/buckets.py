# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Row 42, Lhotse's side: padding of DynamicBucketingSampler on the lengths that buckets.cpp writes.

    python3 buckets.py FOLDER
"""

import sys
import time
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import torch

torch.utils.data.Sampler.__init__ = lambda self, data_source=None: None  # before PyTorch 2.1 it wants an argument

import lhotse
from lhotse import CutSet, MonoCut
from lhotse.dataset.sampling import DynamicBucketingSampler


def padding(name, lengths, bins=None):
    cuts = CutSet.from_cuts(MonoCut(id=str(i), start=0, duration=float(n), channel=0) for i, n in enumerate(lengths))
    shares, taken, above, batches = [], 0.0, 0, 0
    for epoch in range(3):
        start = time.perf_counter()
        sampler = DynamicBucketingSampler(cuts.shuffle(__import__("random").Random(epoch)), max_duration=16384.0,
                                          num_buckets=30, duration_bins=bins, shuffle=True, seed=epoch, world_size=1,
                                          rank=0)
        tokens = slots = samples = 0
        for batch in sampler:
            durations = [cut.duration for cut in batch]
            longest = max(durations)
            above += longest * len(durations) > 16384  # its last cut may be longer than those before
            batches += 1
            tokens += sum(durations)
            slots += longest * len(durations)
            samples += len(durations)
        assert samples == len(lengths)
        shares.append(1 - tokens / slots)
        taken += time.perf_counter() - start
    print(f"{name}: {sum(shares) / 3 * 100:.3f} % padding, {above / batches * 100:.1f} % of the batches above the "
          f"limit, {taken / 3:.1f} s an epoch, Lhotse {lhotse.__version__}")


def main():
    folder = Path(sys.argv[1])
    read = lambda name: [int(line) for line in (folder / name).read_text().split()]
    texts = read("texts")
    padding("42a texts, 30 buckets", texts)
    padding("42b uniform, 30 buckets", read("uniform"))
    padding("42c texts, edges 64 to 2048", texts, [64.5, 128.5, 256.5, 512.5, 1024.5, 2048.5])


main()
