#!/usr/bin/env bash
# A client with limits: payload takes at least as long as its rate says, and a server that is soon tired of
# silent calls does not end a transfer that is slow and moves.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 1 --seed 3
uptime() { awk '{ print int($1 * 1000) }' /proc/uptime; }
bytes=198840 # of the model: one chunk, which takes longer than twice the server's patience

### One way each, side by side
began=$(uptime)
for way in upload download; do
  write_server "$way" "rounds: 1" "model: {input: [60], layers: [dense 700, relu, dense 10]}" \
    "round: {start_clients: 1}" "limits: {idle: 1s}"
  start_server "$way"
  start_client "$way-client" "$dir/data/client-000" "limits: {${way}_rate: 640kbit/s}"
done
for way in upload download; do
  wait_end "$way-client"
  equal "$way: the client ends with the federation" 0 "$rc"
  took=$(($(uptime) - began))
  check "$way: $took ms are no less than it takes" test "$took" -ge $((bytes / 80 - 50))
  lacks_line "no upload was interrupted" "$dir/$way-client.log" "interrupted"
  lacks_line "no fetch was interrupted" "$dir/$way-client.log" "ended at"
  lacks_line "the server ended no call" "$dir/$way.log" "has sent nothing"
  lacks_line "nor one that did not read" "$dir/$way.log" "has taken nothing"
  wait_for "the server's record of the round" at_round "$way" 1
  equal "$way: round, attempt and bytes up" "1 1 $bytes" \
    "$(ctl "$way" rounds --last 0 --json | json '"%d %d %d" % (d[0]["round"], d[0]["attempt"], d[0]["uplink_bytes"])')"
done

### Nonsense is refused with its line
write_client odd "$dir/data/client-000" "limits: {upload_rate: 100}"
says "a number without a unit" 3 "odd.yaml:9: key 'limits.upload_rate': expected a rate" \
  "$build/fl-clientd" --check-config "$dir/odd.yaml"
has_line "says which there are" "$dir/says.out" "add a unit (bit/s, kbit/s, Mbit/s,"
write_client odd "$dir/data/client-000" "limits: {download_rate: 0.4B/s}"
says "too slow to be meant" 3 "1B/s to 100Gbit/s, found '0.4B/s'" \
  "$build/fl-clientd" --check-config "$dir/odd.yaml"
finish
