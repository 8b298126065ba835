"""Models and optimizers of PyTorch."""

import copy
import struct
import tempfile
import unittest
import warnings

import torch
from fake_client import Process, Threaded, nearest, places_of
from torch import nn

import fl_trainer
from fl_trainer import _memory

torch.set_num_threads(1)
LOSS = nn.CrossEntropyLoss()


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3))


generator = torch.Generator()
generator.manual_seed(7)
X = torch.randn(20, 4, generator=generator)
Y = torch.randint(0, 3, (20,), generator=generator)


def shapes(model):
    """As a server would describe it: parameters and statistics, once each."""
    return [
        (name, tuple(t.shape))
        for name, t in model.state_dict().items()
        if t.is_floating_point()
    ]


def flat(model):
    return torch.cat([t.flatten().float() for t in model.state_dict().values() if t.is_floating_point()])


def descend(model, task):
    optimizer = task.optimizer()
    for i in task.batches():
        def closure():
            optimizer.zero_grad()
            loss = LOSS(model(X[i]), Y[i])
            loss.backward()
            return loss

        if "pfedme" in task.parts:
            loss = optimizer.step(closure)
        else:
            loss = closure()
            optimizer.step()
        task.count(loss, len(i))


def judge(model, task):
    assert not model.training and not torch.is_grad_enabled()
    out = model(X)
    return len(Y), (out.argmax(1) == Y).sum(), LOSS(out, Y).item() * len(Y)


class Torch(unittest.TestCase):
    def client(self, model, train=descend, evaluate=None, tensors=None, buffers=None, **keywords):
        tensors = shapes(model) if tensors is None else tensors
        if buffers is None:
            buffers = [n for n, _ in tensors if n.rpartition(".")[2] in ("running_mean", "running_var")]
        client = Threaded(tensors, model, train, evaluate, buffers, **keywords)
        self.addCleanup(client.bye)
        client.ready = client.start()
        self.assertEqual("ready", client.ready["type"], client.ready)
        accepted = client.model()
        self.assertEqual({"type": "accepted"}, accepted)
        return client

    def train(self, client, **fields):
        done = client.ask(client.task(**fields))
        self.assertEqual("done", done["type"], done)
        return done


class HandOver(Torch):
    def test_a_round_is_bit_for_bit_the_plain_loop(self):
        model, start = small(), small()
        client = self.client(model, evaluate=judge)
        client.weights.put("model", flat(start).tolist())
        done = self.train(client, epochs=2, momentum=0.9, weight_decay=0.01)
        self.assertEqual(8, done["steps"])

        torch.manual_seed(1234)
        optimizer = torch.optim.SGD(start.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
        order = []
        task = fl_trainer.Task(
            client.task(epochs=2), fl_trainer._models.backend_of(start), kind="train", samples=20
        )
        losses = 0.0
        for i in task.batches():
            order.append(i)
            optimizer.zero_grad()
            loss = LOSS(start(X[i]), Y[i])
            loss.backward()
            optimizer.step()
            losses += loss.item() * len(i)
        self.assertEqual(flat(start).numpy().tobytes(), client.result.raw("model"))
        self.assertEqual(losses / 40, done["train_loss"])

    def test_random_numbers_follow_the_seed_whatever_was_drawn_before(self):
        drawn = []

        def train(model, task):
            drawn.append((torch.rand(3).tolist(), model.training))
            return 0.0, 1

        client = self.client(small(), train, judge)
        client.weights.put("model", flat(small()).tolist())
        for seed in (1, 1, 2):
            self.train(client, seed=seed)
            torch.rand(5)
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        self.assertTrue(drawn[0][1], "the model is in training mode again after an evaluation")

    def test_other_precisions_are_converted_on_the_way(self):
        for dtype in (torch.float16, torch.bfloat16, torch.float64):
            with self.subTest(dtype):
                model = nn.Linear(2, 2).to(dtype)
                seen = []

                def train(model, task):
                    seen.append(model.weight.detach().clone())
                    return 0.0, 1

                client = self.client(model, train)
                numbers = [1 / 3, 1e-3, 2.5, -7.0, 0.1, 0.2]
                client.weights.put("model", numbers)
                self.train(client)
                expected = torch.tensor(numbers, dtype=torch.float32).to(dtype)
                self.assertEqual(dtype, seen[0].dtype)
                self.assertTrue(torch.equal(expected[:4].view(2, 2), seen[0]))
                self.assertEqual(expected.float().tolist(), client.result.get("model"))

    def test_every_bit_of_float32_is_handed_over(self):
        raw = struct.pack("<6I", 0x7F7FFFFF, 1, 0x80000000, 0xFF800000, 0x7FC00123, 0x3F800001)
        client = self.client(nn.Linear(2, 2), lambda model, task: (0.0, 1))
        at = client.weights.slots["model"]["data"]
        client.weights.map[at : at + 24] = raw
        self.train(client)
        self.assertEqual(raw, client.result.raw("model"))

    def test_counters_and_integers_stay_and_counters_begin_again(self):
        class WithCounters(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(4, momentum=None)
                self.register_buffer("seen", torch.tensor([5], dtype=torch.int64))
                self.register_buffer("mask", torch.tensor([True, False]))
                self.register_buffer("table", torch.arange(3.0))
                self.register_buffer("here", torch.arange(3.0), persistent=False)

        model = WithCounters()

        def train(model, task):
            for i in task.batches():
                model.norm(X[i])
                model.seen += 1
            return 0.0

        tensors = [("table", (3,))] + [
            (f"norm.{n}", (4,)) for n in ("weight", "bias", "running_mean", "running_var")
        ]
        self.assertEqual(tensors, [(e.name, e.shape) for e in fl_trainer._models.backend_of(model).entries()])
        client = self.client(model, train, tensors=tensors)
        start = [0.0, 1.0, 2.0] + [1.0] * 4 + [0.0] * 4 + [3.0] * 4 + [1.0] * 4
        for _ in range(2):
            client.weights.put("model", start)
            self.train(client)
            # A running mean over all batches of this round, of nothing before it.
            got = torch.tensor(client.result.get("model")[11:15])
            self.assertTrue(torch.allclose(X.mean(0), got, atol=1e-6), got)
        self.assertEqual(13, model.seen.item())
        self.assertEqual(4, model.norm.num_batches_tracked.item())

    def test_tied_tensors_travel_once(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(3, 2)
                self.out = nn.Linear(2, 3, bias=False)
                self.out.weight = self.embed.weight

        def train(model, task):
            with torch.no_grad():
                model.out.weight += 1
            return 0.0, 1

        once = [("embed.weight", (3, 2))]
        client = self.client(Tied(), train, tensors=once)
        client.weights.put("model", range(6))
        self.train(client)
        self.assertEqual([1, 2, 3, 4, 5, 6], client.result.get("model"))
        # A server that has both names gets the same under both; the other name alone does as well.
        for tensors in (once + [("out.weight", (3, 2))], [("out.weight", (3, 2))]):
            client = self.client(Tied(), train, tensors=tensors)
            client.weights.put("model", list(range(6)) * len(tensors))
            self.train(client)
            self.assertEqual([1, 2, 3, 4, 5, 6] * len(tensors), client.result.get("model"))
        with tempfile.NamedTemporaryFile() as f:
            fl_trainer.save(Tied(), f.name)
            self.assertEqual(["embed.weight"], list(_memory.open_file(f.name).places))

    def test_tied_tensors_are_loaded_back_strictly(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(3, 2)
                self.out = nn.Linear(2, 3, bias=False)
                self.out.weight = self.embed.weight

        saved, model = Tied(), Tied()
        with tempfile.NamedTemporaryFile() as f:
            fl_trainer.save(saved, f.name)
            self.assertIs(model, fl_trainer.load(model, f.name))
            self.assertTrue(torch.equal(saved.out.weight, model.out.weight))
            self.assertIs(model.embed.weight, model.out.weight)
            self.assertRaisesRegex(
                fl_trainer.ModelError,
                "the file's model is not in the program's",
                fl_trainer.load,
                nn.Linear(2, 3, bias=False),
                f.name,
            )

    def test_frozen_parameters_do_not_travel(self):
        def half(training):
            model = small()
            model[0].requires_grad_(False)
            model[1].requires_grad_(False)
            return model.train(training)

        evaluating = half(True)
        evaluating[1].eval()
        travels = [(n, s) for n, s in shapes(small()) if n.startswith("3.")]
        statistics = [(n, s) for n, s in shapes(small()) if "running" in n]
        with tempfile.NamedTemporaryFile() as f:
            # Statistics of a frozen norm that is in training mode go on changing.
            for model, expected in ((evaluating, travels), (half(True), statistics + travels)):
                fl_trainer.save(model, f.name)
                self.assertEqual(expected, [(n, p.shape) for n, p in _memory.open_file(f.name).places.items()])
            before = evaluating[0].weight.clone()
            fl_trainer.save(evaluating, f.name)
            fl_trainer.load(evaluating, f.name)
        client = self.client(evaluating, tensors=travels)
        client.weights.put("model", range(18))
        self.train(client)
        self.assertTrue(torch.equal(before, evaluating[0].weight))
        # The server decides: what its model has travels.
        client = self.client(half(False), tensors=shapes(small()))
        client.weights.put("model", flat(small()).tolist())
        self.train(client)
        self.assertTrue(torch.equal(torch.tensor(client.result.get("model")[:20]), small()[0].weight.flatten()))
        for tensors, words in (
            (travels, "^2 tensors of 18 numbers travel, 6 tensors of 45 numbers stay here"),
            (shapes(small()), "^8 tensors of 63 numbers travel; 6 of those that travel are frozen"),
        ):
            backend = fl_trainer._models.backend_of(half(False))
            backend.fit(_memory.packed(tensors))
            self.assertRegex(backend.travels(), words)
        frozen = small().requires_grad_(False)
        self.assertRaisesRegex(fl_trainer.ModelError, "no trainable", fl_trainer.save, frozen.eval(), "/dev/null/x")

    def test_names_that_no_server_takes_are_refused_on_save(self):
        for key in ("a b", "a/b", "\u00e9", "x" * 121):
            model = nn.ModuleDict({key: nn.Linear(1, 1)})
            self.assertRaisesRegex(
                fl_trainer.ModelError, "no server takes that name", fl_trainer.save, model, "/dev/null/x"
            )
        deep = nn.ParameterDict({"w": nn.Parameter(torch.zeros(*[1] * 9))})
        self.assertRaisesRegex(fl_trainer.ModelError, "9 dimensions", fl_trainer.save, deep, "/dev/null/x")

    def test_wrappers_do_not_change_names(self):
        class Compiled(nn.Module):  # as torch.compile makes one
            def __init__(self, model):
                super().__init__()
                self._orig_mod = model

            def forward(self, x):
                return self._orig_mod(x)

        plain = small()
        for model in (nn.DataParallel(small()), Compiled(small()), Compiled(nn.DataParallel(small()))):
            client = self.client(model, tensors=shapes(plain))
            client.weights.put("model", flat(plain).tolist())
            self.assertEqual(4, self.train(client)["steps"])

    def test_a_server_with_prefixes_is_told_how_they_came(self):
        model = small()
        client = Threaded(shapes(nn.DataParallel(small())), model, descend)
        self.addCleanup(client.bye)
        client.start()
        failed = client.model()
        self.assertEqual("failed", failed["type"])
        self.assertIn("'module.0.weight'", failed["error"])
        self.assertIn("DataParallel", failed["error"])

    def test_odd_strides(self):
        model = nn.Conv2d(2, 3, 2, bias=False).to(memory_format=torch.channels_last)
        client = self.client(model, lambda model, task: (0.0, 1))
        client.weights.put("model", range(24))
        self.train(client)
        self.assertEqual(list(range(24)), model.weight.detach().flatten().tolist())
        self.assertEqual(list(range(24)), client.result.get("model"))

    def test_nothing_is_said_of_memory_that_cannot_be_written(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            client = self.client(small())
            client.weights.put("model", flat(small()).tolist())
            self.train(client)

    def test_what_cannot_travel_is_named(self):
        class Complex(nn.Module):
            def __init__(self):
                super().__init__()
                self.z = nn.Parameter(torch.zeros(2, dtype=torch.complex64))

        for model, words in (
            (Complex(), "'z' is torch.complex64"),
            (nn.LazyLinear(3), "'weight' has no shape yet"),
            (nn.ParameterDict({"none": nn.Parameter(torch.zeros(0))}), "'none' is empty"),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertRaisesRegex(fl_trainer.ModelError, words, fl_trainer.save, model, "/dev/null/x")

    def test_saved_in_pytorchs_order_and_read_again(self):
        model = small()
        with tempfile.NamedTemporaryFile() as f:
            fl_trainer.save(model, f.name)
            block = _memory.open_file(f.name)
            self.assertEqual(shapes(model), [(n, p.shape) for n, p in block.places.items()])
            self.assertEqual(flat(model).numpy().tobytes(), bytes(block.floats.cast("B")))


class Reference:
    """The formula of docs/trainers.md#parts in float64, on one batch after the other."""

    def __init__(self, model, task, do, vectors):
        self.model = copy.deepcopy(model).double()
        self.task, self.do = task, do
        self.vectors = {k: self.split(v) for k, v in vectors.items()}
        self.x = list(self.model.parameters())

    def split(self, numbers):
        parts, at = [], 0
        for p in self.model.parameters():
            parts.append(torch.tensor(numbers[at : at + p.numel()], dtype=torch.float64).view(p.shape))
            at += p.numel()
        return parts

    def gradients(self, i):
        self.model.zero_grad()
        LOSS(self.model(X[i].double()), Y[i]).backward()
        return [p.grad.clone() for p in self.x]

    def run(self, batches):
        task, do = self.task, self.do
        mu = do.get("pull", {}).get("mu", 0.0)
        velocity = [torch.zeros_like(p) for p in self.x]
        for i in batches:
            gs = self.gradients(i)
            with torch.no_grad():
                for k, (x, g) in enumerate(zip(self.x, gs)):
                    if "gradient" in do:
                        g = g + self.vectors["gradient"][k]
                    g = g + mu * (x - self.vectors["anchor"][k]) if mu else g
                    g = g + task["weight_decay"] * x
                    velocity[k] = task["momentum"] * velocity[k] + g
                    x -= task["learning_rate"] * velocity[k]
                    if "drift" in do:
                        x += self.vectors["drift"][k] / len(batches)
                if "space" in do:
                    moved = torch.cat([(x - a).flatten() for x, a in zip(self.x, self.vectors["model"])])
                    places = torch.cat([a.flatten() for a in self.vectors["places"]])
                    there = self.split(nearest(moved.tolist(), places.tolist()))
                    for x, a, d in zip(self.x, self.vectors["model"], there):
                        x.copy_(a + d)
        return torch.cat([x.detach().flatten() for x in self.x])


class Parts(Torch):
    """No batch statistics: parameters only, so that one vector has them all."""

    def model(self):
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))

    def vectors(self, model):
        g = torch.Generator()
        g.manual_seed(11)
        n = flat(model).numel()
        return {
            "model": flat(model).tolist(),
            "anchor": torch.randn(n, generator=g).tolist(),
            "gradient": (0.1 * torch.randn(n, generator=g)).tolist(),
            "drift": (0.1 * torch.randn(n, generator=g)).tolist(),
            "places": places_of(n, 6),
        }

    def both(self, do, train=descend, given=None, **fields):
        model = self.model()
        vectors = self.vectors(model)
        reference_of = copy.deepcopy(model)
        client = self.client(model, train, parts=("pull", "gradient", "drift", "space", "per_fedavg", "pfedme"))
        for slot, numbers in vectors.items():
            client.weights.put(slot, numbers)
        task = client.task(do=do, given=given or ["model", "anchor", "gradient", "drift", "places"], **fields)
        done = client.ask(task)
        self.assertEqual("done", done["type"], done)
        if given == ["model"]:
            vectors["anchor"] = vectors["model"]
        order = fl_trainer.Task(task, fl_trainer._models.backend_of(model), kind="train", samples=20)
        return torch.tensor(client.result.get("model"), dtype=torch.float64), Reference(
            reference_of, task, do, vectors
        ), list(order.batches())

    def close(self, a, b):
        self.assertTrue(torch.allclose(a, b, rtol=1e-5, atol=1e-6), (a - b).abs().max())

    def test_each_and_all(self):
        for do in (
            {},
            {"pull": {"mu": 0.3}},
            {"gradient": {}},
            {"drift": {}},
            {"pull": {"mu": 0.3}, "gradient": {}, "drift": {}},
            {"space": {"numbers": 6}},
            {"pull": {"mu": 0.3}, "gradient": {}, "drift": {}, "space": {"numbers": 9}},
        ):
            for fields in ({}, {"momentum": 0.9, "weight_decay": 0.02, "epochs": 3}):
                with self.subTest(do=do, fields=fields):
                    got, reference, batches = self.both(do, **fields)
                    self.close(reference.run(batches), got)

    def test_the_anchor_is_the_given_model_unless_there_is_one(self):
        got, reference, batches = self.both({"pull": {"mu": 0.5}}, given=["model"], epochs=2)
        self.close(reference.run(batches), got)

    def test_a_watched_optimizer_does_the_same(self):
        persistent = {}

        def watched(model, task):
            if "optimizer" not in persistent:
                persistent["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
                persistent["schedule"] = torch.optim.lr_scheduler.StepLR(persistent["optimizer"], 1000)
            optimizer = task.watch(persistent["optimizer"])
            for i in task.batches():
                optimizer.zero_grad()
                loss = LOSS(model(X[i]), Y[i])
                loss.backward()
                optimizer.step()
                persistent["schedule"].step()
                task.count(loss, len(i))

        do = {"pull": {"mu": 0.3}, "gradient": {}, "drift": {}}
        got, reference, batches = self.both(do, watched, momentum=0.9)
        self.close(reference.run(batches), got)
        # Watched again in the next task, by the same optimizer: momentum begins at 0, parts once.
        model = self.model()
        client = self.client(model, watched)
        persistent.clear()
        client.weights.put("model", flat(self.model()).tolist())
        results = []
        for _ in range(2):
            self.assertEqual(4, self.train(client, do={"pull": {"mu": 0.3}}, momentum=0.9)["steps"])
            results.append(client.result.raw("model"))
        self.assertEqual(results[0], results[1])

    def test_pull_of_0_is_plain_descent_bit_for_bit(self):
        self.assertEqual(
            self.both({})[0].tolist(), self.both({"pull": {"mu": 0.0}})[0].tolist()
        )

    def test_per_fedavg(self):
        for total in (4, 3):
            got, reference, batches = self.both(
                {"per_fedavg": {"variant": "fo", "alpha": 0.05}}, epochs=0, steps=total, weight_decay=0.02
            )
            x = reference.x
            for first, second in zip(batches[0::2], batches[1::2]):
                w = [p.detach().clone() for p in x]
                for rate, i in ((0.05, first), (0.1, second)):
                    gs = reference.gradients(i)
                    with torch.no_grad():
                        for k, (p, g) in enumerate(zip(x, gs)):
                            g = g + 0.02 * p
                            p.copy_(w[k] - rate * g)
            self.close(torch.cat([p.detach().flatten() for p in x]), got)

    def pfedme(self, personal):
        part = {"inner_steps": 3, "inner_learning_rate": 0.05, "lambda": 4.0, "personal": personal}
        model = self.model()
        seen = []

        def evaluate(model, task):
            seen.append(flat(model).double())
            return 1, 1, 0.5

        client = self.client(model, descend, evaluate, parts=("pfedme",))
        self.assertEqual(["pfedme"], client.ready["parts"])
        client.weights.put("model", flat(model).tolist())
        reference = Reference(model, None, {}, {})
        self.train(client, do={"pfedme": part}, weight_decay=0.02, evaluate_trained=True)
        order = fl_trainer.Task(
            client.task(), fl_trainer._models.backend_of(model), kind="train", samples=20
        )
        theta = reference.x
        w = [p.detach().clone() for p in theta]
        for i in order.batches():
            for _ in range(3):
                gs = reference.gradients(i)
                with torch.no_grad():
                    for p, g, a in zip(theta, gs, w):
                        p -= 0.05 * (g + 4.0 * (p - a) + 0.02 * p)
            for k, p in enumerate(theta):
                w[k] = w[k] - 0.1 * 4.0 * (w[k] - p.detach())
        self.close(torch.cat([p.flatten() for p in w]), torch.tensor(client.result.get("model")).double())
        return seen[-1], torch.cat([p.detach().flatten() for p in theta]), torch.cat([p.flatten() for p in w])

    def test_pfedme(self):
        seen, theta, _ = self.pfedme("theta")
        self.close(theta, seen)
        seen, _, w = self.pfedme("w_local")
        self.close(w, seen)

    def test_pfedme_without_closure_says_what_to_do(self):
        def train(model, task):
            optimizer = task.optimizer()
            LOSS(model(X), Y).backward()
            optimizer.step()

        client = self.client(self.model(), train, parts=("pfedme",))
        part = {"inner_steps": 3, "inner_learning_rate": 0.05, "lambda": 4.0, "personal": "theta"}
        failed = client.ask(client.task(do={"pfedme": part}))
        self.assertEqual("failed", failed["type"])
        self.assertIn("step(closure)", failed["error"])

    def test_a_drift_over_other_steps_than_planned_is_refused(self):
        def train(model, task):
            optimizer = task.optimizer()
            for _ in range(3):
                LOSS(model(X), Y).backward()
                optimizer.step()
            return 0.0

        client = self.client(self.model(), train)
        failed = client.ask(client.task(given=["model", "drift"], do={"drift": {}}))
        self.assertEqual("failed", failed["type"])
        self.assertIn("4 steps", failed["error"])

    def test_frozen_and_foreign_parameters_are_left_alone(self):
        model = self.model()
        model[0].weight.requires_grad_(False)
        foreign = nn.Parameter(torch.zeros(2))

        def train(model, task):
            optimizer = task.optimizer([*model.parameters(), foreign])
            for _ in range(4):
                LOSS(model(X), Y).backward()
                optimizer.step()
            return 0.0

        client = self.client(model, train)
        client.weights.put("model", flat(model).tolist())
        client.weights.put("gradient", [1.0] * client.count)
        self.train(client, given=["model", "gradient"], do={"gradient": {}})
        self.assertEqual(flat(self.model())[:20].tolist(), client.result.get("model")[:20])
        self.assertEqual([0.0, 0.0], foreign.tolist())

    def test_sparse_gradients(self):
        model = nn.Embedding(5, 2, sparse=True)

        def train(model, task):
            optimizer = task.optimizer()
            model(torch.tensor([1])).sum().backward()
            optimizer.step()
            return 0.0

        client = self.client(model, train)
        client.weights.put("model", [0.0] * 10)
        client.weights.put("gradient", [1.0] * 10)
        self.train(client, given=["model", "gradient"], do={"gradient": {}})
        expected = torch.tensor([-0.1, -0.1, -0.2, -0.2] + [-0.1] * 6)
        self.close(expected, torch.tensor(client.result.get("model")))


class Cancel(Torch):
    def test_a_watched_step_ends_the_task(self):
        def train(model, task):
            optimizer = task.optimizer()
            while True:
                optimizer.step()

        client = self.client(small(), train)
        client.say(client.task())
        client.say({"type": "cancel"})
        self.assertEqual("canceled", client.hear()["type"])

    def test_an_evaluation_ends_at_the_next_batch(self):
        def evaluate(model, task):
            while True:
                model(X)

        client = self.client(small(), descend, evaluate)
        client.say({"type": "evaluate", "id": 5, "given": ["model"]})
        client.say({"type": "cancel"})
        self.assertEqual({"type": "canceled", "id": 5}, client.hear())


SCRIPT = """
import torch, fl_trainer
torch.manual_seed(0)
x, y = torch.randn(40, 3), torch.randint(0, 2, (40,))
data = torch.utils.data.TensorDataset(x, y)
loader = torch.utils.data.DataLoader(data, 5, shuffle=True, num_workers=2)
def train(model, task):
    optimizer = task.optimizer()
    for a, b in task.loop(loader):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
        task.count(loss, len(b))
fl_trainer.run(torch.nn.Linear(3, 2), train, samples=40)
"""


class AsProcess(unittest.TestCase):
    def test_workers_of_a_loader_do_not_take_part_in_the_conversation(self):
        client = Process([("weight", (2, 3)), ("bias", (2,))], SCRIPT)
        client.start()
        client.model()
        client.weights.put("model", [0.1] * 8)
        results = []
        for _ in range(2):
            done = client.ask(client.task())
            self.assertEqual(("done", 8), (done["type"], done["steps"]))
            results.append(client.result.raw("model"))
        self.assertEqual(results[0], results[1])
        client.say({"type": "bye"})
        self.assertEqual((0, ""), client.ended())


if __name__ == "__main__":
    unittest.main()
