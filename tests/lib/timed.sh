#!/usr/bin/env bash
# The log compiler of all tests: runs COMMAND, so its exit code and output are the test's, and ends the log with the
# seconds that it took and those of the processors, its ended children included. deploy/test.sh prints the slowest.
TIMEFORMAT='took %R s, processors %U s user, %S s system'
time "$@"
