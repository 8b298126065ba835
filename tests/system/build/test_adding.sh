#!/usr/bin/env bash
# docs/adding-an-algorithm.md is true: its file compiles as it stands, its lines register it, its row is a
# preset, and a server takes it. Built in a copy of the room, with the objects that are there already.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
doc=$srcdir/docs/adding-an-algorithm.md
# variables of the build's Makefile…
of_make() {
  MAKEFLAGS='' make -s --no-print-directory -C "$build" -f - print <<MK
include Makefile
print:
	@for o in $*; do case \$\$o in fl-*|lib*|server/*|client/*) echo \$(abs_builddir)/\$\$o ;; *) echo \$\$o ;; esac; done
MK
}
# shellcheck disable=SC2016
CC=$(of_make '$(CC)') flags=$(of_make '$(AM_CFLAGS) $(CFLAGS)') ldflags=$(of_make '$(AM_LDFLAGS) $(LDFLAGS)')
cp -r "$srcdir/libfl" "$srcdir/server" "$srcdir/client" "$dir/" || exit 99
room=$dir/libfl/strategy
sed -n '/^```c$/,/^```$/p' "$doc" | sed '1d;$d' >"$room/aggregator/aggregate_cooling.c"
check "the document holds the file" grep -q fl_aggregate_cooling "$room/aggregator/aggregate_cooling.c"
sed -i 's/^extern const struct fl_aggregate_ops fl_aggregate_mean;/&\nextern const struct fl_aggregate_ops fl_aggregate_cooling;/' \
  "$room/aggregator/aggregate.h"
sed -i 's/^    &fl_aggregate_mean.policy,/&\n    \&fl_aggregate_cooling.policy,/' "$room/registry.c"
sed -n '/^```c rule$/,/^```$/p' "$doc" | sed '1d;$d' >"$room/robust/robust_midrange.c"
check "the document holds the rule" grep -q fl_robust_midrange "$room/robust/robust_midrange.c"
sed -i 's/^extern const struct fl_robust_ops fl_robust_none;/&\nextern const struct fl_robust_ops fl_robust_midrange;/' \
  "$room/robust/robust.h"
sed -i 's/^    &fl_robust_none.policy,/&\n    \&fl_robust_midrange.policy,/' "$room/registry.c"
sed -n '/^```c row$/,/^```$/p' "$doc" | sed '1d;$d' >"$dir/row"
sed -i "/^    .. Combinations of the presets above/e cat '$dir/row'" "$room/presets/presets.c"
check "the row is in the table" grep -q '"cooled"' "$room/presets/presets.c"
for f in aggregator/aggregate_cooling robust/robust_midrange registry presets/presets; do
  # shellcheck disable=SC2086
  check "$f.c compiles without a warning" $CC $flags -Werror \
    -I"$dir" -I"$build" -c "$room/$f.c" -o "$dir/${f##*/}.o"
done
# shellcheck disable=SC2046,SC2086,SC2016
check "fl-serverd links with it" $CC $flags $ldflags \
  "$dir/registry.o" "$dir/presets.o" "$dir/aggregate_cooling.o" "$dir/robust_midrange.o" -o "$dir/fl-serverd" \
  $(of_make '$(fl_serverd_OBJECTS) $(fl_serverd_LDADD) $(LIBS)')
says "it is documented by itself" 0 "How fast the step shrinks" "$dir/fl-serverd" --reference
says "the preset is listed" 0 "trusts updates less with time" "$dir/fl-serverd" --help
write_server cooling "rounds: 3" "model: {preset: dnn60}" "round: {start_clients: 2}" \
  "algorithm: cooled" \
  "strategy: {aggregate: {rate: 1}, robust: {policy: midrange, report: yes}}"
says "its options have ranges" 3 "rate" "$dir/fl-serverd" --check-config <(sed 's/rate: 1/rate: -1/' "$dir/cooling.yaml")
ln -sf "$build/fl-clientd" "$build/flctl" "$build/fl-data" "$dir/"
synthetic "$dir/data" 2 --seed 3
"$dir/fl-serverd" "$dir/cooling.yaml" >"$dir/cooling.out" 2>>"$dir/cooling.log" &
pid_of[cooling]=$!
wait_for "fl-serverd to listen" listens cooling
start_client a "$dir/data/client-000"
start_client b "$dir/data/client-001"
wait_for "three rounds" at_round cooling 3
check "the model is exported" ctl cooling export --output "$dir/cooling.safetensors"
check "the model is finite" finite "$dir/cooling.safetensors"
stop cooling
finish
