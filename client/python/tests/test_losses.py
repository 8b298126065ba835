"""task.loss() of PyTorch: second derivatives, mix-up, what is told of the data.

That a round comes out as the built-in trainer's is tests/client/train/test_train_torch.c's.
"""

import struct
import unittest

import torch
from fake_client import Threaded
from test_torch import LOSS, Torch, X, Y, descend, flat, judge, small
from torch import nn

from fl_trainer import _mixup

HF = {"per_fedavg": {"variant": "hf", "alpha": 0.3}}


def by_loss(model, task):
    optimizer = task.optimizer()
    for i in task.batches():
        optimizer.zero_grad()
        loss = task.loss(X[i], Y[i])
        loss.backward()
        optimizer.step()
        task.count(loss, len(i))


def summary_of(pairs):
    """A summary as the page of formulas has it: (mean, label) pairs."""
    dim, classes = len(pairs[0][0]), len(pairs[0][1])
    return struct.pack("<4sIII", b"FLMX", dim, classes, len(pairs)) + b"".join(
        struct.pack(f"<{dim + classes}f", *mean, *label) for mean, label in pairs
    )


class Examples(list):
    def __init__(self):
        super().__init__(zip(X, Y))


class Losses(Torch):
    def client(self, model=None, train=by_loss, **keywords):
        keywords = {"criterion": LOSS, "examples": Examples(), "classes": 3, **keywords}
        return super().client(small() if model is None else model, train, **keywords)

    def failed(self, client, **fields):
        answer = client.ask(client.task(**fields))
        self.assertEqual("failed", answer["type"], answer)
        return answer["error"]


class Declared(Losses):
    def test_a_criterion_and_examples_declare_all(self):
        ready = self.client(evaluate=judge).ready
        self.assertEqual(["train", "evaluate", "adapt", "summary"], ready["can"])
        self.assertEqual(["pull", "gradient", "drift", "space", "per_fedavg", "pfedme", "mixup"], ready["parts"])

    def test_without_examples_nothing_is_told_of_the_data(self):
        ready = self.client(examples=None).ready
        self.assertEqual((["train"], False), (ready["can"], "mixup" in ready["parts"]))

    def test_without_a_criterion_hf_is_refused_at_the_start(self):
        for criterion, answer in ((LOSS, "accepted"), (None, "failed")):
            client = self.client(criterion=criterion, examples=None)
            said = client.model(parts=["per_fedavg"], solver="per_fedavg", options={"variant": "hf"})
            self.assertEqual(answer, said["type"])
        self.assertIn("criterion", said["error"])
        self.assertIn("criterion=", self.failed(client))

    def test_settings_that_do_not_go_together(self):
        def refused(model, **keywords):
            client = Threaded([], model, by_loss, **keywords)
            client.say({"type": "start", "protocol": 1, "client": "c", "data": None, "purpose": "train"})
            client.thread.join(600)
            client.close()
            return str(client.error)

        self.assertIn("classes=", refused(small(), criterion=LOSS, examples=Examples()))
        self.assertIn("criterion=", refused(small(), examples=Examples(), classes=3))
        self.assertIn("without examples=", refused(small(), criterion=LOSS, parts=["mixup"]))
        import numpy

        self.assertIn("PyTorch", refused({"w": numpy.ones(3, "f4")}, criterion=LOSS))


class Steps(Losses):
    def test_plain_steps_are_those_of_the_plain_loop_bit_for_bit(self):
        results = []
        for train in (by_loss, descend):
            client = self.client(train=train)
            client.weights.put("model", flat(small()).tolist())
            self.train(client, momentum=0.9, epochs=2)
            results.append(client.result.raw("model"))
        self.assertEqual(*results)

    def test_pfedme_takes_no_closure_then(self):
        part = {"inner_steps": 3, "inner_learning_rate": 0.05, "lambda": 4.0, "personal": "theta"}
        results = []
        for train in (by_loss, descend):
            client = self.client(nn.Sequential(nn.Linear(4, 3)), train)
            client.weights.put("model", [0.1] * 15)
            self.train(client, do={"pfedme": part})
            results.append(client.result.raw("model"))
        self.assertEqual(*results)

    def test_hf_without_it_is_told(self):
        def once(model, task):
            optimizer = task.optimizer()
            for k, i in enumerate(task.batches()):
                optimizer.zero_grad()
                loss = task.loss(X[i], Y[i]) if k == 0 else LOSS(model(X[i]), Y[i])
                loss.backward()
                optimizer.step()
                task.count(loss, len(i))

        for train in (descend, once):
            self.assertIn("task.loss(x, y)", self.failed(self.client(train=train), do=HF))

    def test_hf_of_a_loss_without_curvature_is_fo(self):
        results = []
        for variant in ("fo", "hf"):
            model = nn.Sequential(nn.Linear(4, 3))
            client = self.client(model, criterion=lambda out, y: out.mean())
            client.weights.put("model", [0.1] * 15)
            # Of one iteration each.
            steps = {"fo": 2, "hf": 3}[variant]
            do = {"per_fedavg": {"variant": variant, "alpha": 0.3}}
            self.train(client, do=do, epochs=0, steps=steps, batch_size=20)
            results.append(client.result.raw("model"))
        self.assertEqual(*results)

    def test_the_pass_for_the_second_derivative_moves_no_statistics(self):
        seen = []

        def train(model, task):
            by_loss(model, task)
            seen.append(model[1].running_mean.clone())

        for variant, steps in (("fo", 2), ("hf", 3)):
            client = self.client(train=train)
            client.weights.put("model", flat(small()).tolist())
            do = {"per_fedavg": {"variant": variant, "alpha": 0.3}}
            self.train(client, do=do, epochs=0, steps=steps, batch_size=20)
        self.assertEqual(*[t.tolist() for t in seen])

    def test_an_iteration_that_the_round_cuts_short_is_ended_with_its_last_batch(self):
        results = []
        for steps in (1, 3):
            client = self.client(nn.Sequential(nn.Linear(4, 3)))
            client.weights.put("model", [0.1] * 15)
            self.train(client, do=HF, epochs=0, steps=steps, batch_size=20)
            results.append(client.result.get("model"))
        for a, b in zip(*results):
            self.assertAlmostEqual(a, b, 6)
        self.assertNotAlmostEqual(0.1, results[0][0], 4)


class Mixed(Losses):
    DO = {"lambda": 0.3, "q": "one_minus_lambda", "naive": False, "group": 0, "mu": 0.0, "seed": 5}

    def summary(self, client, group="0", seed=5):
        done = client.ask(
            {"type": "summary", "id": 1, "seed": seed, "solver": {"name": "fedmix", "options": {"group": group}}}
        )
        self.assertEqual("done", done["type"], done)
        return client.result.get_bytes("summary", done["bytes"])

    def test_a_summary_is_the_means(self):
        raw = self.summary(self.client())
        self.assertEqual((b"FLMX", 4, 3, 1), struct.unpack("<4sIII", raw[:16]))
        numbers = struct.unpack("<7f", raw[16:])
        share = torch.bincount(Y, minlength=3) / 20
        for a, b in zip(numbers, torch.cat([X.mean(0), share]).tolist()):
            self.assertAlmostEqual(a, b, 6)

    def test_groups_are_drawn_from_the_seed_and_the_last_one_takes_the_rest(self):
        client = self.client()
        raw = self.summary(client, "6")
        self.assertEqual(3, struct.unpack("<4sIII", raw[:16])[3])
        self.assertEqual(raw, self.summary(client, "6"))
        self.assertEqual(raw, self.summary(self.client(), "6"))
        self.assertNotEqual(raw, self.summary(client, "6", 7))
        sums = torch.tensor(struct.unpack("<21f", raw[16:])).reshape(3, 7)
        mean = (sums * torch.tensor([[6.0], [6.0], [8.0]])).sum(0) / 20
        self.assertLess((mean[:4] - X.mean(0)).abs().max().item(), 1e-6)

    def test_a_summary_that_cannot_be_is_told(self):
        odd = {"type": "summary", "id": 1, "seed": 5, "solver": {"name": "fedmix", "options": {"group": "2"}}}

        class Wide(Examples):
            def __init__(self):
                list.__init__(self, [(torch.zeros(300), 0)] * 20)

        self.assertIn("must be larger than 2", self.client(examples=Wide()).ask(odd)["error"])
        self.assertIn("label 2", self.client(classes=2).ask(odd)["error"])
        nan = Examples()
        nan[3] = (X[3] * float("nan"), Y[3])
        self.assertIn("not finite", self.client(examples=nan).ask(odd)["error"])

    def mixed(self, summaries, do=None, train=by_loss, **keywords):
        """A client that was given the summaries of all."""
        client = self.client(nn.Sequential(nn.Linear(4, 3)), train, mixup=len(summaries), **keywords)
        client.weights.put_bytes("mixup", summaries)
        client.weights.put("model", [0.1 * i for i in range(15)])
        fields = {"given": ["model", "mixup"], "do": {"mixup": {**self.DO, **(do or {})}}, "batch_size": 20}
        return client, fields

    def test_what_a_client_told_itself_is_left_out(self):
        own = self.summary(self.client())
        other = summary_of([((1, 2, 3, 4), (0.5, 0.25, 0.25))])
        results = []
        for summaries in (own, own + other, other + own, other):
            client, fields = self.mixed(summaries)
            self.train(client, **fields)
            results.append(client.result.raw("model"))
        client, fields = self.mixed(own)
        self.train(client, batch_size=20)
        self.assertEqual(client.result.raw("model"), results[0])  # alone: plain steps
        self.assertEqual([results[1]] * 2, results[2:])
        self.assertNotEqual(*results[:2])

    def test_nothing_is_given_to_who_has_nobody_to_mix_with(self):
        client, fields = self.mixed(summary_of([((1, 2, 3, 4), (1, 0, 0))]))
        fields["given"] = ["model"]
        self.train(client, **fields)
        with_part = client.result.raw("model")
        self.train(client, batch_size=20)
        self.assertEqual(client.result.raw("model"), with_part)

    def test_a_pair_is_drawn_for_each_step_from_the_seed(self):
        summaries = summary_of([((1, 0, 0, 0), (1, 0, 0)), ((0, 3, 0, 0), (0, 1, 0)), ((0, 0, 2, 0), (0, 0, 1))])
        results = []
        for seed in (1, 1, 2, 3, 4):
            client, fields = self.mixed(summaries)
            self.train(client, epochs=3, seed=seed, **fields)
            results.append(client.result.raw("model"))
        self.assertEqual(*results[:2])
        self.assertGreater(len(set(results)), 2)

    def test_a_train_that_computes_its_losses_itself_fails(self):
        client, fields = self.mixed(summary_of([((1, 2, 3, 4), (1, 0, 0))]), train=descend)
        self.assertIn("task.loss(x, y)", self.failed(client, **fields))

    def test_summaries_of_other_samples_are_told(self):
        client, fields = self.mixed(summary_of([((1, 2, 3), (1, 0, 0))]))
        self.assertIn("expected 4 values and 3 classes", self.failed(client, **fields))
        client, fields = self.mixed(b"FLMX")
        self.assertIn("in the middle of one", self.failed(client, **fields))

    def test_samples_that_cannot_be_mixed_are_told(self):
        mixture = _mixup.Mixture(self.DO, 1, summary_of([((1, 2), (1, 0))]), summary_of([((0, 0), (0, 1))]))
        with self.assertRaisesRegex(Exception, "int64"):
            mixture.loss(None, torch.zeros(3, 2, dtype=torch.int64), torch.zeros(3), LOSS)


if __name__ == "__main__":
    unittest.main()
