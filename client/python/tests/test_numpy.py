"""Models that are dictionaries of numpy arrays, and adapters that hand them out."""

import tempfile
import unittest

import numpy
from fake_client import Threaded, nearest, places_of

import fl_trainer
from fl_trainer import _memory, _models

RNG = numpy.random.default_rng(5)
X = RNG.normal(size=(20, 4))
Y = RNG.normal(size=(20, 3))
TENSORS = [("w", (4, 3)), ("b", (3,))]
COUNT = 15


def model_of(dtype="f4"):
    rng = numpy.random.default_rng(1)
    return {"w": rng.normal(size=(4, 3)).astype(dtype), "b": rng.normal(size=3).astype(dtype)}


def gradients(model, i):
    """Of half the mean squared error of a linear model."""
    away = X[i] @ model["w"] + model["b"] - Y[i]
    return 0.5 * (away**2).sum() / len(i), {"w": X[i].T @ away / len(i), "b": away.sum(0) / len(i)}


def descend(model, task):
    optimizer = task.optimizer()
    for i in task.batches():
        task.count(optimizer.step(lambda: gradients(model, i)), len(i))


def flat(model):
    return numpy.concatenate([x.ravel() for x in model.values()])


def batches_of(message):
    task = fl_trainer.Task(message, _models.backend_of(model_of()), kind="train", samples=20)
    return list(task.batches())


class Numpy(unittest.TestCase):
    def client(self, model, train=descend, tensors=TENSORS, **keywords):
        client = Threaded(tensors, model, train, **keywords)
        self.addCleanup(client.bye)
        self.ready = client.start()
        accepted = client.model()
        self.assertEqual({"type": "accepted"}, accepted)
        return client

    def close(self, expected, client):
        got = numpy.array(client.result.get("model"))
        numpy.testing.assert_allclose(got, flat(expected), rtol=2e-5, atol=1e-6)

    def test_parts_are_those_of_the_page(self):
        rng = numpy.random.default_rng(2)
        vectors = {k: rng.normal(size=COUNT).astype("f4") for k in ("anchor", "gradient", "drift")}
        places = places_of(COUNT, 4)
        for do in (
            {},
            {"pull": {"mu": 0.3}},
            {"gradient": {}},
            {"drift": {}},
            {"pull": {"mu": 0.3}, "gradient": {}, "drift": {}},
            {"space": {"numbers": 4}},
            {"pull": {"mu": 0.3}, "gradient": {}, "drift": {}, "space": {"numbers": 7}},
        ):
            with self.subTest(do):
                client = self.client(model_of())
                client.weights.put("model", flat(model_of()))
                for slot, numbers in vectors.items():
                    client.weights.put(slot, numbers)
                client.weights.put("places", places)
                task = client.task(
                    given=["model", "anchor", "gradient", "drift", "places"],
                    do=do, momentum=0.9, weight_decay=0.02, epochs=2,
                )
                done = client.ask(task)
                self.assertEqual("done", done["type"], done)
                x = model_of("f8")
                v = {k: 0.0 for k in x}
                batches = batches_of(task)
                self.assertEqual(len(batches), done["steps"])
                parts = {
                    s: {"w": a[:12].reshape(4, 3).astype("f8"), "b": a[12:].astype("f8")}
                    for s, a in vectors.items()
                }
                for i in batches:
                    g = gradients(x, i)[1]
                    for k in x:
                        if "gradient" in do:
                            g[k] = g[k] + parts["gradient"][k]
                        if "pull" in do:
                            g[k] = g[k] + 0.3 * (x[k] - parts["anchor"][k])
                        v[k] = 0.9 * v[k] + g[k] + 0.02 * x[k]
                    for k in x:
                        x[k] = x[k] - 0.1 * v[k]
                        if "drift" in do:
                            x[k] = x[k] + parts["drift"][k] / len(batches)
                    if "space" in do:
                        start = flat(model_of("f8"))
                        there = start + numpy.array(nearest(flat(x) - start, places))
                        x = {"w": there[:12].reshape(4, 3), "b": there[12:]}
                self.close(x, client)

    def test_per_fedavg_of_an_odd_number_of_steps_uses_the_last_batch_twice(self):
        client = self.client(model_of())
        client.weights.put("model", flat(model_of()))
        task = client.task(do={"per_fedavg": {"variant": "fo", "alpha": 0.05}}, epochs=0, steps=3)
        self.assertEqual("done", client.ask(task)["type"])
        x, batches = model_of("f8"), batches_of(task)
        for first, second in ((batches[0], batches[1]), (batches[2], batches[2])):
            g = gradients(x, first)[1]
            inner = {k: x[k] - 0.05 * g[k] for k in x}
            g = gradients(inner, second)[1]
            x = {k: x[k] - 0.1 * g[k] for k in x}
        self.close(x, client)

    def test_per_fedavg_adapts_by_a_step_of_alpha_and_then_plain_ones(self):
        seen = []

        def evaluate(model, task):
            seen.append({k: x.copy() for k, x in model.items()})
            return 1, 1, 0.0

        client = self.client(model_of(), evaluate=evaluate)
        client.weights.put("model", flat(model_of()))
        task = client.task(
            "adapt", on="train", do={"per_fedavg": {"variant": "fo", "alpha": 0.05}}, epochs=0, steps=2
        )
        self.assertEqual("done", client.ask(task)["type"])
        x = model_of("f8")
        for rate, i in zip((0.05, 0.1), batches_of(task)):
            g = gradients(x, i)[1]
            x = {k: x[k] - rate * g[k] for k in x}
        numpy.testing.assert_allclose(flat(seen[-1]), flat(x), rtol=2e-5, atol=1e-6)

    def test_pfedme_sends_w(self):
        client = self.client(model_of(), parts=("pfedme",))
        client.weights.put("model", flat(model_of()))
        part = {"inner_steps": 2, "inner_learning_rate": 0.05, "lambda": 4.0, "personal": "theta"}
        task = client.task(do={"pfedme": part})
        self.assertEqual("done", client.ask(task)["type"])
        theta = model_of("f8")
        w = {k: x.copy() for k, x in theta.items()}
        for i in batches_of(task):
            for _ in range(2):
                g = gradients(theta, i)[1]
                theta = {k: theta[k] - 0.05 * (g[k] + 4.0 * (theta[k] - w[k])) for k in theta}
            w = {k: w[k] - 0.1 * 4.0 * (w[k] - theta[k]) for k in w}
        self.close(w, client)

    def test_buffers_are_touched_by_no_part(self):
        model = {**model_of(), "running": numpy.zeros(2, "f4")}

        def train(model, task):
            model["running"] += 1
            descend(model, task)

        client = self.client(model, train, TENSORS + [("running", (2,))], buffers=["running"])
        client.weights.put("drift", [1.0] * 17)
        done = client.ask(client.task(given=["model", "drift"], do={"drift": {}}))
        self.assertEqual("done", done["type"], done)
        self.assertEqual([1.0, 1.0], client.result.get("model")[15:])

    def test_dtypes(self):
        for dtype in ("f2", "f4", "f8"):
            numbers = numpy.array([1 / 3] * COUNT)
            client = self.client(model_of(dtype), lambda m, t: (0.0, 1))
            client.weights.put("model", numbers)
            self.assertEqual("done", client.ask(client.task())["type"])
            expected = numbers.astype("f4").astype(dtype).astype("f4")
            self.assertEqual(expected.tolist(), client.result.get("model"))

    def test_integers_stay_and_views_may_be_replaced(self):
        model = {**model_of(), "count": numpy.array([3])}

        def train(model, task):
            model["count"] += 1
            model["w"] = model["w"].T.copy().T * 2  # another array, of another order
            frozen = model["b"] + 1
            frozen.flags.writeable = False
            model["b"] = frozen
            return 0.0, 1

        client = self.client(model, train)
        for _ in range(2):
            client.weights.put("model", range(COUNT))
            self.assertEqual("done", client.ask(client.task())["type"])
            self.assertEqual(
                [2.0 * i for i in range(12)] + [13.0, 14.0, 15.0], client.result.get("model")
            )
        self.assertEqual([5], model["count"].tolist())

    def test_a_shape_that_changed_is_named(self):
        def train(model, task):
            model["b"] = numpy.zeros(4, "f4")
            return 0.0, 1

        client = self.client(model_of(), train)
        self.assertIn("tensor 'b' is 4 after training, it was 3", client.ask(client.task())["error"])

    def test_tied_arrays_travel_once(self):
        w = numpy.zeros((2, 2), "f4")

        def train(model, task):
            model["out"] += 1
            return 0.0, 1

        client = self.client({"w": w, "out": w}, train, [("w", (2, 2))])
        client.weights.put("model", range(4))
        self.assertEqual("done", client.ask(client.task())["type"])
        self.assertEqual([1, 2, 3, 4], client.result.get("model"))

    def test_numpy_draws_by_the_seed(self):
        drawn = []

        def train(model, task):
            drawn.append(numpy.random.rand(2).tolist())
            return 0.0, 1

        client = self.client(model_of(), train)
        for seed in (1, 1, 2):
            self.assertEqual("done", client.ask(client.task(seed=seed))["type"])
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])

    def test_a_file_is_read_again_as_it_was_saved(self):
        with tempfile.NamedTemporaryFile() as f:
            fl_trainer.save(model_of, f.name)
            block = _memory.open_file(f.name)
            self.assertEqual(TENSORS, [(n, p.shape) for n, p in block.places.items()])
            self.assertEqual(flat(model_of()).tobytes(), bytes(block.floats.cast("B")))

    def test_an_adapter_of_numpy_arrays(self):
        class Mine:
            def __init__(self):
                self.x = numpy.zeros((2, 3))

            def names(self):
                return ["x"]

            def get(self, name):
                return self.x.T

            def set(self, name, values):
                self.x[...] = numpy.asarray(values).T

        def train(model, task):
            model.x += 1
            return 0.0, 1

        client = self.client(Mine(), train, [("x", (3, 2))])
        client.weights.put("model", range(6))
        self.assertEqual("done", client.ask(client.task())["type"])
        self.assertEqual([1, 2, 3, 4, 5, 6], client.result.get("model"))


if __name__ == "__main__":
    unittest.main()
