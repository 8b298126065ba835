#!/usr/bin/env python3
"""Figures of source trees, one column each (tools/house.sh). Counted on the text of C files, without a compiler."""
import collections
import os
import re
import sys

import lint_names

PRODUCT = ("server", "client", "libfl", "tools")
TESTS = (".c", ".h", ".sh", ".py")
# A field of a task: each header or .proto that names it has one more form of the task, from the coordinator to the trainer.
TASK_FIELD = re.compile(r"\border_seed\b")
# A figure, a verb of flctl and a field of a message: how many files of the product and of proto/ name one of each.
# The verb in all its spellings, and not the drain of HTTP/2 or the command to clients of that name.
EXAMPLES = (("figure 'n_capped'", r"\bn_capped\b"),
            ("verb 'drain'", r'"drain"|\bFL_(ADMIN|EV)_DRAIN\b|\bDRAIN, drain\b|\bfl__coord_drain\b|/Drain\b|\brpc Drain\b'),
            ("field 'order_seed'", r"\border_seed\b"))


def files_of(root, tops, suffixes):
    for top in tops:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith(suffixes):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8", errors="replace") as file:
                        yield os.path.relpath(path, root), file.read()


def upward(edges):
    """Edges that point back in an order of the nodes that has few of them (Eades, Lin and Smyth's heuristic)."""
    nodes = {node for edge in edges for node in edge}
    left, right, rest = [], [], set(nodes)
    while rest:
        out = {n: sum(1 for a, b in edges if a == n and b in rest and b != n) for n in rest}
        into = {n: sum(1 for a, b in edges if b == n and a in rest and a != n) for n in rest}
        sinks = sorted(n for n in rest if out[n] == 0)
        sources = sorted(n for n in rest if into[n] == 0)
        if sinks:
            right[:0] = sinks
            rest -= set(sinks)
        elif sources:
            left += sources
            rest -= set(sources)
        else:
            node = max(sorted(rest), key=lambda n: out[n] - into[n])
            left.append(node)
            rest.discard(node)
    place = {node: i for i, node in enumerate(left + right)}
    return sum(place[a] > place[b] for a, b in edges)


def arrows_up(code):
    """Calls between the .c files of a room against its best order."""
    home = {name: f for f, text in code.items() if f.endswith(".c") for name in lint_names.EXTERNAL.findall(text)}
    rooms = collections.defaultdict(set)
    for f, text in code.items():
        if f.endswith(".c"):
            for name in set(re.findall(r"\bfl_\w+", text)):
                to = home.get(name)
                if to is not None and to != f and os.path.dirname(to) == os.path.dirname(f):
                    rooms[os.path.dirname(f)].add((f, to))
    return {room: upward(edges) for room, edges in rooms.items()}


def measures(root):
    product = dict(files_of(root, PRODUCT, (".c", ".h")))
    code = {f: lint_names.TOKENS.sub("", text) for f, text in product.items()}
    statics = collections.defaultdict(set)
    for f, text in product.items():
        for name in lint_names.STATIC.findall(text):
            statics[name].add(f)
    long_lists = sum(len(list(lint_names.long_parameter_lists(f, text))) for f, text in code.items())
    documents = dict(files_of(root, ("docs",), (".md",)))
    up = arrows_up(code)
    yield "lines of C of the product", sum(text.count("\n") for text in product.values())
    yield "lines of tests", sum(text.count("\n") for _, text in files_of(root, ("tests",), TESTS))
    yield "calls upward inside rooms", sum(up.values())
    for room in sorted(up, key=up.get, reverse=True)[:5]:
        yield "  in " + room, up[room]
    messages = dict(files_of(root, ("proto",), (".proto",)))
    headers = [text for f, text in product.items() if f.endswith(".h")]
    yield "forms of a task", sum(bool(TASK_FIELD.search(text)) for text in headers + list(messages.values()))
    named = list(product.values()) + list(messages.values())
    for what, pattern in EXAMPLES:
        yield "files that name the " + what, sum(bool(re.search(pattern, text)) for text in named)
    yield "functions outside kernels with more than seven parameters", long_lists
    yield "static functions of one word", sum(len(files) for name, files in statics.items() if "_" not in name)
    yield "static names in more than three files", sum(len(files) > 3 for files in statics.values())
    yield "external functions that only tests and benchmarks call", len(set(lint_names.without_caller(product)))
    yield ("private words in messages and documents",
           sum(1 for f, text in list(product.items()) + list(documents.items())
               if f != os.path.join("docs", "architecture.md") for _ in lint_names.words_of(f, text)))
    yield "pages of docs/", len(documents)
    yield "words of docs/", sum(len(text.split()) for text in documents.values())


def main():
    columns = [dict(measures(root)) for root in sys.argv[1:]]
    names = list(dict.fromkeys(name for column in columns for name in column))
    if len(columns) > 1:
        print("".join("%10s" % os.path.basename(root) for root in sys.argv[1:]))
    for name in names:
        print("".join("%10s" % column.get(name, "") for column in columns) + "  " + name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
