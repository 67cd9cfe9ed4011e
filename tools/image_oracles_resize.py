#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/image/oracles/resize.inc: what Pillow and torchvision make of small images by resizing, cropping,
padding and flipping. The images are made here, and again by the test that reads the file.

    tools/image_oracles_resize.py            writes the file
    tools/image_oracles_resize.py --check    makes the values again, and fails if the file has others

Needs the packages that image_peers.py names, which says what becomes of a check without them."""

import os
import sys

import image_peers

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(ROOT, "tests", "image", "oracles", "resize.inc")

image_peers.require("image_oracles_resize")

import numpy
import torch
import torchvision
from PIL import Image
from PIL import __version__ as pillow_version
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

PIL_FILTER = {"bilinear": 2, "bicubic": 3, "area": 4}  # Image.BILINEAR, BICUBIC, BOX, in all versions
PIL_MODE = {1: "L", 3: "RGB", 4: "CMYK"}  # CMYK: four channels of which none is special
TORCH_MODE = {
    "nearest": InterpolationMode.NEAREST,
    "bilinear": InterpolationMode.BILINEAR,
    "bicubic": InterpolationMode.BICUBIC,
}


def image(kind, width, height, channels, seed):
    """noise: all values; soft: 96 to 159; ramp: no random numbers. The test has the same function."""
    state = seed
    values = numpy.zeros((height, width, channels), numpy.uint8)
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                state = (state * 1664525 + 1013904223) % 2**32
                if kind == "noise":
                    values[y, x, c] = state >> 24
                elif kind == "soft":
                    values[y, x, c] = 96 + (state >> 26)
                else:
                    values[y, x, c] = (5 * x + 3 * y + 60 * c + seed) % 256
    return values


def by_pillow(pixels, how, height, width):
    channels = pixels.shape[2]
    source = Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels, PIL_MODE[channels])
    return numpy.array(source.resize((width, height), PIL_FILTER[how])).reshape(height, width, channels)


def by_torch(function, pixels):
    tensor = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
    return function(tensor).permute(1, 2, 0).contiguous().numpy()


def cases():
    """(operation, arguments, kind, width, height, channels, seed, most levels apart, values)"""
    seed = 0

    def one(operation, arguments, kind, size, levels, function):
        nonlocal seed
        seed += 1
        pixels = image(kind, *size, seed)
        return operation, arguments, kind, *size, seed, levels, function(pixels)

    # Pillow, byte for byte
    for how in ("bilinear", "bicubic", "area"):
        for kind, size, to in (
            ("noise", (33, 25, 3), (14, 15)),
            ("noise", (17, 40, 1), (11, 31)),
            ("ramp", (40, 30, 3), (7, 13)),
            ("noise", (9, 7, 3), (16, 20)),
            ("noise", (21, 15, 4), (8, 12)),
            ("noise", (150, 90, 1), (4, 5)),
            ("noise", (1, 1, 3), (3, 2)),
            ("noise", (12, 1, 3), (2, 5)),
            ("noise", (24, 18, 3), (18, 11)),
            ("noise", (24, 18, 3), (9, 24)),
        ):
            yield one("pillow", (how, *to), kind, size, 0, lambda p: by_pillow(p, how, *to))
    # torchvision
    for how in ("bilinear", "bicubic"):
        for kind, size, to in (("noise", (33, 25, 3), (14, 15)), ("ramp", (30, 40, 1), (20, 11)),
                               ("soft", (9, 11, 4), (14, 15))):
            yield one("antialiased", (how, *to), kind, size, 2 if how == "bicubic" else 1, lambda p: by_torch(
                lambda t: F.resize(t, list(to), TORCH_MODE[how], antialias=True), p))
    for how in ("nearest", "bilinear", "bicubic"):
        for size, to in (((33, 25, 3), (14, 15)), ((9, 11, 1), (23, 20)), ((30, 7, 4), (13, 9)), ((1, 2, 3), (3, 5)),
                         ((100, 3, 1), (3, 37))):
            kind = "soft" if how == "bicubic" else "noise"
            levels = {"nearest": 0, "bilinear": 1, "bicubic": 2}[how]
            yield one("plain", (how, *to), kind, size, levels, lambda p: by_torch(
                lambda t: F.resize(t, list(to), TORCH_MODE[how], antialias=False), p))
    for size, shorter, longest in (((31, 20, 3), 9, 0), ((20, 31, 3), 9, 0), ((7, 40, 1), 5, 0), ((7, 40, 1), 5, 20),
                                   ((40, 13, 1), 12, 24), ((12, 12, 3), 7, 0)):
        yield one("shorter", (shorter, longest), "noise", size, 1, lambda p: by_torch(
            lambda t: F.resize(t, [shorter], antialias=True, max_size=longest or None), p))
    for size, to in (((13, 10, 3), (6, 7)), ((13, 10, 3), (7, 6)), ((14, 11, 1), (4, 5)), ((5, 6, 3), (9, 8)),
                     ((5, 16, 3), (9, 8)), ((15, 6, 1), (9, 8)), ((5, 6, 1), (6, 5)), ((8, 9, 3), (9, 8))):
        yield one("center_crop", to, "noise", size, 0, lambda p: by_torch(lambda t: F.center_crop(t, list(to)), p))
    for x, y, width, height in ((0, 0, 5, 4), (3, 2, 8, 7), (10, 8, 1, 1)):
        yield one("crop", (x, y, width, height), "noise", (11, 9, 3), 0,
                  lambda p: by_torch(lambda t: F.crop(t, y, x, height, width), p))
    for mode in ("constant", "edge", "reflect", "symmetric"):
        for sides in ((2, 2, 2, 2), (3, 1, 3, 1), (0, 4, 5, 2)):
            fill = 9 if mode == "constant" else 0
            yield one("pad", (mode, fill, *sides), "noise", (7, 6, 3), 0,
                      lambda p: by_torch(lambda t: F.pad(t, list(sides), fill, mode), p))
    for channels in (1, 3, 4):
        yield one("hflip", (), "noise", (9, 5, channels), 0, lambda p: by_torch(F.hflip, p))
        yield one("vflip", (), "noise", (9, 5, channels), 0, lambda p: by_torch(F.vflip, p))


def line(case):
    operation, arguments, kind, width, height, channels, seed, levels, values = case
    return (f'{{"{operation}", "{" ".join(map(str, arguments))}", "{kind}", {width}, {height}, {channels}, {seed}, '
            f'{levels}, {values.shape[1]}, {values.shape[0]}, "{values.tobytes().hex()}"}},')


def main():
    head = [
        "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception",
        "// Written by tools/image_oracles_resize.py: operation, arguments, image (kind, width, height, channels, seed),",
        "// how many levels the result may be away, its width and height, and its values in the order of HWC.",
    ]
    made = list(cases())
    if "--check" not in sys.argv[1:]:
        os.makedirs(os.path.dirname(FILE), exist_ok=True)
        with open(FILE, "w", encoding="ascii") as out:
            out.write("\n".join(head + [line(case) for case in made]) + "\n")
        print(f"image_oracles_resize: {len(made)} cases, {os.path.getsize(FILE)} bytes")
        return 0
    with open(FILE, encoding="ascii") as shipped:
        lines = shipped.read().splitlines()[len(head):]
    wrong = 0 if len(lines) == len(made) else 1
    for old, case in zip(lines, made):
        new = line(case)
        same = old == new
        if not same and old.rsplit('"', 2)[0] == new.rsplit('"', 2)[0] and case[0] in (
                "pillow", "antialiased", "plain", "shorter"):
            # another version may round otherwise
            a, b = (numpy.frombuffer(bytes.fromhex(text.rsplit('"', 2)[1]), numpy.uint8).astype(int)
                    for text in (old, new))
            same = len(a) == len(b) and abs(a - b).max() <= 1
        if not same:
            wrong += 1
            print(f"image_oracles_resize: other values than in the file: {new.rsplit(',', 2)[0]}")
    print(f"image_oracles_resize: {len(made)} cases, {wrong} wrong (Pillow {pillow_version}, torchvision "
          f"{torchvision.__version__})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
