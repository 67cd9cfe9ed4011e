#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/data/lhotse_shar: three cuts as Lhotse's SharWriter writes them, of sounds that are made here, and again by
the test that reads the folder.

    tools/shar_oracles.py            writes the folder
    tools/shar_oracles.py --check    makes it again, and fails if the folder has others, or Lhotse reads other samples of it

Needs lhotse and soundfile; a check without them is skipped with status 77."""

import gzip
import pathlib
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "lhotse_shar"
RATE, FRAMES = 8000, 600

try:
    import numpy
    import soundfile
    from lhotse import CutSet, MonoCut, MultiCut, Recording, SupervisionSegment
    from lhotse.shar import SharWriter
except ImportError as missing:
    print(f"shar_oracles: skipped, {missing}")
    sys.exit(77)


def sound(number):
    """Two channels: the test has the same function."""
    i, c = numpy.arange(FRAMES)[:, None], numpy.arange(2)[None]
    return ((i * 7 + c * 1000 + number * 333) % 4000 - 2000).astype(numpy.int16)


def cuts(folder):
    for number, (kind, channel) in enumerate(((MonoCut, 1), (MultiCut, [0, 1]), (MonoCut, 0))):
        path = f"{folder}/{number}.wav"
        soundfile.write(path, sound(number), RATE, subtype="PCM_16")
        recording = Recording.from_file(path, recording_id=f"recording-{number}")
        spoken = [SupervisionSegment(id=f"{number}-{part}", recording_id=recording.id, start=part * 0.01, duration=0.01,
                                     channel=channel, text=f"part {part} of {number}", speaker=f"speaker-{number}",
                                     custom={"snr": number + 0.5}) for part in range(number)]
        yield kind(id=f"chapter-1/cut.{number}", start=0.01, duration=0.05, channel=channel, recording=recording,
                   supervisions=spoken, custom={"topic": {"number": number}} if number else None)


def write(folder):
    with tempfile.TemporaryDirectory() as place, \
            SharWriter(str(folder), fields={"recording": "wav", "topic": "jsonl"}, shard_size=1000) as writer:
        for cut in cuts(place):
            writer.write(cut)


def content(folder):
    return {path.name: gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            for path in folder.iterdir()}


def main():
    if "--check" not in sys.argv[1:]:
        FOLDER.mkdir(parents=True, exist_ok=True)
        return write(FOLDER)
    with tempfile.TemporaryDirectory() as place:
        write(pathlib.Path(place))
        if content(pathlib.Path(place)) != content(FOLDER):
            sys.exit("shar_oracles: Lhotse writes another folder now")
    for number, cut in enumerate(CutSet.from_shar(in_dir=str(FOLDER))):
        wanted = sound(number).T[:, 80:480] / 32768
        if not numpy.array_equal(cut.load_audio(), wanted if number == 1 else wanted[1:] if number == 0 else wanted[:1]):
            sys.exit(f"shar_oracles: Lhotse reads other samples of {cut.id}")
    print("shar_oracles: 3 cuts")


if __name__ == "__main__":
    main()
