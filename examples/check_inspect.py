#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_inspect.py <inspect> --compiler <C++ compiler> --include <folder>: makes a small dataset of each format,
looks at it with `inspect`, and compares what is printed with what was written. The expressions become one program,
which is compiled and must read as many samples."""

import argparse
import bz2
import gzip
import io
import json
import pathlib
import shlex
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib

COUNT = 5
IMAGES = pathlib.Path(__file__).resolve().parent.parent / "tests/data/image_files"


def png(number, side=24):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\0" + bytes([40 * number % 256, y, 128]) * side for y in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def npy(dtype, shape, data):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    head = head.ljust((len(head) + 11 + 63) // 64 * 64 - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def message(number, data):
    size, head = len(data), bytes([number << 3 | 2])
    while size > 127:
        head += bytes([size & 127 | 128])
        size >>= 7
    return head + bytes([size]) + data


def example(**features):
    entries = b""
    for name, value in features.items():
        kind = 1 if isinstance(value, bytes) else 2 if isinstance(value, float) else 3
        one = value if kind == 1 else struct.pack("<f", value) if kind == 2 else bytes([value])
        entries += message(1, message(1, name.encode()) + message(2, message(kind, message(1, one))))
    return message(1, entries)


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def tar_shard(path, numbers):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as out:
        for i in numbers:
            members = {"png": png(i), "cls": str(i).encode(), "txt": f"caption {i}".encode(),
                       "json": json.dumps({"n": i}).encode(), "npy": npy("<f4", (2,), struct.pack("<2f", i, 0))}
            for ending, data in members.items():
                member = tarfile.TarInfo(f"{i:03}.{ending}")
                member.size = len(data)
                out.addfile(member, io.BytesIO(data))


def snappy(data):
    """A block of one literal of 128 bytes to 16 KiB."""
    return bytes([len(data) & 127 | 128, len(data) >> 7]) + b"\xf4" + struct.pack("<H", len(data) - 1) + data


def brotli(data):
    """One block of up to 64 KiB that is not compressed."""
    # a bit for the window, one that more blocks follow, two for four digits of length; the length; not compressed
    return ((len(data) - 1) << 4 | 1 << 20).to_bytes(3, "little") + data + b"\x03"


def mds(folder, packed=None):
    """packed: the name of a compression, the end of packed names, and the function."""
    columns = {"image": "png", "label": "int", "name": "str"}
    sizes = [None, 8, None]
    described = {"version": 2, "format": "mds", "compression": None, "hashes": [], "size_limit": 1 << 26,
                 "column_names": list(columns), "column_encodings": list(columns.values()), "column_sizes": sizes}
    config = json.dumps(described, sort_keys=True).encode()
    samples = []
    for i in range(COUNT):
        image, name = png(i), f"name {i}".encode()
        samples.append(struct.pack("<II", len(image), len(name)) + image + struct.pack("<q", i) + name)
    begin = 4 + 4 * (COUNT + 1) + len(config)
    offsets = [begin + sum(map(len, samples[:i])) for i in range(COUNT + 1)]
    shard = struct.pack(f"<I{COUNT + 1}I", COUNT, *offsets) + config + b"".join(samples)
    stored, compression, name = shard, None, "shard.00000.mds"
    if packed:
        compression, ending, pack = packed
        stored, name = pack(shard), f"{name}.{ending}"
    described["compression"] = compression
    write(folder / name, stored)
    entry = dict(described, samples=COUNT,
                 zip_data={"basename": name, "bytes": len(stored), "hashes": {}} if packed else None,
                 raw_data={"basename": "shard.00000.mds", "bytes": len(shard), "hashes": {}})
    write(folder / "index.json", json.dumps({"shards": [entry], "version": 2}).encode())
    return folder


def litdata(folder):
    formats = {"weight": "float", "seen": "bool", "flat": "no_header_numpy:4", "array": "numpy", "image": "png", "text": "str"}
    leaf = {"type": None, "context": None, "children_spec": []}
    spec = [1, {"type": "builtins.dict", "context": json.dumps(list(formats)), "children_spec": [leaf] * len(formats)}]
    samples = []
    for i in range(COUNT):
        array = struct.pack("<IIII", 1, 2, 2, 1) + struct.pack("<2f", i, 0.5)  # float32, two dimensions of 2 and 1
        leaves = (struct.pack("<d", i), b"\1", bytes((i, 2)), array, png(i), f"text {i}".encode())
        samples.append(struct.pack(f"<{len(leaves)}I", *map(len, leaves)) + b"".join(leaves))
    begin = 4 + 4 * (COUNT + 1)
    offsets = [begin + sum(map(len, samples[:i])) for i in range(COUNT + 1)]
    chunk = struct.pack(f"<I{COUNT + 1}I", COUNT, *offsets) + b"".join(samples)
    write(folder / "chunk-0-0.bin", chunk)
    config = {"data_format": list(formats.values()), "data_spec": json.dumps(spec), "item_loader": "PyTreeLoader"}
    entry = {"chunk_bytes": len(chunk), "chunk_size": COUNT, "filename": "chunk-0-0.bin"}
    write(folder / "index.json", json.dumps({"chunks": [entry], "config": config}).encode())
    return folder


def ffcv(path):
    field = (b"\x01label".ljust(17, b"\0")).ljust(1041, b"\0")
    end = 24 + 1041 + 8 * COUNT
    head = struct.pack("<HHIQQ", 2, 1, 1 << 21, COUNT, end)
    return write(path, head + field + b"".join(struct.pack("<q", i) for i in range(COUNT)))


def datasets(root):
    """Name, path, format, fields with types, further options, and what their expressions need to read."""
    tar_shard(root / "tar/train-0.tar", range(3))
    tar_shard(root / "tar/train-1.tar", range(3, COUNT))
    tar_fields = {"png": "png", "cls": "integer", "txt": "text", "json": "json", "npy": "npy float"}
    yield root / "tar", "webdataset", tar_fields, []
    tar_shard(root / "plain.tar", range(COUNT))
    yield write(root / "packed/all.tar.gz", gzip.compress((root / "plain.tar").read_bytes())), "webdataset", tar_fields, []
    mds_fields = {"image": "png", "label": "int", "name": "str"}
    yield mds(root / "mds"), "mds", mds_fields, []
    for packed in (("gz", "gz", gzip.compress), ("bz2", "bz2", bz2.compress), ("br", "br", brotli),
                   ("snappy", "snappy", snappy)):
        yield mds(root / f"mds_{packed[0]}", packed), "mds", mds_fields, []
    yield (litdata(root / "litdata"), "litdata", {"weight": "float64", "seen": "uint8", "flat": "no_header_numpy:4",
                                                  "array": "numpy", "image": "bytes", "text": "str"}, [])
    yield ffcv(root / "numbers.beton"), "ffcv", {"label": "int64"}, []
    rows = bytes(COUNT * 16 * 16)
    yield write(root / "rows.npy", npy("|u1", (COUNT, 16, 16), rows)), "npy_rows", {"": "std::uint8_t (16, 16)"}, []
    with zipfile.ZipFile(root / "two.npz", "w") as out:
        out.writestr("a.npy", npy("<f4", (COUNT, 2), bytes(8 * COUNT)))
        out.writestr("b.npy", npy("<i8", (3,), bytes(24)))
    yield root / "two.npz", "npz_rows", {"": "float (2,)"}, ["--column", "a"]
    tensors = json.dumps({"x": {"dtype": "F64", "shape": [COUNT, 2], "data_offsets": [0, 16 * COUNT]}}).encode()
    yield (write(root / "one.safetensors", struct.pack("<Q", len(tensors)) + tensors + bytes(16 * COUNT)),
           "safetensors_rows", {"": "double (2,)"}, ["--column", "x"])
    with zipfile.ZipFile(root / "single.npz", "w") as out:
        out.writestr("only.npy", npy("<f4", (COUNT, 2), bytes(8 * COUNT)))
    yield root / "single.npz", "npz_rows", {"": "float (2,)"}, []
    yield (write(root / "again.safetensors", (root / "one.safetensors").read_bytes()), "safetensors_rows",
           {"": "double (2,)"}, [])
    # Patterns that the names are would match other files, and most files beside the rows are of another kind.
    tar_shard(root / "br{0..1}ace/train-0.tar", range(3))
    tar_shard(root / "br{0..1}ace/train-1.tar", range(3, COUNT))
    yield root / "br{0..1}ace", "webdataset", tar_fields, []
    tar_shard(root / "a::b/[all].tar", range(COUNT))
    yield root / "a::b", "webdataset", tar_fields, []
    write(root / "st[a]r/x?.tar.gz", gzip.compress((root / "plain.tar").read_bytes()))
    yield root / "st[a]r", "webdataset", tar_fields, []
    for name in ("a.flac", "b.flac", "c.flac"):
        write(root / "sounds" / name, b"fLaC")
    write(root / "sounds/0.npy", npy("|u1", (COUNT, 16, 16), bytes(COUNT * 256)))
    yield root / "sounds", "npy_rows", {"": "std::uint8_t (16, 16)"}, []
    idx = struct.pack(">IIII", 0x803, COUNT, 8, 8) + bytes(COUNT * 64)
    yield write(root / "digits-idx3-ubyte", idx), "idx", {"": "std::uint8_t (8, 8)"}, []
    yield write(root / "digits.gz", gzip.compress(idx)), "idx_gz", {"": "std::uint8_t (8, 8)"}, []
    lines = b"".join(b'{"text": "line", "n": 1}\n' for _ in range(COUNT))
    yield write(root / "lines.jsonl", lines), "lines", {"n": "std::int64_t", "text": "std::string"}, []
    tokens = struct.pack("<III", 20240520, 1, 1024 * COUNT + 1).ljust(1024, b"\0") + bytes(2 * (1024 * COUNT + 1))
    yield write(root / "llmc.bin", tokens), "tokens", {"": "std::uint16_t (1025,)"}, []
    count = 1024 * COUNT + 1
    write(root / "corpus.bin", bytes(4 * count))
    write(root / "corpus.idx", b"MMIDIDX\0\0" + struct.pack("<QBQQIQQQ", 1, 4, 1, 2, count, 0, 0, 1))
    yield root / "corpus", "tokens", {"": "std::int32_t (1025,)"}, []
    for i in range(COUNT):
        write(root / f"photos/{'cat' if i % 2 else 'dog'}/{i}.png", png(i))
    yield root / "photos", "directory", {"bytes": "png", "label": "std::int64_t"}, []
    for name in ("gif_plain.gif", "avif_420.avif", "tiff_gray.tif"):
        kind, ending = name.split("_")[0], name.split(".")[1]
        for i in range(COUNT):
            write(root / f"{kind}s/{'cat' if i % 2 else 'dog'}/{i}.{ending}", (IMAGES / name).read_bytes())
        yield root / f"{kind}s", "directory", {"bytes": kind, "label": "std::int64_t"}, []
    records = b""
    for i in range(COUNT):
        payload = example(image=png(i), label=i, weight=0.5)
        size = struct.pack("<Q", len(payload))
        records += size + masked_crc(size) + payload + masked_crc(payload)
    yield (write(root / "examples.tfrecord", records), "tfrecord",
           {"image": "ps::bytes", "label": "std::int64_t", "weight": "float"}, [])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("inspect")
    options.add_argument("--compiler")
    options.add_argument("--compiled", help="the library penstock::compiled, if there is one")
    options.add_argument("--include")
    options = options.parse_args()
    faults = []

    def run(*arguments):
        return subprocess.run([options.inspect, *map(str, arguments)], capture_output=True, check=False, timeout=120)

    def expect(right, what):
        if not right:
            faults.append(what)

    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock_inspect_"))
    try:
        headers, body, compressed = set(), [], []
        for path, name, fields, more in datasets(folder):
            before = sorted(folder.rglob("*"))
            done = run(path, "--as", "json", *more)
            if done.returncode != 0:
                faults.append(f"{path}: status {done.returncode}: {done.stderr.decode()}")
                continue
            expect(sorted(folder.rglob("*")) == before, f"{path}: left files behind")
            found = json.loads(done.stdout)
            expect(found["format"] == name, f"{path}: format {found['format']}, not {name}")
            expect(found["samples"] == COUNT, f"{path}: {found['samples']} samples")
            said = {one["name"]: one["type"] for one in found["fields"]}
            expect(said == fields, f"{path}: fields {said}, not {fields}")
            expect(len(found["rows"]) == 3, f"{path}: {len(found['rows'])} rows")
            expect(found["expression"] in run(path, *more).stdout.decode(), f"{path}: no expression in the text")
            headers |= set(found["headers"])
            body.append(f"  {{\n    {found['expression']}\n    std::uint64_t count = 0;\n"
                        f"    for (auto&& one : samples.open()) {{ static_cast<void>(one); ++count; }}\n"
                        f"    if (count != {COUNT}) return {len(body) + 1};\n  }}\n")

        for place, more in (("tar", []), ("rows.npy", []), ("mds", ["--column", "image"]), ("photos", []), ("gifs", []),
                            ("avifs", []), ("tiffs", [])):
            sheet = folder / "sheet.png"
            done = run(folder / place, "--sheet", sheet, "--size", 16, "--columns", 3, *more)
            expect(done.returncode == 0, f"--sheet of {place}: {done.stderr.decode()}")
            size = struct.unpack(">II", sheet.read_bytes()[16:24]) if sheet.exists() else None
            expect(size == (3 * 20 + 4, 2 * 38 + 4), f"--sheet of {place}: {size}")
            sheet.unlink(missing_ok=True)

        write(folder / "hostile.jsonl", b'{"\\u001b[2J": "\\u001b[31m\\u202e\\n"}\n{"a": 1}\n')
        done = run(folder / "hostile.jsonl")
        expect(done.returncode == 0 and b"\x1b" not in done.stdout and "\u202e" not in done.stdout.decode(),
               f"hostile text: {done.stdout!r} {done.stderr!r}")

        write(folder / "some/0.png", png(0))
        write(folder / "some/1.png", png(1)[:60])
        done = run(folder / "some", "--sheet", folder / "some.png")
        expect(done.returncode == 1 and (folder / "some.png").exists() and
               b"1 picture cannot be drawn; picture 1: " in done.stdout, f"a damaged picture: {done.stdout!r}")

        write(folder / "types.jsonl", b'{"n": 1, "m": 1, "t": "a", "u": 18446744073709551615}\n'
              b'{"n": 0.5, "m": "x", "t": null, "u": 18446744073709551615}\n')
        found = json.loads(run(folder / "types.jsonl", "--as", "json").stdout)
        said = {one["name"]: one["type"] for one in found["fields"]}
        expect(said == {"n": "double", "m": "mixed", "t": "mixed", "u": "number beyond std::int64_t"}, f"types of lines: {said}")

        write(folder / "deep.jsonl", (b'{"a":' * 200000 + b"1" + b"}" * 200000 + b"\n") * 2)
        done = run(folder / "deep.jsonl")
        expect(done.returncode == 0 and b"nested deeply" in done.stdout, f"deep JSON: {done.returncode} {done.stderr!r}")

        named = folder / "\u009b31m \u202e ??/ \n.npy"
        write(named, (folder / "rows.npy").read_bytes())
        done = run(named)
        shown = r"\302\23331m \342\200\256 ?\?/ \012.npy"
        expect(done.returncode == 0 and shown in done.stdout.decode() and "\u009b" not in done.stdout.decode()
               and "\u202e" not in done.stdout.decode(), f"a hostile name: {done.stdout!r} {done.stderr!r}")

        write(folder / "table.parquet", b"PAR1" + bytes(40) + b"PAR1")
        (folder / "delta" / "_delta_log").mkdir(parents=True)
        (folder / "empty").mkdir()
        write(folder / "both/a.npy", (folder / "rows.npy").read_bytes())
        write(folder / "both/b.tar", (folder / "plain.tar").read_bytes())
        for arguments, said in (([folder / "empty"], "no dataset is recognised here; found nothing"),
                                ([folder / "both"], "this can be read as webdataset and as npy_rows"),
                                ([folder / "nowhere"], "usage: inspect PATH"),
                                ([folder / "two.npz"], "has the arrays a, b: name one"),
                                (["s3://bucket/a.tar"], "dataset(s3(url))"),
                                ([folder / "table.parquet"], "a Parquet file, which inspect_tables reads: inspect_tables"),
                                ([folder / "delta"], "a table of Delta Lake, which inspect_tables reads"),
                                ([], "a path is missing; usage: inspect PATH"),
                                ([folder / "tar", "--as", "xml"], "--as is text or json"),
                                ([folder / "lines.jsonl", "--sheet", "x.png"], "no column of images was found")):
            done = run(*arguments)
            expect(done.returncode == 1 and said in done.stderr.decode(),
                   f"{arguments}: {done.returncode} {done.stderr!r}")

        if options.compiler:
            program = folder / "read.cpp"
            includes = "".join(f"#include <{one}>\n" for one in sorted(headers))
            program.write_text(f"{includes}#include <cstdint>\nnamespace ps = penstock;\nint main() {{\n{''.join(body)}"
                               "  return 0;\n}\n")
            packages = ["libisal", "libdeflate", "zlib", "libjpeg", "spng", "libwebp", "libavif", "libtiff-4", "libbrotlidec",
                        "simdjson"]
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", *packages], capture_output=True, text=True, check=True)
            library = ["-DPENSTOCK_COMPILED", options.compiled] if options.compiled else []
            command = [*shlex.split(options.compiler), "-std=c++20", "-O0", f"-I{options.include}", str(program), *library, "-o",
                       str(folder / "read"), *shlex.split(flags.stdout), "-lgif", "-lbz2", "-lsnappy", "-lpthread"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=540)
            expect(done.returncode == 0, f"the expressions do not compile:\n{done.stderr[:4000]}\n{program.read_text()}")
            if done.returncode == 0:
                done = subprocess.run([folder / "read"], capture_output=True, text=True, check=False, timeout=120)
                expect(done.returncode == 0,
                       f"expression {done.returncode} reads other samples: {done.stderr}\n{program.read_text()}")
    finally:
        shutil.rmtree(folder)
    print("\n".join(faults) or "inspect: each format is recognised, and each expression reads it")
    return 1 if faults else 0


sys.exit(main())
