#!/usr/bin/env python3
"""Names and words: what `make lint` checks beyond formatting and arrows. Prints one line per finding, exits 1 on any.

- a base name of a source file exists once in the product (schema.c: a database of its own each);
- an external function is defined once, and a struct, union or enum tag fl_... has one body;
- a static function's name stands in at most three files;
- a .c file uses something of each header that it includes;
- messages (string literals of the product) and documents do not use private vocabulary (docs/architecture.md#terms).

tools/house.sh prints how many of each kind there are, beside what lint does not bound.
"""
import collections
import re
import subprocess
import sys

SHARED_BASE_NAMES = {"schema.c"}
# Includes the header of its library for everybody.
FOR_ITS_LIBRARY = {"libfl/json/json.h"}
# fl-sim links one of two files: with MPI or without.
LINK_TIME_CHOICES = {"mpi_ranks_begin"}
# Each solver completes the type for its own file; only pointers cross files.
PRIVATE_BODIES = {"fl_solver"}
WORDS = re.compile(
    r"\b(whoever|nobody|somebody|anew|for good|(?:is|are) over|comes? again|coming again|taken up|of before|"
    r"(?:is|are|was|were) told|(?:is|are) heard|lanes?|mixtures?|bundles?|knocks?|crew|shelf|who is here|"
    r"set aside|sees? off|wish(?:es)?)\b")
TOKENS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
EXTERNAL = re.compile(r"^(?!static\b|typedef\b|#)[a-zA-Z_][^;{}()=#]*\b([a-z_]\w*)\([^;{}]*\)\n\{", re.M)
STATIC = re.compile(r"^static\b[^;{}()=#]*\b([a-z_]\w*)\([^;{}]*\)\n\{", re.M)
CODE_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
INCLUDE = re.compile(r'^#include "([^"]+)"[^\n]*', re.M)
ENUM = re.compile(r"enum\s*\w*\s*\{([^}]*)\}")
NAMES = [re.compile(pattern) for pattern in (
    r"#define\s+(\w+)", r"(?:struct|union|enum)\s+(\w+)\s*[{;]", r"\b(\w+)\s*\([^;{}]*\)\s*[;{]",
    r"\(\s*\*?\s*(\w+)\s*\)\(", r"\btypedef\b[^;]*?\b(\w+)\s*(?:\([^;]*\))?;",
    r"\bextern\b[^;]*?\b(\w+)(?:\[[^\]]*\])*;", r"\b(\w+)(?:\[[^\]]*\])*\s*=\s*[^=]")]
# Declarations by the macros of libfl/wire/wire_row.h.
WIRE = re.compile(r"\b(?:FL_WIRE_(?:STRUCT|CODEC|CODEC_OF|OWNER|DONE|VALUE)\(|X\((?:TYPE|CODEC|OWNER), )(\w+)")
BODY = re.compile(r"^(?:struct|union|enum) (fl_\w+) \{", re.M)
DOCUMENT_EXTRAS = ("README.md", "CONTRIBUTING.md")
DEFINITION = re.compile(r"^[a-zA-Z_][^;{}()=#]*\b([a-z_]\w*)\(([^;{}]*)\)\n\{", re.M)


def listed(*patterns):
    names = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard", *patterns], text=True).split()
    return [name for name in names if not name.startswith("tests/")]


def read(name):
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:  # removed, not committed yet
        return ""


def more_than(most, places):
    return {name: sorted(files) for name, files in places.items() if len(files) > most}


def words_of(name, text):
    """The findings in the string literals of a C file, or in a document outside its code spans."""
    if name.endswith((".c", ".h")):
        for match in TOKENS.finditer(text):
            if match.group()[0] == '"' and " " in match.group():
                for word in WORDS.finditer(match.group()):
                    yield text.count("\n", 0, match.start()) + 1, word.group()
        return
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            for word in WORDS.finditer(re.sub(r"`[^`]*`", "", line)):
                yield number, word.group()


def without_comments(text):
    return COMMENT.sub("", text)


def names_of(header):
    """What a header defines or declares."""
    text = without_comments(read(header))
    names = {name for pattern in NAMES for name in pattern.findall(text)}
    for constants in ENUM.findall(text):
        names.update(re.findall(r"\b[A-Z]\w+", constants))
    for stem in WIRE.findall(text):
        names.update("fl_wire_%s%s" % (stem, end) for end in ("", "_encode", "_decode", "_done"))
    return names


def unused_includes():
    sources = [f for f in subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard", "*.c", "*.h"],
                                                  text=True).split()]
    known = {f: names_of(f) for f in sources if f.endswith(".h") and not f.endswith("_impl.h")}
    for name in sources:
        if name.endswith(".c"):
            text = without_comments(read(name))
            used = set(re.findall(r"\w+", INCLUDE.sub("", text)))
            for header in INCLUDE.findall(text):
                if header in known and header not in FOR_ITS_LIBRARY and not known[header] & used:
                    yield "%s: nothing of %s is used" % (name, header)


def long_parameter_lists(name, text):
    """Functions of more than seven parameters; kernels and callbacks of a library may have them."""
    if name.endswith(".c") and not name.startswith("libfl/num/"):
        for match in DEFINITION.finditer(text):
            if match.group(2).count(",") + 1 > 7 and match.group(1) not in ("on_header_field", "fl__http_on_request"):
                yield match.group(1)


# External functions that only tests and benchmarks call, each with the reason. Everything else that the product does not
# call is static, or goes.
FOR_TESTS = {
    "fl__source_mem": "fuzz targets read files from memory",
    "fl_grpc_server_connections": "a closed connection cannot be seen from outside",
    "fl_net_layer_flops": "bench/train compares with the peak of the processor",
    "fl_net_evaluate": "loss and number of right answers, without the logits that metrics need",
    "fl_net_first": "likewise: the first layer has no input gradient",
    "fl_net_watch": "bench/train --profile measures parts of a step; with no watcher a step has no clock",
    "fl_conv_algorithm": "a test must know which of the algorithms it compares",
    "fl__kernels_row": "each instruction set is compared on one machine",
    "fl_key_is_private": "a parsed request or certificate must have no private half",
    "fl_trust_roots": "how many roots are in force during a renewal",
    "fl_tls_peer_chain": "which certificate a peer showed after a reload",
    "fl_store_put_clients": "bench/commit fills a database with 100 000 clients without as many rounds",
    "fl_uploads_bytes": "what is in the spool, without its files' names",
}


def without_caller(product):
    """External functions that no code of the product but their definition names; `product`: file -> text."""
    code = {f: CODE_COMMENTS.sub("", text) for f, text in product.items()}
    named = collections.Counter(name for text in code.values() for name in re.findall(r"\bfl_\w+", text))
    declared = collections.Counter(name for f, text in code.items() if f.endswith(".h")
                                   for name in re.findall(r"^[a-zA-Z_][^;{}()=#]*\b(fl_\w+)\([^;{}]*\)[^;{}]*;", text, re.M))
    for f, text in code.items():
        if f.endswith(".c"):
            for name in EXTERNAL.findall(text):
                if declared[name] > 0 and named[name] - declared[name] <= 1:
                    yield name


def findings():
    found = {"base names": [], "external names": [], "tags": [], "static names": [], "words": [],
             "more than seven parameters": []}
    found["includes"] = list(unused_includes())
    bases, externals, tags, statics = (collections.defaultdict(set) for _ in range(4))
    product = [f for f in listed("server", "client", "libfl", "tools") if f.endswith((".c", ".h"))]
    for name in product:
        text = read(name)
        bases[name.rsplit("/", 1)[1]].add(name)
        for function in EXTERNAL.findall(text):
            if name.endswith(".c") and function != "main":
                externals[function].add(name)
        for tag in BODY.findall(text):
            tags[tag].add(name)
        for function in STATIC.findall(text):
            statics[function].add(name)
        found["words"] += ["%s:%d: '%s'" % (name, line, word) for line, word in words_of(name, text)]
        found["more than seven parameters"] += ["%s: %s" % (name, function) for function in
                                                long_parameter_lists(name, TOKENS.sub("", text))]
    uncalled = set(without_caller({name: read(name) for name in product}))
    found["no caller in the product"] = sorted(uncalled - set(FOR_TESTS))
    found["in FOR_TESTS, but called or removed"] = sorted(set(FOR_TESTS) - uncalled)
    for name in [f for f in listed("docs/*.md") if f.endswith(".md")] + list(DOCUMENT_EXTRAS):
        if name != "docs/architecture.md":  # defines them
            found["words"] += ["%s:%d: '%s'" % (name, line, word) for line, word in words_of(name, read(name))]
    for kind, places, most, allowed in (("base names", bases, 1, SHARED_BASE_NAMES),
                                        ("external names", externals, 1, LINK_TIME_CHOICES),
                                        ("tags", tags, 1, PRIVATE_BODIES), ("static names", statics, 3, set())):
        for name, files in sorted(more_than(most, places).items()):
            if name not in allowed:
                found[kind].append("%s: %s" % (name, " ".join(files)))
    return found


def main():
    found = findings()
    for kind, lines in found.items():
        for line in lines:
            print("%s: %s" % (kind, line))
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
