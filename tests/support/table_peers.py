# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tables with partitions of every type, with delta-rs and pyiceberg, and prints what is in them:
table_peers.py FOLDER

A line for each row: the format, the table's folder, the id, and the partition's value as support/arrow_text.hpp has it.
"""
import datetime
import decimal
import pathlib
import struct
import sys

import deltalake
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (BinaryType, BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType,
                             NestedField, StringType, TimestampType, TimestamptzType)

D = decimal.Decimal
UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1)


def micros(value):
    return str((value.replace(tzinfo=None) - EPOCH) // datetime.timedelta(microseconds=1))


def real(value):
    return "nan" if value != value else struct.pack(">d", value).hex()


def money(scale):
    return lambda value: "x" + int(value.scaleb(scale)).to_bytes(16, "little", signed=True).hex()


def hexed(value):
    return '"' + (value if isinstance(value, bytes) else value.encode()).hex() + '"'


TIMES = [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2024, 2, 29, 12, 30)]
TYPES = {  # the type in Arrow and in Iceberg, the values, and how they are printed
    "bool": (pa.bool_(), BooleanType(), [True, False], lambda v: str(v).lower()),
    "byte": (pa.int8(), None, [-128, 127], str),
    "short": (pa.int16(), None, [-32768, 32767], str),
    "int": (pa.int32(), IntegerType(), [-2**31, 2**31 - 1], str),
    "long": (pa.int64(), LongType(), [-2**63, 2**63 - 1], str),
    "float": (pa.float32(), FloatType(), [1.5, -0.125, float("inf"), float("-inf")], real),
    "double": (pa.float64(), DoubleType(), [1e20, -0.1, float("inf"), float("-inf")], real),
    "decimal": (pa.decimal128(12, 2), DecimalType(12, 2), [D("0.00"), D("1.25"), D("9999999999.99")], money(2)),
    "wide": (pa.decimal128(38, 10), DecimalType(38, 10), [D("9999999999999999999999999999.0000000001")], money(10)),
    "date": (pa.date32(), DateType(), [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)],
             lambda v: str((v - EPOCH.date()).days)),
    "timestamp": (pa.timestamp("us", "UTC"), TimestamptzType(), [one.replace(tzinfo=UTC) for one in TIMES], micros),
    "timestamp_ntz": (pa.timestamp("us"), TimestampType(), TIMES, micros),
    "string": (pa.string(), StringType(), ["a b/c=d%", "\u00fc", "\\u0041"], hexed),
    "binary": (pa.binary(), BinaryType(), [b"\x01\x02\xff", b"abc"], hexed),
}


def main(folder):
    decimal.getcontext().prec = 60  # of the 38 digits none is rounded
    catalog = SqlCatalog("peers", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("peers")
    for name, (arrow, iceberg, values, text) in TYPES.items():
        values = values + [None]
        rows = pa.table({"id": pa.array(range(len(values)), pa.int64()), "p": pa.array(values, arrow)})
        place = f"{folder}/delta_{name}"
        deltalake.write_deltalake(place, rows, partition_by=["p"])
        places = [("delta", place, values)]
        if iceberg is not None:
            place = f"{folder}/iceberg_{name}"
            if name in ("decimal", "wide"):  # delta-rs writes -0.50 as "0.-50"
                values = [-values[0], D("-0.50"), None]
                rows = pa.table({"id": pa.array(range(3), pa.int64()), "p": pa.array(values, arrow)})
            schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", iceberg))
            table = catalog.create_table(f"peers.{name}", schema, location=f"file://{place}",
                                         partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p")))
            table.append(rows)
            places.append(("iceberg", place, values))
        for kind, place, there in places:
            for row, value in enumerate(there):
                print(kind, place, row, "null" if value is None else text(value), sep="\t")


main(pathlib.Path(sys.argv[1]).resolve())
