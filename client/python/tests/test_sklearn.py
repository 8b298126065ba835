"""Estimators of scikit-learn."""

import unittest
import warnings

import numpy
from fake_client import Threaded
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.neural_network import MLPClassifier

import fl_trainer
from fl_trainer import _models

RNG = numpy.random.default_rng(5)
CENTRES = RNG.normal(size=(3, 4)) * 3
Y = numpy.arange(60) % 3
X = CENTRES[Y] + RNG.normal(size=(60, 4))


def evaluate(estimator, task):
    right = (estimator.predict(X) == Y).sum()
    return len(Y), right, float(len(Y) - right)


def partial(estimator, task):
    if hasattr(estimator, "eta0"):
        estimator.set_params(eta0=task.learning_rate)
    for i in task.batches():
        estimator.partial_fit(X[i], Y[i])
    return 0.0


def whole(estimator, task):
    estimator.fit(X, Y)
    return 0.0, int(estimator.n_iter_[0])


class Sklearn(unittest.TestCase):
    def client(self, model, train):
        tensors = [(e.name, e.shape) for e in _models.backend_of(model).entries()]
        client = Threaded(tensors, model, train, evaluate, samples=60, test_samples=60)
        self.addCleanup(client.bye)
        self.assertEqual([], client.start()["parts"])
        self.assertEqual("accepted", client.model()["type"])
        return client

    def rounds(self, make, train):
        """Two rounds of one client learn; the same seeds give the same bits in another process."""
        results = []
        for _ in range(2):
            model = make()
            client = self.client(model, train)
            adapter = model
            numbers = [
                float(v) for n in adapter.names() for v in numpy.asarray(adapter.get(n)).ravel()
            ]
            right = []
            for r in (1, 2):
                client.weights.put("model", numbers)
                done = client.ask(client.task(round=r, epochs=5, learning_rate=0.05, batch_size=10))
                self.assertEqual("done", done["type"], done)
                right.append(done["received"]["correct"])
                numbers = client.result.get("model")
            self.assertGreater(right[1], 40)
            self.assertGreater(right[1], right[0])
            results.append(numbers)
        self.assertEqual(results[0], results[1])

    def test_estimators_that_learn_by_parts(self):
        for make in (
            lambda: SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.1, random_state=1),
            lambda: Perceptron(random_state=1),
            lambda: MLPClassifier((5,), solver="sgd", learning_rate_init=0.05, random_state=1),
            lambda: MLPClassifier((5,), random_state=1, learning_rate_init=0.02),
        ):
            with self.subTest(str(make())):
                self.rounds(lambda: fl_trainer.Sklearn(make(), features=4, classes=range(3)), partial)

    def test_estimators_that_start_warm(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one iteration does not converge
            self.rounds(
                lambda: fl_trainer.Sklearn(
                    LogisticRegression(warm_start=True, max_iter=2), features=4, classes=range(3)
                ),
                whole,
            )

    def test_names_and_shapes(self):
        model = fl_trainer.Sklearn(MLPClassifier((5, 6)), features=4, classes=range(3))
        self.assertEqual(
            [("layer1.coef", (4, 5)), ("layer1.intercept", (5,)), ("layer2.coef", (5, 6)),
             ("layer2.intercept", (6,)), ("layer3.coef", (6, 3)), ("layer3.intercept", (3,))],
            [(e.name, e.shape) for e in _models.backend_of(model).entries()],
        )
        model = fl_trainer.Sklearn(SGDClassifier(), features=4, classes=["no", "yes"])
        self.assertEqual(
            [("linear.coef", (1, 4)), ("linear.intercept", (1,))],
            [(e.name, e.shape) for e in _models.backend_of(model).entries()],
        )

    def test_a_label_that_is_missing_here_is_said(self):
        def train(estimator, task):
            estimator.fit(X[Y < 2], Y[Y < 2])
            return 0.0, 1

        client = self.client(
            fl_trainer.Sklearn(LogisticRegression(warm_start=True), features=4, classes=range(3)), train
        )
        failed = client.ask(client.task())
        self.assertEqual("failed", failed["type"])
        self.assertIn("3", failed["error"])

    def test_what_would_not_work_is_refused(self):
        for estimator, words in (
            (SGDClassifier(average=True), "average"),
            (LogisticRegression(), "warm_start"),
        ):
            self.assertRaisesRegex(
                fl_trainer.ModelError, words, fl_trainer.Sklearn, estimator, features=4, classes=range(3)
            )
        self.assertRaisesRegex(
            fl_trainer.ModelError, "fl_trainer.Sklearn", _models.backend_of, SGDClassifier()
        )


if __name__ == "__main__":
    unittest.main()
