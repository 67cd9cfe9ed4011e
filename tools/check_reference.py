#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/reference/<room>.md and docs/reference/internals/<room>.md against the headers of the room.

Each public name (a class, concept, alias or constant of namespace penstock, and a function with a `///` block;
what lies in a detail folder or namespace, or in `mistakes`, is not public, nor is "A mistake", which is there for its
sentence) is in a page of its room, in code marks: in internals/ where `is_internal` says that programs do not name
what its header has, else in the reference. The part of a
page below its mark is made of those blocks and is current; `--write` makes it. A page names no header that is
not there, and its tables have as many cells in each row as in the head. `--list ROOM` prints the names.

docs/reference/members.md lists the public members of the classes in MEMBERS and of every options struct.
"""

import re
import sys

from class_members import members_of, without_comments
from source_tree import PENSTOCK, ROOMS, ROOT, component_of, finish, headers
from source_tree import is_detail, is_umbrella, relative, room_of, strip

PAGES = ROOT / "docs" / "reference"
INTERNALS = PAGES / "internals"
MEMBERS_PAGE = PAGES / "members.md"

# What programs do not name: folders, single headers, and concepts. USED is what they do name of it.
INNER = ("base/", "evaluation/", "run/bad/", "run/block/", "run/engine/", "run/feed/", "run/delivery/")
INNER_HEADERS = {f"{stem}.hpp" for stem in """core/compiled core/element core/fingerprint core/message core/mistake
    core/light_tuple core/part core/projection core/shape_class order/cost_cut order/cut order/order_chain order/step_cut
    device/image/image_places device/image/image_values device/image/image_work storage/fetched
    storage/range_store storage/session_view storage/sigbus_guard storage/threaded_reads""".split()}
USED = {f"run/{stem}.hpp" for stem in ("bad/bad_entry", "block/batch_handle")}

# Section -> (title, header, class) of each class whose members are listed. Options come by themselves.
MEMBERS = {
    "Runs": (("run", "run/run", "run"), ("an epoch of a run", "run/detail/run_ranges", "run_epoch"),
             ("next_result", "run/run", "next_result"), ("run_options", "core/options", "run_options"),
             ("run_limits", "core/options", "run_limits"), ("state", "run/state", "state"),
             ("any_loader", "integration/any_loader", "any_loader")),
    "Batches": (("batch_handle", "run/block/batch_handle", "batch_handle"),
                ("held_column", "run/block/batch_handle", "held_column"),
                ("batch_columns", "stage/batch_columns", "batch_columns")),
    "Views": (("tensor_view", "core/tensor", "tensor_view"), ("strided_view", "core/strided_view", "strided_view"),
              ("ragged_view", "core/uneven_views", "basic_ragged_view"),
              ("padded_view", "core/uneven_views", "basic_padded_view"),
              ("padded_arrays_view", "core/uneven_views", "basic_padded_arrays_view"), ("extents", "core/tensor", "extents"),
              ("device_array", "device/device_array", "device_array")),
    "Values": (("record", "core/record", "record"), ("destination", "core/destination", "destination"),
               ("buffer", "core/bytes", "buffer"), ("error", "core/error", "error")),
    "Tokenizers": (("bpe", "codec/bpe", "bpe_as"), ("spm", "codec/sentencepiece", "spm_as")),
    "What a stage is told": (("call", "core/call", "call"), ("position", "core/position", "position"),
                             ("rng", "core/random", "rng"), ("device_batch", "device/concepts", "device_batch")),
    "What a run did": (("run_counters", "observe/counters", "run_counters"),
                       ("stage_counters", "observe/counters", "stage_counters"),
                       ("bad_sample_counts", "observe/counters", "bad_sample_counts"),
                       ("verdict", "observe/verdict", "verdict"), ("progress", "observe/progress", "progress"),
                       ("timeline", "observe/timeline", "timeline"),
                       ("metrics_server", "integration/serve_metrics", "metrics_server")),
    "Worlds and datasets": (("world", "order/world", "world"), ("manifest", "source/manifest", "manifest"),
                            ("episodes", "source/episodes", "episodes"),
                            ("row_offsets", "source/window_options", "row_offsets")),
}
# Members that the engine alone uses.
UNLISTED = {"batch_handle": {"batch_handle", "forget"}, "timeline": {"stage_name", "session", "connect", "apply"},
            "error": {"error", "in_stage", "in_file", "for_key", "at_offset", "add_context", "in_part", "within"},
            "any_loader": {"iterator", "epoch_range", "epochs_range"}, "metrics_server": {"metrics_server"}}

KIND = re.compile(r"(?:class|struct|enum(?: class)?|concept|using)\s+(?:alignas\(\w+\)\s*)?(\w+)(<)?")
SKIP = {"operator", "requires", "alignas", "static_assert", "decltype", "noexcept", "friend"}
MARK = "<!-- below: made of the headers by tools/check_reference.py --write -->"
CLAUSE = re.compile(
    r"\brequires\s+requires\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)?\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
LABEL = re.compile(r"(?=\b(?:In|Out|Kind|Cost[^:.]{0,40}|Threads|Source|Memory|Waiting|Throws)(?::| `errc))")
MARKS = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


def without_templates(text):
    """The declaration without `template <...>`, attributes, requires-clauses in parentheses and decltype(auto)."""
    text = text.replace("decltype(auto)", "auto")
    text = re.sub(r"\[\[.*?\]\]", "", text)
    while (start := re.search(r"\btemplate\s*<", text)) is not None:
        depth, end = 1, start.end()
        while depth and end < len(text):
            depth += {"<": 1, ">": -1}.get(text[end], 0) if text[end - 1] != "-" else 0
            end += 1
        text = text[:start.start()] + text[end:]
    while (start := re.search(r"\brequires\s*\(", text)) is not None:
        depth, end = 1, start.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[:start.start()] + text[end:]
    return text.strip()


def name_of(declaration):
    """The name that a declaration introduces; None for operators, specialisations and assertions."""
    text = without_templates(declaration)
    kind = re.match(KIND, text)
    if kind:
        if text[kind.end(1):].startswith("::"):
            return None
        return None if kind.group(2) and not text.startswith(("concept", "using")) else kind.group(1)
    text = re.sub(r"^(?:requires\s[^;{]*?\s)?", "", text, count=1)
    for found in re.finditer(r"\b([A-Za-z_]\w*)\s*(\(|\{|=(?!=)|;)", text):
        if found.group(1) in SKIP or "operator" in text[:found.end()]:
            return None
        return found.group(1)
    return None


def names_in(header):
    """(line, name, block, declaration) of each public name: where `x` has no block, that of `basic_x` tells what
    `x` is."""
    declared = list(declared_in(header))
    known = {name for _, name, *_ in declared}
    bare = {
        name
        for _, name, block, _ in declared
        if f"basic_{name}" in known and block in ([], [f"The form to use: see `basic_{name}`."])
    }
    for line, name, block, declaration in declared:
        plain = name.removeprefix("basic_")
        if plain != name and plain in bare:
            yield line, plain, block, declaration
        elif name not in bare:
            yield line, name, block, declaration


def is_mistake(block):
    """Whether a block tells of an overload that is there for its sentence."""
    return bool(block) and block[0].startswith("A mistake")


def declared_in(header):
    """(line, name, block, declaration) of each public declaration at the level of the namespace."""
    text = header.read_text(encoding="utf-8")
    bare_text = strip(text, keep_strings=False)
    code = CLAUSE.sub(lambda clause: "\n" * clause.group(0).count("\n"), bare_text).splitlines()
    lines = text.splitlines()
    spaces, depth, documented, at, block = [], 0, False, None, []
    declaration = ""
    for number, (line, bare) in enumerate(zip(lines, code), 1):
        opened = re.match(r"\s*(?:inline )?namespace\s+([\w:\s]*)\{", bare)
        outer = bool(spaces) and depth == len(spaces) and not any(re.search("detail|mistakes", s) for s in spaces)
        if opened:
            if block:  # a block before the namespace penstock is about the header
                name = re.search(r"(\w+)\s*$", opened.group(1)).group(1)
                yield number, "" if re.fullmatch(r"v\d+_\d+|penstock", name) else name, block, bare.strip()
            for _ in range(bare.count("{")):
                spaces.append(opened.group(1))
            documented, block = False, []
        elif (outer or not spaces) and line.startswith("///"):
            documented, declaration, at = True, "", None
            block.append(line[4:] if line[3:4] == " " else line[3:])
        elif outer and bare.strip():
            at = at or number
            declaration += " " + bare.strip()
            if re.search(r"[{;]", re.sub(r"\{\}", "", bare)) or bare.rstrip().endswith("{}"):
                name = name_of(declaration)
                told = documented or re.match(KIND, without_templates(declaration)) or " constexpr " in declaration
                if name and told and not is_mistake(block):
                    after = re.search(r"///< (.*)", line)
                    yield at, name, block + ([after.group(1)] if after else []), declaration.strip()
                documented, declaration, at, block = False, "", None, []
        depth += bare.count("{") - bare.count("}")
        while len(spaces) > depth:
            spaces.pop()


def is_internal(name):
    """Whether programs name nothing of this header; those that add a source or a stage may."""
    inner = name.startswith(INNER) or name.endswith("/concepts.hpp") or name in INNER_HEADERS
    return inner and name not in USED


def headers_of(room, internal=None):
    """The headers that a page of the room tells of."""
    for header in headers():
        name = relative(header)
        if is_umbrella(name) or is_detail(name) or name.endswith("/components.hpp"):  # these only declare
            continue
        if room_of(name) == room and internal in (None, is_internal(name)):
            yield header, name


def public_names(room, internal=None):
    """name -> where it is declared first"""
    result = {}
    for header, name in headers_of(room, internal):
        for line, public, *_ in names_in(header):
            if public:
                result.setdefault(public, f"{name}:{line}")
    return result


def cell(text):
    return re.sub(r"(?<!\\)\|", r"\\|", text)


def told_in(block):
    """A doc block as (paragraphs, members, code): lines at two or three blanks are members with what they do,
    those at four an example."""
    prose, members, code = [[]], [], []
    in_code = False
    for line in block:
        member = re.match(r"\s{2,3}(\S.*?\S|\S)\s{2,}(\S.*)", line)
        in_code = line.startswith("    ") and (in_code or line[4] != " ")
        if in_code:
            code.append(line[4:])
        elif member:
            members.append([member.group(1), member.group(2)])
        elif line.startswith("     ") and members:
            members[-1][1] += " " + line.strip()
        elif not line.strip():
            prose.append([])
        elif not line.startswith("   "):
            prose[-1].append(line.strip())
    return [" ".join(lines) for lines in prose if lines], members, code


def made_of_headers(room, internal):
    lines = [MARK, "", "## Every name", ""]
    for header, name in headers_of(room, internal):
        found, seen, about = [], set(), []
        for _, public, block, declaration in names_in(header):
            if not public:
                about = [line for paragraph in told_in(block)[0] for line in (paragraph, "")]
            elif public not in seen or block:
                found.append((public, *told_in(block), declaration))
            seen.add(public)
        if not found:
            continue
        component = component_of(header)
        note = "" if component == "core" else f" (component `penstock::{component}`)"
        lines += [f"### `{name}`{note}", "", *about, "| name | what it is |", "|---|---|"]
        longer = []
        for public, paragraphs, members, code, declaration in found:
            prose = " ".join(paragraphs)
            first = re.match(r".*?\.(?=\s|$)", prose)
            short = prose if len(prose) <= 260 or not first else first.group(0)
            if short != prose or members or code:
                longer.append((public, paragraphs, members, code))
            if not short and f"{public}_stage" in seen:
                article = "an" if public[0] in "aeiou" else "a"
                short = f"Makes {article} `{public}_stage`."
            declared = re.sub(r"\s*[{=;].*", "", without_templates(declaration))
            lines.append(f"| `{public}` | {cell(short) if short else '`' + cell(declared) + '`'} |")
        lines.append("")
        for public, paragraphs, members, code in longer:
            lines.append(f"**`{public}`.**")
            for paragraph in paragraphs:
                # A labelled line is an item of a list; the text before it is a paragraph.
                for part in (part.strip() for part in LABEL.split(paragraph)):
                    is_item = LABEL.match(part) is not None
                    if not part:
                        continue
                    if lines[-1] == f"**`{public}`.**" and not is_item:
                        lines[-1] += " " + part
                        continue
                    if not (is_item and lines[-1].startswith("* ")):
                        lines.append("")
                    lines.append(f"* {part}" if is_item else part)
            if members and not lines[-1].startswith("* "):
                lines.append("")
            lines += [f"* `{what}`: {does}" for what, does in members]
            lines.append("")
            if code:
                lines += [f"<!-- in include/penstock/{name} -->", "```cpp", *code, "```", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def first_sentence(words):
    """All of a short comment, the first sentence of a long one."""
    found = re.match(r".*?\.(?=\s|$)", words)
    return found.group(0) if found and len(words) > 200 else words


def options_structs():
    """(title, header, class) of each struct of options that a program can name."""
    for header in headers():
        name = relative(header)
        if is_detail(name):
            continue
        text = header.read_text(encoding="utf-8")
        for found in re.finditer(r"^( *)struct (\w*options)\b[^;{]*\{", text, re.MULTILINE):
            if found.group(2) == "run_options":
                continue
            outer = ""
            if found.group(1):  # within the class that was begun last at a smaller indent
                outer = re.findall(r"^(?:class|struct) (\w+)[^;]*?\{", text[:found.start()], re.MULTILINE)[-1] + "::"
            yield outer + found.group(2), name.removesuffix(".hpp"), outer + found.group(2)


def members_made_of_headers():
    """The generated part of the page of members, and what is wrong with MEMBERS."""
    lines, faults = [MARK, ""], []
    for section, classes in (*MEMBERS.items(), ("Options", tuple(options_structs()))):
        lines += [f"## {section}", ""]
        for title, stem, name in classes:
            path = PENSTOCK / f"{stem}.hpp"
            found = members_of(*without_comments(path.read_text(encoding="utf-8")), name) if path.exists() else None
            if not found:
                faults.append(f"members.md: {stem}.hpp has no {name} with public members")
                continue
            shown = title if " " in title else f"`{title}`"
            lines += [f"### {shown}", "", f"In `{stem}.hpp`.", "", "| member | what it is |", "|---|---|"]
            for member, declaration, comment in found:
                if member in UNLISTED.get(title, ()) or is_mistake(comment):
                    continue
                if member.endswith("_"):
                    faults.append(f"members.md: {member} of {name} is private, and was read as public")
                words = " ".join(" ".join(paragraph for paragraph in told_in(comment)[0]).split())
                words = words if section == "Options" else first_sentence(words)
                lines.append(f"| `{cell(declaration)}` | {cell(words)} |")
            lines.append("")
    text = "\n".join(lines).rstrip("\n") + "\n"
    for header in headers():
        for name in re.findall(r"\bstruct\s+(\w+_options)\b(?!\s*;)", strip(header.read_text(encoding="utf-8"), False)):
            if not is_detail(relative(header)) and f"### `{name}`" not in text:
                faults.append(f"members.md: {name} of {relative(header)} is missing")
    return text, faults


def table_faults(name, text):
    head = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            head = 0
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        head = head or cells
        if cells != head:
            yield f"{name}:{number}: {cells - 1} cells in a table of {head - 1} columns"


def main():
    if "--list" in sys.argv[1:]:
        for public, where in public_names(sys.argv[sys.argv.index("--list") + 1]).items():
            print(f"{where}\t{public}")
        return
    pages = [(PAGES / f"{room}.md", room, False) for room in ROOMS if public_names(room, False)]
    pages += [(INTERNALS / f"{room}.md", room, True) for room in ROOMS if public_names(room, True)]
    members, faults = members_made_of_headers()
    if "--write" in sys.argv[1:]:
        INTERNALS.mkdir(exist_ok=True)
        for page, room, internal in pages:
            written = page.read_text(encoding="utf-8").split(MARK)[0] if page.exists() else f"# {room}\n\n"
            page.write_text(written + made_of_headers(room, internal), encoding="utf-8")
        written = MEMBERS_PAGE.read_text(encoding="utf-8").split(MARK)[0] if MEMBERS_PAGE.exists() else "# Members\n\n"
        MEMBERS_PAGE.write_text(written + members, encoding="utf-8")
    index = (PAGES / "README.md").read_text(encoding="utf-8") if (PAGES / "README.md").exists() else ""
    count = 0
    known = {page for page, *_ in pages} | {MEMBERS_PAGE, PAGES / "README.md"}
    for stray in sorted(set(PAGES.rglob("*.md")) - known):
        faults.append(f"{stray.relative_to(ROOT).as_posix()} is the page of no room")
    for page, room, internal in [*pages, (MEMBERS_PAGE, None, False)]:
        name = page.relative_to(ROOT).as_posix()
        if not page.exists():
            faults.append(f"{name} is not there")
            continue
        if f"({page.relative_to(PAGES).as_posix()})" not in index:
            faults.append(f"docs/reference/README.md has no link to {page.relative_to(PAGES).as_posix()}")
        text = page.read_text(encoding="utf-8")
        marked = set(re.findall(r"\w+", " ".join(MARKS.findall(text))))
        for public, where in sorted(public_names(room, internal).items()):
            count += 1
            if public not in marked:
                faults.append(f"{name} says nothing of {public} ({where})")
        for header in re.findall(r"`([a-z_]+/[a-z_/]+\.hpp)`", text):
            if not (PENSTOCK / header).exists():
                faults.append(f"{name}: there is no {header}")
        if not text.endswith(made_of_headers(room, internal) if room else members):
            faults.append(f"{name} is not current (tools/check_reference.py --write)")
        faults += table_faults(name, text)
        for tag in re.findall(r"<[A-Za-z/][^>\n]*>", MARKS.sub("", re.sub("<!--.*?-->", "", text))):
            faults.append(f"{name}: {tag} is not in code marks, and would not be shown")
    finish("check_reference", faults, f"{count} names")


if __name__ == "__main__":
    main()
