#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/source/oracles/litdata.inc: small datasets that LitData's own BinaryWriter has written, file by file.

    tools/litdata_oracles.py            writes the file
    tools/litdata_oracles.py --check    writes the datasets again, and fails if a file has other bytes; the time in an index
                                        is left out. Skipped, with status 77, where litdata is missing

Needs litdata and zstd, which PyPI has."""

import pathlib
import re
import sys
import tempfile

from oracle_files import text_of

FILE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "source" / "oracles" / "litdata.inc"

# With pyarrow it writes dicts of plain values as rows of Arrow.
sys.modules["pyarrow"] = None  # type: ignore

try:
    import numpy as np
    import torch
    from litdata.streaming.item_loader import TokensLoader
    from litdata.streaming.writer import BinaryWriter
except ImportError as missing:
    print(f"litdata_oracles: skipped: {missing}; install litdata and zstd")
    sys.exit(77 if "--check" in sys.argv[1:] else 1)


def values(i):
    return {"i": -i * 10**12, "f": i / 8, "b": i % 2 == 0, "s": "\u00e9" * i, "raw": bytes(range(i)),
            "t": torch.arange(2 * i + 2, dtype=torch.int16).reshape(2, i + 1), "v": torch.arange(i + 1, dtype=torch.float32),
            "n": np.arange(6, dtype=np.float64).reshape(2, 3) + i, "w": np.arange(i + 1, dtype=np.uint8),
            "z": torch.tensor(i, dtype=torch.int64), "p": {1, i}, "j": [i, {"deep": "x"}]}


def write_all(folder):
    def write(name, items, **more):
        writer = BinaryWriter(str(folder / name), **more)
        for i, one in enumerate(items):
            writer[i] = one
        writer.done()
        writer.merge()

    write("values", map(values, range(5)), chunk_size=2)
    write("tree", ((i, (f"s{i}", i)) for i in range(3)), chunk_size=8)
    write("zstd", ({"x": i, "s": f"line {i}"} for i in range(20)), chunk_size=8, compression="zstd",
          compression_level="chunk")
    write("packed_tokens", (torch.arange(100 * i, 100 * i + 10 + i, dtype=torch.int32) for i in range(5)), chunk_size=30,
          item_loader=TokensLoader(block_size=7), compression="zstd", compression_level="chunk")
    write("framed", ({"x": i} for i in range(4)), chunk_size=8, compression="zstd")
    write("tokens", (torch.arange(100 * i, 100 * i + 10 + i, dtype=torch.int32) for i in range(5)), chunk_size=30,
          item_loader=TokensLoader(block_size=7))


def without_times(text):
    return re.sub(r"updated_at.*?\)\},", "", text, flags=re.DOTALL)


with tempfile.TemporaryDirectory() as made:
    write_all(pathlib.Path(made))
    text = text_of(pathlib.Path(made), "tools/litdata_oracles.py with LitData")
if "--check" not in sys.argv[1:]:
    FILE.write_text(text, encoding="utf-8")
elif without_times(text) != without_times(FILE.read_text(encoding="utf-8")):
    sys.exit("litdata_oracles: BinaryWriter writes other bytes now; run tools/litdata_oracles.py and look at what changed")
