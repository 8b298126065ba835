#!/usr/bin/env bash
# Estimators of scikit-learn as models.
# shellcheck source=client/python/tests/run.sh
. "${FL_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}/client/python/tests/run.sh"
wants sklearn python3-sklearn
run_tests test_sklearn
