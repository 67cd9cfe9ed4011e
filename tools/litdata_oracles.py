#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/source/oracles/litdata.inc: small datasets that LitData's own BinaryWriter has written, file by file.

    tools/litdata_oracles.py            writes the file
    tools/litdata_oracles.py --check    writes the datasets again, and fails if a file has other bytes; the time in an index
                                        is left out. Skipped, with status 77, where litdata is missing

Needs litdata, zstd and pyarrow, which PyPI has."""

import pathlib
import re
import subprocess
import sys
import tempfile

from oracle_files import text_of

FILE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "source" / "oracles" / "litdata.inc"

# With pyarrow it writes dicts of plain values as rows of Arrow, which a process of their own does.
ROWS = "--rows" in sys.argv[1:]

try:
    import numpy as np
    import torch
    from litdata.streaming import framed_zstd, item_loader
    from litdata.streaming.item_loader import TokensLoader
    from litdata.streaming.writer import BinaryWriter
except ImportError as missing:
    print(f"litdata_oracles: skipped: {missing}; install litdata and zstd")
    sys.exit(77 if "--check" in sys.argv[1:] else 1)

if not ROWS:
    item_loader._PYARROW_AVAILABLE = framed_zstd._PYARROW_AVAILABLE = False


def values(i):
    return {"i": -i * 10**12, "f": i / 8, "b": i % 2 == 0, "s": "\u00e9" * i, "raw": bytes(range(i)),
            "t": torch.arange(2 * i + 2, dtype=torch.int16).reshape(2, i + 1), "v": torch.arange(i + 1, dtype=torch.float32),
            "n": np.arange(6, dtype=np.float64).reshape(2, 3) + i, "w": np.arange(i + 1, dtype=np.uint8),
            "z": torch.tensor(i, dtype=torch.int64), "p": {1, i}, "j": [i, {"deep": "x"}]}


def write(folder, name, items, **more):
    writer = BinaryWriter(str(folder / name), **more)
    for i, one in enumerate(items):
        writer[i] = one
    writer.done()
    writer.merge()


def write_rows(folder):
    rows = [{"id": i, "text": "\u00e9" * i, "score": i / 8, "even": i % 2 == 0, "raw": bytes(range(i)),
             "tags": [f"t{k}" for k in range(i % 3)], "box": {"x": -i, "y": None if i == 3 else i}} for i in range(7)]
    write(folder, "rows", rows, chunk_size=3)
    write(folder, "packed_rows", rows, chunk_size=4, compression="zstd")
    # Chunks of two rows, each of which has types and columns of its own.
    write(folder, "uneven_rows",
          [{"id": 0, "n": None, "list": [], "boxes": [], "deep": {"x": 1}},
           {"id": 1, "n": None, "list": [], "boxes": [], "deep": {"x": 2}},
           {"id": 2, "list": [5, 6], "boxes": [{"a": 1}], "n": 7}, {"id": 3, "list": [], "boxes": [], "n": 8},
           {"id": 4, "n": None, "list": [9], "boxes": [], "deep": None}, {"id": 5, "n": 1, "list": [], "boxes": [], "deep": None},
           {"id": 6, "n": None, "list": [9], "boxes": [], "deep": {"x": 3}}], chunk_size=2)
    write(folder, "pair_rows", [{"aa": i, "bb": -i} for i in range(2)], chunk_size=1)
    # The second chunk has samples and no rows.
    write(folder, "part_rows", [{"v": [1]}, {"v": [2]}, {"v": [3]}, {"v": ["x"]}], chunk_size=2)


def write_all(folder):
    write(folder, "values", map(values, range(5)), chunk_size=2)
    write(folder, "tree", ((i, (f"s{i}", i)) for i in range(3)), chunk_size=8)
    write(folder, "zstd", ({"x": i, "s": f"line {i}"} for i in range(20)), chunk_size=8, compression="zstd",
          compression_level="chunk")
    write(folder, "packed_tokens", (torch.arange(100 * i, 100 * i + 10 + i, dtype=torch.int32) for i in range(5)), chunk_size=30,
          item_loader=TokensLoader(block_size=7), compression="zstd", compression_level="chunk")
    write(folder, "frames", ({"x": i, "t": torch.arange(i + 1, dtype=torch.int16)} for i in range(30)), chunk_size=16,
          compression="zstd", compression_batch_size=5)
    # Of dicts of plain values it compresses nothing inside, whatever the index says.
    write(folder, "unframed", ({"x": i} for i in range(4)), chunk_size=8, compression="zstd")
    write(folder, "tokens", (torch.arange(100 * i, 100 * i + 10 + i, dtype=torch.int32) for i in range(5)), chunk_size=30,
          item_loader=TokensLoader(block_size=7))


def without_times(text):
    return re.sub(r"updated_at.*?\)\},", "", text, flags=re.DOTALL)


if ROWS:
    write_rows(pathlib.Path(sys.argv[2]))
    sys.exit()
with tempfile.TemporaryDirectory() as made:
    write_all(pathlib.Path(made))
    subprocess.run([sys.executable, __file__, "--rows", made], check=True)
    text = text_of(pathlib.Path(made), "tools/litdata_oracles.py with LitData")
if "--check" not in sys.argv[1:]:
    FILE.write_text(text, encoding="utf-8")
elif without_times(text) != without_times(FILE.read_text(encoding="utf-8")):
    sys.exit("litdata_oracles: BinaryWriter writes other bytes now; run tools/litdata_oracles.py and look at what changed")
