#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lengths.py VOCABULARY MERGES PAGES SECTIONS: lengths in tokens of the manuals in Debian's packages python3.11-doc,
postgresql-doc-15 and linux-doc-6.1 (what is installed of other versions of them does as well).

The text of each HTML page, without navigation, in the tokens of a byte-level BPE (GPT-2's vocab.json and merges.txt). Two files of
32-bit numbers: a length for each page, and a length for each section, which begins at a heading. The order is that of the
paths."""

import array
import glob
import html.parser
import sys

from tokenizers import ByteLevelBPETokenizer

PACKAGES = ["/usr/share/doc/python3.*-doc/html", "/usr/share/doc/postgresql-doc-*/html", "/usr/share/doc/linux-doc-*/html"]


class Sections(html.parser.HTMLParser):
    """The text of a page, cut at its headings."""

    UNSEEN = {"script", "style", "nav", "head"}

    def __init__(self):
        super().__init__()
        self.sections, self.unseen = [[]], 0

    def handle_starttag(self, tag, attrs):
        if tag in self.UNSEEN:
            self.unseen += 1
        elif tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
            self.sections.append([])

    def handle_endtag(self, tag):
        if tag in self.UNSEEN and self.unseen:
            self.unseen -= 1

    def handle_data(self, data):
        if not self.unseen:
            self.sections[-1].append(data)

    def texts(self):
        """The sections that have text."""
        return [text for text in ("".join(section).strip() for section in self.sections) if text]


def main():
    vocabulary, merges, pages, sections = sys.argv[1:]
    tokenizer = ByteLevelBPETokenizer(vocabulary, merges)
    page_lengths, section_lengths = array.array("I"), array.array("I")
    folders = sorted(folder for pattern in PACKAGES for folder in glob.glob(pattern))
    for path in sorted(path for folder in folders for path in glob.glob(folder + "/**/*.html", recursive=True)):
        page = Sections()
        with open(path, encoding="utf-8", errors="replace") as file:
            page.feed(file.read())
        texts = page.texts()
        if not texts:
            continue
        section_lengths.extend(len(text.ids) for text in tokenizer.encode_batch(texts))
        page_lengths.append(len(tokenizer.encode("\n\n".join(texts)).ids))
    for path, lengths in [(pages, page_lengths), (sections, section_lengths)]:
        with open(path, "wb") as file:
            lengths.tofile(file)
    print(f"{len(folders)} manuals, {len(page_lengths)} pages, {len(section_lengths)} sections, {sum(page_lengths)} tokens")


if __name__ == "__main__":
    main()
