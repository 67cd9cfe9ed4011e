#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""log_mel_rate.py KIND SAMPLES FEATURES    torchaudio on one thread: reads samples (float32) of 16 kHz and writes the features
                                         that it makes of them, then for each line of its input computes them once more and
                                         prints how many seconds of the processor that took

Kinds are whisper (the options of Whisper, by MelSpectrogram), kaldi (fbank with 80 filters) and mfcc (Kaldi's)."""

import sys
import time

import numpy
import torch
import torchaudio
from torchaudio.compliance import kaldi


def whisper():
    mel = torchaudio.transforms.MelSpectrogram(n_fft=400, hop_length=160, n_mels=80, mel_scale="slaney", norm="slaney")

    def made(sound):
        log = mel(sound)[:, :-1].clamp(min=1e-10).log10()
        return (torch.maximum(log, log.max() - 8) + 4) / 4

    return made


KINDS = {"whisper": whisper,
         "kaldi": lambda: lambda sound: kaldi.fbank(sound[None] * 32768, dither=0.0, num_mel_bins=80),
         "mfcc": lambda: lambda sound: kaldi.mfcc(sound[None] * 32768, dither=0.0)}


def main():
    kind, samples, features = sys.argv[1:]
    torch.set_num_threads(1)
    sound, make = torch.from_numpy(numpy.fromfile(samples, numpy.float32)), KINDS[kind]()
    with torch.inference_mode():
        make(sound).contiguous().numpy().tofile(features)
        for _ in sys.stdin:
            begin = time.thread_time()
            make(sound)
            print(time.thread_time() - begin, flush=True)


main()
