#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""peer_video.py torchcodec|pyav|decord: the peers of rows 62a to 62l. Reads lines `KIND WORKERS SAMPLES FRAMES GROUP FILM`,
and answers each with the seconds of processor time, of all processes, and of wall time that PyTorch's DataLoader takes for
so many samples of a film of FRAMES frames in groups of GROUP: 10 frames at equal distances, 10 frames at random, a clip
of 16 frames at a stride of 4, all in RGB at the film's size; or such clips resized to 224 x 224, as bytes, channels
first, in batches of 16. Frames and clips begin at the places that `place` says, which bench_video takes, too. One worker is
the process itself (`num_workers=0`), two are two processes. Films are in memory, decoders have one thread, and each sample
has a decoder of its own, as in a data set of films.

TorchCodec: `seek_mode="approximate"`, its fastest, and its own `Resize`. PyAV: `seek` where a group begins between two
frames, otherwise decoding on; FFmpeg's scaler. decord: `get_batch`, of a reader of that size."""

import io
import multiprocessing
import os
import sys
import time

import torch

PEER, RATE = sys.argv[1], 30


def place(sample, k):
    """Splitmix64 of the sample and k, as a number of 0 to 2^31."""
    mask = (1 << 64) - 1
    x = (sample * 1000 + k + 0x9e3779b97f4a7c15) & mask
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & mask
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & mask
    return (x ^ (x >> 31)) >> 33


def frames_of(kind, sample, frames):
    if kind == "uniform":
        return [i * (frames - 1) // 9 for i in range(10)]
    if kind == "random":
        return [place(sample, k) % frames for k in range(10)]
    begin = place(sample, 0) % (frames - 60)
    return [begin + 4 * i for i in range(16)]


def with_torchcodec():
    from torchcodec.decoders import VideoDecoder
    from torchcodec.transforms import Resize

    def sample(film, wanted, group, small):
        decoder = VideoDecoder(film, seek_mode="approximate", num_ffmpeg_threads=1,
                               transforms=[Resize((224, 224))] if small else None)
        return decoder.get_frames_at(wanted).data

    return sample


def with_pyav():
    import av
    import numpy

    def sample(film, wanted, group, small):
        found = {}
        with av.open(io.BytesIO(film)) as container:
            stream = container.streams.video[0]
            stream.thread_count = 1
            unit = stream.time_base
            last = None
            for n in sorted(set(wanted)):
                if last is None or n // group != last // group:
                    container.seek(int(n / RATE / unit), stream=stream, backward=True)
                    decoded = container.decode(stream)
                for frame in decoded:
                    last = round(frame.pts * unit * RATE)
                    if last >= n:
                        if last != n:
                            sys.exit(f"frame {last} instead of {n}")
                        found[n] = (frame.reformat(224, 224, "rgb24") if small else frame).to_ndarray(format="rgb24")
                        break
        frames = torch.from_numpy(numpy.stack([found[n] for n in wanted]))
        return frames.permute(0, 3, 1, 2).contiguous() if small else frames

    return sample


def with_decord():
    import decord

    def sample(film, wanted, group, small):
        size = {"width": 224, "height": 224} if small else {}
        reader = decord.VideoReader(io.BytesIO(film), num_threads=1, **size)
        frames = torch.from_numpy(reader.get_batch(wanted).asnumpy())
        return frames.permute(0, 3, 1, 2).contiguous() if small else frames

    return sample


SAMPLE = {"torchcodec": with_torchcodec, "pyav": with_pyav, "decord": with_decord}[PEER]()


class Samples(torch.utils.data.Dataset):
    def __init__(self, kind, samples, frames, group, film):
        self.kind, self.samples, self.frames, self.group = kind, samples, frames, group
        with open(film, "rb") as file:
            self.film = file.read()

    def __len__(self):
        return self.samples

    def __getitem__(self, number):
        return SAMPLE(self.film, frames_of(self.kind, number, self.frames), self.group, self.kind == "batch")


def processor_seconds():
    """Of this process and its workers."""
    seconds = time.process_time()
    for worker in multiprocessing.active_children():
        with open(f"/proc/{worker.pid}/stat") as stat:
            seconds += sum(int(field) for field in stat.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")
    return seconds


def main():
    torch.set_num_threads(1)
    loader = opened = None
    for line in sys.stdin:
        kind, workers, samples, frames, group, film = line.rstrip("\n").split(" ", 5)
        if line != opened:
            loader, opened = None, line  # the workers of the one before end
            loader = torch.utils.data.DataLoader(Samples(kind, int(samples), int(frames), int(group), film),
                                                 batch_size=16 if kind == "batch" else None,
                                                 num_workers=0 if workers == "1" else int(workers),
                                                 persistent_workers=workers != "1")
            if workers == "1":
                loader.dataset[0]  # until everything is warm
            else:
                for _ in loader:
                    pass
        used, begin = processor_seconds(), time.perf_counter()
        for _ in loader:
            pass
        print(processor_seconds() - used, time.perf_counter() - begin, flush=True)


main()
