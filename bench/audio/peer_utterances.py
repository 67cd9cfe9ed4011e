#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""peer_utterances.py samples|mels SECONDS BUCKETS FOLDER: an epoch of the FLAC files of a folder by Lhotse, for each line of
the standard input. `sum` in a line adds up the samples, too.

A line of output for each: seconds, seconds of processor time of all processes, utterances, samples (or frames of features),
and the sum of samples as integers.

Used as Lhotse's documentation advises: DynamicBucketingSampler, K2SpeechRecognitionDataset, and PyTorch's DataLoader with
two workers, which stay. The manifest is in memory; Shar was slower. Lengths are known beforehand, from the headers."""

import os
import pathlib
import sys
import time
import warnings

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
warnings.filterwarnings("ignore")

import soundfile
import torch
from lhotse import AudioSource, CutSet, Fbank, FbankConfig, MonoCut, Recording, SupervisionSegment
from lhotse.dataset import AudioSamples, DynamicBucketingSampler, K2SpeechRecognitionDataset, OnTheFlyFeatures

torch.set_num_threads(1)
KIND, SECONDS, BUCKETS, FOLDER = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]


def cut_of(path):
    info = soundfile.info(str(path))
    source, seconds = AudioSource("file", [0], str(path)), info.frames / info.samplerate
    recording = Recording(path.stem, [source], info.samplerate, info.frames, seconds)
    text = SupervisionSegment(path.stem, path.stem, 0, seconds, text="an utterance")
    return MonoCut(path.stem, 0, seconds, 0, supervisions=[text], recording=recording)


def processor_seconds(pids):
    """Of this process, and of those."""
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def main():
    cuts = CutSet.from_cuts(cut_of(path) for path in sorted(pathlib.Path(FOLDER).glob("*.flac"))).to_eager()
    sampler = DynamicBucketingSampler(cuts, max_duration=SECONDS, num_buckets=BUCKETS, shuffle=True, seed=7)
    strategy = AudioSamples() if KIND == "samples" else OnTheFlyFeatures(Fbank(FbankConfig(num_mel_bins=80)))
    dataset = K2SpeechRecognitionDataset(input_strategy=strategy)
    loader = torch.utils.data.DataLoader(dataset, sampler=sampler, batch_size=None, num_workers=2, persistent_workers=True)
    lengths = "num_samples" if KIND == "samples" else "num_frames"
    workers = []
    for epoch, line in enumerate(sys.stdin):
        sampler.set_epoch(epoch)
        busy, begin = processor_seconds(workers), time.perf_counter()
        utterances = samples = total = 0
        for batch in loader:
            utterances += len(batch["inputs"])
            samples += int(batch["supervisions"][lengths].sum())
            if line.strip() == "sum":
                total += int((batch["inputs"] * 32768).to(torch.int64).sum())
        taken = time.perf_counter() - begin
        workers = [worker.pid for worker in loader._iterator._workers]
        print(taken, processor_seconds(workers) - busy, utterances, samples, total, flush=True)


main()
