#!/usr/bin/env bash
# Models that are dictionaries of numpy arrays: hand-over, parts of a step, orders.
# shellcheck source=client/python/tests/run.sh
. "${FL_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}/client/python/tests/run.sh"
wants numpy python3-numpy
run_tests test_numpy
