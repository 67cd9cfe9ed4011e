#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/image/oracles/warp.inc: what torchvision makes of small images by turning, shearing, moving,
erasing, and with the operations of RandAugment and TrivialAugmentWide. The images are made here, and again by
the tests that read the file.

    tools/image_oracles_warp.py            writes the file
    tools/image_oracles_warp.py --check    makes the values again, and fails if the file has others

Needs the packages that image_peers.py names, which says what becomes of a check without them."""

import os
import sys

import image_peers

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(ROOT, "tests", "image", "oracles", "warp.inc")

image_peers.require("image_oracles_warp")

import numpy
import torch
import torchvision
from torchvision.transforms import InterpolationMode
from torchvision.transforms import autoaugment
from torchvision.transforms import functional as F

MODES = {"nearest": InterpolationMode.NEAREST, "bilinear": InterpolationMode.BILINEAR}
FILL = (10, 200, 90)


def image(width, height, channels, seed):
    """The tests have the same function."""
    state = seed
    values = numpy.zeros((height, width, channels), numpy.uint8)
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                state = (state * 1664525 + 1013904223) % 2**32
                values[y, x, c] = state >> 24
    return torch.from_numpy(values).permute(2, 0, 1).contiguous()


def line(kind, how, size, numbers, expand, filled, result):
    width, height, channels = size
    made = result.permute(1, 2, 0).contiguous().numpy()
    fill = ", ".join(str(v if filled else 0) for v in FILL[:channels])
    return (f'{{"{kind}", interpolation::{how}, {width}, {height}, {channels}, '
            f'{{{", ".join(repr(float(n)) for n in numbers)}}}, {str(expand).lower()}, {{{fill}}}, '
            f'{made.shape[1]}, {made.shape[0]},\n "{made.tobytes().hex()}"}},')


def lines():
    sizes = ((19, 14, 3), (12, 12, 1), (9, 20, 3), (1, 1, 3), (1, 7, 1))
    for size in sizes:
        width, height, channels = size
        pixels = image(width, height, channels, width)
        for how, mode in MODES.items():
            for filled, angle, expand in ((False, 30, False), (True, -47.5, True), (True, 90, True),
                                          (False, 180, False), (True, 5, False)):
                fill = [float(v if filled else 0) for v in FILL[:channels]]
                made = F.rotate(pixels, angle, mode, expand, None, fill)
                yield line("rotate", how, size, [angle, 0, 0, 1, 0, 0], expand, filled, made)
            # degrees, translate x and y, scale, shear x and y
            for filled, numbers in ((False, [20, 3, -2, 1.2, 0, 0]), (True, [0, -4, 1, 1, 0, 0]),
                                    (True, [-10, 0, 0, 0.7, 15, -8]), (False, [0, 0, 0, 1, 30, 0]),
                                    (True, [75, 1, 1, 2, 0, 20])):
                fill = [float(v if filled else 0) for v in FILL[:channels]]
                degrees, x, y, scale, shear_x, shear_y = numbers
                made = F.affine(pixels, degrees, [x, y], scale, [shear_x, shear_y], mode, fill)
                yield line("affine", how, size, numbers, False, filled, made)
        if width > 1:
            value = torch.tensor(FILL[:channels], dtype=torch.uint8)[:, None, None]
            made = F.erase(pixels, 2, 3, 5, 4, value)  # y, x, height, width
            yield line("erase", "nearest", size, [3, 2, 4, 5, 0, 0], False, True, made)


    # the number of the operation in torchvision's order, and its magnitude
    for size in ((19, 14, 3), (12, 9, 1)):
        pixels = image(*size, size[0])
        trivial = autoaugment.TrivialAugmentWide()._augmentation_space(31)
        rand = autoaugment.RandAugment()._augmentation_space(31, (size[1], size[0]))
        for number, (name, (magnitudes, signed)) in enumerate(trivial.items()):
            for space, chosen, sign in ((trivial, 7, -1 if signed else 1), (rand, 9, 1)):
                magnitudes = space[name][0]
                magnitude = sign * float(magnitudes[chosen]) if magnitudes.ndim > 0 else 0.0
                made = autoaugment._apply_op(pixels, name, magnitude, MODES["nearest"], None)
                numbers = [number, magnitude, chosen, 0, 0, 0]
                yield line("augment", "nearest", size, numbers, False, False, made)


def main():
    version = torchvision.__version__.split("a")[0]
    text = "\n".join((f"// Made by tools/image_oracles_warp.py with torchvision {version}.", *lines(), ""))
    if "--check" not in sys.argv[1:]:
        os.makedirs(os.path.dirname(FILE), exist_ok=True)
        with open(FILE, "w", encoding="utf-8") as file:
            file.write(text)
        print(f"image_oracles_warp: {len(text)} bytes written")
        return 0
    with open(FILE, encoding="utf-8") as file:
        kept = file.read()
    if kept.split("\n")[1:] == text.split("\n")[1:]:
        print("image_oracles_warp: the file is what torchvision makes")
        return 0
    wrong = 0 if kept.count("\n") == text.count("\n") else 1
    for old, new in zip(kept.split("\n")[1:], text.split("\n")[1:]):
        same = old == new
        if not same and old.startswith(' "') and new.startswith(' "'):
            # another processor may add in another order
            a, b = (numpy.frombuffer(bytes.fromhex(line.split('"')[1]), numpy.uint8).astype(int) for line in (old, new))
            same = len(a) == len(b) and abs(a - b).max() <= 1
        if not same:
            wrong += 1
            print(f"image_oracles_warp: other values than in the file: {new[:100]}")
    print(f"image_oracles_warp: {wrong} wrong (torchvision {torchvision.__version__})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
