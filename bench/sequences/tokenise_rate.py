#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tokenise_rate.py prepare FOLDER LIST       texts of 2,000 characters of the files in a list, and two tokenizers that are trained
                                           on them: gpt, of 50,257 tokens and GPT-2's way to split words, and llama, of
                                           128,256 and Llama 3's
tokenise_rate.py tokenizers FOLDER NAME    megabytes a second of Hugging Face's tokenizers on one core, and how many tokens
tokenise_rate.py tiktoken FOLDER NAME      the same of tiktoken

Each reads the texts, and tokenises all of them once without a clock and then with one. Of tokenizers, the faster one of its
ways to return ids counts."""

import base64
import json
import os
import pathlib
import sys
import time

os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1", HF_HUB_OFFLINE="1")
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SEPARATOR = "\x1e"


def alphabet():
    made, other = {}, 256
    for byte in range(256):
        printable = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        made[chr(byte if printable else other)] = byte
        other += not printable
    return made


def prepare(folder, files):
    import tokenizers as t

    pre = t.pre_tokenizers
    texts = []
    for file in files:
        try:
            whole = pathlib.Path(file).read_text(encoding="utf-8").replace(SEPARATOR, "")
        except UnicodeDecodeError:
            continue
        texts += [whole[i:i + 2000] for i in range(0, len(whole), 2000)]
    (folder / "texts").write_bytes(SEPARATOR.join(texts[::max(1, len(texts) // 2000)]).encode())
    splits = {"gpt": pre.ByteLevel(add_prefix_space=False),
              "llama": pre.Sequence([pre.Split(t.Regex(LLAMA3), "isolated"),
                                     pre.ByteLevel(add_prefix_space=False, use_regex=False)])}
    bytes_of = alphabet()
    for name, size in (("gpt", 50257), ("llama", 128256)):
        made = t.Tokenizer(t.models.BPE(ignore_merges=name == "llama"))
        made.pre_tokenizer = splits[name]
        made.train_from_iterator(texts, t.trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre.ByteLevel.alphabet(),
                                                              show_progress=False))
        made.save(str(folder / f"{name}.json"))
        tokens = sorted(made.get_vocab().items(), key=lambda one: one[1])
        (folder / f"{name}.tiktoken").write_bytes(
            b"".join(base64.b64encode(bytes(bytes_of[c] for c in token)) + b" %d\n" % rank for token, rank in tokens))


def rate(texts, ways):
    """Megabytes a second of the fastest way, and the tokens."""
    size = sum(len(text.encode()) for text in texts)
    best = 0
    for way in ways:
        for _ in range(2):  # the second one with warm caches
            begin = time.perf_counter()
            tokens = way()
            taken = time.perf_counter() - begin
        best = max(best, size / taken / 1e6)
    print(best, tokens)


def main():
    task, folder, *rest = sys.argv[1:]
    folder = pathlib.Path(folder)
    if task == "prepare":
        return prepare(folder, pathlib.Path(rest[0]).read_text(encoding="utf-8").splitlines())
    texts = (folder / "texts").read_bytes().decode().split(SEPARATOR)
    if task == "tokenizers":
        import tokenizers

        made = tokenizers.Tokenizer.from_file(str(folder / f"{rest[0]}.json"))
        return rate(texts, (lambda: sum(len(made.encode(text).ids) for text in texts),
                            lambda: sum(len(one.ids) for one in made.encode_batch_fast(texts))))
    import tiktoken

    ranks = {base64.b64decode(token): int(rank)
             for token, rank in (line.split() for line in (folder / f"{rest[0]}.tiktoken").open("rb"))}
    made = tiktoken.Encoding(rest[0], pat_str=GPT2 if rest[0] == "gpt" else LLAMA3, mergeable_ranks=ranks, special_tokens={})
    return rate(texts, (lambda: sum(len(made.encode_ordinary(text)) for text in texts),))


main()
