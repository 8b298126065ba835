"""What evaluate() may return beside loss and accuracy."""

import contextlib
import io
import math
import unittest

import fl_trainer
from fl_trainer._task import evaluation_of


def message(metrics):
    return evaluation_of((10, 4, 2.5, metrics)).message()


class Metrics(unittest.TestCase):
    def test_numbers_and_metrics_become_fields(self):
        m = message({"f1": 1, "errors": fl_trainer.Metric(6, over="sum"), "a/b": fl_trainer.Metric(0.5, samples=3)})
        self.assertEqual(
            m["metrics"],
            {"f1": 1.0, "errors": {"value": 6.0, "over": "sum"}, "a/b": {"value": 0.5, "over": "mean", "samples": 3}},
        )

    def test_every_form_of_a_result_may_have_them(self):
        mapping = {"samples": 10, "correct": 4, "loss_sum": 2.5, "metrics": {"f1": 0.5}}
        given = fl_trainer.Evaluation(10, 4, 2.5, {"f1": 0.5})
        for value in (mapping, given, (10, 4, 2.5, {"f1": 0.5})):
            self.assertEqual(evaluation_of(value).message()["metrics"], {"f1": 0.5})
        self.assertNotIn("metrics", evaluation_of((10, 4, 2.5)).message())

    def test_a_bad_one_is_named_with_what_was_expected(self):
        bad = [
            ({"f 1": 1}, "metric 'f 1': expected a name of 1 to 31"),
            ({"": 1}, "metric '': expected a name"),
            ({5: 1}, "metric 5: expected a name"),
            ({"x" * 32: 1}, "expected a name"),
            ({"loss": 1}, "metric 'loss': this name is taken"),
            ({"received/f1": 1}, "this name is taken"),
            ({"f1": "high"}, "metric 'f1' is 'high'; expected a number"),
            ({"f1": True}, "metric 'f1' is True; expected a number"),
            ({"f1": [1]}, "metric 'f1' is list; expected a number"),
            ({"f1": fl_trainer.Metric(1, over="max")}, "over is 'max'; expected"),
            ({"f1": fl_trainer.Metric(1, samples=11)}, "11 samples; expected 1 to 10"),
            ({f"m{i}": 1 for i in range(33)}, "metrics are dict of 33; expected a dictionary of at most 32"),
            ([1], "metrics are list of 1; expected a dictionary"),
        ]
        for metrics, says in bad:
            with self.assertRaises(ValueError) as caught:
                message(metrics)
            self.assertIn(says, str(caught.exception))

    def test_a_number_that_is_not_finite_is_left_out_with_a_note(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            m = message({"f1": math.nan, "auc": 0.5})
        self.assertEqual(m["metrics"], {"auc": 0.5})
        self.assertIn("metric 'f1' is nan: left out", said.getvalue())


if __name__ == "__main__":
    unittest.main()
