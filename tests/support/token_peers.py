#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokenizers of Hugging Face's tokenizers, tiktoken and SentencePiece, and the tokens that they make of many texts.

    token_peers.py check                               fails if one of them cannot be imported
    token_peers.py write KIND FOLDER ASSIGNED FILE...  trains tokenizers on the files, of 50,257 and 128,256 tokens and smaller,
                                                       and writes them to FOLDER with their tokens of some thousand texts;
                                                       KIND is bpe or sentencepiece, ASSIGNED a file of all characters that
                                                       may be used
    token_peers.py fixtures FOLDER                     both with small tokenizers and few texts: tests/data/tokenizers

FOLDER/texts.hex has a text in each line, as hexadecimal digits; FOLDER/cases.list a tokenizer in each line: its name, its
kind (json, gpt2, tiktoken or sentencepiece), its file, and words that say how it is asked; FOLDER/NAME.tokens the tokens of
each text, or "newer" where a text has characters that tokenizers, whose tables are those of an older Unicode, does not
normalise. What others call tokenizer.json is NAME.tokenizer here, and merges.txt merges.bpe."""

import base64
import json
import os
import pathlib
import random
import sys
import unicodedata

os.environ.update(TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
SMALL_TEXT = ("In the beginning there was a loader, and the loader was slow. It's what we'll measure: 2048 rows, 40"
              "96 tokens.\nfor i in range(10):\n    print(f\"{i:>4}\", end=\"\\t\")  # comments\n\n\n\tif (x != y) "
              "{ return a[i] + b->c; }\n\nDie Stra\u00dfe ist na\u00df; o\u00f9 est la biblioth\u00e8que ? \u00bfD"
              "\u00f3nde est\u00e1? \u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0393\u03b5\u03b9"
              "\u03ac \u03c3\u03bf\u03c5 \u039a\u03cc\u03c3\u03bc\u03b5. \u4f60\u597d\uff0c\u4e16\u754c\u3002\u3053"
              "\u3093\u306b\u3061\u306f\u4e16\u754c \uc548\ub155\ud558\uc138\uc694 \uc138\uacc4 ")


def peers():
    import sentencepiece
    import tiktoken
    import tokenizers

    return tokenizers, tiktoken, sentencepiece


def texts(assigned, seed, count, long):
    """Texts of many scripts and of none: those that separate one way to split words from another."""
    draw = random.Random(seed)
    known = [c for c in assigned if unicodedata.category(c) not in ("Cn", "Cs")]
    pools = [range(32, 127), [9, 10, 13, 32, 32, 32, 0xA0, 0x85, 0x2028, 0x180E, 0x3000, 11, 12, 28], range(0x300, 0x370),
             range(0x410, 0x450), range(0x4E00, 0x4F00), range(0x1F600, 0x1F640), [0x200D, 0xFE0F, 0x1F3FB, 0x1F468, 0x1F33E],
             range(0, 32), range(0x30, 0x3A), range(0x600, 0x660), range(0xAC00, 0xAD00), range(0xE00, 0xE3B),
             [ord(c) for c in "'stmdrevlSTMDREVL\u017f\u212a\u2019 "], [0xB2, 0xBD, 0x2167, 0x663, 0xFF11, 0x3007],
             [0x1C5, 0x2B0, 0x5D0, 0xAA, 0x41, 0x61, 0x2F, 0x20, 0x301], range(0xE000, 0xE010), [0x10FFFD, 0xFFFD, 0xFEFF]]
    all_of = ["", " ", "  ", "\n", "\r\n\r\n x", " \n \n  x ", "\u180e a\u180eb", "x  y   z    ", "I'LL i'Ve can'T won't 's's",
              "1234567 12 3.14159 1,000,000", "<|endoftext|>", "a<|endoftext|>b", "<|endoftext|><|endoftext|> <|endoftext",
              "a <mask> b<mask>  c\u3000<mask>\n d", "<s></s>", "na\u00efve caf\u00e9", "e\u0301 \u00e9", "\x00\x01\x7f",
              "a" * 100, "ab" * 60,
              " " * 70 + "x", "\u4e00" * 50, "def f(x):\n        return x  # \u03bb\n", "https://example.org/a?b=c&d=%20#e"]
    for begin in range(0, len(known), 61):
        block = known[begin:begin + 61]
        all_of.append("".join(c for c in block if c not in newer))
        if not newer.isdisjoint(block):
            all_of.append("".join(c for c in block if c in newer))
        all_of.append(f"a{known[begin]} {known[begin]}{known[begin]}'s 1{known[begin]}")
    for _ in range(count):
        some = draw.sample(pools, draw.randint(1, 3))
        all_of.append("".join(chr(draw.choice(draw.choice(some))) for _ in range(draw.randint(1, 60))))
    all_of += unsettled(random.Random(seed + 1), known, count // 3)
    if long:
        all_of += ["x" * 5000, "ab" * 4000, " " * 9000 + "x", "\n" * 5000,
                   "".join(chr(draw.randrange(97, 123)) for _ in range(16000)), "\u4e00\u4e8c" * 3000]
    return all_of


def unsettled(draw, known, count):
    """Texts that a normal form changes."""
    normal = unicodedata.normalize
    marks = [c for c in known if unicodedata.combining(c) and c not in newer] or list("\u0300\u0301\u0323\u0327\u0345")
    letters = [c for c in known if unicodedata.decomposition(c)] + list("aeoqAO \u03c9\u0915\u05d0\u1100\uac00\u3046")
    decomposed = normal("NFD", "d\u00e9j\u00e0 vu, \u1ea4t \u1ed9 \u01d5, \u0439\u0451, \u03ac\u1f82, \ud55c\uad6d\uc5b4 \uac00, "
                               "\u304c\u30d1")
    all_of = [decomposed, normal("NFC", decomposed), "\u212b\u2126\u212a \u0340\u0344 \u2000x",
              "\u1112\u1161\u11ab\u1112\u1161 \ud558\u11ab\u11ab", "\ud558\u11a7 \u1161\u11ab",
              "\u0958 \u0915\u093c \u09af\u09bc \u09dc \u0b47\u0b56 \u0dd9\u0dcf\u0dca",
              "q\u0307\u0323 q\u0323\u0307 a\u0307\u0301\u0323 x\u0315\u0300\u05ae",
              "e" + "\u0301\u0323" * count + "f", "\u0301", "\u0301\u0323a", "ae\u0301<|endoftext|>",
              "a<|endoftext|>\u0301b", "e<|endoftext|>\u0301\u0323", "<e\u0301> <\u00e9>", "e\u0301x \u00e9x e\u0301\u0323x",
              "\ufb01 \uff21\uff71\uff9e \u3231 \ufdfa \u00bd \u2460", "\U0001d15e \U0001109a\U000110ba \ufb2c"]
    for begin in range(0, len(letters), 61):
        all_of.append(" ".join(normal("NFKD", c) for c in letters[begin:begin + 61]))
    for _ in range(count):
        all_of.append("".join(normal("NFD", draw.choice(letters)) + "".join(draw.choices(marks, k=draw.choice((0, 0, 1, 1, 2, 4))))
                              for _ in range(draw.randint(1, 20))))
    return all_of


def newer_than_tokenizers(assigned):
    """Characters that a normal form treats as such here, and not in tokenizers, whose tables are those of Unicode 9: marks that
    it does not order, and what it does not decompose."""
    tokenizers, _, _ = peers()
    orders, decomposes = tokenizers.normalizers.NFD().normalize_str, tokenizers.normalizers.NFKD().normalize_str
    made = set()
    for c in assigned:
        ordered = not unicodedata.combining(c) or all(
            orders(one) == unicodedata.normalize("NFD", one) for mark in "\u0323\u0301\u05b0\u0345"
            for one in ("a" + c + mark, "a" + mark + c))
        if not ordered or decomposes(c) != unicodedata.normalize("NFKD", c):
            made.add(c)
        if orders(c) != unicodedata.normalize("NFD", c):
            made.update(unicodedata.normalize("NFD", c))  # and does not compose
    assert len(made) < 500 and all(unicodedata.ucd_3_2_0.category(c) == "Cn" for c in made), sorted(made)
    return made


newer = set()  # what newer_than_tokenizers finds


def byte_alphabet():
    made, other = {}, 256
    for byte in range(256):
        printable = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        made[chr(byte if printable else other)] = byte
        other += not printable
    return made


class Writer:
    def __init__(self, folder, all_of, training, sizes):
        self.folder, self.texts, self.training, self.sizes = pathlib.Path(folder), all_of, training, sizes
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cases = []
        self.tokenizers, self.tiktoken, self.sentencepiece = peers()
        (self.folder / "texts.hex").write_text("".join(one.encode().hex() + "\n" for one in all_of))

    def case(self, name, kind, file, encode, *words, like=None):
        """`like`: a case whose tokens are the same, of texts without special tokens if the words have "ordinary"."""
        self.cases.append(" ".join((name, kind, file) + words) + "\n")
        known = (self.folder / f"{like}.tokens").read_text().splitlines(True) if like else ()

        def line(i, one):
            if like and not ("ordinary" in words and "<" in one):
                return known[i]
            if "normal" in words and not newer.isdisjoint(one):
                return "newer\n"
            return " ".join(map(str, encode(one))) + "\n"
        (self.folder / f"{name}.tokens").write_text("".join(line(i, one) for i, one in enumerate(self.texts)))

    def train(self, pre_tokenizer, size, special=("<|endoftext|>",), **model):
        t = self.tokenizers
        made = t.Tokenizer(t.models.BPE(**model))
        made.pre_tokenizer = pre_tokenizer
        made.train_from_iterator(self.training if size > 10000 else self.training[::8], t.trainers.BpeTrainer(
            vocab_size=size, special_tokens=list(special), initial_alphabet=t.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False))
        return made

    def json(self, name, made, *words, like=None):
        file = f"{name.split('_')[0]}.tokenizer"
        made.save(str(self.folder / file))
        made = self.tokenizers.Tokenizer.from_file(str(self.folder / file))
        if "ordinary" in words:
            made.encode_special_tokens = True
        self.case(name, "json", file,
                  lambda one: made.encode(one, add_special_tokens="around" in words).ids, *words, like=like)

    def hugging_face(self):
        t = self.tokenizers
        pre, regex, large, larger, small = t.pre_tokenizers, t.Regex, *self.sizes
        bytes_alone = pre.ByteLevel(add_prefix_space=False, use_regex=False)
        gpt = self.train(pre.ByteLevel(add_prefix_space=False), large)
        self.json("gpt", gpt)
        self.json("gpt_ordinary", gpt, "ordinary", like="gpt")
        vocabulary = gpt.get_vocab()
        (self.folder / "vocab.bpe").write_text(json.dumps(vocabulary), encoding="utf-8")
        merges = json.loads(gpt.to_str())["model"]["merges"]
        (self.folder / "merges.bpe").write_text("#version: 0.2\n" + "".join(" ".join(one) + "\n" for one in merges),
                                                encoding="utf-8")
        self.case("gpt_files", "gpt2", "vocab.bpe", lambda one: gpt.encode(one).ids, like="gpt")

        llama = self.train(pre.Sequence([pre.Split(regex(LLAMA3), "isolated"), bytes_alone]), larger,
                           ("<s>", "</s>", "<|endoftext|>"), ignore_merges=True)
        llama.post_processor = t.processors.Sequence([
            t.processors.ByteLevel(trim_offsets=False),
            t.processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])])
        self.json("llama", llama)
        self.json("llama_around", llama, "around")

        roberta = self.train(pre.ByteLevel(add_prefix_space=True), small, ("<s>", "</s>"))
        roberta.add_special_tokens([t.AddedToken("<mask>", lstrip=True, rstrip=False)])
        roberta.add_tokens([t.AddedToken("  y", rstrip=True), t.AddedToken("ab" * 20), t.AddedToken("abab")])
        roberta.post_processor = t.processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
        self.json("roberta", roberta)
        self.json("roberta_around", roberta, "around")

        deepseek = pre.Sequence([
            pre.Split(regex(r"\p{N}{1,3}"), "isolated"), pre.Split(regex("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), "isolated"),
            pre.Split(regex(r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
                            r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"), bytes_alone])
        self.json("deepseek", self.train(deepseek, small))
        o200k = self.tiktoken_patterns()["o200k"]
        self.json("inverted", self.train(pre.Sequence([pre.Split(regex(o200k), "removed", invert=True), bytes_alone]), small))
        self.json("digits", self.train(pre.Sequence([pre.Digits(individual_digits=True),
                                                     pre.ByteLevel(add_prefix_space=False)]), small))
        self.json("numbers", self.train(pre.Sequence([pre.Digits(individual_digits=False),
                                                      pre.ByteLevel(add_prefix_space=True)]), small))
        self.json("literal", self.train(pre.Sequence([pre.Split(" ", "removed"), pre.Split("a.", "isolated"),
                                                      pre.ByteLevel(add_prefix_space=False, use_regex=False)]), small))
        self.json("lines", self.train(pre.Sequence([pre.Split(regex(r"$|^\w*".replace(r"\w", "[a-z]")), "isolated"),
                                                    bytes_alone]), small))
        self.normalizers(roberta)
        return gpt, llama

    def normalizers(self, source):
        """The same tokens with normalizers, and with added tokens that are sought before and behind them."""
        t = self.tokenizers
        pre, some = t.pre_tokenizers, t.normalizers
        for name, normalizer in (("qwen", some.NFC()), ("nfkc", some.NFKC()), ("nfd", some.NFD()),
                                 ("steps", some.Sequence([some.Prepend("_"), some.Replace(" ", "__"), some.NFKD()]))):
            made = t.Tokenizer.from_str(source.to_str())
            made.normalizer = normalizer
            made.post_processor = t.processors.ByteLevel(trim_offsets=False)
            if name == "qwen":
                made.pre_tokenizer = pre.Sequence([pre.Split(t.Regex(QWEN), "isolated"),
                                                   pre.ByteLevel(add_prefix_space=False, use_regex=False)])
            made.add_special_tokens([t.AddedToken("<|endoftext|>", normalized=False), t.AddedToken("<e\u0301>", normalized=False)])
            made.add_tokens([t.AddedToken("e\u0301x", normalized=True), t.AddedToken("q\u0307\u0323 a", normalized=True)])
            self.json(name, made, "normal")

    def tiktoken_patterns(self):
        from tiktoken_ext import openai_public as public

        made = {"llama3": LLAMA3, "gpt2": public.r50k_pat_str}
        public.load_tiktoken_bpe = lambda *a, **k: {bytes([i]): i for i in range(256)}
        for name in ("cl100k", "o200k"):
            made[name] = getattr(public, f"{name}_base")()["pat_str"]
        return made

    def ranks(self, gpt, llama):
        alphabet = byte_alphabet()
        for name, source in (("gpt", gpt), ("llama", llama)):
            tokens = (token for token, _ in sorted(source.get_vocab().items(), key=lambda one: one[1])
                      if token not in ("<s>", "</s>", "<|endoftext|>"))
            ranks = {bytes(alphabet[c] for c in token): i for i, token in enumerate(tokens)}
            (self.folder / f"{name}.tiktoken").write_bytes(
                b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
            for pattern, regex in self.tiktoken_patterns().items():
                if (name == "gpt") == (pattern == "gpt2"):
                    made = self.tiktoken.Encoding(pattern, pat_str=regex, mergeable_ranks=ranks,
                                                  special_tokens={"<|endoftext|>": len(ranks) + 3})
                    self.case(f"tiktoken_{pattern}", "tiktoken", f"{name}.tiktoken",
                              lambda one: made.encode(one, allowed_special="all"), pattern, str(len(ranks) + 3))
                    self.case(f"tiktoken_{pattern}_ordinary", "tiktoken", f"{name}.tiktoken", made.encode_ordinary,
                              pattern, str(len(ranks) + 3), "ordinary", like=f"tiktoken_{pattern}")

    def models(self):
        for name, options in (("unigram", {"model_type": "unigram"}),
                              ("fallback", {"model_type": "bpe", "byte_fallback": True, "split_digits": True})):
            self.sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(line for one in self.training for line in one.split("\n") if line),
                model_prefix=str(self.folder / name), vocab_size=self.sizes[2], minloglevel=2, character_coverage=0.98,
                hard_vocab_limit=False, input_sentence_size=20000, num_threads=1,
                normalization_rule_name="identity" if self.sizes[2] < 1000 else "nmt_nfkc", **options)
            (self.folder / f"{name}.vocab").unlink()
            made = self.sentencepiece.SentencePieceProcessor(model_file=str(self.folder / f"{name}.model"))
            self.case(name, "sentencepiece", f"{name}.model", made.encode)
            self.case(f"{name}_around", "sentencepiece", f"{name}.model",
                      lambda one: made.encode(one, add_bos=True, add_eos=True), "around")

    def all(self, *kinds):
        if "bpe" in kinds:
            self.ranks(*self.hugging_face())
        if "sentencepiece" in kinds:
            self.models()
        (self.folder / "cases.list").write_text("".join(self.cases))


def main():
    task, *arguments = sys.argv[1:]
    if task == "check":
        peers()
    elif task == "write":
        kind, folder, assigned, *files = arguments
        known = pathlib.Path(assigned).read_bytes().decode()
        newer.update(newer_than_tokenizers(known))
        training = [pathlib.Path(one).read_text(encoding="utf-8") for one in files[::4]]
        draw = random.Random(2)  # words of all scripts, so that there are enough tokens
        training += [" ".join("".join(draw.choices(known, k=draw.randint(1, 4))) for _ in range(3000)) for _ in range(40)]
        some = [one[:20000] for one in training[::len(training) // 25]]
        Writer(folder, texts(known, 1, 2000, True) + some, training, (50257, 128256, 8000)).all(kind)
    else:
        some = SMALL_TEXT + "\u0130\u01c5\u02b0\u05d0\u0663\u0e01\u0e33\u1680\u180e\u2028\u3000\uac00\ufeff\U0001f600\U000e0041"
        Writer(arguments[0], texts(some, 1, 60, False), [SMALL_TEXT], (400, 440, 360)).all("bpe", "sentencepiece")


main()
