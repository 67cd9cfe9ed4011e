#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parquet files that pyarrow has written, and what it reads from them, for tests/source/parquet.test.cpp.

    tools/parquet_oracles.py --expect FILE...         prints what pyarrow reads from files, as tools/arrow_oracles.py does
    tools/parquet_oracles.py --random SEED N FOLDER   writes N files of random columns, and NAME.expected with their values
    tools/parquet_oracles.py --filters SEED N FOLDER  writes N files, NAME.where with filters, and NAME.kept with the numbers of
                                                      the rows that pass each of them, found by Python itself

Needs pyarrow, which PyPI has; without it, skipped with status 77. A line of NAME.where is a column, and tests with their
constants: whole numbers behind w, numbers of floating point as C prints them behind r, texts in hexadecimal digits behind t,
and b0 and b1."""

import math
import pathlib
import random
import struct
import sys

from arrow_oracles import leaves, pa, random_array, random_type

import pyarrow.parquet as pq
import pyarrow.types as kinds


def read(path):
    """The names of the columns, and their values row by row."""
    table = pq.ParquetFile(path).read().combine_chunks()
    columns = []
    for i, field in enumerate(table.schema):
        chunks = table.column(i).chunks
        array = chunks[0] if chunks else pa.array([], field.type)
        columns += leaves(array, field.name)
    lines = ["\t".join(name for name, _ in columns)]
    lines += ["\t".join(values[i] for _, values in columns) for i in range(table.num_rows)]
    return "\n".join(lines) + "\n"


def readable(kind):
    """Whether pyarrow writes arrays of a type to Parquet, whatever their values."""
    if kinds.is_nested(kind):
        return all(readable(kind.field(i).type) for i in range(kind.num_fields))
    return not kinds.is_dictionary(kind) and kind != pa.string_view()


def write(path, table, rng, **options):
    pq.write_table(table, path, row_group_size=rng.randrange(1, 20), compression=rng.choice(["none", "snappy", "zstd", "gzip"]),
                   use_dictionary=rng.random() < 0.5, data_page_size=rng.choice([10, 100, 1 << 20]),
                   write_batch_size=rng.choice([1, 3, 1024]), data_page_version=rng.choice(["1.0", "2.0"]),
                   write_page_index=rng.random() < 0.7, **options)


def random_files(seed, count, folder):
    for number in range(count):
        rng = random.Random(seed * 1000 + number)
        names = [f"c{i}" for i in range(rng.randrange(1, 6))]
        types = []
        while len(types) < len(names):
            kind = random_type(rng)
            if readable(kind):
                types.append(kind)
        size = rng.randrange(40)
        table = pa.table([random_array(rng, kind, size) for kind in types], names=names)
        path = folder / f"{number}.parquet"
        write(path, table, rng, store_schema=rng.random() < 0.8)
        path.with_suffix(".parquet.expected").write_text(read(path), encoding="utf-8")


def single(value):
    return struct.unpack("f", struct.pack("f", value))[0]


WORDS = ["", "a", "aa", "b", "cat", "caterpillar", "dog", "\u00e9", "z" * 70]


def filter_value(rng, kind, constant=False):
    if kind in ("i", "d", "t"):
        return rng.randrange(-20, 40) if not constant or rng.random() < 0.9 else rng.randrange(-40, 80) / 2
    if kind == "u":
        return rng.choice([0, 5, 2**31, 2**32 - 1, rng.randrange(20)])
    if kind in ("f", "g"):
        return rng.choice([0.0, -0.0, 0.1, 1.5, math.nan, math.inf, -2.0, rng.randrange(20) / 10])
    if kind == "b":
        return rng.random() < 0.5
    return rng.choice(WORDS)


def spelled(value):
    if isinstance(value, bool):
        return f"b{int(value)}"
    if isinstance(value, int):
        return f"w{value}"
    if isinstance(value, float):
        return f"r{value!r}"
    return "t" + value.encode().hex()


def holds(value, test, constants):
    if test == "is_null":
        return value is None
    if value is None:
        return False
    if test == "is_not_null":
        return True
    if isinstance(value, str):
        value, constants = value.encode(), [one.encode() for one in constants]
    first = constants[0]
    return {"equals": value == first, "differs_from": value != first, "less_than": value < first, "at_most": value <= first,
            "greater_than": value > first, "at_least": value >= first, "one_of": value in constants
            if not isinstance(value, float) else any(value == one for one in constants),
            "between": len(constants) == 2 and constants[0] <= value <= constants[1]}[test]


TESTS = ["equals", "differs_from", "less_than", "at_most", "greater_than", "at_least", "between", "one_of", "is_null",
         "is_not_null"]


def filter_files(seed, count, folder):
    types = {"i": pa.int64(), "u": pa.uint32(), "f": pa.float32(), "g": pa.float64(), "b": pa.bool_(), "s": pa.string(),
             "d": pa.date32(), "t": pa.timestamp("us"), "k": pa.dictionary(pa.int32(), pa.string())}
    for number in range(count):
        rng = random.Random(seed * 1000 + number)
        size = rng.randrange(60)
        data = {}
        for kind in types:
            values = [filter_value(rng, kind) for _ in range(size)]
            if rng.random() < 0.5 and kind not in ("f", "g"):
                values.sort()
            nulls = rng.choice([0, 0.2, 0.2, 1])
            data[kind] = [None if rng.random() < nulls else single(one) if kind == "f" else one for one in values]
        arrays = [pa.array(data[kind], pa.string()).dictionary_encode() if kind == "k"
                  else pa.array(data[kind], pa.int32()).cast(pa.date32()) if kind == "d"
                  else pa.array(data[kind], pa.int64()).cast(pa.timestamp("us")) if kind == "t"
                  else pa.array(data[kind], one) for kind, one in types.items()]
        options = {"write_statistics": rng.random() < 0.8}
        if rng.random() < 0.6:
            options["bloom_filter_options"] = {kind: {"ndv": 50} for kind in ("i", "u", "f", "g", "s", "k")}
        write(folder / f"{number}.parquet", pa.table(arrays, names=list(types)), rng, **options)
        wheres, kept = [], []
        for _ in range(30):
            kind = rng.choice(list(types))
            tests = []
            for _ in range(rng.choice([1, 1, 2])):
                test = rng.choice(TESTS)
                count = 0 if "null" in test else {"one_of": 3, "between": 2}.get(test, 1)
                constants = [filter_value(rng, kind, True) for _ in range(count)]
                tests.append((test, constants))
            rows = [i for i, value in enumerate(data[kind]) if all(holds(value, *test) for test in tests)]
            wheres.append("\t".join([kind] + [" ".join([test] + [spelled(one) for one in constants]) for test, constants in tests]))
            kept.append(" ".join(map(str, rows)))
        (folder / f"{number}.where").write_text("\n".join(wheres) + "\n", encoding="utf-8")
        (folder / f"{number}.kept").write_text("\n".join(kept) + "\n", encoding="utf-8")


def main(arguments):
    if arguments[:1] == ["--expect"]:
        for path in arguments[1:]:
            try:
                text = read(path)
            except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, NotImplementedError) as problem:
                text = f"pyarrow: {problem}".split("\n")[0] + "\n"
            print(f"== {path}\n{text}", end="")
    elif arguments[:1] in (["--random"], ["--filters"]):
        make = random_files if arguments[0] == "--random" else filter_files
        make(int(arguments[1]), int(arguments[2]), pathlib.Path(arguments[3]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
