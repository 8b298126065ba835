"""Linear models and multi-layer perceptrons of scikit-learn as adapters."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from ._models import Adapter, ModelError


class Sklearn(Adapter):
    """SGDClassifier, Perceptron, LogisticRegression, MLPClassifier and what is built like them.

    `features` is the width of a sample, `classes` all labels of the federation: an estimator has no
    parameters before it has seen data, and one client may lack some label. Linear models begin at 0;
    a perceptron begins as scikit-learn makes it, from its `random_state`.

    Train with `partial_fit`, or with `fit` where the estimator has `warm_start=True`.
    """

    def __init__(self, estimator: Any, features: int, classes: Sequence[Any]) -> None:
        import numpy

        self.model = self.estimator = estimator
        labels = numpy.unique(numpy.asarray(classes))
        if len(labels) < 2:
            raise ModelError("Sklearn(): `classes` has to name two labels at least")
        if getattr(estimator, "average", False):
            raise ModelError("Sklearn(): average=… keeps a second model, which would not travel")
        self._begin_with(numpy, labels, features)
        # Layer by layer, weights before biases: the unit is the name before the last dot.
        self._tensors: Dict[str, Tuple[str, int]] = {}
        if hasattr(estimator, "coefs_"):
            for i in range(len(estimator.coefs_)):
                self._tensors[f"layer{i + 1}.coef"] = ("coefs_", i)
                self._tensors[f"layer{i + 1}.intercept"] = ("intercepts_", i)
        elif hasattr(estimator, "coef_"):
            self._tensors["linear.coef"] = ("coef_", -1)
            self._tensors["linear.intercept"] = ("intercept_", -1)
        if not self._tensors:
            raise ModelError(
                f"Sklearn(): a {type(estimator).__name__} has neither coef_ nor coefs_; write an adapter"
            )

    def _begin_with(self, numpy: Any, labels: Any, features: int) -> None:
        estimator = self.estimator
        if hasattr(estimator, "partial_fit"):
            rate = getattr(estimator, "learning_rate_init", None)
            if rate is not None:
                estimator.learning_rate_init = 1e-30  # of a perceptron: keep the initial weights
            estimator.partial_fit(numpy.zeros((len(labels), features)), labels, classes=labels)
            if rate is not None:
                estimator.learning_rate_init = rate
        else:
            if not getattr(estimator, "warm_start", False):
                raise ModelError(
                    f"Sklearn(): a {type(estimator).__name__} needs warm_start=True, or each fit forgets "
                    "the received model"
                )
            estimator.classes_ = labels
            estimator.n_features_in_ = features
            rows = 1 if len(labels) == 2 else len(labels)
            estimator.coef_ = numpy.zeros((rows, features))
            estimator.intercept_ = numpy.zeros(rows)
        if hasattr(estimator, "coef_"):
            estimator.coef_[...] = 0
            estimator.intercept_[...] = 0
        self._labels = labels
        self.begin()

    def names(self) -> List[str]:
        return list(self._tensors)

    def _array(self, name: str) -> Any:
        attribute, i = self._tensors[name]
        value = getattr(self.estimator, attribute)
        return value if i < 0 else value[i]

    def get(self, name: str) -> Any:
        import numpy

        if len(self.estimator.classes_) != len(self._labels):
            raise ModelError(
                f"the estimator knows {len(self.estimator.classes_)} labels after training, the model "
                f"has {len(self._labels)}: fit() forgets those that are not in the local data, use "
                "partial_fit() of an estimator that has it"
            )
        x = numpy.asarray(self._array(name))
        return x if x.dtype.kind == "f" else x.astype("f8")

    def set(self, name: str, values: memoryview) -> None:
        import numpy

        self._array(name)[...] = numpy.asarray(values)

    def begin(self) -> None:
        # A perceptron keeps its momentum from one fit to the next; schedules count samples.
        if hasattr(self.estimator, "_optimizer"):
            del self.estimator._optimizer
        if hasattr(self.estimator, "t_"):
            self.estimator.t_ = 0 if hasattr(self.estimator, "coefs_") else 1.0
