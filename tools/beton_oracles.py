#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that FFCV has written, for tests/source/beton.test.cpp.

    tools/beton_oracles.py FOLDER   writes small.beton, with a field of each type, raw, compressed and mixed images, and
                                    small.expected with its values: a line for each sample

Needs ffcv, which PyPI has; without it, skipped with status 77. A line has the label, the weight as Python prints it, the text of
the JSON, the sum of the array, the bytes in hexadecimal digits, and of each image whether it is raw, its width, its height, and of
a raw one the sum of its pixels, with tabs between."""

import json
import pathlib
import sys

import numpy

try:
    from ffcv.fields import BytesField, FloatField, IntField, JSONField, NDArrayField, RGBImageField
    from ffcv.writer import DatasetWriter
except ImportError as missing:
    print(f"beton_oracles: skipped: {missing}; install ffcv")
    sys.exit(77)

COUNT = 50


class Samples:
    """Values that depend on their number alone, since FFCV's writer has several processes."""

    def __len__(self):
        return COUNT

    def __getitem__(self, i):
        i = int(i)
        random = numpy.random.default_rng(i)
        raw = random.integers(0, 256, (8 + i % 5, 16 + i % 7, 3), dtype=numpy.uint8)
        mixed = random.integers(0, 256, (10 + 30 * (i % 2), 20, 3), dtype=numpy.uint8)
        data = random.integers(0, 256, (i % 9) * 100000, dtype=numpy.uint8)
        array = random.standard_normal((3, 4)).astype(numpy.float32)
        return raw, mixed, i, i / 3, data, array, {"i": i, "text": "\u00e9" * (i % 4)}


def main(folder):
    folder = pathlib.Path(folder)
    path = folder / "small.beton"
    fields = {"raw": RGBImageField(write_mode="raw"), "mixed": RGBImageField(write_mode="smart", smart_threshold=700),
              "label": IntField(), "weight": FloatField(), "data": BytesField(),
              "array": NDArrayField(numpy.dtype("float32"), (3, 4)), "json": JSONField()}
    DatasetWriter(str(path), fields, num_workers=2, page_size=1 << 21).from_indexed_dataset(Samples(), chunksize=5)
    lines = []
    samples = Samples()
    for i in range(COUNT):
        raw, mixed, label, weight, data, array, value = samples[i]
        small = mixed.size <= 700
        lines.append("\t".join(map(str, [label, weight, json.dumps(value), repr(float(array.sum(dtype=numpy.float64))),
                                         data[:16].tobytes().hex() + f":{data.size}:{int(data.sum())}",
                                         1, raw.shape[1], raw.shape[0], int(raw.sum()), int(small), mixed.shape[1], mixed.shape[0],
                                         int(mixed.sum()) if small else 0])))
    (folder / "small.expected").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
