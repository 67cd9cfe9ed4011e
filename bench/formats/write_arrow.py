#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""write_arrow.py FILE ROWS BYTES: an Arrow file with the columns "bin", lists of BYTES bytes, and "label", in batches of
1,000 rows; prints the number of rows."""

import random
import sys

import pyarrow as pa


def main():
    path, rows, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    source = random.Random(7)
    kind = pa.schema([("bin", pa.list_(pa.uint8(), size)), ("label", pa.int64())])
    with pa.ipc.new_file(path, kind) as writer:
        for first in range(0, rows, 1000):
            count = min(1000, rows - first)
            values = pa.array(memoryview(source.randbytes(count * size)), pa.uint8())
            columns = [pa.FixedSizeListArray.from_arrays(values, size), pa.array(range(first, first + count), pa.int64())]
            writer.write_batch(pa.record_batch(columns, schema=kind.remove_metadata()))
    print(rows)


if __name__ == "__main__":
    main()
