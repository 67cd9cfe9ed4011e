# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the checks of the training examples share: runs that are killed, and the losses that they print."""

import random
import signal
import subprocess
import sys
import time


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


def losses(lines):
    """The loss of each step, as it was printed; a step that two runs did must have the same in both."""
    found = {}
    for line in lines:
        words = line.split()
        if not line.endswith("\n") or words[-2] != "loss":  # cut off by the kill
            continue
        step = (words[1], words[3])
        if found.setdefault(step, words[-1]) != words[-1]:
            sys.exit(f"failed: epoch {step[0]}, step {step[1]} has the losses {found[step]} and {words[-1]}")
    return found


def whole_training(command):
    """Runs it to its end; returns the lines that it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"a training ends: {done.stderr}")
    lines = done.stdout.splitlines(keepends=True)
    ordered = [float(loss) for loss in losses(lines).values()]
    check(len(ordered) > 60, f"it has {len(ordered)} steps")
    check(sum(ordered[-8:]) < 0.8 * sum(ordered[:8]), f"it learns: {ordered[0]:.3f} to {ordered[-1]:.3f}")
    return lines


def check_killed_training(command_of, expected):
    """Runs `command_of(workers)` again and again, each killed at a random moment, until one ends."""
    source = random.Random(3)
    lines = []
    for attempt in range(200):
        run = subprocess.Popen(command_of(attempt % 3), stdout=subprocess.PIPE, text=True)
        for _ in range(source.randrange(4, 14)):
            line = run.stdout.readline()
            if not line:
                break
            lines.append(line)
        time.sleep(source.random() * 0.01)
        run.send_signal(signal.SIGKILL)
        lines += run.stdout.readlines()
        if run.wait() == 0:
            break
    check(attempt > 3, f"it was killed {attempt} times")
    check(losses(lines) == losses(expected), "and has the losses of the training that was not")
