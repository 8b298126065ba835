#!/usr/bin/env bash
# Eleven faults, each of a server of its own: `flctl why`, the status page, STATUS of systemd and an alert name cause and subject
# in the same words. test_faults_net.sh has the twelfth, a firewall.
#   test_faults.sh [NAME…]     those faults only
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/system/http/faults.sh
. "$(dirname "$0")/faults.sh"
two="round: {start_clients: 2, min_clients: 2, min_responders: 2, retry: 20ms}"
long="round: {start_clients: 2, min_clients: 2, min_responders: 2, retry: 20ms, lost_grace: 10m}"
pair() { # server, lines of YAML…: clients SERVER-a and SERVER-b
  start_client "$1-a" "$dir/data/client-000" "${@:2}"
  start_client "$1-b" "$dir/data/client-001" "${@:2}"
}
end() { # names
  local name
  for name in "$@"; do stop "$name"; done
}
# Libraries that stand in for a disk or a clock do not go with a sanitizer, which wants to be the first one.
preloads() { ! ldd "$build/fl-serverd" | grep -qE 'lib(a|t|m)san' || { echo "not run: $1 (this build has a sanitizer)"; return 1; }; }

client_is_gone() {
  serve gone "$two"
  pair gone
  wait_for "a round" at_round gone 1
  kill_hard gone-b
  fault gone disconnected "disconnected: gone-b"
  end gone-a gone
}

slow_link() {
  serve slow "$two"
  start_client slow-a "$dir/data/client-000"
  start_client slow-b "$dir/data/client-001" "limits: {upload_rate: 1kbit/s}"
  fault slow slow "slower than the others: slow-b"
  end slow-b slow-a slow
}

server_is_restarted() {
  local name
  serve restart "$long"
  pair restart
  wait_for "a round" at_round restart 1
  for name in restart restart-a restart-b; do kill_hard "$name"; done
  start_server restart
  scrape restart
  fault restart restarted "the server restarted, waiting for known clients: restart-a, restart-b"
  end restart
}

no_data() {
  serve nodata "$long"
  cp -r "$dir/data/client-001" "$dir/mine"
  start_client nodata-a "$dir/data/client-000"
  start_client nodata-b "$dir/mine"
  wait_for "a round" at_round nodata 1
  mv "$dir/mine" "$dir/elsewhere"
  fault nodata cannot_take_part "client 'nodata-b' cannot take part: its data is missing"
  end nodata-a nodata-b nodata
}

training_diverges() {
  serve diverge "training: {learning_rate: 1000, momentum: 0.9, weight_decay: 0.1, steps: 100, epochs: 0}" "$two"
  pair diverge
  fault diverge diverged "round 1 attempt 1 diverged: "
  end diverge-a diverge-b diverge
}

training_gets_worse() {
  serve worse "model: {preset: mlr60}" "training: {learning_rate: 0.01}" "$two"
  pair worse
  wait_for "twenty rounds" at_round worse 20
  stop worse
  serve worse "model: {preset: mlr60}" "training: {learning_rate: 100}" "$two"
  fault worse loss_rises "the training loss has risen since round "
  end worse-a worse-b worse
}

client_is_hostile() {
  local bad=$build/tests/system/bad_client offence round=0
  [ -x "$bad" ] || { echo "not run: a hostile client (no $bad)"; return; }
  serve hostile "round: {start_clients: 3, min_clients: 3}"
  pair hostile
  for offence in nan shape large; do
    timeout -k 5 "$patience" "$bad" "$address" bad "$offence" >"$dir/bad.out" 2>&1
    round=$((round + 1))
    wait_for "round $round" at_round hostile $round
  done
  fault hostile quarantined "client 'bad' is quarantined"
  end hostile-a hostile-b hostile
}

two_machines_with_one_identity() {
  local i
  serve clone "training: {epochs: 200}" "round: {start_clients: 1, min_clients: 1, min_responders: 1}"
  for i in 1 2 3; do
    start_client "clone-$i" "$dir/data/client-000" "name: same" "reconnect: {first: 50ms, longest: 200ms, after_refusal: 10ms}"
  done
  fault clone clone "sessions of client 'same' take over from each other"
  for i in 1 2 3; do kill_hard "clone-$i"; done
  end clone
}

certificate_expires() {
  cat >"$dir/cert.yaml" <<TEXT
federation: integ
state_dir: "$dir/cert.state"
listen: ["127.0.0.1:0"]
identity: {hosts: [localhost], validity: 5d}
model: {preset: dnn60}
http: {listen: ["127.0.0.1:0"]}
TEXT
  check "an identity" "$build/fl-serverd" --init "$dir/cert.yaml"
  start_server cert
  scrape cert
  fault cert certificate "the certificate of this server expires at 20"
  end cert
}

disk_is_full() {
  describe_server full "$two" "admin_socket: $dir/full.admin"
  socket_of[full]=$dir/full.admin
  on_small_disk full "$build/fl-serverd" "$dir/full.yaml" || { echo "not run: a full disk (no mount namespaces here)"; return; }
  scrape full
  pair full
  one_round() { "$build/flctl" --socket "$dir/full.admin" rounds --json | json 'len(d) > 0'; }
  wait_for "a round" one_round
  fill_disk full
  fault full work_failed "$dir/full.state/"
  end full-a full-b
  kill_hard full
}

disk_hangs() {
  preloads "a disk that hangs" || return
  ${CC:-cc} -shared -fPIC -O1 -o "$dir/hang.so" "$srcdir/tests/system/hang.c" -ldl >"$dir/cc.out" 2>&1 ||
    { echo "not run: a disk that hangs (no C compiler)"; return; }
  describe_server hang "$two"
  FL_HANG=$dir/hang LD_PRELOAD=$dir/hang.so start_server hang
  scrape hang
  pair hang
  wait_for "a round" at_round hang 1
  echo "hang.state/spool" >"$dir/hang"
  fault hang disk_stalled "the disk of '$dir/hang.state' has not answered"
  rm "$dir/hang"
  end hang-a hang-b hang
}

# Two days ahead for a round; then the clock is set right, which is as wrong for its records.
clock_is_wrong() {
  local faked faketime
  preloads "a wrong clock" || return
  faketime=$(find /usr/lib /usr/lib64 -name libfaketime.so.1 2>/dev/null | head -n 1)
  [ -n "$faketime" ] || { echo "not run: a wrong clock (libfaketime is not here; Debian: faketime)"; return; }
  describe_server clock "$two"
  TZ=UTC0 LD_PRELOAD=$faketime FAKETIME=+2d FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1 start_server clock
  pair clock
  wait_for "a round" at_round clock 1
  faked=${pid_of[clock]}
  end clock-a clock-b clock # A further round would repair its records.
  rm -f "/dev/shm/faketime_shm_$faked" "/dev/shm/sem.faketime_sem_$faked"
  start_server clock
  scrape clock
  fault clock clock "the clock of this host is wrong: the last round was committed at 20"
  end clock
}

prometheus_begin
notify_socket
synthetic "$dir/data" 2 --seed 3
[ $# -gt 0 ] || set -- client_is_gone slow_link server_is_restarted no_data training_diverges training_gets_worse client_is_hostile \
  two_machines_with_one_identity certificate_expires disk_is_full disk_hangs clock_is_wrong
serve sound "rounds: 3" "$two"
pair sound "exit_when_done: no"
wait_for "three rounds" at_round sound 3
for inject in "$@"; do "$inject"; done
equal "a sound server has no problem" 0 "$("$python" "$dir/ask.py" problems "${port_of[sound]}")"
equal "and no alert" 0 "$(firing | tr ' ' '\n' | grep -c '/sound$')"
finish
