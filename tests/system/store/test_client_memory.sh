#!/usr/bin/env bash
# What a client takes that trains: activations and gradients share memory, and what steps worked in goes back before the
# result takes its own. A build with sanitizers takes several times as much and leaves this test out.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
peak() { "$python" "$srcdir/bench/client" --build "$build" "$@"; }

# 37 MB of model, of which three are needed, 59 MB of activations, 12 MB of scratch; with the program 163 MB.
check "a client that trains vgg9_bn at batch 64 stays well under 200 MB" peak --model vgg9_bn --batch 64 --limit 180
says "a limit that does not hold is said" 3 "above the 10 MB" \
  "$python" "$srcdir/bench/client" --build "$build" --model cifar_cnn32 --batch 10 --samples 20 --rounds 1 --limit 10
finish
