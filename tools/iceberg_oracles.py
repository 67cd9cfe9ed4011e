#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables that pyiceberg has written, and what it reads from them, for tests/source/iceberg.test.cpp.

    tools/iceberg_oracles.py FOLDER   writes the tables FOLDER/shop/NAME, and for each of their snapshots FOLDER/NAME.ID.expected

Needs pyiceberg with sql-sqlite and pyarrow, which PyPI has; without them, skipped with status 77. FOLDER/NAME.snapshots has a line
for each snapshot, its id and its time. A line of what is expected has a column, an id and the value, with tabs between; fields of
structs are columns of their own. Dates, times and decimals are the whole numbers that they count."""

import datetime
import decimal
import json
import pathlib
import struct
import sys
import time
import uuid
import zlib

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg import manifest as of_manifest
    from pyiceberg.avro.file import AvroOutputFile
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.refs import SnapshotRefType
    from pyiceberg.table.snapshots import Operation, Snapshot, Summary
    from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
    from pyiceberg.transforms import BucketTransform, IdentityTransform, MonthTransform
    from pyiceberg.typedef import Record
    from pyiceberg.types import (BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType,
                                 ListType, LongType, MapType, NestedField, StringType, StructType, TimestampType, TimestamptzType,
                                 TimeType, UUIDType)
    from pyroaring import BitMap
except ImportError as missing:
    print(f"iceberg_oracles: skipped: {missing}; install pyiceberg[sql-sqlite,pyarrow]")
    sys.exit(77)

EPOCH = datetime.datetime(1970, 1, 1)


def spelled(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, decimal.Decimal):
        return str(int(value.scaleb(2)))
    if isinstance(value, datetime.datetime):
        return str((value.replace(tzinfo=None) - EPOCH) // datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        return str((value - EPOCH.date()).days)
    return f"={value}"


def leaves(name, kind, value):
    if pa.types.is_struct(kind):
        for field in kind:
            yield from leaves(f"{name}.{field.name}", field.type, None if value is None else value[field.name])
    else:
        yield name, str(value) if isinstance(value, int) and not isinstance(value, bool) else spelled(value)


def expected(rows):
    lines = []
    for row in rows.to_pylist():
        for field in rows.schema:
            if field.name != "id":
                lines += [(name, row["id"], value) for name, value in leaves(field.name, field.type, row[field.name])]
    return "".join(f"{name}\t{number}\t{value}\n" for name, number, value in sorted(lines))


def tell(folder, name, table):
    """Writes what pyiceberg reads at each snapshot."""
    with open(folder / f"{name}.snapshots", "w", encoding="utf-8") as out:
        for one in table.metadata.snapshots:
            out.write(f"{one.snapshot_id} {one.timestamp_ms}\n")
            rows = table.scan(snapshot_id=one.snapshot_id).to_arrow()
            (folder / f"{name}.{one.snapshot_id}.expected").write_text(expected(rows), encoding="utf-8")


def rows(table, first, count, **more):
    """Rows of the columns that the table has now."""
    values = {
        "id": lambda i: i,
        "name": lambda i: None if i % 5 == 4 else f"name {i}",
        "title": lambda i: f"title {i}",
        "amount": lambda i: i / 4,
        "count": lambda i: i * 3,
        "ratio": lambda i: None if i % 3 == 0 else i / 2,
        "price": lambda i: decimal.Decimal(i - 20) / 4,
        "day": lambda i: datetime.date(2024, 1 + i % 3, 28),
        "time": lambda i: datetime.datetime(2024, 2, 29, 12, 0, i % 60, i),
        "region": lambda i: None if i % 7 == 0 else "north & south" if i % 2 else "a=b%/c",
        "sold": lambda i: i % 2 == 0,
        "place": lambda i: None if i % 11 == 5 else {
            "city": f"city {i}", "town": f"town {i}", "size": i, "zip": {"code": i * 2, "number": i * 2}},
        "extra": lambda i: f"extra {i}",
    }
    schema = table.schema().as_arrow()

    def fitting(kind, value):
        if pa.types.is_struct(kind) and value is not None:
            return {field.name: fitting(field.type, value[field.name]) for field in kind}
        return int(value[6:]) if pa.types.is_integer(kind) and isinstance(value, str) else value

    return pa.table([pa.array([fitting(field.type, values[field.name](i)) for i in range(first, first + count)], field.type)
                     for field in schema], schema=schema)


def fields():
    zip_code = StructType(NestedField(22, "code", IntegerType(), required=False))
    place = StructType(NestedField(20, "city", StringType(), required=False),
                       NestedField(21, "size", IntegerType(), required=False),
                       NestedField(23, "zip", zip_code, required=False))
    return Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "name", StringType(), required=False),
                  NestedField(3, "count", IntegerType(), required=False), NestedField(4, "ratio", FloatType(), required=False),
                  NestedField(5, "price", DecimalType(9, 2), required=False), NestedField(6, "day", DateType(), required=False),
                  NestedField(7, "time", TimestampType(), required=False), NestedField(8, "region", StringType(), required=False),
                  NestedField(9, "sold", BooleanType(), required=False), NestedField(10, "place", place, required=False),
                  NestedField(11, "extra", StringType(), required=False))


def evolve(catalog, folder):
    """Appends, deletes and overwrites, and all that may change in a schema and a partition spec."""
    spec = PartitionSpec(PartitionField(8, 1000, IdentityTransform(), "region"),
                         PartitionField(6, 1001, MonthTransform(), "day_month"),
                         PartitionField(9, 1002, IdentityTransform(), "sold"))
    table = catalog.create_table("shop.sales", fields(), partition_spec=spec)
    table.append(rows(table, 0, 20))
    table.append(rows(table, 20, 15))
    table.delete("id >= 5 and id < 12")
    with table.update_schema() as update:
        update.add_column("amount", DoubleType())
    table.append(rows(table, 35, 10))
    with table.update_schema() as update:
        update.rename_column("name", "title")
        update.rename_column("place.city", "town")
        update.rename_column("place.zip.code", "number")
        update.update_column("count", LongType())
        update.update_column("ratio", DoubleType())
        update.update_column("price", DecimalType(18, 2))
    table.append(rows(table, 45, 10))
    # Columns that are there again are other ones.
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("extra")
        update.delete_column("place.size")
    with table.update_schema() as update:
        update.add_column("extra", LongType())
        update.add_column(("place", "size"), LongType())
        update.move_first("place")
    table.append(rows(table, 55, 10))
    with table.update_spec() as update:
        update.remove_field("region")
        update.add_field("id", BucketTransform(4), "some")
    table.append(rows(table, 65, 10))
    table.overwrite(rows(table, 100, 6), overwrite_filter="id < 70")
    table.delete("id >= 0")
    table.append(rows(table, 200, 3))
    fourth = table.metadata.snapshots[3].snapshot_id
    table.manage_snapshots().create_tag(fourth, "old").create_branch(fourth, "audit").commit()
    tell(folder, "sales", table)


class DeleteManifest(of_manifest.ManifestWriterV2):
    """Writes a manifest of deletes, which pyiceberg reads and does not write."""

    def content(self):
        return of_manifest.ManifestContent.DELETES

    @property
    def _meta(self):
        return {**super()._meta, "content": "deletes"}


def delete_file(table, places):
    """A file of position deletes, of pairs of a path and a row."""
    schema = pa.schema([pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
                        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"})])
    path = f"{table.location()}/data/{uuid.uuid4()}-deletes.parquet"
    local = pathlib.Path(path.removeprefix("file://"))
    pq.write_table(pa.table([[one for one, _ in places], [row for _, row in places]], schema=schema), local, row_group_size=3)
    paths = sorted(one.encode() for one, _ in places)
    made = of_manifest.DataFile.from_args(
        content=of_manifest.DataFileContent.POSITION_DELETES, file_path=path, file_format=of_manifest.FileFormat.PARQUET,
        partition=Record(), record_count=len(places), file_size_in_bytes=local.stat().st_size,
        lower_bounds={2147483546: paths[0]}, upper_bounds={2147483546: paths[-1]})
    made.spec_id = table.spec().spec_id
    return made


def commit_deletes(table, files, sequence=None, writer=DeleteManifest):
    """A snapshot with files of deletes more; with a sequence number as if an older one had brought them."""
    now, number = table.current_snapshot(), table.metadata.new_snapshot_id()
    folder, next_sequence = f"{table.location()}/metadata", table.metadata.next_sequence_number()
    path = f"{folder}/{uuid.uuid4()}-m0.avro"
    status = of_manifest.ManifestEntryStatus.ADDED if sequence is None else of_manifest.ManifestEntryStatus.EXISTING
    with writer(table.spec(), table.schema(), table.io.new_output(path), number, "null") as manifest:
        for one in files:
            manifest.add_entry(of_manifest.ManifestEntry.from_args(status=status, snapshot_id=number, sequence_number=sequence,
                                                                   file_sequence_number=sequence, data_file=one))
    listed = f"{folder}/snap-{number}-{uuid.uuid4()}.avro"
    with of_manifest.write_manifest_list(2, table.io.new_output(listed), number, now.snapshot_id, next_sequence, "null") as out:
        out.add_manifests([*now.manifests(table.io), manifest.to_manifest_file()])
    made = Snapshot(snapshot_id=number, parent_snapshot_id=now.snapshot_id, sequence_number=next_sequence,
                    timestamp_ms=int(time.time() * 1000), manifest_list=listed, summary=Summary(Operation.DELETE),
                    schema_id=table.schema().schema_id)
    head = SetSnapshotRefUpdate(snapshot_id=number, parent_snapshot_id=now.snapshot_id, ref_name="main",
                                type=SnapshotRefType.BRANCH)
    table._do_commit((AddSnapshotUpdate(snapshot=made), head), ())


def delete_rows(table, deletes, sequence=None):
    commit_deletes(table, [delete_file(table, places) for places in deletes], sequence)


class VectorManifest(DeleteManifest):
    """Says where in a file a deletion vector is, as format version 3 has it."""

    def new_writer(self):
        schema = self._with_partition(3)
        return AvroOutputFile(output_file=self._output_file, file_schema=schema, record_schema=schema,
                              schema_name="manifest_entry", metadata=self._meta)


def delete_by_vectors(table, rows_of):
    """A snapshot with a deletion vector of each file more, all in one file."""
    path = f"{table.location()}/data/{uuid.uuid4()}-deletes.puffin"
    bytes_of, blobs, files = b"PFA1", [], []
    for data_file, rows_deleted in rows_of.items():
        vector = bytes.fromhex("d1d33964") + struct.pack("<QL", 1, 0) + BitMap(rows_deleted).serialize()
        blob = struct.pack(">L", len(vector)) + vector + struct.pack(">L", zlib.crc32(vector))
        blobs.append({"type": "deletion-vector-v1", "fields": [2147483546], "snapshot-id": -1, "sequence-number": -1,
                      "offset": len(bytes_of), "length": len(blob),
                      "properties": {"referenced-data-file": data_file, "cardinality": str(len(rows_deleted))}})
        bounds = {2147483546: data_file.encode()}
        files.append(of_manifest.DataFile.from_args(
            _table_format_version=3, content=of_manifest.DataFileContent.POSITION_DELETES, file_path=path,
            file_format=of_manifest.FileFormat.PUFFIN, partition=Record(), record_count=len(rows_deleted), file_size_in_bytes=1,
            lower_bounds=bounds, upper_bounds=bounds, referenced_data_file=data_file, content_offset=len(bytes_of),
            content_size_in_bytes=len(blob)))
        files[-1].spec_id = table.spec().spec_id
        bytes_of += blob
    footer = json.dumps({"blobs": blobs}).encode()
    pathlib.Path(path.removeprefix("file://")).write_bytes(
        bytes_of + b"PFA1" + footer + struct.pack("<LL", len(footer), 0) + b"PFA1")
    commit_deletes(table, files, writer=VectorManifest)


def simple():
    return Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "name", StringType(), required=False))


def position_deletes(catalog, folder):
    table = catalog.create_table("shop.deletes", simple(), properties={"write.parquet.row-group-limit": "4",
                                                                       "write.avro.compression-codec": "zstandard"})
    table.append(rows(table, 0, 20))
    table.append(rows(table, 20, 5))
    first, second = sorted((one.file.file_path for one in table.scan().plan_files()),
                           key=lambda path: -pq.read_metadata(path.removeprefix("file://")).num_rows)
    delete_rows(table, [[(first, 1), (first, 4), (first, 5), (first, 6), (first, 7)],
                        [(first, 19), (second, 0), (second, 4), ("file:///gone.parquet", 77), (first, 1)]])
    table.append(rows(table, 25, 5))
    third = next(path for path in (one.file.file_path for one in table.scan().plan_files()) if path not in (first, second))
    # They are older than the file.
    delete_rows(table, [[(third, 0), (third, 1)]], sequence=1)
    delete_rows(table, [[(third, 2)]])
    tell(folder, "deletes", table)


def deletion_vectors(catalog, folder):
    table = catalog.create_table("shop.vectors", simple(), properties={"write.parquet.row-group-limit": "100"})
    table.append(rows(table, 0, 1000))
    table.append(rows(table, 1000, 20000))
    first, second = sorted((one.file.file_path for one in table.scan().plan_files()),
                           key=lambda path: pq.read_metadata(path.removeprefix("file://")).num_rows)
    delete_rows(table, [[(first, 1), (second, 7)]])
    # An array and runs, and bits.
    delete_by_vectors(table, {first: [0, 1, *range(40, 300), 999], second: range(7, 20000, 2)})
    table.append(rows(table, 21000, 5))
    tell(folder, "vectors", table)


def version_one(catalog, folder):
    """A table of format version 1, whose metadata are packed, and the same without a manifest list."""
    table = catalog.create_table("shop.one", simple(), properties={"format-version": "1", "write.avro.compression-codec": "null"})
    table.append(rows(table, 0, 8))
    table.append(rows(table, 8, 8))
    table.delete("id < 3")
    tell(folder, "one", table)
    made = json.loads(pathlib.Path(table.metadata_location.removeprefix("file://")).read_text(encoding="utf-8"))
    listed = {one.snapshot_id: [m.manifest_path for m in one.manifests(table.io)] for one in table.metadata.snapshots}
    for one in made["snapshots"]:
        del one["manifest-list"]
        one["manifests"] = listed[one["snapshot-id"]]
    for name in ("schemas", "current-schema-id", "partition-specs", "default-spec-id"):
        made.pop(name, None)
    made["schema"] = json.loads(table.schema().model_dump_json())
    made["partition-spec"] = []
    (folder / "one.json").write_text(json.dumps(made), encoding="utf-8")


def files_of_others(catalog, folder):
    """Files without numbers of fields, which are columns and fields by their names, also by former ones."""
    place = StructType(NestedField(20, "city", StringType(), required=False),
                       NestedField(21, "size", IntegerType(), required=False))
    schema = Schema(*simple().fields, NestedField(3, "place", place, required=False))
    table = catalog.create_table("shop.added", schema, properties={"write.metadata.compression-codec": "gzip"})
    for number in range(2):
        path = folder / f"other-{number}.parquet"
        columns = {"id": pa.array(range(5 * number, 5 * number + 5), pa.int64()),
                   "name": pa.array([f"other {i}" for i in range(5)]),
                   "place": pa.array([{"city": f"city {i}", "size": i} for i in range(5)],
                                     pa.struct([("city", pa.string()), ("size", pa.int32())]))}
        pq.write_table(pa.table({name: columns[name] for name in (reversed(columns) if number else columns)}), path)
        table.add_files([f"file://{path}"])
    with table.update_schema() as update:
        update.rename_column("name", "title")
        update.rename_column("place.city", "town")
        update.add_column("extra", StringType())
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("place.size")
    with table.update_schema() as update:
        update.add_column(("place", "size"), IntegerType())
    table.append(rows(table, 10, 5))
    tell(folder, "added", table)


def lists(catalog):
    """Fields of structs in lists and maps that were renamed, and one that is there again as another one."""
    spot = StructType(NestedField(20, "city", StringType(), required=False), NestedField(21, "size", IntegerType(), required=False))
    columns = (NestedField(1, "id", LongType(), required=False),
               NestedField(2, "tags", ListType(22, StringType(), element_required=False), required=False),
               NestedField(3, "spots", ListType(23, spot, element_required=False), required=False),
               NestedField(4, "named", MapType(24, StringType(), 25, StructType(NestedField(26, "x", LongType(), required=False)),
                                               value_required=False), required=False))
    values = [{"id": i, "tags": [f"tag {i}"] * i, "spots": [{"city": f"city {i}", "size": i}], "named": [("a", {"x": i})]}
              for i in range(5)]
    for name in ("lists", "gone"):
        table = catalog.create_table(f"shop.{name}", Schema(*columns))
        table.append(pa.Table.from_pylist(values, schema=table.schema().as_arrow()))
        with table.update_schema() as update:
            update.rename_column("spots.city", "town")
            update.rename_column("named.value.x", "y")
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("spots.size")
    with table.update_schema() as update:
        update.add_column(("spots", "size"), IntegerType())


def every_type(catalog, folder):
    """Types that the other tables do not have, as columns of partitions, too."""
    kinds = {"uuid": UUIDType(), "fixed": FixedType(3), "raw": BinaryType(), "clock": TimeType(), "zoned": TimestamptzType(),
             "price": DecimalType(9, 2), "ratio": FloatType()}
    columns = Schema(*(NestedField(i + 2, name, kind, required=False) for i, (name, kind) in enumerate(kinds.items())),
                     NestedField(1, "id", LongType(), required=False))
    table = catalog.create_table("shop.types", columns)
    for number in range(2):
        made = {"uuid": uuid.UUID(int=number).bytes, "fixed": b"abc", "raw": b"\0x", "clock": datetime.time(1, 2, 3, number),
                "zoned": datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc), "price": decimal.Decimal("1.25"),
                "ratio": 0.5, "id": number}
        schema = table.schema().as_arrow()
        table.append(pa.table([pa.array([made[field.name]], field.type) for field in schema], schema=schema))
        if number == 0:
            with table.update_spec() as update:
                for name in ("fixed", "raw", "clock", "zoned", "price", "ratio"):
                    update.add_identity(name)


def main(folder):
    folder = pathlib.Path(folder).resolve()
    catalog = SqlCatalog("local", uri=f"sqlite:///{folder}/catalogue.db", warehouse=f"file://{folder}")
    catalog.create_namespace("shop")
    evolve(catalog, folder)
    position_deletes(catalog, folder)
    version_one(catalog, folder)
    deletion_vectors(catalog, folder)
    files_of_others(catalog, folder)
    lists(catalog)
    every_type(catalog, folder)
    catalog.create_table("shop.empty", simple())


if __name__ == "__main__":
    main(sys.argv[1])
