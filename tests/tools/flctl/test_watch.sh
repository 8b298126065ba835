#!/usr/bin/env bash
# flctl watch in a terminal (a pseudo terminal of Python): what it shows, its size, a resize, q, a signal, a server that
# goes; and without a terminal.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../../system/lib.sh"
flctl=$build/flctl
synthetic "$dir/data" 2 --seed 3
says "no server" 3 "flctl: watch: no fl-serverd at '$dir/srv.state/admin.sock'" "$flctl" -d "$dir/srv.state" watch
says "an argument" 2 "watch: unexpected argument 'now'" "$flctl" watch now
write_server srv "rounds: 0" "model: {preset: dnn60}" "round: {start_clients: 2, min_clients: 2}" \
  "evaluation: {every: 1, data: \"$dir/data/server\"}"
start_server srv
says "before the first round" 0 "accuracy  -  (not evaluated yet)" "$flctl" -d "$dir/srv.state" watch
start_client c0 "$dir/data/client-000" "exit_when_done: no"
start_client c1 "$dir/data/client-001" "exit_when_done: no"
wait_for "two rounds" at_round srv 2
check "pause" ctl srv pause --reason "$(printf 'so that every screen is the same %.0s' 1 2 3 4 5 6)"
wait_for "the pause" in_phase srv PAUSED
check "quarantine" ctl srv clients quarantine c1 --reason "for the test"

### Without a terminal: one screen, and the end
"$flctl" -d "$dir/srv.state" watch >"$dir/once"
equal "it ends" 0 $?
lacks_line "no sequences" "$dir/once" $'\033'
for text in "phase     PAUSED, round " "why       round " "accuracy  0." "clients   2 connected of 2 known"; do
  has_line "one screen: $text" "$dir/once" "$text"
done
equal "the client that is left out stands first, with the reason below" "c1   quarantined by the operator: for the test c0" \
  "$(sed -n '/^client /,$p' "$dir/once" | sed -n '2,4s/^\(c[01]\) .*/\1/p; 2,4{/^  /p}' | paste -sd ' ')"
check "it fits 80x24" "$python" - "$dir/once" <<'PY'
import sys
lines = open(sys.argv[1]).read().split("\n")[:-1]
assert 10 < len(lines) <= 24 and max(map(len, lines)) <= 80, (len(lines), max(map(len, lines)))
(at,) = [i for i, line in enumerate(lines) if line.startswith("why ")]
# Its sentence takes three lines, and says when that is not all.
assert lines[at + 1].startswith(" " * 10) and lines[at + 2].endswith("..."), lines[at:at + 3]
PY
COLUMNS=40 LINES=8 "$flctl" -d "$dir/srv.state" watch >"$dir/small"
equal "a small one is cut" "8 yes" "$("$python" -c 'import sys
lines = open(sys.argv[1]).read().split("\n")[:-1]
print(len(lines), "yes" if max(map(len, lines)) <= 40 else "no")' "$dir/small")"

### In a terminal
cat >"$dir/terminal.py" <<'PY'
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

LIMIT = 600  # seconds that only a hang can outlast

class Terminal:
    """A program in a terminal, and the screen that it shows: as much of ANSI as it uses."""
    def __init__(self, columns, rows, *command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # The size is there before the program looks.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execv(command[0], command)
        self.raw, self.screen = b"", []
    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    def read(self):
        if select.select([self.fd], [], [], 1)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            self.raw += data
            return bool(data)
        return True
    def frames(self):
        found = self.raw.split(b"\033[H")[1:]
        return [f[:-3].decode().replace("\033[K", "").replace("\r", "").split("\n") for f in found if f.endswith(b"\033[J")]
    def until(self, holds):
        began = time.monotonic()
        while time.monotonic() - began < LIMIT:
            frames = self.frames()
            if frames and holds(frames[-1]):
                return frames[-1]
            assert self.read(), "it has ended: %r" % self.raw[-300:]
        raise SystemExit("waited in vain: %r" % self.frames()[-1:])
    def end(self):
        while self.read():
            pass
        return os.waitpid(self.pid, 0)[1]
    def modes(self):
        return termios.tcgetattr(self.fd)[3] & (termios.ICANON | termios.ECHO)

flctl, state, server = sys.argv[1], sys.argv[2], int(sys.argv[3])
def text_is_there(*texts):
    return lambda frame: all(any(t in line for line in frame) for t in texts)

t = Terminal(80, 24, flctl, "-d", state, "watch")
frame = t.until(text_is_there("PAUSED", "c1", "quarantined", "accuracy  0."))
assert t.raw.startswith(b"\033[?1049h\033[?25l"), t.raw[:40]
assert len(frame) <= 24 and max(map(len, frame)) <= 80, frame
assert t.modes() == 0
t.resize(132, 40)
wide = t.until(lambda frame: max(map(len, frame)) > 80)
assert len(wide) <= 40 and max(map(len, wide)) <= 132, wide
t.resize(60, 10)
small = t.until(lambda frame: len(frame) <= 10)
assert max(map(len, small)) <= 60, small
t.resize(80, 24)
os.kill(server, signal.SIGKILL)
gone = t.until(text_is_there("! no fl-serverd at"))
assert text_is_there("PAUSED", "c1")(gone), gone  # what it said last
os.write(t.fd, b"x")  # another key is nothing
os.write(t.fd, b"q")
status = t.end()
assert status == 0, status
assert t.raw.endswith(b"\033[?25h\033[?1049l"), t.raw[-40:]
PY
check "80x24, larger, smaller, a server that goes, q" "$python" "$dir/terminal.py" "$flctl" "$dir/srv.state" "${pid_of[srv]}"
wait_end srv
start_server srv
sed '/^t = Terminal/,$d' "$dir/terminal.py" >"$dir/signal.py"
cat >>"$dir/signal.py" <<'PY'
t = Terminal(80, 24, flctl, "-d", state, "watch")
t.until(text_is_there("PAUSED"))
os.write(t.fd, b"\x03")
status = t.end()
assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 130, status
assert t.raw.endswith(b"\033[?25h\033[?1049l"), t.raw[-40:]
PY
check "an interrupt gives the terminal back" "$python" "$dir/signal.py" "$flctl" "$dir/srv.state" 0
stop c0
stop c1
stop srv
finish
