#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains train_gpt on made-up texts, kills it at random moments, and compares the losses of all steps.

check_train_gpt.py <train_gpt> <tokenizer.json>
"""

import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

train, tokenizer = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


def losses(lines):
    """The loss of each step, as it was printed; a step that two runs did must have the same in both."""
    found = {}
    for line in lines:
        words = line.split()
        if len(words) != 12:  # cut off by the kill
            continue
        step = (words[1], words[3])
        if found.setdefault(step, words[11]) != words[11]:
            sys.exit(f"failed: epoch {step[0]}, step {step[1]} has the losses {found[step]} and {words[11]}")
    return found


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    source = random.Random(3)
    subjects = ["the dog", "a cat", "the old man", "my sister", "a bird"]
    verbs = ["sees", "likes", "hears", "follows"]
    for part in range(2):
        with open(folder / f"texts{part}.txt", "w") as texts:
            for _ in range(120):
                sentences = [f"{source.choice(subjects)} {source.choice(verbs)} {source.choice(subjects)}."
                             for _ in range(source.randrange(1, 12))]
                texts.write(" ".join(sentences) + "\n")

    def command(checkpoint, workers):
        return [train, "--texts", str(folder / "texts*.txt"), "--tokenizer", tokenizer, "--checkpoint",
                str(folder / checkpoint), "--epochs", "3", "--length", "64", "--workers", str(workers)]

    whole = subprocess.run(command("whole", 1), capture_output=True, text=True, check=False)
    check(whole.returncode == 0, f"a training ends: {whole.stderr}")
    expected = losses(whole.stdout.splitlines())
    check(len(expected) > 60, f"it has {len(expected)} steps")
    ordered = [float(loss) for loss in expected.values()]
    check(sum(ordered[-8:]) < 0.8 * sum(ordered[:8]), f"it learns: {ordered[0]:.3f} to {ordered[-1]:.3f}")
    full = [float(line.split()[9].rstrip("%")) for line in whole.stdout.splitlines()]
    check(sum(full) > 98 * len(full), f"rows are {sum(full) / len(full):.1f} % full")

    lines = []
    for attempt in range(50):
        run = subprocess.Popen(command("killed", attempt % 3), stdout=subprocess.PIPE, text=True)
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
    check(losses(lines) == expected, "and has the losses of the training that was not")
