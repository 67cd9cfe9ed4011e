#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""webdataset_rate.py SHARD SAMPLES: samples a second that webdataset reads from a shard, two members each."""

import itertools
import sys
import time

import webdataset

shard, count = sys.argv[1], int(sys.argv[2])
dataset = webdataset.WebDataset(shard, shardshuffle=False).to_tuple("bin", "cls")
begin = time.perf_counter()
read = sum(1 for sample in itertools.islice(iter(dataset), count) if len(sample[0]) == 1024)
seconds = time.perf_counter() - begin
if read != count:
    sys.exit(f"{read} samples instead of {count}")
print(read / seconds)
