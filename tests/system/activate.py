"""Hold a listening socket and start a program with it again and again, as systemd does for a socket unit.

usage: activate.py FOLDER PROGRAM [ARGUMENT ...]    "@PORT@" in an argument is the port
Writes FOLDER/port, then for the n-th start (from 1) waits for FOLDER/go-N, writes FOLDER/pid-N and, at its end,
FOLDER/code-N.
"""
import os
import socket
import sys
import time

folder, program = sys.argv[1], sys.argv[2:]
held = socket.socket()
held.bind(("127.0.0.1", 0))
held.listen(4096)
port = str(held.getsockname()[1])


def write(name, text):
    with open(f"{folder}/{name}.tmp", "w") as f:
        f.write(text)
    os.rename(f"{folder}/{name}.tmp", f"{folder}/{name}")


write("port", port)
n = 0
while True:
    n += 1
    while not os.path.exists(f"{folder}/go-{n}"):
        time.sleep(0.02)
    pid = os.fork()
    if pid == 0:
        if held.fileno() == 3:
            os.set_inheritable(3, True)
        else:
            os.dup2(held.fileno(), 3)
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
        os.execv(program[0], [a.replace("@PORT@", port) for a in program])
    write(f"pid-{n}", str(pid))
    write(f"code-{n}", str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
