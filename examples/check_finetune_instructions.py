#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tunes on made-up conversations, kills finetune_instructions at random moments, and compares all losses.

check_finetune_instructions.py <finetune_instructions> <tokenizer.json>
"""

import json
import pathlib
import random
import sys
import tempfile

from killed_training import check, check_killed_training, whole_training

tune, tokenizer = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])

with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    source = random.Random(5)
    things = ["a dog", "a cat", "the moon", "my house", "bread"]
    with open(folder / "conversations.jsonl", "w") as lines:
        for _ in range(200):
            messages = []
            for _ in range(source.randrange(1, 6)):
                thing = source.choice(things)
                messages.append({"role": "user", "content": f"What is {thing}?"})
                messages.append({"role": "assistant", "content": " ".join([f"It is {thing}."] * source.randrange(1, 4))})
            lines.write(json.dumps({"messages": messages}) + "\n")

    def command(checkpoint, workers, buckets=8):
        return [tune, "--conversations", str(folder / "*.jsonl"), "--tokenizer", tokenizer, "--checkpoint",
                str(folder / checkpoint), "--epochs", "4", "--tokens", "768", "--buckets", str(buckets),
                "--workers", str(workers)]

    def padding(printed):
        tokens = sum(int(line.split()[9]) for line in printed)
        places = sum(int(line.split()[11]) for line in printed)
        return 1 - tokens / places

    expected = whole_training(command("whole", 1))
    for line in expected:
        words = line.split()
        if int(words[11]) > 768 or not 0 < int(words[13]) < int(words[9]):
            sys.exit(f"failed: at most 768 places, and answers in part of the tokens: {line}")
    mixed = whole_training(command("mixed", 1, buckets=1))
    check(padding(expected) < 0.5 * padding(mixed),
          f"{100 * padding(expected):.1f} % padding, {100 * padding(mixed):.1f} % without buckets")
    check_killed_training(lambda workers: command("killed", workers), expected)
