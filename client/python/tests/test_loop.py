"""The conversation with the client, without any library: models through an adapter."""

import array
import struct
import time
import unittest

from fake_client import Process, Threaded

import fl_trainer

TENSORS = [("a.weight", (2, 3)), ("a.bias", (2,)), ("scale", ())]
COUNT = 9
START = [0.5 * i for i in range(COUNT)]


class Plain(fl_trainer.Adapter):
    """Numbers in arrays of the standard library."""

    def __init__(self, tensors=TENSORS, code="f"):
        self.shapes = dict(tensors)
        self.code = code
        self.x = {}
        for name, shape in tensors:
            count = 1
            for d in shape:
                count *= d
            self.x[name] = array.array(code, [0] * count)

    def names(self):
        return list(self.x)

    def get(self, name):
        return memoryview(self.x[name]).cast("B").cast(self.code, self.shapes[name])

    def set(self, name, values):
        flat = values.cast("B").cast("f")
        self.x[name][:] = array.array(self.code, flat)


def add_one(model, task):
    for x in model.x.values():
        for i in range(len(x)):
            x[i] += 1
    return 0.25, 7


def judge(model, task):
    return {"samples": 10, "correct": 4, "loss_sum": sum(model.x["a.weight"])}


class Conversation(unittest.TestCase):
    def client(self, train=add_one, evaluate=None, model=None, tensors=TENSORS, **keywords):
        client = Threaded(tensors, model or Plain(), train, evaluate, **keywords)
        self.addCleanup(client.bye)
        return client

    def test_ready_tells_what_it_can_do(self):
        ready = self.client(evaluate=judge, software="mine 1.2").start()
        self.assertEqual("ready", ready["type"])
        self.assertEqual(1, ready["protocol"])
        self.assertEqual(["train", "evaluate", "adapt"], ready["can"])
        self.assertEqual([], ready["parts"])
        self.assertEqual((20, 20), (ready["samples"], ready["test_samples"]))
        self.assertIn("mine 1.2", ready["software"])

    def test_only_training_is_declared_without_evaluate(self):
        ready = self.client().start()
        self.assertEqual((["train"], 0), (ready["can"], ready["test_samples"]))

    def test_a_server_is_told_of_evaluations_only(self):
        self.assertEqual(["evaluate"], self.client(evaluate=judge).start("evaluate")["can"])

    def test_a_round_trains_the_given_model_and_leaves_it_in_the_result(self):
        client = self.client(evaluate=judge)
        client.start()
        self.assertEqual({"type": "accepted"}, client.model())
        client.weights.put("model", START)
        done = client.ask(client.task())
        self.assertEqual("done", done["type"], done)
        self.assertEqual([x + 1 for x in START], client.result.get("model"))
        self.assertEqual((20, 7, 0.25), (done["samples"], done["steps"], done["train_loss"]))
        self.assertEqual({"samples": 10, "correct": 4, "loss_sum": 7.5}, done["received"])
        self.assertNotIn("trained", done)
        self.assertEqual(client.id, done["id"])

    def test_trained_is_told_when_it_is_asked_for(self):
        client = self.client(evaluate=judge)
        client.start()
        client.model()
        client.weights.put("model", START)
        done = client.ask(client.task(evaluate_trained=True))
        self.assertEqual(7.5 + 6, done["trained"]["loss_sum"])

    def test_each_task_begins_with_what_it_was_given(self):
        client = self.client()
        client.start()
        client.model()
        for first in (1.0, -5.0):
            client.weights.put("model", [first] * COUNT)
            self.assertEqual("done", client.ask(client.task())["type"])
            self.assertEqual([first + 1] * COUNT, client.result.get("model"))

    def test_every_bit_of_float32_is_handed_over(self):
        bits = [0x7F7FFFFF, 0x00000001, 0x80000000, 0xFF800000, 0x3F800001, 0x7FC00123, 1, 2, 3]
        for code in "fd":
            with self.subTest(code):
                client = self.client(train=lambda model, task: (0.0, 1), model=Plain(code=code))
                client.start()
                client.model()
                raw = struct.pack("<9I", *bits)
                at = client.weights.slots["model"]["data"]
                client.weights.map[at : at + 36] = raw
                self.assertEqual("done", client.ask(client.task())["type"])
                self.assertEqual(raw, client.result.raw("model"))

    def test_evaluate_and_adapt(self):
        client = self.client(evaluate=judge)
        client.start()
        client.model()
        client.weights.put("model", START)
        done = client.ask({"type": "evaluate", "id": 1, "given": ["model"]})
        self.assertEqual({"type": "done", "id": 1, "received": done["received"]}, done)
        self.assertEqual(7.5, done["received"]["loss_sum"])
        adapted = client.ask(client.task("adapt", on="train"))
        self.assertEqual((7.5, 13.5), (adapted["received"]["loss_sum"], adapted["adapted"]["loss_sum"]))

    def test_a_model_for_test_data_needs_a_look_at_on(self):
        client = self.client(evaluate=judge)
        client.start()
        client.model()
        failed = client.ask(client.task("adapt", on="test"))
        self.assertEqual("failed", failed["type"])
        self.assertIn("task.on", failed["error"])

        def looks(model, task):
            self.assertEqual("test", task.on)
            return add_one(model, task)

        other = self.client(train=looks, evaluate=judge)
        other.start()
        other.model()
        self.assertEqual("done", other.ask(other.task("adapt", on="test"))["type"])

    def test_another_model_is_refused_with_the_first_tensor_that_differs(self):
        for tensors, words in (
            ([("a.weight", (4, 3)), *TENSORS[1:]], "tensor 'a.weight' is 2x3 in the program, 4x3 on the server"),
            (TENSORS[:1], "tensor 'a.bias' (2) of the program's model is not in the server's"),
            (TENSORS + [("b.bias", (4,))], "tensor 'b.bias' (4) of the server's model is not in the program's"),
        ):
            client = self.client(tensors=tensors)
            client.start()
            self.assertEqual({"type": "failed", "error": words}, client.model())

    def test_a_model_can_be_described_again(self):
        client = self.client()
        client.start()
        self.assertEqual("failed", client.model(units=[])["type"])
        self.assertEqual("accepted", client.model()["type"])
        self.assertEqual("accepted", client.model()["type"])
        self.assertEqual("done", client.ask(client.task())["type"])

    def test_an_exception_costs_the_task_and_not_the_program(self):
        def fails(model, task):
            if task.round == 1:
                raise RuntimeError("no room left")
            return add_one(model, task)

        client = self.client(train=fails)
        client.start()
        client.model()
        failed = client.ask(client.task(round=1))
        self.assertEqual({"type": "failed", "id": 1, "error": "RuntimeError: no room left"}, failed)
        self.assertEqual("done", client.ask(client.task(round=2))["type"])

    def test_an_error_is_at_most_1000_bytes(self):
        def fails(model, task):
            raise RuntimeError("ä" * 5000)

        client = self.client(train=fails)
        client.start()
        client.model()
        self.assertLessEqual(len(client.ask(client.task())["error"].encode()), 1000)

    def test_a_loss_that_is_no_number_has_diverged(self):
        for loss in (float("nan"), float("inf")):
            client = self.client(train=lambda model, task: (loss, 1))
            client.start()
            client.model()
            failed = client.ask(client.task())
            self.assertEqual(("failed", True), (failed["type"], failed["diverged"]))
            self.assertIn("loss is not finite", failed["error"])

    def test_a_part_that_no_step_did_fails_the_task(self):
        client = self.client()
        client.start()
        client.model()
        failed = client.ask(client.task(do={"pull": {"mu": 0.1}}))
        self.assertEqual("failed", failed["type"])
        self.assertIn("pull", failed["error"])

    def test_the_variant_of_per_fedavg_that_is_not_here_is_refused_at_the_start(self):
        client = self.client()
        client.start()
        failed = client.model(parts=["per_fedavg"], solver="per_fedavg", options={"variant": "hf"})
        self.assertEqual("failed", failed["type"])
        self.assertIn("'hf'", failed["error"])

    def test_what_train_returns(self):
        steps = {"made": 3}

        def counted(model, task):
            for _ in task.batches():
                task.count(2.0, 5)

        for train, loss, made, samples in (
            (lambda m, t: (0.5, 3), 0.5, 3, 20),
            (lambda m, t: {"loss": 1, "steps": steps["made"], "samples": 8}, 1.0, 3, 8),
            (lambda m, t: fl_trainer.Trained(2.0, 4), 2.0, 4, 20),
            (counted, 2.0, 4, 20),
        ):
            client = self.client(train=train)
            client.start()
            client.model()
            done = client.ask(client.task())
            self.assertEqual((loss, made, samples), (done["train_loss"], done["steps"], done["samples"]))
        for train, words in (
            (lambda m, t: None, "no loss"),
            (lambda m, t: 0.5, "no step"),
            (lambda m, t: {"lost": 1}, "lost"),
        ):
            client = self.client(train=train)
            client.start()
            client.model()
            self.assertIn(words, client.ask(client.task())["error"])

    def test_an_evaluation_that_is_none_is_said(self):
        for value, words in (((1, 2), "2 values"), ((1, 2, 0.5), "2 correct of 1"), (None, "NoneType")):
            client = self.client(evaluate=lambda m, t: value)
            client.start()
            client.model()
            failed = client.ask({"type": "evaluate", "id": 1, "given": ["model"]})
            self.assertEqual("failed", failed["type"])
            self.assertIn(words, failed["error"])


class Batches(unittest.TestCase):
    def batches(self, **fields):
        seen = []

        def train(model, task):
            seen.append([list(b) for b in task.batches(samples=12)])
            return 0.0

        client = Threaded(TENSORS, Plain(), train)
        client.start()
        client.model()
        done = client.ask(client.task(**fields))
        client.bye()
        return done, seen[0]

    def test_a_number_of_batches_without_a_name_is_refused(self):
        task = fl_trainer.Task({"epochs": 1, "batch_size": 5}, None, kind="train", samples=12)
        self.assertRaisesRegex(TypeError, "samples=20 takes the first 20 samples", task.batches, 20)

    def test_batches_have_the_size_that_is_said(self):
        order = fl_trainer._models.Backend(None)
        task = fl_trainer.Task({"epochs": 1, "batch_size": 5}, order, kind="train", samples=12)
        self.assertEqual([5, 5, 2], [len(b) for b in task.batches()])
        self.assertEqual([4, 4, 4], [len(b) for b in task.batches(batch_size=4)])
        self.assertEqual([5, 3], [len(b) for b in task.batches(samples=8)])
        self.assertRaisesRegex(ValueError, "batches of 0", task.batches, batch_size=0)

    def test_epochs_take_every_sample_once_in_fresh_orders(self):
        done, batches = self.batches(epochs=2, batch_size=5)
        self.assertEqual([5, 5, 2, 5, 5, 2], [len(b) for b in batches])
        first, second = sum(batches[:3], []), sum(batches[3:], [])
        self.assertEqual(list(range(12)), sorted(first))
        self.assertEqual(list(range(12)), sorted(second))
        self.assertNotEqual(first, second)
        self.assertEqual(6, done["steps"])

    def test_the_order_follows_from_the_seed(self):
        self.assertEqual(self.batches()[1], self.batches()[1])
        self.assertNotEqual(self.batches()[1], self.batches(seed=5)[1])

    def test_steps_go_on_where_the_round_before_ended(self):
        rounds = [self.batches(epochs=0, steps=2, round=r)[1] for r in (1, 2, 3)]
        self.assertEqual([2, 2, 2], [len(r) for r in rounds])
        self.assertEqual(list(range(12)), sorted(sum(rounds[0] + rounds[1][:1], [])))
        self.assertEqual(rounds[0][0], rounds[1][1])

    def test_a_loader_is_walked_for_epochs_or_steps(self):
        for fields, expected in (
            ({"epochs": 2}, "abcabc"),
            ({"epochs": 0, "steps": 5}, "abcab"),
            ({"epochs": 0, "steps": 2}, "ab"),
        ):
            seen = []

            def train(model, task):
                seen.extend(task.loop(["a", "b", "c"]))
                return 0.0

            client = Threaded(TENSORS, Plain(), train)
            client.start()
            client.model()
            done = client.ask(client.task(**fields))
            client.bye()
            self.assertEqual((expected, len(expected)), ("".join(seen), done["steps"]))


class Cancel(unittest.TestCase):
    def test_a_cancel_ends_the_task_at_the_next_batch(self):
        made = []

        def train(model, task):
            for batch in task.loop(range(1000000)):
                made.append(batch)
                time.sleep(0)
            return 0.0

        client = Threaded(TENSORS, Plain(), train)
        client.start()
        client.model()
        client.say(client.task())
        client.say({"type": "cancel"})
        self.assertEqual({"type": "canceled", "id": 1}, client.hear())
        self.assertLess(len(made), 1000000)
        client.say(client.task(epochs=0, steps=3))
        self.assertEqual("done", client.hear()["type"])
        client.bye()

    def test_an_except_exception_does_not_swallow_it(self):
        def train(model, task):
            while True:
                try:
                    task.check()
                except Exception:
                    pass

        client = Threaded(TENSORS, Plain(), train)
        client.start()
        client.model()
        client.say(client.task())
        client.say({"type": "cancel"})
        self.assertEqual("canceled", client.hear()["type"])
        client.bye()

    def test_a_cancel_of_a_task_that_is_over_is_nothing(self):
        client = Threaded(TENSORS, Plain(), add_one)
        client.start()
        client.model()
        client.say(client.task())
        self.assertEqual("done", client.hear()["type"])
        client.say({"type": "cancel"})
        self.assertEqual("done", client.ask(client.task())["type"])
        client.bye()

    def test_progress_is_told_in_steps_and_not_too_often(self):
        def train(model, task):
            for i in range(10000):
                task.progress(i + 1, 10000)
            return 0.0, 1

        client = Threaded(TENSORS, Plain(), train)
        client.start()
        client.model()
        self.assertEqual("done", client.ask(client.task())["type"])
        self.assertGreaterEqual(len(client.progress), 1)
        self.assertLess(len(client.progress), 10000)
        self.assertEqual({"type": "progress", "id": 1, "done": 1, "total": 10000}, client.progress[0])
        client.bye()


SCRIPT = """
import array, sys, fl_trainer
class Model:
    x = array.array("f", [0, 0])
    def names(self): return ["w"]
    def get(self, name): return self.x
    def set(self, name, values): self.x[:] = array.array("f", values)
def train(model, task):
    print("round", task.round, task.data)
    for _ in task.loop([0] * 10): pass
    model.x[0] += 1
    return 0.5
print(fl_trainer.data_path("default"))
fl_trainer.run(Model(), train, samples=4)
print("after")
"""


class AsProcess(unittest.TestCase):
    def start(self, script=SCRIPT, **keywords):
        return Process([("w", (2,))], script, **keywords)

    def test_bye_ends_it_with_0(self):
        client = self.start()
        client.start(data="/srv/data")
        client.model()
        client.weights.put("model", [1.5, 2.5])
        self.assertEqual("done", client.ask(client.task())["type"])
        self.assertEqual([2.5, 2.5], client.result.get("model"))
        client.say({"type": "bye"})
        client.process.wait(600)
        client.stdout.seek(0)
        self.assertEqual("/srv/data\nround 3 /srv/data\nafter\n", client.stdout.read().decode())
        self.assertEqual((0, ""), client.ended())

    def test_the_end_of_the_socket_ends_it_with_0_idle_and_busy(self):
        client = self.start()
        client.start()
        client.mine.shutdown(2)
        self.assertEqual((0, ""), client.ended())
        client = self.start(SCRIPT.replace("[0] * 10)", "range(10**9))"))
        client.start()
        client.model()
        client.say(client.task())
        client.mine.shutdown(1)
        self.assertEqual("canceled", client.hear()["type"])
        self.assertEqual((0, ""), client.ended())

    def test_a_client_that_was_killed_ends_it_without_a_word(self):
        client = self.start(SCRIPT.replace("[0] * 10)", "range(10**9))"))
        client.start()
        client.model()
        client.say(client.task())
        client.mine.close()
        code, text = client.process.wait(600), ""
        self.assertEqual((0, ""), (code, text))
        client.stderr.close()
        client.stdout.close()

    def test_frames_that_are_none_end_it_with_a_message(self):
        for raw, words in (
            (struct.pack("<I", 0), "a message of 0 bytes"),
            (struct.pack("<I", 1 << 31), f"a message of {1 << 31} bytes"),
            (struct.pack("<I", 3) + b"abc", "no JSON"),
            (struct.pack("<I", 2) + b"[]", "'type'"),
            (struct.pack("<I", 20) + b'{"type"', "in the middle of a message"),
        ):
            client = self.start()
            client.start()
            client.mine.sendall(raw)
            client.mine.shutdown(1)
            code, text = client.ended()
            self.assertEqual(1, code, text)
            self.assertIn(words, text)

    def test_a_question_while_one_is_open_ends_it(self):
        client = self.start(SCRIPT.replace("[0] * 10)", "range(10**9))"))
        client.start()
        client.model()
        client.say(client.task())
        client.say(client.task())
        code, text = client.ended()
        self.assertEqual(1, code)
        self.assertIn("'train' came while a task was open", text)

    def test_a_version_that_nobody_speaks_ends_it(self):
        client = self.start(environment={"FL_TRAINER_PROTOCOL": "2,3"})
        code, text = client.ended()
        self.assertEqual(1, code)
        self.assertIn("versions 2,3", text)

    def test_a_model_that_is_none_is_said_in_place_of_ready(self):
        client = self.start("import fl_trainer\nfl_trainer.run(7, lambda m, t: 0, samples=1)")
        self.assertEqual("failed", client.start()["type"])
        code, text = client.ended()
        self.assertEqual(1, code)
        self.assertIn("a int is no model", text)

    def test_sigterm_ends_it(self):
        client = self.start()
        client.start()
        client.process.terminate()
        self.assertEqual((-15, ""), client.ended())


if __name__ == "__main__":
    unittest.main()
