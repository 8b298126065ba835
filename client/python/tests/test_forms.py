"""The other ways in which a script runs: once per task with files, alone, and for its first model."""

import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..")

SCRIPT = """
import array, math, fl_trainer
class Model:
    def __init__(self):
        self.x = array.array("f", [1, 2, 3, 4])
    def names(self): return ["w.weight"]
    def get(self, name): return memoryview(self.x).cast("B").cast("f", (2, 2))
    def set(self, name, values): self.x[:] = array.array("f", values.cast("B").cast("f"))
def make(): return Model()
def train(model, task):
    if task.round == 13: raise RuntimeError("unlucky")
    for _ in task.batches(): model.x[0] = min(model.x[0] + task.learning_rate, math.inf)
    return math.nan if task.round == 14 else 0.25
def evaluate(model, task): return 4, 3, model.x[0]
if __name__ == "__main__":
    fl_trainer.run(make, train, evaluate, samples=10, test_samples=4, alone={"batch_size": 5})
"""


def safetensors(path, tensors):
    head, data = {}, b""
    for name, shape, numbers in tensors:
        raw = struct.pack(f"<{len(numbers)}f", *numbers)
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """Header and numbers of a safetensors file."""
    with open(path, "rb") as f:
        raw = f.read()
    (length,) = struct.unpack("<Q", raw[:8])
    data = raw[8 + length :]
    return json.loads(raw[8 : 8 + length]), list(struct.unpack(f"<{len(data) // 4}f", data))


class Forms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.script = self.path("script.py")
        with open(self.script, "w", encoding="utf-8") as f:
            f.write(SCRIPT)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_python(self, *arguments, **environment):
        env = dict(os.environ, PYTHONPATH=ROOT, PYTHONDONTWRITEBYTECODE="1", **environment)
        return subprocess.run(
            [sys.executable, *arguments], env=env, cwd=self.folder, capture_output=True, text=True
        )

    def run_task(self, model=(1, 2, 3, 4), shape=(2, 2), **fields):
        safetensors(self.path("model.st"), [("w.weight", list(shape), model)])
        task = {
            "version": 1, "round": 2, "attempt": 0, "seed": 5, "order_seed": 6, "learning_rate": 0.5,
            "momentum": 0.0, "weight_decay": 0.0, "epochs": 1, "steps": 0, "batch_size": 5,
            "time_limit_ms": 0, "data": None, "model": self.path("model.st"), "anchor": None,
            "evaluate_trained": False, "result_model": self.path("result.st"),
            "result": self.path("result.json"), "solver": {"name": "sgd", "options": {}},
            "personal": None, "network": None,
            "units": [{"name": "w", "tensors": [{"name": "w.weight", "shape": [2, 2], "buffer": False}]}],
        }
        task.update(fields)
        with open(self.path("task.json"), "w", encoding="utf-8") as f:
            json.dump(task, f)
        return self.run_python(self.script, FL_TASK=self.path("task.json"))

    def test_a_task_of_files(self):
        done = self.run_task(model=(10, 20, 30, 40), evaluate_trained=True)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        head, numbers = read(self.path("result.st"))
        self.assertEqual([11.0, 20.0, 30.0, 40.0], numbers)
        self.assertEqual({"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}, head["w.weight"])
        with open(self.path("result.json"), encoding="utf-8") as f:
            self.assertEqual(
                {
                    "samples": 10, "steps": 2, "train_loss": 0.25,
                    "received": {"samples": 4, "correct": 3, "loss_sum": 10.0},
                    "trained": {"samples": 4, "correct": 3, "loss_sum": 11.0},
                },
                json.load(f),
            )

    def test_what_goes_wrong_with_files_ends_it_with_1_and_the_reason_last(self):
        for fields, words in (
            ({"round": 13}, "RuntimeError: unlucky"),
            ({"round": 14}, "loss is not finite"),
            ({"version": 2}, "version 2, fl_trainer knows 1"),
            ({"shape": (4, 1)}, "tensor 'w.weight' is 2x2 in the program, 4x1 on the server"),
            ({"solver": {"name": "scaffold", "options": {}}}, "command.persistent: yes"),
            ({"solver": {"name": "prox", "options": {"mu": "0.1"}}}, "pull, which was not declared"),
        ):
            done = self.run_task(**fields)
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertIn(words, done.stderr.strip().splitlines()[-1])

    def test_a_model_that_diverged_is_left_for_the_client_to_see(self):
        done = self.run_task(round=14, learning_rate=1e39)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual([math.inf, 2.0, 3.0, 4.0], read(self.path("result.st"))[1])

    def test_alone_it_trains_the_model_as_it_is(self):
        done = self.run_python(self.script)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        lines = done.stdout.splitlines()
        self.assertIn("no client started this program", lines[0])
        self.assertEqual(
            ["fl_trainer: before training 3 of 4 correct (75.0 %), mean loss 0.25",
             "fl_trainer: 2 steps, mean loss 0.25",
             "fl_trainer: after training 3 of 4 correct (75.0 %), mean loss 0.255"],
            lines[1:],
        )

    def test_the_first_model_of_a_script(self):
        out = self.path("first.safetensors")
        done = self.run_python("-m", "fl_trainer", "save", f"{self.script}:make", out)
        self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr))
        head, numbers = read(out)
        self.assertEqual([1.0, 2.0, 3.0, 4.0], numbers)
        self.assertEqual([2, 2], head["w.weight"]["shape"])
        with open(out, "rb") as f:
            (length,) = struct.unpack("<Q", f.read(8))
        self.assertEqual(0, length % 8)
        self.assertEqual(["first.safetensors", "script.py"], sorted(os.listdir(self.folder)))

    def test_the_first_model_of_a_script_that_is_run(self):
        out = self.path("first.safetensors")
        done = self.run_python("-m", "fl_trainer", "save", self.script, out)
        self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr))
        self.assertEqual([1.0, 2.0, 3.0, 4.0], read(out)[1])
        other = self.path("other.py")
        with open(other, "w", encoding="utf-8") as f:
            f.write("import sys\nassert sys.argv[1:] == ['a', 'b']\n")
        done = self.run_python("-m", "fl_trainer", "save", other, out, "a", "b")
        self.assertEqual(1, done.returncode)
        self.assertIn("ended without fl_trainer.run()", done.stderr)

    def test_a_first_model_that_is_not_there_is_said(self):
        for what, words in (
            ("nowhere.py:make", "nowhere.py: no such file"),
            (f"{self.script}:other", "has no 'other'"),
            (f"{self.script}:", "expected SCRIPT.py:FUNCTION"),
            (f"{self.script}:train", "train() missing"),
        ):
            done = self.run_python("-m", "fl_trainer", "save", what, self.path("x"))
            self.assertEqual(1, done.returncode)
            self.assertIn(words, done.stderr)
        self.assertEqual(["script.py"], os.listdir(self.folder))

    def test_what_run_must_be_told(self):
        for call, words in (
            ("fl_trainer.run({}, None)", "neither train nor evaluate"),
            ("fl_trainer.run({}, print)", "say samples="),
            ("fl_trainer.run({}, None, print)", "say test_samples="),
            ("fl_trainer.run(3, print, samples=1)", "a int is no model"),
        ):
            done = self.run_python("-c", f"import fl_trainer; {call}")
            self.assertEqual(1, done.returncode)
            self.assertIn(words, done.stderr.strip().splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
