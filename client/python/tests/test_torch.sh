#!/usr/bin/env bash
# Models and optimizers of PyTorch: hand-over, parts of a step, cancellation, workers;
# the losses of task.loss().
# shellcheck source=client/python/tests/run.sh
. "${FL_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}/client/python/tests/run.sh"
wants torch python3-torch
run_tests test_torch test_losses
