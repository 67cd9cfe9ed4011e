#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sound_rate.py soundfile|torchaudio|torchcodec TASK FOLDER: milliseconds of processor time for each sound of a folder,
and how many samples came out. A task is EXTENSION.RATE.BEGIN.SECONDS, as flac.16000.20.5: so many seconds from a time on, or the
whole sound if SECONDS is 0, at that rate.

Each is used as its documentation advises for numpy or tensors of float32. All sounds once without a clock, and then three
times with one, of which the fastest counts."""

import os
import pathlib
import sys
import time

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
LIBRARY, TASK, FOLDER = sys.argv[1:4]
EXTENSION, *numbers = TASK.split(".")
RATE, BEGIN, SECONDS = map(int, numbers)
FILES = sorted(str(path) for path in pathlib.Path(FOLDER).glob(f"*.{EXTENSION}"))


def with_soundfile():
    import soundfile
    import soxr

    def sound(path):
        if SECONDS == 0:
            samples, rate = soundfile.read(path, dtype="float32")
        else:
            with soundfile.SoundFile(path) as file:
                rate = file.samplerate
                file.seek(BEGIN * rate)
                samples = file.read(SECONDS * rate, dtype="float32")
        return samples if rate == RATE else soxr.resample(samples, rate, RATE)

    return sound, len


def with_torchaudio():
    import torch
    import torchaudio
    from torchcodec.decoders import AudioDecoder  # which torchaudio.load calls

    torch.set_num_threads(1)
    resamplers = {}

    def sound(path):
        if SECONDS == 0:
            samples, rate = torchaudio.load(path)
        else:
            rate = AudioDecoder(path).metadata.sample_rate
            samples, rate = torchaudio.load(path, frame_offset=BEGIN * rate, num_frames=SECONDS * rate)
        if rate == RATE:
            return samples
        if rate not in resamplers:
            resamplers[rate] = torchaudio.transforms.Resample(rate, RATE)
        return resamplers[rate](samples)

    return sound, lambda samples: samples.shape[1]


def with_torchcodec():
    import torch
    from torchcodec.decoders import AudioDecoder

    torch.set_num_threads(1)

    def sound(path):
        decoder = AudioDecoder(path, sample_rate=RATE)
        if SECONDS == 0:
            return decoder.get_all_samples().data
        return decoder.get_samples_played_in_range(BEGIN, BEGIN + SECONDS).data

    return sound, lambda samples: samples.shape[1]


def main():
    sound, length = {"soundfile": with_soundfile, "torchaudio": with_torchaudio, "torchcodec": with_torchcodec}[LIBRARY]()
    best = None
    for _ in range(4):
        begin = time.process_time()
        samples = sum(length(sound(path)) for path in FILES)
        taken = time.process_time() - begin
        best = taken if best is None else min(best, taken)
    print(best / len(FILES) * 1e3, samples)


if __name__ == "__main__":
    main()
