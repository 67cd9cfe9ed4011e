#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs mlperf_storage on tiny data sets, and computes its figures again from the steps that it noted.

check_mlperf_storage.py <mlperf_storage>

What the machine can feed is not checked: that is time. The formula is also checked on steps and loaders that are known,
and on a case by hand when the program is compiled.
"""

import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

program = str(pathlib.Path(sys.argv[1]).resolve())


def run(*options, expect=0):
    done = subprocess.run([program, *map(str, options)], capture_output=True, text=True, timeout=250)
    if done.returncode != expect:
        sys.exit(f"{options} gave {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    if expect != 0 and len(done.stderr.splitlines()) != 1:
        sys.exit(f"{options} did not say in one line what is wrong:\n{done.stderr}")
    return done.stdout if expect == 0 else done.stderr


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


METRICS = re.compile(r"\[METRIC\] Number of Simulated Accelerators: (\d+)\n"
                     r"\[METRIC\] Training Accelerator Utilization \[AU\] \(%\): (\S+) \((\S+)\)\n"
                     r"\[METRIC\] Training Throughput \(samples/second\): (\S+) \((\S+)\)\n"
                     r"\[METRIC\] Training I/O Throughput \(MB/second\): (\S+) \(\S+\)\n"
                     r"\[METRIC\] train_au_meet_expectation: (success|fail)\n")


def computed_again(log, accelerators, batch):
    """Mean and deviation of AU and of samples per second, over epochs: MLPerf's formula, without the program."""
    epochs = {}
    for line in log.read_text().splitlines():
        of, epoch, _, elapsed, *steps = line.split()
        if int(of) != accelerators:
            continue
        steps = [tuple(map(float, step.split(":"))) for step in steps]
        counted = float(elapsed) - steps[0][1]
        epochs.setdefault(int(epoch), []).append(
            (100 * sum(compute for compute, _ in steps[1:]) / counted, (len(steps) - 2) / counted * batch, len(steps)))
    au = [statistics.fmean(one[0] for one in ranks) for ranks in epochs.values()]
    rate = [sum(one[1] for one in ranks) for ranks in epochs.values()]
    counts = {one[2] for ranks in epochs.values() for one in ranks}
    assert all(len(ranks) == accelerators for ranks in epochs.values())
    return (len(epochs), counts, statistics.fmean(au), statistics.pstdev(au), statistics.fmean(rate),
            statistics.pstdev(rate))


def known_steps(compute, loads, count):
    """Lines as --log writes them, of steps of `compute` seconds with loaders that make a batch in `loads[rank]`
    seconds and never wait themselves; a barrier after each step."""
    began, times = 0, [[] for _ in loads]
    for step in range(count):
        computed = [max(began, (step + 1) * load) + compute for load in loads]
        for rank, at in enumerate(computed):
            times[rank].append(f"{compute}:{at - began}")
        began = max(computed)
    return "".join(f"{len(loads)} 0 {rank} {began} {' '.join(steps)}\n" for rank, steps in enumerate(times))


with tempfile.TemporaryDirectory() as place:
    # A loader that needs 50 ms for what an accelerator computes in 47.55 keeps it busy for 95.1 % of the time; where one
    # of two needs 55 and the other 40, both wait for the first, and the second one's first wait is shorter.
    known = pathlib.Path(place) / "known.log"
    step, count = 0.04755, 500
    for loads, expected in (([0.02], 100), ([0.05], 95.1), ([step / 0.8501], 85.01), ([step / 0.8499], 84.99),
                            ([0.055, 0.04], 50 * step / 0.055 + 50 * (count - 1) * step / (count * 0.055 - 0.04))):
        known.write_text(known_steps(step, loads, count))
        (accelerators, au, _, rate, _, _, expectation), = METRICS.findall(
            run("--workload", "retinanet", "--judge", known))
        check(int(accelerators) == len(loads) and math.isclose(float(au), expected, abs_tol=2e-4),
              f"loaders of {loads} s: AU is {expected:.2f} %")
        check(expectation == ("success" if expected >= 85 else "fail"), "85 % are asked for")
        again = computed_again(known, len(loads), 24)
        check(math.isclose(float(rate), again[4], rel_tol=1e-6), "samples per second")
    known.write_text("1 0 0 9 1:1 1:1 x\n")
    check("does not write" in run("--workload", "retinanet", "--judge", known, expect=1), "damaged notes are refused")
    known.write_text(known_steps(step, [0.05, 0.05], 3).splitlines()[1] + "\n")
    check("lacks the lines" in run("--workload", "retinanet", "--judge", known, expect=1), "and incomplete ones")

    # Objects, of which 64 are in flight, answer after 5 ms: 96 of them take 10 ms or more, and each is asked for once.
    log = pathlib.Path(place) / "objects.log"
    for name, accelerator, files, scale, steps in (("retinanet", "b200", 96, 0.02, 4), ("unet3d", "b200", 21, 0.0001, 3)):
        log.unlink(missing_ok=True)
        out = run("--data", place, "--workload", name, "--files", files, "--scale", scale, "--epochs", 2,
                  "--num-accelerators", 1, "--object-latency-us", 5000, "--drop-cache", 0, "--accelerator-type", accelerator,
                  "--log", log)
        epochs, counts, au, *_ = computed_again(log, 1, files // steps)
        check((epochs, counts) == (2, {steps}) and math.isclose(float(METRICS.findall(out)[0][1]), au, abs_tol=2e-2),
              f"{name} from objects")
        requests = int(re.search(r"^objects: (\d+) requests in all epochs", out, re.M).group(1))
        check(2 * files <= requests <= 3 * files, "one request for each object and epoch, and one for its header")
        check(all(float(line.split()[3]) >= 0.005 * math.ceil(files / 64) for line in log.read_text().splitlines()),
              "which take their time")
    check("objects are read by" in run("--data", place, "--workload", "cosmoflow", "--files", 9, "--object-latency-us", 9,
                                       expect=1), "other workloads have no objects")

    folder = pathlib.Path(place)
    for name, files, samples, batch, scale, nominal, threshold in (("unet3d", 63, 63, 7, 0.0001, 146600628, 90),
                                                                   ("resnet50", 4, 5004, 400, 0.01, 114660.07, 90),
                                                                   ("cosmoflow", 24, 24, 1, 0.02, 2828486, 70)):
        log = folder / f"{name}.log"
        out = run("--data", folder, "--workload", name, "--files", files, "--scale", scale, "--epochs", 2,
                  "--max-accelerators", 3, "--log", log)
        print(out)
        check("NOT an MLPerf result" in out and "container differs from MLPerf's" in out,
              f"{name}: it says that these are no results of MLPerf")
        check(f"{files} files, {samples} samples" in out and "bare read loop: " in out, "the data set, and its limit")
        found = METRICS.findall(out)
        judged = {}
        for count, au, au_off, rate, rate_off, mib, expectation in found:
            epochs, steps, *again = computed_again(log, int(count), batch)
            check(epochs == 2 and steps == {samples // batch // int(count)}, f"{count} accelerators: every step is noted")
            near = all(math.isclose(float(a), b, rel_tol=1e-5, abs_tol=2e-2)
                       for a, b in zip((au, au_off, rate, rate_off), again))
            check(near, f"{count} accelerators: the formula, computed again from the steps")
            check(math.isclose(float(mib), float(rate) * nominal * scale / 2**20, rel_tol=1e-3, abs_tol=1e-3),
                  "MiB of the nominal record length")
            judged[int(count)] = expectation == "success"
            check(judged[int(count)] == (float(au) >= threshold) or math.isclose(float(au), threshold, abs_tol=1e-3),
                  f"{count} accelerators: {expectation}")
        best = int(re.search(rf"^accelerators at AU >= {threshold} %: (\d+)", out, re.M).group(1))
        check((best == 0 or judged[best]) and (best == 3 or not judged[best + 1]),
              "the largest number is one that was fed, and the next was not")

    # The same data set again, for one number of accelerators; then what is wrong.
    tiny = ["--data", folder, "--workload", "cosmoflow", "--files", 24, "--scale", 0.02]
    out = run(*tiny, "--num-accelerators", 2, "--epochs", 1, "--accelerator-type", "h100", "--drop-cache", 0)
    check([m[0] for m in METRICS.findall(out)] == ["2"], "one number of accelerators, where it is given")
    check("give more --files" in run(*tiny, "--num-accelerators", 9, expect=1), "too few steps are refused")
    check("a100 or h100, and not 'x'" in run(*tiny, "--accelerator-type", "x", expect=1), "an unknown accelerator is refused")
    check("no workload 'x'" in run("--data", folder, "--workload", "x", expect=1), "an unknown workload is refused")
    shard = next(folder.glob("cosmoflow-*")) / "5.tar"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:512] + b"x" * (len(whole) - 512))
    error = run(*tiny, "--num-accelerators", 3, expect=1)
    check("5.tar" in error, "a damaged file is named, and the other accelerators do not wait for ever")

    out = run("--data", folder, "--workload", "checkpoint", "--checkpoint-mib", 36, "--processes", 2, "--checkpoints", 2)
    print(out)
    values = [float(v) for v in re.findall(r"^\[METRIC\] Checkpoint (?:save|load) .*: (\S+) \(\S+\)$", out, re.M)]
    check(len(values) == 4 and all(v > 0 for v in values) and "NOT an MLPerf result" in out, "checkpoints")
    check(not (folder / "checkpoint").exists(), "which are removed")
    check("MiB for each" in run("--data", folder, "--workload", "checkpoint", "--checkpoint-mib", 1, expect=1),
          "checkpoints without bytes are refused")
