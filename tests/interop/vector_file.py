"""A file of test vectors of docs/: good ones and refused ones, a vector a line, so that a change of one is a line of a diff."""
import json
import os
import sys
import unittest


def path_of(module):
    """NAME.json beside the decoder NAME.py of docs/."""
    return os.path.splitext(module.__file__)[0] + ".json"


def text(about, good, refused):
    return "{\"about\": %s,\n%s}\n" % (json.dumps(about), ",\n".join("\"%s\": [\n%s\n]" % (
        name, ",\n".join(json.dumps(row) for row in rows)) for name, rows in (("good", good), ("refused", refused))))


def main(path, made):
    """Of the script that makes the file: --write writes it, else its tests run."""
    if sys.argv[1:] == ["--write"]:
        with open(path, "w", encoding="utf-8") as out:
            out.write(made)
    else:
        unittest.main()


class Vectors(unittest.TestCase):
    """The tests of such a script have `path`, and made(), the text."""

    def setUp(self):
        with open(self.path, encoding="utf-8") as f:
            self.text = f.read()
        self.vectors = json.loads(self.text)

    def test_the_file_is_what_the_script_writes(self):
        self.assertEqual(self.text, self.made(), "run the script in tests/interop with --write")
