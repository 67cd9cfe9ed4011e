#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The libraries whose datasets Penstock reads, at work on generated data.

    format_peers.py check PEER...                   fails if one of them cannot be imported
    format_peers.py write PEER FOLDER FIRST COUNT   for each seed from FIRST a dataset of random columns and values, which the
                                                    peer writes to FOLDER/SEED, and FOLDER/SEED.expected with its values
    format_peers.py read PEER FOLDER FIRST COUNT    reads FOLDER/SEED with the peer, and writes FOLDER/SEED.read

PEER: mds, litdata, datasets, petastorm, ffcv; to write also tokens, for LitData's TokensLoader, parquet_datasets, Parquet by
datasets, nested_datasets and drift_datasets, Parquet and Arrow by its pyarrow, as tests/support/nested_text.hpp prints them,
and rows_litdata, LitData's rows of Arrow. To read: mds, and petastorm and datasets, which are pyarrow's and datasets' readers of
a Parquet file. What a peer imports and does not need here, PyTorch above all, is replaced by empty modules. A dataset's values
are a line for each sample, `name=value` for each column in the order of the names, with tabs between; of datasets,
rows_litdata, and of Parquet that is read here, they are what tools/arrow_oracles.py prints. The part of a name behind its last
underscore says how a value is read and printed, a number behind a point apart:

    b, t            bytes and texts, as hexadecimal digits
    int8...         a number; those with a point as the bits of a double
    aint8...        an array, as its type, its shape and its bytes: int8[2,3]0a...
    si, sf          a text of a number, as the number
    l               a list of bytes
    p               pixels, as an array
    nint8, zint8    npy and npz files of arrays, as arrays
    im, gray        an image, as an array of bytes; one that FFCV has compressed as a pixel, a hash of its bytes"""

import collections
import decimal
import importlib.abc
import importlib.machinery
import importlib.metadata
import io
import json
import math
import os
import pathlib
import random
import struct
import sys
import types

for name in ("HF_HOME", "HF_DATASETS_CACHE"):  # nothing is kept outside of the folder
    os.environ[name] = os.devnull + "/none"
os.environ.update(HF_HUB_OFFLINE="1", OPENCV_LOG_LEVEL="ERROR", TQDM_DISABLE="1")


class Nothing:
    """Anything that an empty module is asked for: a class, a decorator, a constant."""

    def __new__(cls, *given, **named):
        return given[0] if len(given) == 1 and not named and callable(given[0]) else super().__new__(cls)

    def __init__(self, *given, **named):
        pass

    def __class_getitem__(cls, item):
        return cls

    def __call__(self, *given, **named):
        return given[0] if len(given) == 1 and callable(given[0]) else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __getitem__(self, key):
        return self.__dict__.get(("item", key), self)

    def __setitem__(self, key, value):
        self.__dict__["item", key] = value


class EmptyModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (Nothing,), {"__module__": self.__name__})
        setattr(self, name, made)
        return made


class EmptyModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds empty modules of these names, and all below them."""

    def __init__(self, *names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return EmptyModule(spec.name)

    def exec_module(self, module):
        pass


def replace(*names):
    sys.meta_path.insert(0, EmptyModules(*names))


def load_mds():
    replace("torch", "torchvision", "transformers")
    import streaming

    return streaming


class Tensor:
    """As much of a tensor as LitData's serialisers and FFCV's fields ask for."""

    device = types.SimpleNamespace(type="cpu")

    def __init__(self, array, dtype):
        self.array, self.dtype, self.shape = array, dtype, array.shape

    def numpy(self, force=False):
        return self.array


TORCH_TYPES = ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "uint16")


def load_torch():
    """A module with PyTorch's types, two names for some, and its tensors."""
    replace("torch", "torchvision", "boto3", "botocore")
    import numpy
    import torch
    import torch.cuda
    import torch.distributed
    import torch.utils.data

    torch.Tensor = Tensor
    torch.cuda.is_available = torch.distributed.is_available = torch.distributed.is_initialized = lambda: False
    torch.utils.data.get_worker_info = lambda: None
    torch.zeros = lambda count, dtype: Tensor(numpy.zeros(count, dtype.__name__), dtype)
    for name, other in (("float32", "float"), ("float64", "double"), ("float16", "half"), ("int16", "short"), ("int32", "int"),
                        ("int64", "long"), ("complex64", "cfloat"), ("complex128", "cdouble")):
        setattr(torch, other, getattr(torch, name))
    return torch


def load_litdata():
    load_torch()
    import litdata.streaming.item_loader
    import litdata.streaming.writer

    return litdata


def load_datasets():
    import datasets

    # Which encode and decode sound: files are stored as they are.
    replace("torch", "torchcodec")
    import torch.nn

    return datasets


def load_petastorm():
    # Petastorm itself imports Spark: its codecs do without.
    replace("pyspark")
    package = types.ModuleType("petastorm")
    package.__path__ = list(importlib.machinery.PathFinder.find_spec("petastorm").submodule_search_locations)
    sys.modules["petastorm"] = package
    import petastorm.codecs

    return petastorm.codecs


def load_ffcv():
    # Its readers are compiled with Numba, and use a library that is not built.
    load_torch()
    replace("numba", "ffcv.libffcv", "ffcv.loader", "ffcv.transforms")
    import ffcv.fields
    import ffcv.writer

    return ffcv


# As docs/formats.md has them. FFCV's files are unpacked without a version.
VERSIONS = {"mds": ("mosaicml-streaming", "0.13.0"), "litdata": ("litdata", "0.2.76"), "datasets": ("datasets", "5.2.0"),
            "petastorm": ("petastorm", "0.13.1")}
LOADERS = {"mds": load_mds, "litdata": load_litdata, "datasets": load_datasets, "petastorm": load_petastorm, "ffcv": load_ffcv}

# Values and how they are printed.


def real(value):
    value = float(value)
    return "nan" if math.isnan(value) else struct.pack(">d", value).hex()


def quoted(value):
    value = value.encode() if isinstance(value, str) else bytes(value)
    return '"' + value.hex() + '"'


def array_text(array):
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]{array.tobytes().hex()}"


def pixels_text(image):
    import numpy

    array = numpy.asarray(image)
    return array_text(array if array.ndim == 3 else array[:, :, None])


def line_of(cells):
    """A sample's line, of pairs of a name and a printed value."""
    return "\t".join(f"{name}={value}" for name, value in sorted(cells, key=lambda cell: cell[0].encode())) + "\n"


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


class Generator(random.Random):
    """Random values of the kinds that columns have."""

    def size(self):
        return self.choice((0, 1, 2, 3, 7, 8, 9, 40, 300))

    def blob(self):
        return self.randbytes(self.size())

    def text(self):
        return "".join(self.choices("ab \"\\/\n\t\u00e9\u6f22\U0001f600", k=self.size() // 3))

    def number(self, dtype):
        import numpy

        if dtype.startswith("float"):
            with numpy.errstate(over="ignore"):
                return numpy.dtype(dtype).type(self.choice((0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 1e-7, 1e300,
                                                            self.uniform(-1e4, 1e4), self.gauss(0, 1))))
        limits = numpy.iinfo(dtype)
        return numpy.dtype(dtype).type(self.choice((limits.min, limits.max, 0, 1, self.randint(limits.min, limits.max))))

    def number_text(self, value):
        return real(value) if "float" in type(value).__name__ else str(int(value))

    def shape(self, least=1, most=4):
        return tuple(self.choice((1, 1, 2, 3, 5)) for _ in range(self.randint(least, most)))

    def array(self, dtype, shape):
        import numpy

        items = math.prod(shape)
        made = numpy.frombuffer(self.randbytes(items * numpy.dtype(dtype).itemsize), dtype)
        return made.reshape(shape)

    def pixels(self, channels=None):
        channels = channels or self.choice((1, 3))
        made = self.array("uint8", (self.randint(1, 9), self.randint(1, 9), channels))
        return made[:, :, 0] if channels == 1 else made

    def image(self, *modes):
        from PIL import Image

        mode = self.choice(modes or ("L", "RGB"))
        width, height = self.randint(1, 9), self.randint(1, 9)
        bands = len(Image.new(mode, (1, 1)).getbands())
        return Image.frombytes(mode, (width, height), self.randbytes(width * height * bands))

    def picture(self, kind, folder):
        """An image that PIL opened from a file, and the file's bytes."""
        from PIL import Image

        path = folder / f"{self.getrandbits(64):016x}.{kind}"
        self.image().save(path, quality=90)
        return Image.open(path), path.read_bytes()


def file_bytes(image, kind):
    out = io.BytesIO()
    image.save(out, format=kind)
    return out.getvalue()


NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")

# MosaicML Streaming.


def mds_column(make):
    """A random encoding: its name, the kind of its values, and a function that makes a value and prints it."""
    from streaming.base.format.mds.encodings import PIL

    def of_images(one, encoded):
        def made(folder):
            images = [one(folder) for _ in range(make.randint(0, 3))]
            return images, "[" + ",".join(quoted(encoded(image)) for image in images) + "]"
        return made

    def number(dtype):
        def made(_):
            value = make.number(dtype)
            return value, make.number_text(value)
        return dtype, dtype, made

    def array(encoding, dtype, shape):
        def made(_):
            value = make.array(dtype, shape or make.shape())
            return value, array_text(value)
        return encoding, "a" + dtype, made

    def simple(encoding, kind, value, text):
        def made(_):
            one = value()
            return one, text(one)
        return encoding, kind, made

    def jpeg(folder):
        image, content = make.picture("jpg", folder)
        return image, quoted(content)

    def jpegs(_):
        images = [file_bytes(make.image(), "JPEG") for _ in range(make.randint(1, 3))]
        return images, "[" + ",".join(map(quoted, images)) + "]"

    whole = lambda: make.randint(-2**63, 2**63 - 1)  # noqa: E731
    float_of = lambda: float(make.number("float64"))  # noqa: E731
    exact = lambda: decimal.Decimal(make.randint(-10**20, 10**20)).scaleb(-7)  # noqa: E731
    tree = lambda: {"k": make.text(), "l": [1, None, 0.5], "n": make.randint(-9, 9)}  # noqa: E731
    dtype = make.choice(NUMBERS)
    shape = make.shape()
    return make.choice((
        lambda: simple("bytes", "b", make.blob, quoted), lambda: simple("str", "t", make.text, quoted),
        lambda: simple("int", "int64", whole, str), lambda: number(dtype), lambda: number(dtype),
        lambda: simple("str_int", "si", whole, str), lambda: simple("str_float", "sf", float_of, real),
        lambda: simple("str_decimal", "t", exact, lambda value: quoted(str(value))),
        lambda: array("ndarray", dtype, None), lambda: array(f"ndarray:{dtype}", dtype, None),
        lambda: array(f"ndarray:{dtype}:{','.join(map(str, shape))}", dtype, shape),
        lambda: simple("pil", "p", make.image, pixels_text), lambda: ("jpeg", "b", jpeg),
        lambda: simple("png", "b", make.image, lambda image: quoted(file_bytes(image, "PNG"))),
        lambda: ("jpeg_array", "l", jpegs), lambda: ("jpegarray", "l", jpegs),
        lambda: ("list[pil]", "l", of_images(lambda _: make.image(), lambda image: PIL().encode(image))),
        lambda: ("list[png]", "l", of_images(lambda _: make.image(), lambda image: file_bytes(image, "PNG"))),
        lambda: ("list[jpeg]", "l", of_images(lambda _: make.image(), lambda image: file_bytes(image, "JPEG"))),
        lambda: simple("json", "b", tree, lambda value: quoted(json.dumps(value)))))()


def write_mds(streaming, make, path):
    columns = {f"{make.choice(('c', 'Z', chr(0xe9), 'a b', chr(34), chr(92)))}{i}": mds_column(make)
               for i in range(make.randint(1, 8))}
    names = {name: f"{name}_{kind}" for name, (_, kind, _) in columns.items()}
    pictures = path.parent / (path.name + ".pictures")
    pictures.mkdir()
    compression = make.choice((None, None, "zstd", "zstd:7", "gz", "gz:1", "bz2", "br", "br:4", "snappy"))
    hashes = sorted(make.sample(("sha1", "md5", "xxh64", "blake2b", "sha3_256"), make.randint(0, 2)))
    lines = []
    with streaming.MDSWriter(columns={names[name]: encoding for name, (encoding, _, _) in columns.items()}, out=str(path),
                             compression=compression, hashes=hashes,
                             size_limit=make.choice((1200, 2000, 5000, 1 << 26))) as out:
        for _ in range(make.choice((1, 2, 20, 60))):
            sample, cells = {}, []
            for name, (_, _, value) in columns.items():
                sample[names[name]], text = value(pictures)
                cells.append((names[name], text))
            out.write(sample)
            lines.append(line_of(cells))
    return lines


def read_mds(streaming, path):
    import numpy

    data = streaming.LocalDataset(str(path))
    lines = []
    for i in range(len(data)):
        cells = []
        for name, value in data[i].items():
            kind = name.rsplit("_", 1)[1]
            if isinstance(value, numpy.ndarray):
                text = array_text(value)
            elif kind in ("b", "t"):
                text = quoted(json.dumps(value) if isinstance(value, dict) else value)
            elif kind == "p":
                text = pixels_text(value)
            elif "f" in kind:
                text = real(value)
            else:
                text = str(int(value))
            cells.append((name, text))
        lines.append(line_of(cells))
    return lines


# LitData.


def litdata_column(make, torch):
    from litdata.types import File, Image, JpegArray, Jpeg
    from litdata.streaming.serializers import _nested_dumps

    def simple(kind, value, text):
        def made(_):
            one = value()
            return one, text(one)
        return kind, made

    def array(dtypes, dimensions, wrap):
        dtype = make.choice(dtypes)

        def made(_):
            value = make.array(dtype, make.shape(*dimensions))
            return wrap(value, dtype), array_text(value)
        return "a" + dtype, made

    def jpeg(folder):
        image, content = make.picture("jpg", folder)
        return image, quoted(content)

    def jpegs(folder):
        parts = [make.picture("jpg", folder)[1] for _ in range(make.randint(1, 3))]
        return JpegArray(images=[Jpeg(bytes=one) for one in parts]), "[" + ",".join(map(quoted, parts)) + "]"

    def image(_):
        content = file_bytes(make.image(), "PNG")
        return Image(bytes=content, path="x.png"), quoted(content)

    def file(_):
        content = make.blob()
        return File(bytes=content, path="x.dat"), quoted(content)

    tensor = lambda array, dtype: Tensor(array, getattr(torch, dtype))  # noqa: E731
    plain = lambda array, _: array  # noqa: E731
    nested = lambda: [{"k": make.text(), "n": i} for i in range(make.randint(1, 3))]  # noqa: E731
    return make.choice((
        lambda: simple("t", make.text, quoted), lambda: simple("b", make.blob, quoted),
        lambda: simple("uint8", lambda: make.random() < 0.5, lambda value: str(int(value))),
        lambda: simple("int64", lambda: make.randint(-2**63, 2**63 - 1), str),
        lambda: simple("float64", lambda: float(make.number("float64")), real),
        lambda: simple("p", lambda: make.image("L", "RGB", "RGBA"), pixels_text), lambda: ("b", jpeg), lambda: ("l", jpegs),
        lambda: ("b", image), lambda: ("b", file), lambda: simple("b", nested, lambda value: quoted(_nested_dumps(value))),
        lambda: array(NUMBERS, (2, 4), plain), lambda: array(NUMBERS, (1, 1), plain),
        lambda: array(TORCH_TYPES, (2, 4), tensor), lambda: array(TORCH_TYPES, (1, 1), tensor)))()


def write_litdata(litdata, make, path):
    import torch

    pictures = path.parent / (path.name + ".pictures")
    pictures.mkdir()
    # Without an array a sample may be a row of Arrow, which is another format.
    def matrix(_):
        value = make.array("int16", make.shape(2, 3))
        return value, array_text(value)

    columns = {"first_aint16": ("aint16", matrix)}
    for i in range(make.randint(0, 7)):
        kind, value = litdata_column(make, torch)
        columns[f"{make.choice(('c', chr(0xe9), 'a b'))}{i}_{kind}"] = (kind, value)
    inner = make.choice((None, *columns))  # a column of a dict in the sample
    out = litdata.streaming.writer.BinaryWriter(
        str(path), **make.choice(({"chunk_size": 7}, {"chunk_bytes": 2000}, {"chunk_bytes": 1 << 26})),
        **make.choice(({}, {"compression": "zstd", "compression_level": "chunk"}, {"compression": "zstd"},
                       {"compression": "zstd", "compression_batch_size": 3},
                       {"compression": "zstd", "compression_level": "sample"})))
    lines = []
    for i in range(make.choice((1, 2, 20, 60))):
        sample, cells = {}, []
        for name, (_, value) in columns.items():
            one, text = value(pictures)
            if name == inner:
                sample["inner"] = {name: one}
                cells.append(("inner." + name, text))
            else:
                sample[name] = one
                cells.append((name, text))
        out[i] = sample
        lines.append(line_of(cells))
    out.done()
    out.merge()
    return lines


def write_rows_litdata(litdata, make, path):
    """Dicts of plain values, which become rows of Arrow, as LitData's reader finds them."""
    import pyarrow
    from litdata.streaming.item_loader import load_arrow_footer_table

    some = lambda value: lambda: None if make.random() < 0.1 else value()  # noqa: E731
    few = lambda value: lambda: [value() for _ in range(make.randint(0, 3))]  # noqa: E731
    whole = lambda: make.randint(-2**63, 2**63 - 1)  # noqa: E731
    kinds = (whole, make.random, lambda: make.random() < 0.5, make.text, make.blob, few(whole), few(make.text),
             few(few(make.random)), lambda: {"a": make.randint(-9, 9), "b": {"c": make.text()}},
             few(lambda: {"a": make.randint(-9, 9), "s": make.text()}))
    columns = {f"c{i}": some(make.choice(kinds)) for i in range(make.randint(1, 6))}
    out = litdata.streaming.writer.BinaryWriter(
        str(path), chunk_size=make.choice((5, 700)), **make.choice(({}, {"compression": "zstd"})))
    first = {name: value() for name, value in columns.items()}
    while None in first.values():  # of which LitData takes the types
        first = {name: value() for name, value in columns.items()}
    rows = make.choice((1, 7, 40, 900))
    for i in range(rows):
        out[i] = {name: value() for name, value in columns.items()} if i else first
    out.done()
    out.merge()
    chunks = json.loads((path / "index.json").read_text())["chunks"]
    tables = [load_arrow_footer_table((path / chunk["filename"]).read_bytes()) for chunk in chunks]
    table = pyarrow.concat_tables(tables, promote_options="default")
    assert len(table) == rows
    return arrow_lines(Batches(table))


def write_tokens(litdata, make, path):
    """Tokens: the values are their type, and a line for each block of eight in a chunk."""
    import torch

    dtype = make.choice(("uint16", "int32", "int64"))
    out = litdata.streaming.writer.BinaryWriter(
        str(path), chunk_bytes=4000, item_loader=litdata.streaming.item_loader.TokensLoader(block_size=8),
        **make.choice(({}, {"compression": "zstd", "compression_level": "chunk"})))
    items = [make.array(dtype, (make.randint(1, 90),)) for _ in range(make.randint(20, 60))]
    for i, item in enumerate(items):
        out[i] = Tensor(item, getattr(torch, dtype))
    out.done()
    out.merge()
    lines = [dtype + "\n"]
    for chunk in json.loads((path / "index.json").read_text())["chunks"]:
        tokens = [token for item in items[:chunk["chunk_size"]] for token in item.tolist()]
        items = items[chunk["chunk_size"]:]
        lines += [",".join(map(str, tokens[at:at + 8])) + "\n" for at in range(0, len(tokens) - 7, 8)]
    return lines


# Hugging Face's datasets.


def arrow_lines(batches):
    """The values of a reader of Arrow, as tools/arrow_oracles.py prints them."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
    import arrow_oracles

    return [arrow_oracles.rows(batches)]


class Batches(list):
    """The batches of a table, with its schema."""

    def __init__(self, table):
        super().__init__(table.combine_chunks().to_batches())
        self.schema = table.schema


def datasets_column(make, datasets, rows):
    import numpy

    def column(feature, value):
        return feature, [None if make.random() < 0.1 else value() for _ in range(rows)]

    dtype = make.choice(NUMBERS)
    shape = (make.randint(1, 3), make.randint(1, 4))
    few = lambda value: lambda: [value() for _ in range(make.randint(0, 4))]  # noqa: E731

    def file(content):
        return {"bytes": content, "path": make.choice((None, "b.dat"))}

    def number():
        value = make.number(dtype).item()
        return min(value, 2**63 - 1) if isinstance(value, int) else value  # a larger one datasets refuses

    return make.choice((
        lambda: column(datasets.Value(dtype), number),
        lambda: column(datasets.Value("bool"), lambda: make.random() < 0.5),
        lambda: column(datasets.Value("string"), make.text), lambda: column(datasets.Value("large_string"), make.text),
        lambda: column(datasets.Value("binary"), make.blob),
        lambda: column(datasets.Value("timestamp[us]"), lambda: make.randint(0, 2**50)),
        lambda: column(datasets.ClassLabel(names=["cat", "dog"]), lambda: make.randint(0, 1)),
        lambda: column(datasets.List(datasets.Value(dtype)), few(number)),
        lambda: column(datasets.List(datasets.Value("string")), few(make.text)),
        lambda: column(datasets.List(datasets.Value("int32"), length=3), lambda: [make.randint(-9, 9) for _ in range(3)]),
        lambda: column(datasets.List(datasets.List(datasets.Value("int16"))), few(few(lambda: make.randint(-9, 9)))),
        lambda: column({"a": datasets.Value("int8"), "b": {"c": datasets.Value("string")}},
                       lambda: {"a": make.randint(-9, 9), "b": {"c": make.text()}}),
        lambda: column(datasets.List({"a": datasets.Value("int8"), "s": datasets.Value("string")}),
                       few(lambda: {"a": make.randint(-9, 9), "s": make.text()})),
        lambda: column(datasets.Array2D(shape=shape, dtype="int32"), lambda: make.array("int32", shape)),
        lambda: column(datasets.Array2D(shape=shape, dtype="float32"), lambda: numpy.nan_to_num(make.array("float32", shape))),
        lambda: column(datasets.Image(), make.image),
        lambda: column(datasets.Image(), lambda: file(file_bytes(make.image(), "PNG"))),
        lambda: column(datasets.Audio(), lambda: file(make.blob()))))()


def random_dataset(datasets, make):
    datasets.disable_progress_bars()
    rows = make.choice((1, 7, 40, 1500))
    columns = {f"c{i}": datasets_column(make, datasets, rows) for i in range(make.randint(1, 7))}
    return datasets.Dataset.from_dict({name: values for name, (_, values) in columns.items()},
                                      features=datasets.Features({name: feature for name, (feature, _) in columns.items()}))


def write_datasets(datasets, make, path):
    data = random_dataset(datasets, make)
    data.save_to_disk(str(path), num_shards=make.randint(1, min(3, len(data))))
    return arrow_lines(Batches(data.data.table))


def write_parquet_datasets(datasets, make, path):
    data = random_dataset(datasets, make)
    path.mkdir()
    data.to_parquet(str(path / "part.parquet"), batch_size=make.choice((3, 1000)))
    return arrow_lines(Batches(data.data.table))


# Columns of any depth, and columns that differ from file to file, by pyarrow, which comes with datasets.


def nested_text(kind, value):
    """A value as tests/support/nested_text.hpp prints it."""
    import pyarrow.types as kinds

    if value is None:
        return "null"
    if kinds.is_dictionary(kind):
        return nested_text(kind.value_type, value)
    if kinds.is_boolean(kind):
        return "true" if value else "false"
    if kinds.is_integer(kind):
        return str(value)
    if kinds.is_floating(kind):
        return real(value)
    if kinds.is_struct(kind):
        return "{" + ",".join(f"{field.name}:{nested_text(field.type, value[field.name])}" for field in kind) + "}"
    if kinds.is_map(kind):
        return "<" + ",".join(f"{nested_text(kind.key_type, k)}={nested_text(kind.item_type, v)}" for k, v in value) + ">"
    if isinstance(value, list):
        return "[" + ",".join(nested_text(kind.value_type, one) for one in value) + "]"
    return quoted(value)


def nested_kind(make, arrow, depth):
    """A random type, and a function that makes values of it."""
    def number():
        return make.randint(-100, 100)

    text = lambda: make.choice(("", "a", "\u00e9\u6f22", "longer than twelve bytes", make.text()))  # noqa: E731
    flat = [(arrow.int8(), number), (arrow.int64(), number), (arrow.uint16(), lambda: make.randint(0, 65535)),
            (arrow.float32(), lambda: make.randint(-99, 99) / 4), (arrow.float64(), lambda: make.gauss(0, 1)),
            (arrow.bool_(), lambda: make.random() < 0.5), (arrow.string(), text), (arrow.large_string(), text),
            (arrow.string_view(), text), (arrow.binary(), make.blob), (arrow.dictionary(arrow.int32(), arrow.string()), text)]
    if depth == 0 or make.random() < 0.2:
        return make.choice(flat)
    kind, value = nested_kind(make, arrow, depth - 1)
    some = lambda: None if make.random() < 0.15 else value()  # noqa: E731
    shape = make.choice(("list", "list", "large_list", "fixed", "list_view", "large_list_view", "struct", "struct", "map"))
    if shape == "struct":
        fields = [("a", kind, some)]
        for name in ("b", "c")[:make.randint(0, 2)]:
            other, one = nested_kind(make, arrow, make.randint(0, depth - 1))
            fields.append((name, other, lambda one=one: None if make.random() < 0.15 else one()))
        return (arrow.struct([(name, other) for name, other, _ in fields]),
                lambda: {name: one() for name, _, one in fields})
    if shape == "map":
        return arrow.map_(arrow.string(), kind), lambda: [(f"k{i}", some()) for i in range(make.randint(0, 3))]
    if shape == "fixed":
        size = make.randint(1, 3)
        return arrow.list_(kind, size), lambda: [some() for _ in range(size)]
    made = {"list": arrow.list_, "large_list": arrow.large_list, "list_view": arrow.list_view,
            "large_list_view": arrow.large_list_view}[shape](kind)
    return made, lambda: [some() for _ in range(make.randint(0, 4))]


def without_views(arrow, kind):
    """A type with plain texts, since pyarrow cannot write parts of a column of string_view to Parquet."""
    import pyarrow.types as kinds

    inner = lambda one: without_views(arrow, one)  # noqa: E731
    if kinds.is_struct(kind):
        return arrow.struct([(field.name, inner(field.type)) for field in kind])
    if kinds.is_map(kind):
        return arrow.map_(kind.key_type, inner(kind.item_type))
    if kinds.is_fixed_size_list(kind):
        return arrow.list_(inner(kind.value_type), kind.list_size)
    for is_kind, made in ((kinds.is_list, arrow.list_), (kinds.is_large_list, arrow.large_list),
                          (kinds.is_list_view, arrow.list_view), (kinds.is_large_list_view, arrow.large_list_view)):
        if is_kind(kind):
            return made(inner(kind.value_type))
    return arrow.string() if kind == arrow.string_view() else kind


def write_nested_datasets(_, make, path):
    """The same table as Parquet and as Arrow; its columns are lists and maps, since structs become columns of their fields."""
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet

    rows, columns = make.choice((1, 9, 200)), {}
    while len(columns) < 4:
        kind, value = nested_kind(make, pyarrow, 3)
        if not pyarrow.types.is_struct(kind):
            columns[f"c{len(columns)}"] = kind, [None if make.random() < 0.15 else value() for _ in range(rows)]
    path.mkdir()
    table = pyarrow.table({name: pyarrow.array(values, without_views(pyarrow, kind)) for name, (kind, values) in columns.items()})
    pyarrow.parquet.write_table(table, path / "a.parquet", row_group_size=make.choice((50, 1000)))
    table = pyarrow.table({name: pyarrow.array(values, kind) for name, (kind, values) in columns.items()})
    with pyarrow.ipc.new_file(path / "a.arrow", table.schema) as out:
        out.write_table(table, max_chunksize=make.choice((7, 1000)))
    return ["\t".join(nested_text(kind, values[row]) for kind, values in columns.values()) + "\n" for row in range(rows)]


def drifting_family(make, arrow):
    """Types that have a place in one of them, from the narrowest, and a function that makes values of the first."""
    text = lambda: make.choice(("", "a", "longer than twelve bytes"))  # noqa: E731
    small = lambda: make.randint(0, 100)  # noqa: E731
    families = [
        ([arrow.int8(), arrow.int16(), arrow.int32(), arrow.int64()], lambda: make.randint(-128, 127)),
        ([arrow.uint8(), arrow.uint16(), arrow.int32(), arrow.int64()], small),
        ([arrow.uint8(), arrow.int16(), arrow.float32(), arrow.float64()], small),
        ([arrow.float32(), arrow.float64(), arrow.int32()], small),
        ([arrow.string(), arrow.large_string(), arrow.string_view(), arrow.dictionary(arrow.int32(), arrow.string())], text),
        ([arrow.null(), arrow.int32(), arrow.int64()], small)]
    kinds, value = make.choice(families)
    depth = make.randint(0, 2)
    for _ in range(depth):
        shape = make.choice(("list", "list", "struct", "map"))
        inner = value
        if shape == "list":
            lists = [arrow.list_, arrow.large_list]
            kinds = [make.choice(lists)(kind) for kind in kinds]
            value = lambda inner=inner: [inner() for _ in range(make.randint(0, 3))]  # noqa: E731
        elif shape == "map":
            kinds = [arrow.map_(arrow.string(), kind) for kind in kinds]
            value = lambda inner=inner: [("k", inner())]  # noqa: E731
        else:  # some files lack a field, or have it elsewhere
            b = "b", arrow.int32()
            kinds = [arrow.struct(make.choice(([("a", kind)], [b, ("a", kind)], [("a", kind), b]))) for kind in kinds]
            value = lambda inner=inner: {"a": inner(), "b": make.randint(0, 9)}  # noqa: E731
    return kinds, value


def drifted(kind, value):
    """A value as a type holds it: null has none, and a struct those of its fields that it has."""
    import pyarrow.types as kinds

    if value is None or kinds.is_null(kind):
        return None
    if kinds.is_struct(kind):
        return {field.name: drifted(field.type, value[field.name]) for field in kind}
    if kinds.is_map(kind):
        return [(key, drifted(kind.item_type, one)) for key, one in value]
    return [drifted(kind.value_type, one) for one in value] if isinstance(value, list) else value


def drift_text(value, real_numbers):
    if value is None:
        return "null"
    if isinstance(value, dict):
        there = [(name, one) for name, one in sorted(value.items()) if one is not None]
        return "{" + ",".join(f"{name}:{drift_text(one, real_numbers and name == 'a')}" for name, one in there) + "}"
    if isinstance(value, tuple):
        return f"{drift_text(value[0], False)}={drift_text(value[1], real_numbers)}"
    if isinstance(value, list):
        return "[" + ",".join(drift_text(one, real_numbers) for one in value) + "]"
    if isinstance(value, str):
        return quoted(value)
    return real(value) if real_numbers else str(value)


def write_drift_datasets(_, make, path):
    """Files whose columns have types of one family, stand in any order, and are missing here and there."""
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet

    families = {}
    while len(families) < 3:
        kinds, value = drifting_family(make, pyarrow)
        if not pyarrow.types.is_struct(kinds[0]):
            families[f"c{len(families)}"] = kinds, value
    lines, files, path = [], make.randint(2, 4), path
    path.mkdir()
    chosen = [{name: make.choice(kinds) for name, (kinds, _) in families.items() if i == 0 or make.random() < 0.8}
              for i in range(files)]
    # What all files have in whole numbers stays whole.
    is_real = {name: any("float" in str(one.get(name)) or "double" in str(one.get(name)) for one in chosen) for name in families}
    for i, types in enumerate(chosen):
        rows = make.randint(1, 20)
        values = {name: [None if make.random() < 0.15 else drifted(kind, families[name][1]()) for _ in range(rows)]
                  for name, kind in make.sample(sorted(types.items()), len(types))}
        table = pyarrow.table({name: pyarrow.array(column, without_views(pyarrow, types[name])) for name, column in values.items()})
        pyarrow.parquet.write_table(table, path / f"{i}.parquet", row_group_size=make.choice((5, 1000)))
        table = pyarrow.table({name: pyarrow.array(column, types[name]) for name, column in values.items()})
        with pyarrow.ipc.new_file(path / f"{i}.arrow", table.schema) as out:
            out.write_table(table, max_chunksize=make.choice((7, 1000)))
        for row in range(rows):
            lines.append("\t".join(drift_text(values[name][row], is_real[name]) if name in values else "null"
                                   for name in families) + "\n")
    return lines


# Petastorm.

Field = collections.namedtuple("Field", "name numpy_dtype shape")


def write_petastorm(codecs, make, path):
    import numpy
    import pyarrow
    import pyarrow.parquet
    import pyspark.sql.types as spark

    def encoded(codec, value, text, dtype, shape):
        def made(name):
            one = value()
            return bytes(codec.encode(Field(name, dtype, shape), one)), text(one)
        return made

    def array(kind, codec):
        dtype, shape = make.choice(NUMBERS), make.shape()
        open_shape = tuple(None if make.random() < 0.5 else extent for extent in shape)
        value = lambda: make.array(dtype, tuple(one or make.randint(1, 4) for one in open_shape))  # noqa: E731
        return kind + dtype, pyarrow.binary(), encoded(codec, value, array_text, getattr(numpy, dtype), open_shape)

    def image():
        channels = make.choice((1, 3))
        shape = (None, None) if channels == 1 else (None, None, 3)
        codec = codecs.CompressedImageCodec("png")
        made = encoded(codec, lambda: make.pixels(channels), pixels_text, numpy.dtype("uint8"), shape)
        return "gray" if channels == 1 else "im", pyarrow.binary(), made

    def scalar(kind, type_, spark_type, value, text):
        codec = codecs.ScalarCodec(spark_type)

        def made(name):
            one = value()
            return codec.encode(Field(name, type(one), ()), one), text(one)
        return kind, type_, made

    def number(dtype, spark_type):
        return scalar(dtype, pyarrow.from_numpy_dtype(dtype), spark_type, lambda: make.number(dtype), make.number_text)

    choices = (lambda: array("n", codecs.NdarrayCodec()), lambda: array("z", codecs.CompressedNdarrayCodec()), image,
               lambda: number("int8", spark.ByteType()), lambda: number("int16", spark.ShortType()),
               lambda: number("int32", spark.IntegerType()), lambda: number("int64", spark.LongType()),
               lambda: number("float32", spark.FloatType()), lambda: number("float64", spark.DoubleType()),
               lambda: scalar("bool", pyarrow.bool_(), spark.BooleanType(), lambda: numpy.bool_(make.random() < 0.5),
                              lambda value: str(bool(value)).lower()),
               lambda: scalar("t", pyarrow.string(), spark.StringType(), make.text, quoted))
    columns = [(f"c{i}", *make.choice(choices)()) for i in range(make.randint(1, 7))]
    schema = pyarrow.schema([(f"{name}_{kind}", type_) for name, kind, type_, _ in columns])
    rows = make.choice((1, 5, 60))
    lines, values = [], [[] for _ in columns]
    for _ in range(rows):
        cells = []
        for (name, kind, _, made), column in zip(columns, values):
            value, text = made(name)
            column.append(value)
            cells.append((f"{name}_{kind}", text))
        lines.append(line_of(cells))
    path.mkdir()
    pyarrow.parquet.write_table(pyarrow.table([pyarrow.array(column, one.type) for column, one in zip(values, schema)], schema),
                                path / "part-00000.parquet", row_group_size=make.choice((3, 1000)),
                                compression=make.choice(("snappy", "gzip", "none", "zstd")))
    return lines


def read_parquet(_, path):
    import pyarrow.parquet

    return arrow_lines(Batches(pyarrow.parquet.read_table(path)))


def read_datasets(datasets, path):
    """What datasets loads from a Parquet file."""
    datasets.disable_progress_bars()
    data = datasets.Dataset.from_parquet(str(path), cache_dir=str(path) + ".cache")
    return arrow_lines(Batches(data.data.table))


# FFCV.


class Samples(list):
    """What FFCV's writer asks for by number."""

    def __getitem__(self, i):
        return super().__getitem__(int(i))


def ffcv_column(make, fields):
    import numpy
    import torch

    def image_text(mode, threshold, quality):
        import ffcv.fields.rgb_image

        def text(pixels):
            if mode == "jpg" or (mode == "smart" and threshold is not None and pixels.nbytes > threshold):
                value = fnv(ffcv.fields.rgb_image.encode_jpeg(pixels, quality).tobytes())
                return f"uint8[1,1,3]{value % 2**24:06x}"
            return array_text(pixels)
        return text

    def image(mode):
        threshold, quality = make.choice((None, 0, 100)), make.choice((60, 90))
        field = fields.RGBImageField(write_mode=mode, smart_threshold=threshold, jpeg_quality=quality)
        return "im", field, lambda: make.pixels(3), image_text(mode, threshold, quality)

    def array():
        dtype, shape = make.choice(NUMBERS), make.shape()
        return "a" + dtype, fields.NDArrayField(numpy.dtype(dtype), shape), lambda: make.array(dtype, shape), array_text

    def tensor():
        dtype, shape = make.choice(TORCH_TYPES), make.shape()
        torch_dtype = getattr(torch, dtype)
        return ("a" + dtype, fields.TorchTensorField(torch_dtype, shape), lambda: Tensor(make.array(dtype, shape), torch_dtype),
                lambda value: array_text(value.array))

    tree = lambda: {} if make.random() < 0.2 else {"k": make.text(), "l": [1, None, 0.5]}  # noqa: E731
    blob = lambda: numpy.frombuffer(make.blob(), "uint8")  # noqa: E731
    return make.choice((
        lambda: ("int64", fields.IntField(), lambda: make.randint(-2**63, 2**63 - 1), str),
        lambda: ("float64", fields.FloatField(), lambda: float(make.number("float64")), real),
        lambda: ("b", fields.BytesField(), blob, lambda value: quoted(value.tobytes())),
        lambda: ("b", fields.BytesField(), lambda: numpy.zeros(0, "uint8"), lambda value: quoted(b"")),
        lambda: ("t", fields.JSONField(), tree, lambda value: quoted(json.dumps(value))), array, tensor,
        lambda: image("raw"), lambda: image("jpg"), lambda: image("smart")))()


def write_ffcv(ffcv, make, path):
    columns = [ffcv_column(make, ffcv.fields) for _ in range(make.randint(1, 6))]
    names = [f"c{i}_{kind}" for i, (kind, *_) in enumerate(columns)]
    samples, lines = Samples(), []
    for _ in range(make.choice((1, 2, 20, 50))):
        sample = tuple(value() for _, _, value, _ in columns)
        samples.append(sample)
        lines.append(line_of([(name, text(one)) for name, (_, _, _, text), one in zip(names, columns, sample)]))
    ffcv.writer.DatasetWriter(str(path), dict(zip(names, (field for _, field, _, _ in columns))), page_size=1 << 21,
                              num_workers=make.randint(1, 2)).from_indexed_dataset(samples, chunksize=5)
    return lines


WRITERS = {"mds": write_mds, "litdata": write_litdata, "tokens": write_tokens,
           "rows_litdata": write_rows_litdata, "datasets": write_datasets,
           "parquet_datasets": write_parquet_datasets, "nested_datasets": write_nested_datasets,
           "drift_datasets": write_drift_datasets, "petastorm": write_petastorm, "ffcv": write_ffcv}
READERS = {"mds": read_mds, "petastorm": read_parquet, "datasets": read_datasets}


def main():
    task, *arguments = sys.argv[1:]
    if task == "check":
        for peer in arguments:
            LOADERS[peer]()
            package, version = VERSIONS.get(peer, (None, None))
            if package and importlib.metadata.version(package) != version:
                sys.exit(f"format_peers: {package} has version {importlib.metadata.version(package)}, not {version}")
        return
    peer, folder, first, count = arguments
    loaded = LOADERS["litdata" if peer == "tokens" else peer.split("_")[-1]]()
    for seed in range(int(first), int(first) + int(count)):
        path = pathlib.Path(folder) / str(seed)
        try:
            if task == "write":
                lines, ending = WRITERS[peer](loaded, Generator(seed), path), ".expected"
            else:
                lines, ending = READERS[peer](loaded, path), ".read"
        except Exception:
            print(f"{task} {peer}, seed {seed}:", file=sys.stderr)
            raise
        pathlib.Path(str(path) + ending).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
