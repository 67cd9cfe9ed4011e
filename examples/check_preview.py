#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looks at the pixels of what `preview` draws of films and sounds.

check_preview.py <preview> [films] [sounds]: the kinds that it is built for
"""

import array
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

from drawn_shards import npy, write_shard

SIZE = 96  # of the pictures; the numbers below are those of sound_picture.hpp for this size
LEFT, TOP = 4, 22  # of the first picture on a sheet
AXIS, WAVE, MEL, MEL_END = LEFT + 40, TOP, TOP + 28, TOP + 84
WIDTH = 2 * SIZE - 40
DARK, YELLOW, RED = (68, 1, 84), (253, 231, 37), (230, 0, 0)

preview = str(pathlib.Path(sys.argv[1]).resolve())
kinds = sys.argv[2:]


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


def pixels_of(png):
    """Rows of pixels (red, green, blue) of a PNG that is not interlaced."""
    width, height = struct.unpack(">II", png[16:24])
    data, at = b"", 8
    while at < len(png):
        length = int.from_bytes(png[at:at + 4], "big")
        if png[at + 4:at + 8] == b"IDAT":
            data += png[at + 8:at + 8 + length]
        at += 12 + length
    data, stride, rows = zlib.decompress(data), 3 * width, []
    above = bytearray(stride)
    for y in range(height):
        kind, row = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride if kind else 0):
            a, b, c = row[i - 3] if i > 2 else 0, above[i], above[i - 3] if i > 2 else 0
            nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            row[i] = (row[i] + (0, a, b, (a + b) // 2, nearest)[kind]) & 255
        rows.append([tuple(row[x:x + 3]) for x in range(0, stride, 3)])
        above = row
    return rows


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)

    def run(members, *options, expect=0):
        """The pixels, or the error, for a shard of one sample."""
        write_shard(folder / "one.tar", [("one", members)])
        out = folder / "sheet.png"
        command = [preview, "--shards", folder / "one.tar", "--out", out, "--size", SIZE, *options]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode != expect:
            sys.exit(f"{command} gave {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
        return pixels_of(out.read_bytes()) if expect == 0 else done.stderr

    def wav(rate, samples):
        body = array.array("f", samples)
        if sys.byteorder == "big":
            body.byteswap()
        head = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 3, 1, rate, 4 * rate, 4, 32)
        data = b"data" + struct.pack("<I", 4 * len(body)) + body.tobytes()
        return b"RIFF" + struct.pack("<I", len(head) + len(data)) + head + data

    check("images (jpg;jpeg;" in run({"bin": b""}, expect=1), "samples of nothing that is shown are an error")

    if "sounds" in kinds:
        def columns(sheet, top, end):
            return list(zip(*(row[AXIS:AXIS + WIDTH] for row in sheet[top:end])))

        def tone(hertz, rate, count):
            return [0.5 * math.sin(2 * math.pi * hertz * i / rate) for i in range(count)]

        def row_of(hertz, rate):
            return (MEL_END - MEL) * (1 - math.log(1 + hertz / 700) / math.log(1 + rate / 2 / 700))

        sheet = run({"wav": wav(16000, tone(440, 16000, 16000)), "txt": b"hello\nworld"})
        check(len(sheet) == TOP + SIZE + 22 and len(sheet[0]) == 2 * (2 * SIZE + 4) + 8, "the sheet's size")
        rows = [max(range(MEL_END - MEL), key=lambda y: column[y][1]) for column in columns(sheet, MEL, MEL_END)]
        check(max(abs(row - row_of(440, 16000)) for row in rows) <= 1.5, "440 Hz is in its row")
        wave = columns(sheet, WAVE, WAVE + SIZE // 4)
        check(all(pixel == (31, 97, 165) for column in wave[1:] for pixel in column), "a tone fills its waveform")

        sheet = run({"wav": wav(8000, [0.0] * 8000)})
        check(all(pixel == DARK for column in columns(sheet, MEL, MEL_END) for pixel in column), "silence is dark")
        wave = columns(sheet, WAVE, WAVE + SIZE // 4)
        check(all(sum(pixel == (31, 97, 165) for pixel in column) == 1 for column in wave), "silence is a line")

        samples = tone(1000, 8000, 8000)
        samples[4000] = math.nan
        sheet = run({"wav": wav(8000, samples)})
        for top, end, most in ((WAVE, WAVE + SIZE // 4, 2), (MEL, MEL_END, 8)):
            red = [x for x, column in enumerate(columns(sheet, top, end)) if RED in column]
            check(red and len(red) <= most and abs(red[0] + red[-1] - WIDTH) <= 6, "a sample that is no number is red")

        sheet = run({"wav": wav(48000, [0.25])})
        check(columns(sheet, WAVE, WAVE + 1)[0][0] == (31, 97, 165), "one sample is shown")
        sheet = run({"wav": wav(8000, [0.0] * 2400000 + tone(1000, 8000, 2400000))})
        brightest = [max(column, key=sum) for column in columns(sheet, MEL, MEL_END)]
        check(set(brightest[:WIDTH // 2 - 1]) == {DARK} and set(brightest[WIDTH // 2 + 1:]) == {YELLOW},
              "ten minutes, of which the second half is a tone")
        check("no samples" in run({"wav": wav(8000, [])}, expect=1), "an empty sound is an error")
        both = {"wav": wav(8000, [0.5] * 800), "npy": npy((8, 8, bytes(8 * 8 * 3)))}
        error = run(both, expect=1)
        check("images" in error and "sounds" in error and "write --show" in error, "samples of two kinds are an error")
        check(len(run(both, "--show", "sounds")[0]) == len(sheet[0]), "but for --show")

    if "films" in kinds and shutil.which("ffmpeg") is None:
        print("not tested: films, because there is no ffmpeg")
        sys.exit(1 if os.environ.get("CI") == "true" else 0)
    if "films" in kinds:
        colours = {"red": (255, 0, 0), "lime": (0, 255, 0), "blue": (0, 0, 255)}
        inputs = [word for name in colours
                  for word in ("-f", "lavfi", "-i", f"color={name}:size=64x48:rate=10:duration=1,format=bgr0")]
        film = folder / "film.mkv"
        subprocess.run(["ffmpeg", "-v", "error", *inputs, "-filter_complex", "concat=n=3", "-c:v", "ffv1", film],
                       check=True)
        sheet = run({"mkv": film.read_bytes(), "cls": b"1"}, "--frames", 3)
        check(len(sheet[0]) == 2 * (3 * SIZE + 4 + 4) + 8, "the sheet's size")
        for i, colour in enumerate(colours.values()):
            x = LEFT + i * (SIZE + 2)
            check({p for row in sheet[TOP:TOP + SIZE] for p in row[x:x + SIZE]} == {colour}, f"frame {i} of the strip")
        check("write --show" in run({"mkv": film.read_bytes()}, "--show", "songs", expect=1), "no such kind")
        check("--frames" in run({"mkv": film.read_bytes()}, "--frames", 0, expect=1), "no frames are refused")
        check("truncated" in run({"mkv": film.read_bytes()[:-100]}, expect=1), "a film that is cut is an error")
