#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/source/oracles/mds.inc: small datasets that MosaicML's own MDSWriter has written, file by file.

    tools/mds_oracles.py            writes the file
    tools/mds_oracles.py --check    writes the datasets again, and fails if a file has other bytes; files of images are
                                    left out, since their bytes are those of a version of Pillow. Skipped, with status 77,
                                    where mosaicml-streaming is missing

Needs mosaicml-streaming and Pillow, which PyPI has."""

import io
import pathlib
import re
import sys
import tempfile
from decimal import Decimal

from oracle_files import text_of

FILE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "source" / "oracles" / "mds.inc"

try:
    import numpy as np
    from PIL import Image
    from streaming import MDSWriter
except ImportError as missing:
    print(f"mds_oracles: skipped: {missing}; install mosaicml-streaming and pillow")
    sys.exit(77 if "--check" in sys.argv[1:] else 1)

VALUES = {"i": "int", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "i8": "int8", "i16": "int16",
          "i32": "int32", "i64": "int64", "f16": "float16", "f32": "float32", "f64": "float64", "si": "str_int",
          "sf": "str_float", "sd": "str_decimal", "s": "str", "b": "bytes", "j": "json", "a": "ndarray",
          "at": "ndarray:int16", "as": "ndarray:float32:2,3"}
IMAGES = {"pil": "pil", "png": "png", "jpg": "jpeg", "list": "list[png]", "more": "jpeg_array", "pils": "list[pil]"}


def values(i):
    sign = -1 if i % 2 else 1
    return {"i": sign * i * 10**12, "u8": np.uint8(200 + i), "u16": np.uint16(60000 + i), "u32": np.uint32(4 * 10**9 + i),
            "u64": np.uint64(18 * 10**18 + i), "i8": np.int8(-100 + i), "i16": np.int16(-30000 + i),
            "i32": np.int32(-2 * 10**9 + i), "i64": np.int64(-9 * 10**18 + i), "f16": np.float16(i / 4),
            "f32": np.float32(i / 8), "f64": np.float64(i / 16), "si": sign * i, "sf": i / 10, "sd": Decimal(i) / 4,
            "s": "\u00e9" * i, "b": bytes(range(i)), "j": {"n": i},
            "a": np.arange(2 * i + 2, dtype=np.uint8).reshape(2, i + 1), "at": np.arange(i + 1, dtype=np.int16) - 2,
            "as": np.arange(6, dtype=np.float32).reshape(2, 3) + i}


def image(i, mode="RGB"):
    return Image.fromarray(np.full((2, 3, 3), 10 * i, dtype=np.uint8)).convert(mode)


def jpeg(i):
    into = io.BytesIO()
    image(i).save(into, "JPEG")
    return into.getvalue()


def images(i):
    return {"pil": image(i, ["RGB", "L", "RGBA"][i]), "png": image(i), "jpg": image(i),
            "list": [image(k) for k in range(i)], "more": [jpeg(k) for k in range(i + 1)],
            "pils": [image(k, "L") for k in range(i)]}


def write_all(folder):
    def write(name, columns, samples, **more):
        with MDSWriter(out=str(folder / name), columns=columns, **more) as writer:
            for one in samples:
                writer.write(one)

    lines = {"x": "int", "s": "str"}
    write("values", VALUES, map(values, range(7)), size_limit=1500, hashes=["sha1", "xxh64"])
    write("zstd", lines, ({"x": i, "s": f"line {i}"} for i in range(40)), size_limit=600, compression="zstd:3")
    write("gz", lines, ({"x": i, "s": f"line {i}"} for i in range(20)), size_limit=600, compression="gz")
    for name in ("br", "snappy"):
        write(name, {"x": "int"}, ({"x": i} for i in range(3)), compression=name)
    write("pkl", {"p": "pkl", "x": "int"}, ({"p": [i], "x": i} for i in range(2)))
    write("images", IMAGES, map(images, range(3)))


def without_images(text):
    # gzip writes the time
    return re.sub(r'\{"(images|gz)/[^"]*", .*?\)\},\n', "", text, flags=re.DOTALL)


with tempfile.TemporaryDirectory() as made:
    write_all(pathlib.Path(made))
    text = text_of(pathlib.Path(made), "tools/mds_oracles.py with MosaicML Streaming")
if "--check" not in sys.argv[1:]:
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text, encoding="utf-8")
elif without_images(text) != without_images(FILE.read_text(encoding="utf-8")):
    sys.exit("mds_oracles: MDSWriter writes other bytes now; run tools/mds_oracles.py and look at what changed")
