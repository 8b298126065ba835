"""FedYogi (Reddi et al. 2021, Algorithm 2) with the options of `aggregate: fedyogi`, as a strategy in Python."""

import numpy as np

import fl_strategy

BETA1, BETA2, TAU, SERVER_LR = 0.9, 0.99, 0.01, 0.1


def aggregate(round):
    state = np.frombuffer(round.state, np.float32) if round.state else np.zeros(2 * round.entries, np.float32)
    first, second = state.reshape(2, -1).copy()  # the second moment, less its start tau^2
    for layer in round.layers:
        at, square = layer.slice, layer.mean**2
        old = second[at].astype(np.float64)
        m = BETA1 * first[at].astype(np.float64) + (1 - BETA1) * layer.mean
        u = old - (1 - BETA2) * square * np.sign(old + TAU**2 - square)
        layer.step[:] = SERVER_LR * m / (np.sqrt(np.maximum(u + TAU**2, 0)) + TAU)
        first[at], second[at] = m, u
    round.state = np.concatenate([first, second]).tobytes()


if __name__ == "__main__":
    fl_strategy.run(aggregate)
