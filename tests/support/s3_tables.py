# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tables into an S3 server on loopback, with deltalake and pyiceberg, and prints what those read from them.

s3_tables.py STORE BUCKET CATALOGUE WAREHOUSE

STORE and CATALOGUE are URLs. A line has a table, one of its versions and a row of it, with tabs between; a row has the values of
COLUMNS with | between: a text has = in front, a time is microseconds since 1970. The tables:

delta      s3://BUCKET/my sales/north west, whose versions are numbers
catalogue  the table shop.sales of the REST catalogue, whose versions are numbers of snapshots
listed     the table shop.sales in s3a://BUCKET/ice house/50%25, which no server keeps

Key and secret are in the environment.
"""

import datetime
import os
import sys
import tempfile

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyarrow.fs import S3FileSystem
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import HourTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

COLUMNS = ["id", "name", "region", "time"]
# What paths of partitions must escape, each in its own way.
REGIONS = ["a b", "x/y=z", "50% \u00fcber", "#?&+", " "]
EPOCH = datetime.datetime(1970, 1, 1)
KEY, SECRET = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]


def rows(first, count):
    ids = range(first, first + count)
    return pa.table({
        "id": pa.array(ids, pa.int64()),
        "name": pa.array([None if i % 5 == 0 else f"name {i}" for i in ids], pa.string()),
        "region": pa.array([REGIONS[i % 5] for i in ids], pa.string()),
        "time": pa.array([EPOCH + datetime.timedelta(days=19723 + i % 2, microseconds=i % 2) for i in ids], pa.timestamp("us")),
    })


def spelled(value):
    if isinstance(value, datetime.datetime):
        return str((value.replace(tzinfo=None) - EPOCH) // datetime.timedelta(microseconds=1))
    return f"={value}" if isinstance(value, str) else "null" if value is None else str(value)


def show(table, version, found):
    for row in found.to_pylist():
        print(table, version, "|".join(spelled(row[column]) for column in COLUMNS), sep="\t")


def write_delta(store, place):
    options = {"AWS_ENDPOINT_URL": store, "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
               "AWS_REGION": "us-east-1"}
    write_deltalake(place, rows(0, 10), partition_by=["region", "time"], storage_options=options)
    write_deltalake(place, rows(10, 5), mode="append", storage_options=options)
    table = DeltaTable(place, storage_options=options)
    table.delete("id = 3 or id = 12")
    table.create_checkpoint()
    write_deltalake(table, rows(15, 5), mode="append")
    for version in range(4):
        show("delta", version, DeltaTable(place, version=version, storage_options=options).to_pyarrow_table())


def write_iceberg(name, catalog):
    catalog.create_namespace("shop")
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "region", StringType()),
                    NestedField(4, "time", TimestampType()))
    parts = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "region"), PartitionField(4, 1001, HourTransform(), "hour"))
    table = catalog.create_table("shop.sales", schema, partition_spec=parts)
    table.append(rows(0, 10))
    table.append(rows(10, 5))
    table.delete("id = 3 or id = 12")
    for snapshot in table.snapshots():
        show(name, snapshot.snapshot_id, table.scan(snapshot_id=snapshot.snapshot_id).to_arrow())


def main():
    store, bucket, catalogue, warehouse = sys.argv[1:]
    sys.stdout.reconfigure(encoding="utf-8")
    S3FileSystem(endpoint_override=store, allow_bucket_creation=True, region="us-east-1").create_dir(bucket)
    write_delta(store, f"s3://{bucket}/my sales/north west")
    files = {"s3.endpoint": store, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET, "s3.region": "us-east-1"}
    write_iceberg("catalogue", RestCatalog("server", uri=catalogue, warehouse=warehouse, credential=f"{KEY}:{SECRET}", **files))
    with tempfile.TemporaryDirectory() as folder:
        catalog = SqlCatalog("file", uri=f"sqlite:///{folder}/catalog", warehouse=f"s3a://{bucket}/ice house/50%25", **files)
        write_iceberg("listed", catalog)
        catalog.close()


if __name__ == "__main__":
    main()
