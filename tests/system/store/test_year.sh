#!/usr/bin/env bash
# A year in a minute: the daemons as they are, with the durations of docs/security.md, and a clock that this test
# moves on by a day as soon as all that belongs to the day before has happened. Rounds go on all the time; nobody is lost
# in one, and none is repeated, for the sake of a certificate. Then clocks that are wrong.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
faketime=$(find /usr/lib /usr/lib64 -name libfaketime.so.1 2>/dev/null | head -n 1)
[ -n "$faketime" ] || skip "libfaketime is not here (Debian: faketime)"
if ldd "$build/fl-serverd" | grep -qE 'lib(a|t|m)san'; then
  skip "this build has a sanitizer, which wants to be the first library, as does the one of the clock"
fi

### Clocks
# All hosts read this one, but those that have one of their own. Only what is wall clock is faked, and
# no times of files: both sides see by them whether somebody replaced one.
day=0
show() { # file, +Nd or a time
  echo "$2" >"$1.new" && mv "$1.new" "$1"
}
at_day() { show "$dir/clock" "+$1d"; }
at_day 0
own_clock() { # host, text: only the clock of this one
  rm -f "$dir/$1.clock"
  show "$dir/$1.clock" "$2"
}
right_clock() { ln -sfn "$dir/clock" "$dir/$1.clock"; }
faked_pids=()
faked() { # host, command…: in its place
  local host=$1
  shift
  [ -e "$dir/$host.clock" ] || right_clock "$host"
  # The library reads a time in the zone of the host.
  exec env TZ=UTC0 LD_PRELOAD="$faketime" FAKETIME_TIMESTAMP_FILE="$dir/$host.clock" FAKETIME_NO_CACHE=1 \
    FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1 "$@"
}
faked_ends() { # What the library leaves in /dev/shm of those that were killed.
  local pid
  for pid in "${faked_pids[@]}"; do rm -f "/dev/shm/faketime_shm_$pid" "/dev/shm/sem.faketime_sem_$pid"; done
}
trap 'end_all; faked_ends' EXIT
begin() { # name, host, command…: in the background
  local name=$1 host=$2
  shift 2
  faked "$host" "$@" >>"$dir/$name.out" 2>>"$dir/$name.log" &
  pid_of[$name]=$!
  faked_pids+=($!)
}
here() (faked srv "$@") # the commands of the server's host

### The server, and what its log says
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
write_config() { # hosts
  cat >"$dir/srv.yaml" <<YAML
federation: integ
state_dir: "$dir/srv.state"
listen: ["127.0.0.1:$port"]
identity: {hosts: [$1]}
model: {preset: dnn60}
# The faster the machine, the more rounds; long after the model has converged one client may move it far more than
# the others do.
round: {retry: 50ms, norm_cap: 0}
evaluation: {every: 0}
YAML
}
run_server() {
  : >"$dir/srv.out"
  begin srv srv "$build/fl-serverd" "$dir/srv.yaml"
  wait_for "the server to listen" listens srv
  running srv || note_failure "the server does not start on day $day"
}
declare -A renewals=([server]=0) renewed_on=([server]=0)
there=0  # clients that take part
rounds=0 # committed
trouble=()
refuses=no # somebody, for good reason: warnings are as they should be
part=''
see() { # line
  case $1 in
    *" committed: round="*)
      rounds=$((rounds + 1))
      [[ $1 == *" attempt=1 selected=$there responders=$there "* ]] || trouble+=("day $day: $1")
      ;;
    *"identity: audit: renew "*": ok"*)
      local name=${1##*audit: renew }
      name=${name%%:*}
      renewals[$name]=$((${renewals[$name]:-0} + 1)) renewed_on[$name]=$day
      ;;
    *"created the server's certificate"*) renewals[server]=$((renewals[server] + 1)) renewed_on[server]=$day ;;
    *" -> PAUSED, paused by the operator") ;;
    # `--init --renew-root` of this test holds the folder, on a busy machine longer than the server waits: it tries again.
    *"reading certificates failed, keeping the previous ones: "*"/identity' is in use by process "*) ;;
    *" warning "* | *" error "*) [ "$refuses" = yes ] || trouble+=("day $day: $1") ;;
  esac
}
read_log() {
  local piece
  while IFS= read -r -u 9 piece; do
    see "$part$piece"
    part=''
  done
  part+=$piece
}
rounds_are() { # number
  read_log
  [ "$rounds" -ge "$1" ]
}

### Days
present=() # those whose certificates are to be new
# Two thirds of the validity and the jitter are over: these have renewed, or it is not by themselves.
all_renewed() {
  local name
  read_log
  for name in server "${present[@]}"; do
    [ $((day - ${renewed_on[$name]})) -lt 22 ] || return 1
  done
}
# The second round from now begins behind it.
some_rounds() {
  read_log
  wait_for "rounds on day $day" rounds_are $((rounds + 2))
}
pause() {
  ctl srv pause >/dev/null
  wait_for "a pause on day $day" in_phase srv PAUSED
  read_log
}
resume() { # clients that take part from now on
  there=$1
  wait_for "$there clients on day $day" connected srv "$there"
  ctl srv resume >/dev/null
  some_rounds
}
write_client() { # name, folder of data, address
  cat >"$dir/$1.yaml" <<YAML
server: "$3:$port"
name: $1
state_dir: "$dir/$1.state"
data: {path: "$dir/data/$2"}
reconnect: {first: 50ms, longest: 200ms, after_refusal: 1s}
YAML
}
invite() { here "$build/flctl" -d "$dir/srv.state" invite "$1" >"$dir/$1.line" 2>/dev/null; }
accept() (faked "$1" "$build/fl-clientd" --join "$dir/$1.yaml" <"$dir/$1.line")
join() { # name
  invite "$1"
  check "$1 joins on day $day" accept "$1"
  renewed_on[$1]=$day renewals[$1]=0
}
on() { begin "$1" "$1" "$build/fl-clientd" "$dir/$1.yaml"; }
roots_of() { grep -c BEGIN "$dir/$1.state/identity/roots.pem"; }

happen() {
  case $day in
    15 | 30 | 45 | 75 | 90 | 105 | 120 | 135 | 150 | 165 | 180 | 195 | 210 | 225 | 255 | 270 | 285 | 315 | 330 | 345 | 360) commute ;;
    20) leave long 4 ;;
    60) other_names ;;
    100) other_root ;;
    110) leave short 3 ;;
    124) equal "with the next renewal both roots are there" "2 2" "$(roots_of steady-1) $(roots_of steady-2)" ;;
    160) back_in_time ;;
    191) wait_for "the next root" in_log srv "the next root of federation 'integ' signs from now on" ;;
    220) back_too_late ;;
    240) first_boot ;;
    281) wait_for "the end of the old root" in_log srv "the old root of federation 'integ' is no longer trusted" ;;
    290) boot ;;
    300) power_cut ;;
  esac
}
leave() { # name, clients that stay
  local name stay=()
  pause
  stop "$1"
  for name in "${present[@]}"; do [ "$name" = "$1" ] || stay+=("$name"); done
  present=("${stay[@]}")
  resume "$2"
}
# Who comes anew has to believe the server of that day, and the other way round.
commute() {
  pause
  stop commuter
  on commuter
  resume "$there"
}
other_names() {
  local before=${renewals[server]}
  pause
  stop srv
  equal "the server ends well" 0 "$rc"
  write_config "127.0.0.1, localhost"
  stop commuter
  write_client commuter client-002 localhost
  run_server
  on commuter
  resume "$there"
  equal "another name of the server makes it another certificate" $((before + 1)) "${renewals[server]}"
}
other_root() {
  check "a root with another key, while the server runs" here "$build/fl-serverd" --init --renew-root "$dir/srv.yaml"
  # When it comes before the server has looked on that day, it does what is due.
  ! grep -q "created the server's certificate" "$dir/check.out" ||
    renewals[server]=$((renewals[server] + 1)) renewed_on[server]=$day
  # It looks every two seconds, in which more days go by than its old certificate may have left.
  wait_for "the server to take up what was made beside it" gives_both_roots
}
asked=0
gives_both_roots() {
  asked=$((asked + 1))
  here "$build/flctl" -d "$dir/srv.state" admin-certificate "admin-$asked" --output "$dir/admin-$asked" &&
    [ "$(grep -c BEGIN "$dir/admin-$asked/roots.pem")" -eq 2 ]
}
back_in_time() {
  local before=${renewals[short]}
  pause
  on short
  wait_for "who was off for 50 days" connected srv $((there + 1))
  renewed_on[short]=$day
  present+=(short)
  resume $((there + 1))
  has_line "it says what it does" "$dir/short.log" "certificate expired: renewing it first"
  equal "it renewed within its grace, once" $((before + 1)) "${renewals[short]}"
}
back_too_late() {
  : >"$dir/long.log"
  pause
  refuses=yes
  on long
  wait_for "who was off for 200 days to name the commands" in_log long "ask for an invitation (flctl invite long) and pass it to: fl-clientd --join"
  check "it waits" running long
  check "nobody let it in" connected srv "$there"
  invite long
  join long
  present+=(long)
  wait_for "its daemon to see the new certificate" in_log long "certificate loaded: name=long"
  wait_for "it to take part" in_log long "joined federation 'integ'"
  read_log
  refuses=no
  resume $((there + 1))
}
# A host without a battery for its clock: it joins, and boots, in 1970.
first_boot() {
  write_client battery client-005 127.0.0.1
  own_clock battery "@1970-01-01 00:00:10"
  invite battery
  begin joining battery "$build/fl-clientd" --join --invitation "$dir/battery.line" "$dir/battery.yaml"
  says_1970 joining "this program was built at"
  pause
  right_clock battery
  wait_end joining
  equal "it joins when its clock is set" 0 "$rc"
  renewed_on[battery]=$day renewals[battery]=0
  present+=(battery)
  on battery
  resume $((there + 1))
}
says_1970() { # log, what is known
  wait_for "'$1' to say that its clock is wrong" in_log "$1" "waiting for the time service to set it"
  check "both times, and the difference" grep -qE \
    "the clock of this host \(1970-01-01 00:[0-9:]+Z\) is wrong: $2 20[0-9-]+ [0-9:]+Z, [5-9][0-9] years later" "$dir/$1.log"
}
boot() {
  pause
  stop battery
  : >"$dir/battery.log"
  own_clock battery "@1970-01-01 00:00:10"
  on battery
  says_1970 battery "the certificate of this client is valid from"
  there=$((there - 1))
  resume "$there"
  pause
  right_clock battery
  resume $((there + 1))
  has_line "it says that it goes on" "$dir/battery.log" "the clock of this host is set, connecting"
}
power_cut() {
  pause
  kill_hard srv 2>/dev/null
  run_server
  resume "$there"
}

synthetic "$dir/data" 6 --seed 3
write_config 127.0.0.1
check "the federation gets its identity" here "$build/fl-serverd" --init "$dir/srv.yaml"
: >"$dir/srv.log"
exec 9<"$dir/srv.log"
run_server
ctl srv pause >/dev/null
names=(steady-1 steady-2 commuter short long)
for i in "${!names[@]}"; do
  write_client "${names[i]}" "client-00$i" 127.0.0.1
  join "${names[i]}"
  on "${names[i]}"
done
present=("${names[@]}")
resume 5
began=$SECONDS
while [ "$day" -lt 365 ]; do
  day=$((day + 1))
  at_day "$day"
  happen
  some_rounds
  wait_for "renewals on day $day" all_renewed
done
pause
equal "nothing was amiss" "" "$(printf '%s\n' "${trouble[@]}" | head -n 5)"
ctl srv rounds --last 0 --json >"$dir/rounds.json"
equal "no round was repeated" "1" "$(json '" ".join(str(a) for a in sorted({r["attempt"] for r in d}))' <"$dir/rounds.json")"
equal "nobody was lost in one" 0 "$(ctl srv clients --json | json 'sum(c["lost"] + c["rejected"] for c in d)')"
for name in server steady-1 steady-2 commuter; do
  n=${renewals[$name]}
  check "$name renewed every 20 days or so, not $n times" test "$n" -ge 15 -a "$n" -le 20
done
for name in "${present[@]}"; do
  equal "$name believes the new root alone" 1 "$(roots_of "$name")"
done
for name in steady-1 steady-2; do
  equal "$name connected with the starts of the server only" 3 "$(grep -c 'joined federation' "$dir/$name.log")"
done
seconds=$((SECONDS - began))
sed -n "s/^.* \(the certificate of this client expired at .*\)/\1/p" "$dir/long.log" | head -n 1
echo "a year in $seconds s: $rounds rounds; renewed: $(for name in server "${names[@]}" battery; do printf '%s %s, ' "$name" "${renewals[$name]}"; done)"

### A clock that is wrong on the server
refuses=yes
for name in "${present[@]}"; do : >"$dir/$name.log"; done
own_clock srv "+$((day + 200))d"
wait_for "a server that is 200 days ahead to believe nobody" connected srv 0
both_times() { # log, difference
  grep -qE "this machine's clock says 20[0-9-]+ [0-9:]+Z, the certificate begins 20[0-9-]+ [0-9:]+Z, which is $2 later" "$dir/$1.log"
}
for name in steady-1 steady-2; do
  wait_for "$name to say both times and the difference" both_times "$name" "(199|200) days"
done
right_clock srv
wait_for "all to be back when it is set" connected srv "$there"
read_log
refuses=no
resume "$there"
equal "then nothing is amiss" "" "$(printf '%s\n' "${trouble[@]}" | head -n 5)"
stop srv
own_clock srv "-$((1000 - day))d"
begin early srv "$build/fl-serverd" "$dir/srv.yaml"
wait_end early
equal "a server that is years behind does not start" 8 "$rc"
check "and says both times and the difference" both_times early "2 years"
right_clock srv
run_server
wait_for "all when it is set" connected srv "$there"
some_rounds
finish
