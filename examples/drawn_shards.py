# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small pictures and tar shards of them, made without any library: what the tests of the examples read.

A picture is (height, width, bytes), 8 bits each of red, green and blue.
"""

import gzip
import io
import struct
import tarfile
import zlib


def picture(width, height, label, source):
    """Label 0: a red disc, 1: red stripes, 2: a blue disc, 3: blue stripes; on gray noise."""
    gray = source.randrange(60, 160)
    bright = source.randrange(170, 250)
    colour = bytes((bright, 40, 40) if label < 2 else (40, 40, bright))
    x0, y0 = source.uniform(0.35, 0.65) * width, source.uniform(0.35, 0.65) * height
    radius = source.uniform(0.25, 0.4) * min(width, height)
    period = source.randrange(3, 6)
    pixels = bytearray()
    for y in range(height):
        for x in range(width):
            inside = (x - x0) ** 2 + (y - y0) ** 2 < radius ** 2
            if inside and (label % 2 == 0 or x // period % 2 == 0):
                pixels += colour
            else:
                pixels += bytes([gray + source.randrange(-30, 31)]) * 3
    return height, width, bytes(pixels)


def npy(image):
    height, width, pixels = image
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({height}, {width}, 3), }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + pixels


def png(image):
    height, width, pixels = image
    rows = b"".join(b"\0" + pixels[y * width * 3:(y + 1) * width * 3] for y in range(height))

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_shard(path, samples):
    """`samples`: pairs of a key and a dictionary from suffixes to bytes."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for key, members in samples:
            for suffix, content in members.items():
                entry = tarfile.TarInfo(f"{key}.{suffix}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))


def make_split(folder, split, count, source):
    """Ten classes of noise, each with a bright square at a place of its own."""
    images, labels = bytearray(), bytearray()
    for _ in range(count):
        label = source.randrange(10)
        image = bytearray(source.randrange(100) for _ in range(784))
        for row in range(4):
            at = (label // 5 * 12 + row + 4) * 28 + label % 5 * 5 + 1
            image[at:at + 4] = b"\xf0" * 4
        images += image
        labels.append(label)

    def write(name, head, body):
        with gzip.open(folder / f"{split}-{name}.gz", "wb", compresslevel=1) as file:
            file.write(head + body)

    write("images-idx3-ubyte", struct.pack(">IIII", 0x803, count, 28, 28), images)
    write("labels-idx1-ubyte", struct.pack(">II", 0x801, count), labels)
