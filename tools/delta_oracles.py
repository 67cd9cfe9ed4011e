#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables that delta-rs has written, and what it reads from them, for tests/source/delta.test.cpp.

    tools/delta_oracles.py FOLDER   writes the table FOLDER/sales, and for each version N the rows in FOLDER/N.expected; and tables
                                    by hand, of what delta-rs does not write: FOLDER/deleted with deletion vectors, and in
                                    FOLDER/deleted.expected what delta-rs reads from it; FOLDER/spark with INT96; FOLDER/ids and
                                    FOLDER/nested with column mapping; FOLDER/widened with columns that had other types before;
                                    FOLDER/parts with a checkpoint in parts; FOLDER/sidecars and FOLDER/sidecars_json with
                                    checkpoints of version 2

Needs deltalake and pyarrow, which PyPI has; without them, skipped with status 77. A line has the values of id, name, amount, day
and region, with tabs between, in the order of id and then of amount; null and what a version does not have are empty."""

import base64
import datetime
import decimal
import json
import os
import pathlib
import struct
import sys
import zlib

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from deltalake import DeltaTable, QueryBuilder, write_deltalake
except ImportError as missing:
    print(f"delta_oracles: skipped: {missing}; install deltalake and pyarrow")
    sys.exit(77)

FIELDS = ["id", "name", "amount", "day", "region"]


def rows(first, count, amounts=False):
    numbers = range(first, first + count)
    columns = {"id": pa.array(numbers, pa.int64()),
               "name": pa.array([None if i % 5 == 4 else f"name {i}" for i in numbers]),
               "day": pa.array([datetime.date(2024, 2, 28 + i % 2) for i in numbers], pa.date32()),
               "region": pa.array([None if i % 7 == 0 else "north & south" if i % 2 else "a=b%/c" for i in numbers])}
    if amounts:
        columns["amount"] = pa.array([i / 4 for i in numbers], pa.float64())
    return pa.table(columns)


def expected(table):
    found = []
    for row in table.to_pylist():
        if row.get("day") is not None:
            row["day"] = (row["day"] - datetime.date(1970, 1, 1)).days
        found.append(["" if row.get(name) is None else str(row[name]) for name in FIELDS])
    found.sort(key=lambda one: (int(one[0]), float(one[2] or -1)))
    return "\n".join("\t".join(one) for one in found) + "\n"


NUMBER, NAME = "delta.columnMapping.id", "delta.columnMapping.physicalName"
BASE85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def field(name, kind, **metadata):
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def protocol(version, *features):
    made = {"minReaderVersion": version, "minWriterVersion": 7 if version == 3 else 5}
    return made | ({"readerFeatures": list(features), "writerFeatures": list(features)} if version == 3 else {})


def metadata(fields, **configuration):
    return {"id": "00000000-0000-0000-0000-000000000007", "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": [],
            "configuration": configuration}


def add(table, name, rows, **more):
    return {"path": name, "partitionValues": {}, "size": (table / name).stat().st_size, "modificationTime": 1,
            "dataChange": True, "stats": json.dumps({"numRecords": rows})} | more


def commit(table, version, *actions):
    (table / "_delta_log").mkdir(exist_ok=True)
    lines = "".join(json.dumps(one) + "\n" for one in actions)
    (table / "_delta_log" / f"{version:020}.json").write_text(lines, encoding="utf-8")


def bitmap(numbers):
    """A deletion vector, as PROTOCOL.md and Roaring's specification have it, of arrays and bits."""
    containers = {}
    for number in numbers:
        containers.setdefault(number >> 16, []).append(number & 0xffff)
    heads, places, bodies = b"", b"", b""
    for key, low in sorted(containers.items()):
        heads += struct.pack("<HH", key, len(low) - 1)
        places += struct.pack("<I", 8 + 8 * len(containers) + len(bodies))
        if len(low) <= 4096:
            bodies += struct.pack(f"<{len(low)}H", *low)
        else:
            bits = bytearray(8192)
            for one in low:
                bits[one >> 3] |= 1 << (one & 7)
            bodies += bits
    return struct.pack("<IQIII", 1681511377, 1, 0, 12346, len(containers)) + heads + places + bodies


def z85(data):
    return base64.b85encode(data).translate(bytes.maketrans(BASE85, Z85)).decode()


def deleted(folder):
    """Two vectors in a file, one of them beyond 2^16 and in two kinds of containers, and one in the log."""
    table = folder / "deleted"
    table.mkdir()
    many = 150_000
    for number, (first, count) in enumerate([(0, many), (many, 100), (many + 100, 50)]):
        pq.write_table(pa.table({"i": range(first, first + count)}), table / f"{number}.parquet", row_group_size=30_000)
    name = bytes(range(16))
    (table / "ab").mkdir()
    file, said = b"\1", []
    for gone in ([i for i in range(many) if i % 3 == 0 and not 65_536 <= i < 130_000], [0, 5, 99]):
        said.append({"storageType": "u", "pathOrInlineDv": "ab" + z85(name), "offset": len(file),
                     "sizeInBytes": len(bitmap(gone)), "cardinality": len(gone)})
        file += struct.pack(">I", len(bitmap(gone))) + bitmap(gone) + struct.pack(">I", zlib.crc32(bitmap(gone)))
    (table / "ab" / "deletion_vector_00010203-0405-0607-0809-0a0b0c0d0e0f.bin").write_bytes(file)
    inline = bitmap([1, 48])
    said.append({"storageType": "i", "pathOrInlineDv": z85(inline + bytes(-len(inline) % 4)), "sizeInBytes": len(inline),
                 "cardinality": 2})
    counts = [many, 100, 50]
    commit(table, 0, {"protocol": protocol(3, "deletionVectors")}, {"metaData": metadata([field("i", "long")])},
           *({"add": add(table, f"{i}.parquet", counts[i], deletionVector=said[i])} for i in range(3)))
    query = QueryBuilder().register("t", DeltaTable(str(table))).execute("select i from t order by i")
    numbers = pa.table(query.read_all()).column("i").to_pylist()
    (folder / "deleted.expected").write_text("\n".join(map(str, numbers)) + "\n", encoding="utf-8")


def mapped(folder):
    """Timestamps as Spark writes them, and columns whose names in files are others."""
    when = [datetime.datetime(2024, 1, 1, 0, 0, i, tzinfo=datetime.timezone.utc) for i in range(3)]
    numbered = pa.schema([pa.field("was", pa.int64(), metadata={"PARQUET:field_id": "1"}),
                          pa.field("i", pa.int64(), metadata={"PARQUET:field_id": "2"})])
    inner = [{"col-x": i, "col-y": [{"col-z": i}], "gone": i} for i in range(3)]
    kind = pa.struct([("col-x", pa.int64()), ("col-y", pa.list_(pa.struct([("col-z", pa.int64())]))), ("gone", pa.int64())])
    rest = {"type": "struct", "fields": [
        field("x", "long", **{NUMBER: 3, NAME: "col-x"}), field("later", "long", **{NUMBER: 4, NAME: "col-later"}),
        field("y", {"type": "array", "containsNull": True,
                    "elementType": {"type": "struct", "fields": [field("z", "long", **{NUMBER: 6, NAME: "col-z"})]}},
              **{NUMBER: 5, NAME: "col-y"})]}
    tables = {
        "spark": (pa.table({"t": pa.array(when, pa.timestamp("us", "UTC"))}), [field("t", "timestamp")], "none"),
        "ids": (pa.table([[0, 1, 2], [10, 11, 12]], schema=numbered),
                [field("i", "long", **{NUMBER: 1, NAME: "col-1"}), field("k", "long", **{NUMBER: 2, NAME: "col-2"}),
                 field("later", "long", **{NUMBER: 3, NAME: "col-3"})], "id"),
        "nested": (pa.table({"col-i": [0, 1, 2], "col-r": pa.array(inner, kind)}),
                   [field("i", "long", **{NUMBER: 1, NAME: "col-i"}), field("r", rest, **{NUMBER: 2, NAME: "col-r"})], "name")}
    for name, (rows, fields, mode) in tables.items():
        table = folder / name
        table.mkdir()
        pq.write_table(rows, table / "0.parquet", use_deprecated_int96_timestamps=name == "spark")
        commit(table, 0, {"protocol": protocol(2)}, {"metaData": metadata(fields, **{"delta.columnMapping.mode": mode})},
               {"add": add(table, "0.parquet", 3)})


def widened(folder):
    """Columns whose types the table has widened: a file from before, and one from after, which has the types of the table."""
    day = datetime.date(2024, 2, 29)
    low, high = -2**31, 2**31 - 1
    money = [decimal.Decimal("-123.45"), None, decimal.Decimal("1.00")]
    columns = {  # type before and after, as Arrow and as Delta have them; values before
        "short": (pa.int8(), pa.int16(), "short", [-128, None, 127]),
        "long": (pa.int32(), pa.int64(), "long", [low, None, high]),
        "float": (pa.float32(), pa.float64(), "double", [0.5, None, 0.25]),
        "byte_real": (pa.int8(), pa.float64(), "double", [-128, None, 127]),
        "real": (pa.int32(), pa.float64(), "double", [low, None, high]),
        "time": (pa.date32(), pa.timestamp("us"), "timestamp_ntz", [day, None, datetime.date(1969, 12, 31)]),
        "same": (pa.decimal128(5, 2), pa.decimal128(9, 2), "decimal(9,2)", money),
        "scaled": (pa.decimal128(5, 2), pa.decimal128(10, 4), "decimal(10,4)", money),
        "counted": (pa.int32(), pa.decimal128(12, 2), "decimal(12,2)", [low, None, high]),
        "long_counted": (pa.int64(), pa.decimal128(38, 10), "decimal(38,10)", [-2**63, None, 2**63 - 1]),
        "list": (pa.list_(pa.int32()), pa.list_(pa.int64()), {"type": "array", "elementType": "long", "containsNull": True},
                 [[low, high], None, []]),
        "map": (pa.map_(pa.string(), pa.int16()), pa.map_(pa.string(), pa.float64()),
                {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True},
                [[("a", -32768)], None, [("b", 1), ("c", None)]]),
        "r": (pa.struct([("x", pa.int32()), ("y", pa.list_(pa.struct([("z", pa.float32())])))]),
              pa.struct([("x", pa.float64()), ("y", pa.list_(pa.struct([("z", pa.float64())])))]),
              {"type": "struct", "fields": [field("x", "double"), field("y", {
                  "type": "array", "containsNull": True, "elementType": {"type": "struct", "fields": [field("z", "double")]}})]},
              [{"x": high, "y": [{"z": 0.5}]}, None, {"x": None, "y": [{"z": None}, {"z": 2.0}]}])}
    table = folder / "widened"
    table.mkdir()
    before = pa.table({name: pa.array(one[3], one[0]) for name, one in columns.items()})
    pq.write_table(before, table / "0.parquet", row_group_size=2, write_page_index=True)
    after = pa.table({name: before.column(name).cast(one[1]) for name, one in columns.items()})
    pq.write_table(after, table / "1.parquet", write_page_index=True)
    fields = [field(name, one[2]) for name, one in columns.items()]
    commit(table, 0, {"protocol": protocol(3, "typeWidening", "timestampNtz")}, {"metaData": metadata(fields)},
           {"add": add(table, "0.parquet", 3)}, {"add": add(table, "1.parquet", 3)})


def checkpoints(folder):
    """Files of 4 and 5 rows in checkpoints in parts, or with sidecars; with these a commit removes one and adds one of 6."""
    texts = pa.map_(pa.string(), pa.string())
    kinds = {"add": pa.struct([("path", pa.string()), ("partitionValues", texts), ("size", pa.int64()),
                               ("modificationTime", pa.int64()), ("dataChange", pa.bool_()), ("stats", pa.string())]),
             "protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()),
                                    ("readerFeatures", pa.list_(pa.string())), ("writerFeatures", pa.list_(pa.string()))]),
             "metaData": pa.struct([("id", pa.string()), ("format", pa.struct([("provider", pa.string()), ("options", texts)])),
                                    ("schemaString", pa.string()), ("partitionColumns", pa.list_(pa.string())),
                                    ("configuration", texts)]),
             "sidecar": pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())])}

    def write(path, *actions):
        pq.write_table(pa.table({name: pa.array([one.get(name) for one in actions], kind) for name, kind in kinds.items()
                                 if any(name in one for one in actions)}), path)

    def pairs(made):
        return {name: list(value.items()) if name in ("configuration", "options", "partitionValues") else
                pairs(value) if isinstance(value, dict) else value for name, value in made.items()}

    said = [{"protocol": protocol(3, "v2Checkpoint")}, {"metaData": metadata([field("i", "long")])}]
    for name in ("parts", "sidecars", "sidecars_json"):
        table = folder / name
        log = table / "_delta_log"
        (log / "_sidecars").mkdir(parents=True)
        for i in range(3):
            pq.write_table(pa.table({"i": range(10 * i, 10 * i + 4 + i)}), table / f"{i}.parquet")
        adds = [{"add": add(table, f"{i}.parquet", 4 + i)} for i in range(3)]
        if name == "parts":
            # A writer that wanted three parts has not finished.
            write(log / f"{3:020}.checkpoint.{1:010}.{3:010}.parquet", pairs(adds[2]))
            write(log / f"{3:020}.checkpoint.{1:010}.{2:010}.parquet", *map(pairs, said + adds[:1]))
            write(log / f"{3:020}.checkpoint.{2:010}.{2:010}.parquet", pairs(adds[1]))
            write(log / f"{3:020}.checkpoint.{3:010}.{3:010}.parquet", pairs(adds[2]))
            continue
        aside = []
        for i in range(2):
            write(log / "_sidecars" / f"{i}.parquet", pairs(adds[i]))
            size = (log / "_sidecars" / f"{i}.parquet").stat().st_size
            aside.append({"sidecar": {"path": f"{i}.parquet", "sizeInBytes": size, "modificationTime": 1}})
        top = log / f"{1:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11"
        if name == "sidecars":
            write(top.with_name(top.name + ".parquet"), *map(pairs, said), *aside)
        else:
            lines = "".join(json.dumps(one) + "\n" for one in said + aside)
            top.with_name(top.name + ".json").write_text(lines, encoding="utf-8")
        commit(table, 2, adds[2], {"remove": {"path": "0.parquet", "dataChange": True}})


def main(folder):
    folder = pathlib.Path(folder)
    path = str(folder / "sales")
    write_deltalake(path, rows(0, 20), partition_by=["day", "region"])
    write_deltalake(path, rows(20, 15), mode="append")
    DeltaTable(path).delete("id >= 5 AND id < 12")
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, rows(35, 10, amounts=True), mode="append", schema_mode="merge")
    DeltaTable(path).update(predicate="id = 36", updates={"amount": "1000.0"})
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, rows(100, 6, amounts=True), mode="overwrite")
    table = DeltaTable(path)
    newest = table.version()
    for version in range(newest + 1):
        table.load_as_version(version)
        (folder / f"{version}.expected").write_text(expected(table.to_pyarrow_table()), encoding="utf-8")
    deleted(folder)
    mapped(folder)
    widened(folder)
    checkpoints(folder)
    print(newest)


if __name__ == "__main__":
    main(sys.argv[1])
    # Threads of Arrow that still hold what Python owns now and then end an orderly exit with std::terminate.
    sys.stdout.flush()
    os._exit(0)
