#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/audio/oracles/features.inc: what torchaudio, its kaldi functions and openai-whisper make of sounds that are
made here, and again by the tests that read the file.

    tools/audio_oracles.py            writes the file
    tools/audio_oracles.py --check    makes the values again, and fails if the file has others

Needs torchaudio and openai-whisper; a check without them is skipped with status 77. Values are compared within 2e-5, because
transforms round differently on other processors."""

import math
import pathlib
import re
import struct
import sys

FILE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "audio" / "oracles" / "features.inc"

try:
    import torch
    import torchaudio
    import whisper
    from torchaudio.compliance import kaldi
except ImportError as missing:
    print(f"audio_oracles: skipped, {missing}")
    sys.exit(77)

from importlib.metadata import version

torch.set_num_threads(1)


def sound(samples, seed):
    """Three tones, and noise that is loud in places: the tests have the same function."""
    state, made = seed, []
    for i in range(samples):
        state = (state * 1664525 + 1013904223) % 2**32
        noise = (state >> 8) / 2**23 - 1
        tones = 0.4 * math.sin(0.17 * i) + 0.2 * math.sin(0.49 * i + 1) + 0.1 * math.sin(1.3 * i)
        made.append(tones + noise * (0.3 if i // 500 % 3 == 1 else 0.02))
    return torch.tensor(made, dtype=torch.float64).to(torch.float32)


def mel(samples, seed, **how):
    made = torchaudio.transforms.MelSpectrogram(**how)(sound(samples, seed))
    return torch.log(made.clamp(min=1e-10)).T


def true_mel(samples, seed, n_fft):
    """With filters at the frequencies of the transform. Of an odd length, torchaudio spreads them up to half the rate."""
    powers = torch.stft(sound(samples, seed), n_fft, n_fft // 2, window=torch.hann_window(n_fft), return_complex=True).abs() ** 2
    low, high = 0.0, 2595.0 * math.log10(1 + 8000 / 700)
    corners = 700 * (10 ** (torch.linspace(low, high, 42) / 2595) - 1)
    places = torch.arange(n_fft // 2 + 1) * (16000 / n_fft)
    filters = torchaudio.functional.functional._create_triangular_filterbank(places, corners)
    return torch.log((powers.T @ filters).clamp(min=1e-10))


def fbank(samples, seed, **how):
    return kaldi.fbank(sound(samples, seed)[None] * 32768, dither=0.0, **how)


def mfcc(samples, seed, **how):
    return torchaudio.transforms.MFCC(**how)(sound(samples, seed))


def decibels(samples, seed, top):
    made = torchaudio.transforms.MelSpectrogram(n_mels=40)(sound(samples, seed) * (torch.arange(samples) > 1400))
    return torchaudio.transforms.AmplitudeToDB("power", top)(made).T


def cases():
    """The name of a test's options, the number of samples, the seed, and the values."""
    whole = dict(n_fft=512, win_length=400, hop_length=160, n_mels=64, f_min=20.0, f_max=7600.0)
    for name, n, seed, made in (
            ("whisper_80", 4000, 1, lambda n, s: whisper.log_mel_spectrogram(sound(n, s), 80)),
            ("whisper_80", 333, 2, lambda n, s: whisper.log_mel_spectrogram(sound(n, s), 80)),
            ("whisper_128", 1599, 3, lambda n, s: whisper.log_mel_spectrogram(sound(n, s), 128)),
            ("torchaudio", 2000, 4, mel),
            ("torchaudio_magnitude", 1700, 5, lambda n, s: mel(n, s, **whole, power=1.0)),
            ("torchaudio_hamming", 1700, 6, lambda n, s: mel(n, s, **whole, window_fn=torch.hamming_window)),
            ("torchaudio_slaney", 900, 7, lambda n, s: mel(n, s, n_mels=40, mel_scale="slaney")),
            ("torchaudio_norm", 900, 8, lambda n, s: mel(n, s, n_mels=40, norm="slaney")),
            ("torchaudio_zeros", 1100, 9, lambda n, s: mel(n, s, n_mels=40, pad_mode="constant")),
            ("torchaudio_snip", 1100, 10, lambda n, s: mel(n, s, n_mels=40, center=False)),
            ("odd_375", 1100, 11, lambda n, s: true_mel(n, s, 375)),
            ("torchaudio_882", 3000, 12, lambda n, s: mel(n, s, n_fft=882, n_mels=40, sample_rate=44100)),
            ("torchaudio_302", 1100, 13, lambda n, s: mel(n, s, n_fft=302, n_mels=40)),
            ("torchaudio_1080", 3000, 14, lambda n, s: mel(n, s, n_fft=1080, n_mels=40)),
            ("decibels", 2500, 15, lambda n, s: decibels(n, s, 60.0)),
            ("kaldi", 4000, 16, fbank),
            ("kaldi_80", 1000, 17, lambda n, s: fbank(n, s, num_mel_bins=80)),
            ("kaldi_8khz", 1000, 18, lambda n, s: fbank(n, s, num_mel_bins=40, sample_frequency=8000.0)),
            ("kaldi_mirror", 1000, 19, lambda n, s: fbank(n, s, snip_edges=False)),
            ("mfcc", 2000, 20, mfcc),
            ("mfcc_log", 2000, 21, lambda n, s: mfcc(n, s, n_mfcc=13, log_mels=True)),
            ("mfcc_kaldi", 4000, 22, lambda n, s: kaldi.mfcc(sound(n, s)[None] * 32768, dither=0.0)),
    ):
        values = made(n, seed)
        yield name, n, seed, values.shape, values.flatten().tolist()


def lines():
    yield (f"// Made by tools/audio_oracles.py with torchaudio {version('torchaudio')}, torch {version('torch')} and "
           f"openai-whisper {version('openai-whisper')}.")
    for name, n, seed, shape, values in cases():
        text = b"".join(struct.pack(">f", value) for value in values).hex()
        yield f'{{"{name}", {n}, {seed}, {shape[0]}, {shape[1]},\n "{text}"}},'


def read(text):
    for name, n, seed, rows, columns, values in re.findall(r'\{"(\w+)", (\d+), (\d+), (\d+), (\d+),\s+"([0-9a-f]*)"\}', text):
        floats = struct.unpack(f">{len(values) // 8}f", bytes.fromhex(values))
        yield (name, int(n), int(seed), (int(rows), int(columns))), floats


def main():
    made = "\n".join(lines()) + "\n"
    if "--check" not in sys.argv[1:]:
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_text(made, encoding="utf-8")
        return
    ours, theirs = list(read(FILE.read_text(encoding="utf-8"))), list(read(made))
    faults = [] if [one for one, _ in ours] == [one for one, _ in theirs] else ["other cases"]
    faults += [case[0] for (case, mine), (_, values) in zip(ours, theirs)
               if any(abs(a - b) > 2e-5 * max(1, abs(b)) for a, b in zip(mine, values))]
    if faults:
        sys.exit(f"audio_oracles: {FILE.name} differs: {', '.join(faults)}")
    print(f"audio_oracles: {len(ours)} cases")


if __name__ == "__main__":
    main()
