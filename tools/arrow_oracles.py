#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrow files that pyarrow has written, and what pyarrow reads from them, for tests/source/arrow_ipc.test.cpp.

    tools/arrow_oracles.py                        writes tests/source/oracles/arrow.inc: small files, and their values
    tools/arrow_oracles.py --check                fails if pyarrow reads other values from these files
    tools/arrow_oracles.py --expect FILE...       prints what pyarrow reads from files
    tools/arrow_oracles.py --random SEED N FOLDER writes N files of random columns, and NAME.expected with their values

Needs pyarrow, which PyPI has; without it, skipped with status 77. Values are printed one row a line, columns separated by
tabs, structs replaced by their fields: numbers and bools as they are, floating-point numbers as the bits of a double, texts
and bytes in hexadecimal digits with quotes, other values of fixed width likewise behind an x, lists in brackets, and ? for
what is not read."""

import math
import pathlib
import random
import struct
import sys
import tempfile

from oracle_files import text_of

FILE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "source" / "oracles" / "arrow.inc"

try:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.types as kinds
except ImportError as missing:
    print(f"arrow_oracles: skipped: {missing}; install pyarrow")
    sys.exit(77)


def texts(array):
    """The values of an array."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return texts(array.storage)
    if kinds.is_dictionary(kind):
        values = texts(array.dictionary)
        return ["null" if i is None else values[i] for i in array.indices.to_pylist()]
    if kinds.is_null(kind):
        return ["null"] * len(array)
    plain = [one.is_valid for one in array]

    def guarded(made):
        return [text if valid else "null" for text, valid in zip(made, plain)]

    def raw(width):
        data = memoryview(array.buffers()[1] or b"")
        return ["x" + bytes(data[(array.offset + i) * width:(array.offset + i + 1) * width]).hex() for i in range(len(array))]

    if kinds.is_boolean(kind):
        return guarded(["true" if one else "false" for one in array.to_pylist()])
    if kinds.is_integer(kind):
        return guarded([str(one) for one in array.to_pylist()])
    if kinds.is_temporal(kind) and not kinds.is_interval(kind):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        return guarded([str(one) for one in array.view(whole).to_pylist()])
    if kinds.is_floating(kind):
        return guarded(["nan" if one is not None and math.isnan(one) else struct.pack(">d", one or 0.0).hex()
                        if one != 0 or one is None else struct.pack(">d", one).hex() for one in array.to_pylist()])
    if kinds.is_fixed_size_binary(kind):
        return guarded(raw(kind.byte_width))
    if kinds.is_decimal(kind) or kinds.is_interval(kind):
        return guarded(raw(kind.bit_width // 8))
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kind == pa.string_view():
        return guarded(['"' + (one or "").encode().hex() + '"' for one in array.to_pylist()])
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or kind == pa.binary_view():
        return guarded(['"' + (one or b"").hex() + '"' for one in array.to_pylist()])
    if kinds.is_map(kind):
        return guarded(["[" + ",".join(["?"] * len(one.values)) + "]" if one.is_valid else "" for one in array])
    if any(is_kind(kind) for is_kind in (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list, kinds.is_list_view,
                                         kinds.is_large_list_view)):
        return guarded(["[" + ",".join(texts(one.values)) + "]" if one.is_valid else "" for one in array])
    return ["?"] * len(array)


def leaves(array, name):
    if kinds.is_struct(array.type):
        for i, child in enumerate(array.flatten()):
            yield from leaves(child, f"{name}.{array.type.field(i).name}")
    elif isinstance(array, pa.ExtensionArray) and kinds.is_struct(array.type.storage_type):
        yield from leaves(array.storage, name)
    else:
        yield name, texts(array)


def rows(reader):
    """The names of the columns, and their values row by row."""
    batches = [reader.get_batch(i) for i in range(reader.num_record_batches)] if hasattr(reader, "get_batch") else list(reader)
    if not batches:
        batches = [pa.RecordBatch.from_arrays([pa.array([], field.type) for field in reader.schema], schema=reader.schema)]
    lines = []
    for batch in batches:
        columns = [leaf for i in range(batch.num_columns) for leaf in leaves(batch.column(i), batch.schema.field(i).name)]
        if not lines:
            lines.append("\t".join(name for name, _ in columns))
        lines += ["\t".join(values[i] for _, values in columns) for i in range(batch.num_rows)]
    return "\n".join(lines) + "\n"


def read(path):
    data = pathlib.Path(path).read_bytes()
    if data.startswith(b"ARROW1"):
        return rows(pa.ipc.open_file(data))
    return rows(pa.ipc.open_stream(data))


def write(path, table, stream=False, rows_each=3, **options):
    made = pa.ipc.new_stream if stream else pa.ipc.new_file
    with made(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in table.to_batches(max_chunksize=rows_each):
            writer.write_batch(batch)


def oracle_files(folder):
    table = pa.table({
        "i": pa.array([1, None, -3, 2**40, 5, 6, 7], pa.int64()), "u": pa.array(range(7), pa.uint8()),
        "f": pa.array([0.5, -1.0, None, 3.25, float("inf"), 0.0, -0.0], pa.float32()),
        "d": pa.array([1e300, None, 0.1, 1, 2, 3, 4], pa.float64()), "h": pa.array([0.5] * 7, pa.float32()).cast(pa.float16()),
        "b": pa.array([True, None, False, True, True, False, True]),
        "s": pa.array(["", "\u00e9\u00e8", None, "x", "y" * 40, "z", ""]),
        "raw": pa.array([b"\0\1", b"", None, b"3", b"4", b"5", b"6"], pa.large_binary()),
        "when": pa.array(range(7), pa.timestamp("us", "UTC")),
        "day": pa.array(range(7), pa.date32()), "w": pa.array([bytes([i] * 3) for i in range(7)], pa.binary(3)),
        "l": pa.array([[1, 2], [], None, [3], [4, 5, 6], [7], [8]], pa.list_(pa.int32())),
        "v": pa.array([[i, i + 0.5] for i in range(7)], pa.list_(pa.float32(), 2)),
        "m": pa.array([[[1, 2, 3], [4, 5, 6]]] * 7, pa.large_list(pa.list_(pa.uint8()))),
        "image": pa.array([{"bytes": b"jpeg", "path": "a.jpg"}, None, {"bytes": None, "path": "b"}]
                          + [{"bytes": b"", "path": None}] * 4, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        "k": pa.array(["red", "green", None, "red", "blue", "blue", "red"]).dictionary_encode()})
    write(folder / "file.arrow", table, rows_each=4)
    few = table.select(["i", "s", "image", "k"])
    write(folder / "stream.arrow", few, stream=True)
    packed = pa.concat_tables([few] * 3)
    write(folder / "zstd.feather", packed, compression="zstd", rows_each=21)
    write(folder / "lz4.feather", packed, compression="lz4", rows_each=21)
    # a dictionary that grows, and one that is replaced
    grown = [pa.array(["a", "b"]).dictionary_encode(),
             pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(["a", "b", "c"]))]
    other = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["x", "y"]))
    schema = pa.schema([("k", pa.dictionary(pa.int32(), pa.string()))])
    with pa.ipc.new_stream(folder / "deltas.arrow", schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as writer:
        for one in [*grown, other]:
            writer.write_batch(pa.record_batch([one.cast(schema.field(0).type)], schema=schema))
    long = pa.array(["short", None, "longer than twelve bytes", "x" * 13], pa.string_view())
    write(folder / "views.arrow", pa.table({"s": long, "n": pa.nulls(4), "one": pa.array([{"a": 1}] * 4)}))
    write(folder / "empty.arrow", table.slice(0, 0).select(["i", "s"]))
    for name in ["file.arrow", "stream.arrow", "zstd.feather", "lz4.feather", "deltas.arrow", "views.arrow", "empty.arrow"]:
        (folder / (name + ".expected")).write_text(read(folder / name), encoding="utf-8")


def random_type(rng, depth=0):
    flat = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(),
            pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(),
            pa.string_view(), pa.binary(5), pa.date32(), pa.timestamp("ns"), pa.time32("ms"), pa.duration("s"),
            pa.decimal128(20, 3), pa.null(),
            pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.int64())]
    if depth < 3 and rng.random() < 0.4:
        inner = random_type(rng, depth + 1)
        return rng.choice([pa.list_(inner), pa.large_list(inner), pa.list_(inner, 1 + rng.randrange(3)),
                           pa.struct([("x", inner), ("y", random_type(rng, depth + 1))])])
    return rng.choice(flat)


def random_array(rng, kind, size):
    def value():
        if rng.random() < 0.15:
            return None
        if kinds.is_integer(kind) or kinds.is_temporal(kind):
            bits = min(kind.bit_width, 31 if kind != pa.int64() else 63)
            if kind == pa.time32("ms"):
                return rng.randrange(86_400_000)
            return rng.randrange(2**(bits - 1))
        if kinds.is_floating(kind):
            return rng.choice([0.0, -0.0, 1.5, float("inf"), float("nan"), rng.randrange(100) / 4])
        if kinds.is_boolean(kind):
            return rng.random() < 0.5
        if kinds.is_fixed_size_binary(kind):
            return rng.randbytes(kind.byte_width)
        if kinds.is_decimal(kind):
            import decimal
            return decimal.Decimal(rng.randrange(-10**9, 10**9)) / 1000
        if kinds.is_string(kind) or kinds.is_large_string(kind) or kind == pa.string_view():
            return "".join(rng.choice("ab\u00e9 \n") for _ in range(rng.randrange(20)))
        return rng.randbytes(rng.randrange(20))

    def lengths():
        return [rng.randrange(4) for _ in range(size)]

    nulls = pa.array([rng.random() < 0.2 for _ in range(size)], pa.bool_())
    if kinds.is_null(kind):
        return pa.nulls(size)
    if kinds.is_dictionary(kind):
        values = random_array(rng, kind.value_type, 5)
        numbers = pa.array([None if rng.random() < 0.2 else rng.randrange(5) for _ in range(size)], kind.index_type)
        return pa.DictionaryArray.from_arrays(numbers, values)
    if kinds.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays([random_array(rng, one.type, size) for one in fields], fields=fields, mask=nulls)
    if kinds.is_fixed_size_list(kind):
        inner = random_array(rng, kind.value_type, size * kind.list_size)
        return pa.FixedSizeListArray.from_arrays(inner, type=kind, mask=nulls)
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        offsets = [0]
        for one in lengths():
            offsets.append(offsets[-1] + one)
        made = pa.ListArray if kinds.is_list(kind) else pa.LargeListArray
        width = pa.int32() if kinds.is_list(kind) else pa.int64()
        return made.from_arrays(pa.array(offsets, width), random_array(rng, kind.value_type, offsets[-1]), type=kind, mask=nulls)
    if kinds.is_temporal(kind):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array([value() for _ in range(size)], whole).view(kind)
    if kind == pa.float16():
        return pa.array([value() for _ in range(size)], pa.float32()).cast(kind)
    return pa.array([value() for _ in range(size)], kind)


def random_files(seed, count, folder):
    for number in range(count):
        rng = random.Random(seed * 1000 + number)
        names = [f"c{i}" for i in range(rng.randrange(1, 6))]
        types = [random_type(rng) for _ in names]
        size = rng.randrange(40)
        table = pa.table([random_array(rng, kind, size) for kind in types], names=names)
        path = folder / f"{number}.arrow"
        cut = rng.randrange(size + 1)  # whose first rows are not those of their buffers
        write(path, table.slice(cut), stream=rng.random() < 0.5, rows_each=rng.randrange(1, 12),
              compression=rng.choice([None, None, "lz4", "zstd"]), unify_dictionaries=False)
        path.with_suffix(".arrow.expected").write_text(read(path), encoding="utf-8")


def main(arguments):
    if arguments[:1] == ["--expect"]:
        for path in arguments[1:]:
            try:
                text = read(path)
            except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError) as problem:
                text = f"pyarrow: {problem}".split("\n")[0] + "\n"
            print(f"== {path}\n{text}", end="")
    elif arguments[:1] == ["--random"]:
        random_files(int(arguments[1]), int(arguments[2]), pathlib.Path(arguments[3]))
    else:
        with tempfile.TemporaryDirectory() as made:
            oracle_files(pathlib.Path(made))
            text = text_of(pathlib.Path(made), "tools/arrow_oracles.py with pyarrow")
        if arguments != ["--check"]:
            FILE.write_text(text, encoding="utf-8")
        elif text != FILE.read_text(encoding="utf-8"):
            sys.exit("arrow_oracles: pyarrow writes or reads otherwise now; run tools/arrow_oracles.py and look at what changed")


if __name__ == "__main__":
    main(sys.argv[1:])
