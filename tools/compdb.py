#!/usr/bin/env python3
"""compile_commands.json for clangd, clang-tidy and editors: `make compdb` in a build folder.

    compdb.py SOURCE_FOLDER COMPILER ARGUMENTS…     writes ./compile_commands.json
"""
import json
import os
import subprocess
import sys


def main():
    source = os.path.abspath(sys.argv[1])
    # Without the warnings that only one compiler knows.
    command = [word for word in sys.argv[2:] if not word.startswith("-W") or word in ("-Wall", "-Wextra")]
    names = subprocess.check_output(["git", "-C", source, "ls-files", "*.c"], text=True).split()
    entries = [{"directory": os.getcwd(), "file": os.path.join(source, name),
                "arguments": command + ["-c", os.path.join(source, name)]} for name in names]
    with open("compile_commands.json", "w", encoding="utf-8") as file:
        json.dump(entries, file, indent=0)
    print("%d files in %s/compile_commands.json" % (len(entries), os.getcwd()))
    return 0 if entries else 1


if __name__ == "__main__":
    sys.exit(main())
