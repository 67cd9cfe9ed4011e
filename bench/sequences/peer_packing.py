#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""peer_packing.py trl FILE CAPACITY WINDOW TAKES: packs the lengths in a file of 32-bit numbers, WINDOW at a time, with the
strategy "bfd" of TRL. A line for each window: the number of rows, and the seconds of the fastest of TAKES.

peer_packing.py megatron FILE RANKS CAPACITY: the balance of Megatron's scheduler for hybrid context parallelism. The file has
steps: the number of documents, and their lengths. A line for each step: what the ranks wait for, the largest work of each of its
groups, summed up, divided by the mean work of a rank; and the number of groups. The work is what the scheduler takes it to be, n^2.

Both are the functions in the installed packages, without what else those import."""

import __future__
import ast
import collections
import functools
import importlib.util
import math
import pathlib
import sys
import time
import typing

import numpy as np


def taken(package, file, names):
    """The classes and functions with these names in a file of a package."""
    spec = importlib.util.find_spec(package)
    path = pathlib.Path(spec.submodule_search_locations[0]) / file
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if getattr(node, "name", "") in names]
    scope = {"np": np, "deque": collections.deque, "defaultdict": collections.defaultdict, "Literal": typing.Literal,
             "lru_cache": functools.lru_cache, "ceil": math.ceil, "log2": math.log2}
    try:
        import pyarrow
        import pyarrow.compute

        scope |= {"pyarrow": pyarrow, "pa": pyarrow, "pc": pyarrow.compute}
    except ImportError:
        pass
    exec(compile(tree, str(path), "exec", flags=__future__.annotations.compiler_flag), scope)
    return scope


def trl(path, capacity, window, takes):
    """TRL's packing of a table with one column of lists."""
    import pyarrow as pa

    pack = taken("trl", "data_utils.py", {"_SegmentTree", "_pack_bfd", "_check_if_columns_can_be_packed"})["_pack_bfd"]
    lengths = np.fromfile(path, np.uint32)
    for begin in range(0, len(lengths), window):
        part = lengths[begin:begin + window]
        offsets = np.concatenate([[0], np.cumsum(part)]).astype(np.int32)
        table = pa.table({"input_ids": pa.ListArray.from_arrays(offsets, np.zeros(offsets[-1], np.int32))})
        seconds = math.inf
        for _ in range(takes):
            start = time.perf_counter()
            rows = pack(table, capacity)
            seconds = min(seconds, time.perf_counter() - start)
        print(len(rows), seconds)


def megatron(path, ranks, capacity):
    """Megatron's groups of a step's documents."""
    import types

    scheduler = taken("megatron", "core/pipeline_parallel/hybrid_cp_schedule.py", {"BalancedCPScheduler"})["BalancedCPScheduler"]
    balanced = scheduler(capacity, types.SimpleNamespace(size=lambda: ranks))
    numbers, at = np.fromfile(path, np.uint32), 0
    while at < len(numbers):
        count = int(numbers[at])
        documents = [int(n) for n in numbers[at + 1:at + 1 + count]]
        at += 1 + count
        _, groups = balanced.get_groups_and_subsamples(list(enumerate(documents)), None)
        waited = 0
        for group in groups:
            # A document that several ranks share is their work in equal parts.
            sharing = collections.Counter(document for rank in group for document in rank)
            waited += max(sum(documents[i] ** 2 / sharing[i] for i in rank) for rank in group)
        print(waited / (sum(n * n for n in documents) / ranks), len(groups))


def main():
    kind, path, *numbers = sys.argv[1:]
    {"trl": trl, "megatron": megatron}[kind](path, *(int(number) for number in numbers))


if __name__ == "__main__":
    main()
