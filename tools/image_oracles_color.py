#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/image/oracles/color.inc: what torchvision makes of the colours of small images. The images are made
here, and again by the tests that read the file.

    tools/image_oracles_color.py            writes the file
    tools/image_oracles_color.py --check    makes the values again, and fails if the file has others

Needs the packages that image_peers.py names, which says what becomes of a check without them."""

import os
import sys

import image_peers

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(ROOT, "tests", "image", "oracles", "color.inc")

image_peers.require("image_oracles_color")

import numpy
import torch
import torchvision
from torchvision.transforms import functional as F

HEAD = [
    "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception",
    "// Written by tools/image_oracles_color.py: operation, two arguments, image (kind, width, height, channels, seed),",
    "// the channels of the result, and its bytes in the order of HWC.",
]
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def image(kind, width, height, channels, seed):
    """noise: all values; soft: 96 to 159; ramp: smooth; flat: one value. The tests have the same function."""
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
                elif kind == "ramp":
                    values[y, x, c] = (5 * x + 3 * y + 60 * c + seed) % 256
                else:
                    values[y, x, c] = 77
    return values


def operations():
    """(operation, its two arguments, its function on a tensor, the least width and height)"""
    yield "grayscale", (1, 0), lambda t: F.rgb_to_grayscale(t, 1), 1
    yield "grayscale", (3, 0), lambda t: F.rgb_to_grayscale(t, 3).contiguous(), 1
    for factor in (0.0, 0.3, 0.7, 1.0, 1.37, 3.0):
        yield "brightness", (factor, 0), lambda t: F.adjust_brightness(t, factor), 1
        yield "contrast", (factor, 0), lambda t: F.adjust_contrast(t, factor), 1
        yield "saturation", (factor, 0), lambda t: F.adjust_saturation(t, factor), 1
    for turn in (-0.5, -0.2, 0.0, 0.03, 0.25, 0.5):
        yield "hue", (turn, 0), lambda t: F.adjust_hue(t, turn), 1
    yield "invert", (0, 0), F.invert, 1
    for threshold in (0, 100, 127.5, 255):
        yield "solarize", (threshold, 0), lambda t: F.solarize(t, threshold), 1
    for bits in (0, 1, 4, 8):
        yield "posterize", (bits, 0), lambda t: F.posterize(t, bits), 1
    yield "autocontrast", (0, 0), F.autocontrast, 1
    yield "equalize", (0, 0), F.equalize, 1
    for factor in (0.0, 0.5, 1.0, 1.9, 5.0):
        yield "sharpness", (factor, 0), lambda t: F.adjust_sharpness(t, factor), 1
    for kernel, sigma in ((1, 1.0), (3, 0.5), (5, 1.1), (9, 2.0), (9, 30.0)):
        yield "gaussian_blur", (kernel, sigma), lambda t: F.gaussian_blur(t, [kernel, kernel], [sigma, sigma]), \
            kernel // 2 + 1
    yield "normalize", (0, 0), lambda t: F.normalize(t.to(torch.float32) / 255, MEAN, STD), 13


def cases():
    """The fields of a line."""
    seed = 0
    for operation, arguments, function, least in operations():
        for kind, width, height, channels in (("noise", 17, 13, 3), ("soft", 14, 9, 3), ("ramp", 16, 9, 3),
                                              ("noise", 11, 9, 1), ("soft", 30, 26, 1), ("flat", 3, 4, 3),
                                              ("noise", 1, 1, 3), ("noise", 2, 5, 3), ("noise", 3, 3, 1)):
            if min(width, height) < least or (width == 30 and operation not in ("equalize", "contrast")):
                continue
            seed += 1
            tensor = torch.from_numpy(image(kind, width, height, channels, seed)).permute(2, 0, 1).contiguous()
            if operation == "normalize" and channels == 1:
                continue
            if operation == "grayscale" and arguments[0] == 3 and channels == 1:
                result = tensor.expand(3, -1, -1)
            else:
                result = function(tensor)
            values = result.permute(1, 2, 0).contiguous().numpy()
            yield (operation, *arguments, kind, width, height, channels, seed, values.shape[2],
                   values.astype(values.dtype.newbyteorder("<")).tobytes().hex())


def line(case):
    operation, a, b, kind, width, height, channels, seed, result_channels, values = case
    return (f'{{"{operation}", {a}, {b}, "{kind}", {width}, {height}, {channels}, {seed}, {result_channels}, '
            f'"{values}"}},')


def main():
    made = HEAD + [line(case) for case in cases()]
    if "--check" not in sys.argv[1:]:
        os.makedirs(os.path.dirname(FILE), exist_ok=True)
        with open(FILE, "w", encoding="ascii") as out:
            out.write("\n".join(made) + "\n")
        print(f"image_oracles_color: {len(made) - len(HEAD)} cases, {os.path.getsize(FILE)} bytes")
        return 0
    with open(FILE, encoding="ascii") as shipped:
        lines = shipped.read().splitlines()
    wrong = 0 if len(lines) == len(made) else 1
    for old, new in zip(lines, made):
        same = old == new
        if not same and new.startswith(('{"gaussian_blur"', '{"normalize"')) and old.split('"')[:4] == new.split('"')[:4]:
            # another version may add in another order
            kind = numpy.uint8 if new.startswith('{"gaussian_blur"') else numpy.dtype("<f4")
            a, b = (numpy.frombuffer(bytes.fromhex(text.rsplit('"', 2)[1]), kind).astype(float) for text in (old, new))
            same = len(a) == len(b) and abs(a - b).max() <= (1 if kind is numpy.uint8 else 1e-5)
        if not same:
            wrong += 1
            print(f"image_oracles_color: other values than in the file: {new[:100]}")
    print(f"image_oracles_color: {len(made) - len(HEAD)} cases, {wrong} wrong (torchvision {torchvision.__version__})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
