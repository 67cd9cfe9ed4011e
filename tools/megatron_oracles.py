#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/source/oracles/megatron.inc: a small dataset that Megatron Core's IndexedDatasetBuilder has written, the
cache of its GPTDataset, and what GPTDatasets of it and of the datasets in the test data give: in cases.txt a line for each,

    prefix, sequence length, extra token, number of samples (0: None), seed, split, part, samples, hash of all their tokens

in blends.txt what BlendedDatasets of two datasets give, and in orders.txt the order of blends of more:

    weights (0: none), number of samples (0: None), sequence length, seed, samples, hash of all their tokens
    weights, number of samples, samples, hash of the dataset and the number of each

    tools/megatron_oracles.py            writes the file
    tools/megatron_oracles.py --check    asks Megatron again, and fails if it says something else. Skipped, with status
                                         77, where Megatron Core is missing

Needs megatron-core and numpy, which PyPI has, and the test data. Of torch, which its datasets use for few things, a few
names stand in; `pip install --no-deps megatron-core` is enough."""

import importlib.util
import os
import pathlib
import sys
import tempfile
import types

from oracle_files import text_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "source" / "oracles" / "megatron.inc"
DATA = pathlib.Path(os.environ.get("PENSTOCK_TEST_DATA", ROOT.parent / "shared" / "data")) / "tokens" / "megatron"


def stand_in(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    return made


def without_torch():
    """Megatron's datasets without torch and without the package's own __init__, which imports all of it."""
    root = importlib.util.find_spec("megatron").submodule_search_locations[0]
    stand_in("torch", Tensor=object, distributed=stand_in("torch.distributed", is_initialized=lambda: False,
                                                            get_rank=lambda: 0, barrier=lambda: None),
             utils=stand_in("torch.utils", data=stand_in("torch.utils.data", Dataset=type("Dataset", (), {}))))
    stand_in("megatron").__path__ = [root]
    stand_in("megatron.core").__path__ = [root + "/core"]
    stand_in("megatron.core.utils", log_single_rank=lambda *some, **more: None)
    stand_in("megatron.core.tokenizers", MegatronTokenizerBase=object)


try:
    import numpy as np
    without_torch()
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.blended_megatron_dataset_builder import _get_size_per_split_per_dataset
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
    from megatron.core.datasets.helpers import build_blending_indices
    from megatron.core.datasets.utils import normalize
except (AttributeError, ImportError) as missing:
    print(f"megatron_oracles: skipped, {missing}")
    sys.exit(77)


class tokenizer:
    eod, eos, vocab_size, unique_identifiers = 0, 0, 50000, {"class": "none"}

    @property
    def pad(self):
        raise NotImplementedError


def datasets(prefix, length, extra, sizes, seed, split, cache, blend=None):
    config = GPTDatasetConfig(
        random_seed=seed, sequence_length=length, blend=blend or ([prefix], None), split=split, path_to_cache=cache,
        tokenizer=tokenizer(), reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
        add_extra_token_to_sequence=extra)
    return BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()


def hash_of(numbers):
    all, mask = 0, 2**64 - 1
    for number in numbers:
        all = (all * 6364136223846793005 + int(number) + 1) & mask
    return all


def tokens_of(dataset):
    for i in range(len(dataset)):
        one, k = dataset, i
        if hasattr(dataset, "datasets"):
            one, k = dataset.datasets[dataset.dataset_index[i]], dataset.dataset_sample_index[i]
        yield from one._query_document_sample_shuffle_indices(k)[0].tolist()


PARTS = ["train", "valid", "test"]


def line(prefix, length, extra, samples, seed, split, part):
    with tempfile.TemporaryDirectory() as cache:
        sizes = [None, None, None]
        sizes[part] = samples or None
        made = datasets(str(prefix), length, extra, sizes, seed, split, cache)[part]
        return (f"{prefix.name} {length} {int(extra)} {samples} {seed} {split} {PARTS[part]} {len(made)} "
                f"{hash_of(tokens_of(made))}\n")


def write_made(folder):
    """Sequences of 0 to 60 tokens, each token the number of its place; some sequences together are a document."""
    lengths = np.random.RandomState(39).randint(0, 61, 40)
    lengths[[3, 4, 17]] = 0, 1, 60
    at = 0
    builder = IndexedDatasetBuilder(str(folder / "made.bin"), dtype=np.uint16)
    for first in range(0, 40, 4):
        documents = [lengths[first:first + 3], lengths[first + 3:first + 4]]
        for some in documents:
            builder.add_document(np.arange(at, at + some.sum()), some.tolist())
            at += some.sum()
    builder.finalize(str(folder / "made.idx"))
    return folder / "made"


def write_more(folder):
    builder = IndexedDatasetBuilder(str(folder / "more.bin"), dtype=np.uint16)
    for first in range(2000, 2300, 20):
        builder.add_document(np.arange(first, first + 20), [20])
    builder.finalize(str(folder / "more.idx"))
    return folder / "more"


def blend_line(prefixes, weights, samples, length, seed):
    with tempfile.TemporaryDirectory() as cache:
        made = datasets(None, length, True, [samples or None, None, None] if not weights else [samples] * 3, seed, "1", cache,
                        ([str(one) for one in prefixes], weights or None))[0]
        return (f"{','.join(map(str, weights)) or 0} {samples} {length} {seed} {len(made)} "
                f"{hash_of(tokens_of(made))}\n")


def order_line(weights, samples):
    normal = normalize(weights)
    size = sum(share[0] for share in _get_size_per_split_per_dataset(normal, [samples]))
    dataset, sample = np.zeros(size, dtype=np.int16), np.zeros(size, dtype=np.int64)
    build_blending_indices(dataset, sample, normalize(normal), len(weights), size, False)
    return (f"{','.join(map(str, weights))} {samples} {size} "
            f"{hash_of(np.stack((dataset, sample), axis=1).reshape(-1))}\n")


def write_blends(folder, prefixes):
    blends = "".join(blend_line(prefixes, *one) for one in (
        ([0.3, 0.7], 200, 16, 1234), ([3.0, 1.0], 77, 20, 5), ([1.0, 1.0], 100, 7, 0), ([], 0, 16, 1234), ([], 50, 16, 1234)))
    (folder / "blends.txt").write_text(blends)
    draw = np.random.RandomState(41)
    orders = "".join(order_line([round(float(one), 3) for one in draw.uniform(0, 5, count)], samples)
                     for count, samples in ((1, 10), (3, 1000), (7, 500), (8, 500), (19, 3000), (40, 5000)))
    (folder / "orders.txt").write_text(orders)


def write_cache(prefix, folder):
    with tempfile.TemporaryDirectory() as cache:
        datasets(str(prefix), 16, True, [200, None, None], 7, "80,20,0", cache)
        for path in pathlib.Path(cache).glob("*train*.npy"):
            (folder / f"cache-{path.name[path.name.index('GPTDataset'):]}").write_bytes(path.read_bytes())


def write_all(folder):
    made, cases = write_made(folder), ""
    write_cache(made, folder)
    write_blends(folder, [made, write_more(folder)])
    draw = np.random.RandomState(40)
    for i in range(60):
        split = ["1", "80,20,0", "969, 30, 1".replace(" ", ""), "50/25/25", "0.3,0.3,0.4", "2,1"][i % 6]
        part = 0 if split in ("1", "969,30,1") else i // 6 % 2
        cases += line(made, int(draw.randint(1, 40)), i % 5 != 4, int(draw.choice([0, 1, 50, 120, 333])),
                      int(draw.choice([0, 1, 1234, 2**32 - 1])), split, part)
    cases += line(made, 16, True, 200, 7, "80,20,0", 0)
    text = DATA / "meg-gpt2-openwebtext_text_document"
    for length, samples, seed, split, part in ((1024, 0, 1234, "1", 0), (1024, 3000, 1234, "969,30,1", 0),
                                               (512, 100, 7, "969,30,1", 1), (100, 5000, 42, "100,0,0", 0)):
        cases += line(text, length, True, samples, seed, split, part)
    cases += line(DATA / "ag_news_prompt_inputs_document", 64, True, 500, 3, "90,5,5", 0)
    (folder / "cases.txt").write_text(cases)


with tempfile.TemporaryDirectory() as made:
    write_all(pathlib.Path(made))
    text = text_of(pathlib.Path(made), "tools/megatron_oracles.py with Megatron Core")
if "--check" not in sys.argv[1:]:
    FILE.write_text(text, encoding="utf-8")
elif text != FILE.read_text(encoding="utf-8"):
    sys.exit("megatron_oracles: Megatron says something else now; run tools/megatron_oracles.py and look at what changed")
