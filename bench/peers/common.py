# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every peer_*.py shares: the works, the made-up samples, and the measurement.

A peer gives `main` a function for each kind of work it can do. The function writes the peer's own format if it is not
there yet, and returns `open_loader`; `open_loader()` makes a loader and returns `epoch`; `epoch()` yields the batches of
the next epoch. One line of JSON goes to the standard output."""

import argparse
import dataclasses
import importlib.metadata
import json
import os
import pathlib
import random
import shutil
import sys
import time

SIDE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SEED = 7
# name: bytes of a sample, samples, samples with --quick, samples in a batch
WORKS = {"1k": (1024, 131_072, 8_192, 256), "10k": (10_240, 16_384, 1_024, 64), "110k": (112_640, 4_096, 256, 64),
         "resume": (64, 1_048_576, 16_384, 256), "jpeg": (0, 1_536, 64, 32)}


def read_back(path):
    """Replaces a file in the page cache by what a read of the disk leaves there, the same for everybody: how it was
    written decides whether its pages lie together in memory, and so how fast they are found again."""
    with open(path, "rb", buffering=0) as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(1 << 20):
            pass


@dataclasses.dataclass
class Work:
    """What to read, and how."""

    name: str
    folder: pathlib.Path
    workers: int
    quick: bool
    photo_folder: pathlib.Path

    def __post_init__(self):
        self.kind = self.name.removesuffix("_shuffled")
        self.shuffled = self.kind != self.name or self.kind == "resume"
        self.bytes, many, few, self.batch = WORKS[self.kind]
        self.samples = few if self.quick else many

    def row(self, place):
        """A sample, as an array of uint8."""
        import numpy

        return numpy.frombuffer(random.Random(int(place)).randbytes(self.bytes), numpy.uint8)

    def rows(self):
        """All samples one after another."""
        return map(self.row, range(self.samples))

    def photos(self):
        """The paths of the photos; several times those there are, so that the ends of an epoch weigh less."""
        paths = sorted(self.photo_folder.iterdir())
        paths = paths[:len(paths) // self.batch * self.batch]
        return [str(paths[place % len(paths)]) for place in range(self.samples)]

    def once(self, name, write):
        """The path of a file or folder in the peer's own format, written by `write(path)` unless it is there."""
        path = self.folder / f"{self.kind}{'-quick' if self.quick else ''}-{name}"
        if not path.exists():
            new = path.with_name("new-" + path.name)
            shutil.rmtree(new, ignore_errors=True)
            new.unlink(missing_ok=True)
            self.folder.mkdir(parents=True, exist_ok=True)
            write(str(new))
            new.rename(path)
            for file in [path] if path.is_file() else (inner for inner in path.rglob("*") if inner.is_file()):
                read_back(file)
        return str(path)

    def once_rows(self):
        """The path of an npy file with all samples."""
        import numpy

        def write(path):
            rows = numpy.lib.format.open_memmap(path, "w+", numpy.uint8, (self.samples, self.bytes))
            for place, row in enumerate(self.rows()):
                rows[place] = row
            rows.flush()

        return self.once("rows.npy", write)


def processes():
    """This process and all that descend from it."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                pass  # it has ended
    family = [os.getpid()]
    for member in family:
        family += [child for child, parent in parents.items() if parent == member]
    return family


def cpu_seconds():
    """Of all processes, including those that have ended."""
    ticks = 0
    for process in processes():
        try:
            fields = pathlib.Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory():
    """Megabytes of all processes, shared pages split among them: all, and without pages of files."""
    total = own = 0
    for process in processes():
        try:
            lines = pathlib.Path("/proc", str(process), "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        sizes = {line.split()[0]: int(line.split()[1]) for line in lines[1:]}
        total += sizes["Pss:"]
        own += sizes["Pss_Anon:"] + sizes["Pss_Shmem:"]
    return total / 1000, own / 1000


class Tally:
    """What a consumer sees of the batches of an epoch."""

    def __init__(self, work):
        self.work, self.samples, self.sum = work, 0, 0

    def add(self, batch):
        import numpy

        array = numpy.asarray(batch)
        self.samples += len(array)
        if self.work.kind == "jpeg":
            if SIDE not in array.shape[1:3] or array.dtype != numpy.float32:
                sys.exit(f"a batch of {array.dtype} {array.shape}")
            self.sum += float(array[0].mean())
        else:
            if array.shape[1:] != (self.work.bytes,) or array.dtype != numpy.uint8:
                sys.exit(f"a batch of {array.dtype} {array.shape}")
            words = numpy.ascontiguousarray(array[:, :8]).view(numpy.uint64)
            self.sum = (self.sum + int(words.sum(dtype=numpy.uint64))) % 2**64

    def check(self):
        """The sum of the first words; of photos the mean value of those that were looked at."""
        if self.samples != self.work.samples:
            sys.exit(f"{self.samples} samples instead of {self.work.samples}")
        return self.sum / (self.samples // self.work.batch) if self.work.kind == "jpeg" else self.sum


def measure(work, open_loader, least_seconds):
    """Time to the first batch, and an epoch that warms up, in the middle of which memory is measured; timed epochs.
    Where the first epoch is long, it is the timed one as well, from its first batch on."""
    begin = time.perf_counter()
    epoch = open_loader()
    tally = Tally(work)
    first = None
    for place, batch in enumerate(epoch()):
        if first is None:
            first = time.perf_counter() - begin
            cpu_at_first = cpu_seconds()
            begin = time.perf_counter()
        tally.add(batch)
        if place == work.samples // work.batch // 2:
            total, own = memory()
    check = tally.check()
    seconds, samples, cpu = time.perf_counter() - begin, work.samples - work.batch, cpu_seconds() - cpu_at_first
    if seconds < 4 * max(least_seconds, 0.1):
        samples, cpu_before, begin, seconds = 0, cpu_seconds(), time.perf_counter(), 0
        while samples == 0 or seconds < least_seconds:
            tally = Tally(work)
            for batch in epoch():
                tally.add(batch)
            if tally.check() != check and work.kind != "jpeg":
                sys.exit("an epoch has other samples")
            samples += work.samples
            seconds = time.perf_counter() - begin
        cpu = cpu_seconds() - cpu_before
    return {"samples": samples, "seconds": seconds, "cpu_seconds": cpu, "first_batch_seconds": first,
            "memory_mb": total, "own_memory_mb": own, "check": check}


def measure_restart(work, restart):
    """Seconds from a state in mid-epoch to the next batch. `restart()` returns the samples that come before the
    state and a function that gives the rest of the epoch, which is counted where that takes at most five seconds."""
    before, rest = restart()
    tally = Tally(work)
    seconds, begin, ended = None, time.perf_counter(), True
    for batch in rest():
        seconds = seconds or time.perf_counter() - begin
        tally.add(batch)
        if time.perf_counter() - begin > 5:
            ended = False
            break
    if before + tally.samples != work.samples and (ended or before + tally.samples > work.samples):
        sys.exit(f"{tally.samples} samples after {before} of {work.samples}")
    return {"samples": tally.samples, "first_batch_seconds": seconds, "check": None}


def versions(packages):
    """Of those that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def main(packages, settings, raw=None, jpeg=None, resume=None, program=None):
    """Measures one work. `settings` says in words how the peer is set: a dictionary by kind of work.
    `program(work, seconds)` measures any work by itself."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--photos", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    work = Work(given.work, given.folder, given.workers, given.quick, given.photos)
    kind = work.kind if work.kind in ("jpeg", "resume") else "raw"
    function = {"raw": raw, "jpeg": jpeg, "resume": resume}[kind]
    seconds = 0 if given.quick else given.seconds
    if function is None and program is None:
        sys.exit(f"there is no {given.work} for this peer")
    if program:
        result = program(work, seconds)
    elif kind == "resume":
        result = measure_restart(work, function(work))
    else:
        result = measure(work, function(work), seconds)
    result |= {"settings": settings[kind], "workers": given.workers,
               "versions": versions(packages)}
    print(json.dumps(result), flush=True)
    os._exit(0)  # some peers take seconds to end their threads, or never do
