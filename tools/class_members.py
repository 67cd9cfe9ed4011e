# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public members of a class as its header declares them: signatures, and what their comments say."""

import re

from source_tree import TOKEN

DOC = re.compile("\x01(\\d+)\x02")
CLAUSE = re.compile(
    r"\brequires\s+requires\b\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)?\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
ACCESS = re.compile(r"\s*(public|private|protected)\s*:(?!:)")
SHOWN_OPERATORS = ("()", "[]", "bool")


def closing(text, start):
    """The index behind the bracket that closes the one at `start`."""
    open_, close = text[start], {"(": ")", "{": "}", "<": ">", "[": "]"}[text[start]]
    depth, at = 0, start
    while at < len(text):
        if text[at] == open_:
            depth += 1
        elif text[at] == close and not (close == ">" and text[at - 1] in "-="):
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    raise ValueError(f"nothing closes {text[start:start + 40]}")


def without_comments(text):
    """(the code, in which `\\1n\\2` stands for the doc line n; the doc lines)"""
    docs = []

    def replace(match):
        said = match.group(0)
        if match.group("literal"):
            return said if not re.search(r"[{}();]", said) else '"..."'
        if said.startswith("///"):
            docs.append(said)
            return f"\x01{len(docs) - 1}\x02"
        return "\n" * said.count("\n")

    code = re.sub(r"^[ \t]*#.*(?:\\\n.*)*$", "", TOKEN.sub(replace, text), flags=re.MULTILINE)
    return CLAUSE.sub("", code), docs


def body_of(code, name):
    """What stands between the braces of a class; `outer::inner` is one within another. None if it is not defined here."""
    first, _, rest = name.partition("::")
    for found in re.finditer(rf"\b(?:class|struct)\s+(?:alignas\(\w+\)\s*)?{first}\b(?!\s*[<;(])[^;{{}}()]*\{{", code):
        body = code[found.end():closing(code, found.end() - 1) - 1]
        return body_of(body, rest) if rest else body
    return None


def without_constraint(text):
    """A declaration without the requires-clause that it begins with."""
    if not text.startswith("requires"):
        return text
    at = len("requires")
    while True:
        at = re.compile(r"[\s!]*").match(text, at).end()
        if text[at] == "(":
            at = closing(text, at)
        else:
            at = re.compile(r"[\w:]*").match(text, at).end()
            if text[at] == "<":
                at = closing(text, at)
            at = re.compile(r"[\w:]*").match(text, at).end()
        more = re.compile(r"\s*(&&|\|\|)").match(text, at)
        if not more:
            return text[at:].strip()
        at = more.end()


def bare(head):
    """A declaration without doc lines, attributes, template heads and the constraints after these."""
    text = " ".join(re.sub(r"\[\[.*?\]\]", "", DOC.sub(" ", head)).split())
    while text.startswith("template"):
        text = without_constraint(text[closing(text, text.index("<")):].strip())
    return text


def is_initialised(head):
    """Whether the brace after this is the initialiser of a data member, or a part of it."""
    text = bare(head)
    if re.match(r"(?:class|struct|enum|union)\b", text) or "operator" in text:
        return False
    return "(" not in text.split("=")[0]


def statements(body):
    """(access, doc numbers, declaration, its body) of each member; access is None before the first label. For a
    comment behind a declaration, on its line, the declaration is None."""
    docs, start, at, access = [], 0, 0, None
    head = block = None
    while at < len(body):
        here = body[at]
        blank = not body[start:at].strip()
        if blank and (label := ACCESS.match(body, at)):
            access, docs, at = label.group(1), [], label.end()
            start = at
            continue
        if here == "\x01":
            found = DOC.match(body, at)
            if blank and head is None:
                docs.append(int(found.group(1)))
                start = found.end()
            at = found.end()
            continue
        if here in "([":
            at = closing(body, at)
            continue
        if here == "{":
            end = closing(body, at)
            if is_initialised(body[start:at]):  # of a data member, which ends at its semicolon
                at = end
                continue
            head = body[start:at] if head is None else head
            block = body[at:end]
            if re.match(r"\s*[;,{]", body[end:]):
                at = end
                continue
            yield access, docs, head, block
            docs, start, at, head, block = [], end, end, None, None
            continue
        if here == ";":
            yield access, docs, (body[start:at] if head is None else head), block or ""
            docs, at, head, block = [], at + 1, None, None
            after = re.match("[ \t]*\x01(\\d+)\x02", body[at:])
            if after:  # ///< on the line
                docs_after = int(after.group(1))
                at += after.end()
                yield access, [docs_after], None, None
            start = at
            continue
        at += 1


def signature(head):
    """(name, what a reader should see) of a declaration; None for what is no member to list."""
    text = bare(head)
    text = re.sub(r"\b(?:constexpr|consteval|inline|mutable) ", "", text)
    if re.match(r"(?:using|typedef|static_assert|friend (?:class|struct)|~)", text) or not text:
        return None
    nested = re.match(r"(?:class|struct|enum class|enum)\s+(\w+)", text)
    if nested:
        return nested.group(1), nested.group(0)
    operator = re.search(r"\boperator\s*(\(\)|\[\]|[^\s\w(]+|[\w:<>, &]+?)\s*(?=\()", text)
    called = operator or re.search(r"(~?\w+)\s*\(", text)
    equals = re.search(r"(?<![=<>!])=(?!=)", text)
    if called and not (equals and equals.start() < called.start() and not operator):
        end = closing(text, text.index("(", called.end(1)))
        tail = re.sub(r"\bnoexcept(?:\([^)]*\))?|\brequires\b.*", "", text[end:])
        qualifiers = re.match(r"\s*((?:const\b|&&?|->\s*[\w:<>]+|\s)*)(.*)", tail)
        if re.match(r"\s*=\s*(?:delete|default)", qualifiers.group(2)):
            return None
        name = f"operator{operator.group(1)}" if operator else called.group(1)
        return name, (text[:end] + (" " + qualifiers.group(1) if qualifiers.group(1).strip() else "")).strip()
    text = re.sub(r"(?<=\w)\{\}$", "", text)
    name = re.search(r"(\w+)\s*(?:=.*|\{.*\})?$", re.split(r",\s*(?=\w+ =|\w+$)", text)[0])
    return (name.group(1), text) if name else None


def members_of(code, docs, name):
    """[(name, signature, comment)] of a class, in the order of its header; None where it is not defined here."""
    body = body_of(code, name)
    if body is None:
        return None
    own = name.split("::")[-1]
    is_class = re.search(rf"\bclass\s+{own}\b(?!\s*[<;(])[^;{{}}()]*\{{", code) is not None
    found, seen = [], set()
    for access, numbers, head, block in statements(body):
        comment = [re.sub(r"^///<? ?", "", docs[n]) for n in numbers]
        if head is None:
            if found and found[-1][3]:
                found[-1][2] = found[-1][2] or comment
            continue
        if found:
            found[-1][3] = False
        if (access or ("private" if is_class else "public")) != "public":
            continue
        told = signature(head)
        if told is None:
            continue
        member, shown = told
        operator = member.startswith("operator")
        if operator and not (comment or member[len("operator"):].strip() in SHOWN_OPERATORS):
            continue
        if operator and member[len("operator"):].strip() in ("=", "==", "++", "<=>"):
            continue
        if member == own and not comment or shown.startswith(("class ", "struct ", "enum ")) and not comment:
            continue
        if "static_assert" in block and shown.endswith("&&"):
            continue
        key = re.sub(r"\s*(?:const)?\s*&*$|\bconst\b|&", "", shown).replace(" ", "")
        if key in seen:
            continue
        seen.add(key)
        found.append([member, shown, comment, True])
    return [tuple(entry[:3]) for entry in found]
