#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""peer_video.py torchcodec|pyav uniform|random|clip|batch FILM SECONDS FRAMES: how many samples a peer delivers in a
second of processor time, with one thread, from one film in memory, of so many frames: 10 frames at equal distances, 10
frames at random, a clip of 16 frames at a stride of 4, all in RGB at the film's size; or batches of 16 such clips,
each resized to 224 x 224 with antialias, of bytes, as (16, 16, 3, 224, 224). Frames and clips begin at the places that
`place` says, which bench_video takes, too. Prints the rate.

TorchCodec: `seek_mode="approximate"`, its fastest, a decoder for each sample, as a data set of films has it;
`num_ffmpeg_threads=1`. PyAV: `seek` to the key frame before, decoding on until the frame's time is there, with
`thread_count` 1; consecutive frames of a sample are decoded in one pass."""

import io
import sys
import time

PEER, ROW, FILM, SECONDS = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
FRAMES, RATE = int(sys.argv[5]), 30
with open(FILM, "rb") as file:
    CONTENT = file.read()


def place(sample, k):
    """Splitmix64 of the sample and k, as a number of 0 to 2^31."""
    mask = (1 << 64) - 1
    x = (sample * 1000 + k + 0x9e3779b97f4a7c15) & mask
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & mask
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & mask
    return (x ^ (x >> 31)) >> 33


def frames_of(sample):
    if ROW == "uniform":
        return [i * (FRAMES - 1) // 9 for i in range(10)]
    if ROW == "random":
        return [place(sample, k) % FRAMES for k in range(10)]
    begin = place(sample, 0) % (FRAMES - 60)
    return [begin + 4 * i for i in range(16)]


def torchcodec_sample():
    import torch
    from torchcodec.decoders import VideoDecoder

    torch.set_num_threads(1)

    def sample(number):
        decoder = VideoDecoder(CONTENT, seek_mode="approximate", num_ffmpeg_threads=1)
        frames = decoder.get_frames_at(frames_of(number)).data
        if ROW != "batch":
            return frames
        return torch.nn.functional.interpolate(frames, (224, 224), mode="bilinear", antialias=True)

    def batch(first):
        torch.stack([sample(first + i) for i in range(16)])

    return batch if ROW == "batch" else sample


def pyav_sample():
    import av
    import numpy

    def sample(number):
        wanted = frames_of(number)
        found = {}
        with av.open(io.BytesIO(CONTENT)) as container:
            stream = container.streams.video[0]
            stream.thread_count = 1
            unit = stream.time_base
            last = None
            for n in sorted(set(wanted)):
                if last is None or n - last > 30:
                    container.seek(int(n / RATE / unit), stream=stream, backward=True)
                    decoded = container.decode(stream)
                for frame in decoded:
                    last = round(frame.pts * unit * RATE)
                    if last >= n:
                        if last != n:
                            sys.exit(f"frame {last} instead of {n}")
                        small = frame.reformat(224, 224, "rgb24") if ROW == "batch" else frame
                        found[n] = small.to_ndarray(format="rgb24")
                        break
        return numpy.stack([found[n] for n in wanted])

    def batch(first):
        numpy.stack([sample(first + i) for i in range(16)]).transpose(0, 1, 4, 2, 3).copy()

    return batch if ROW == "batch" else sample


def main():
    sample = {"torchcodec": torchcodec_sample, "pyav": pyav_sample}[PEER]()
    step = 16 if ROW == "batch" else 1
    sample(0)
    done, begin = 0, time.process_time()
    while (passed := time.process_time() - begin) < SECONDS:
        sample(done)
        done += step
    print(done / passed)


main()
