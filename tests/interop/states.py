"""Every call of a client in every state that its session can be in, as docs/clients.md has it."""
import os
import re

import grpc

import harness as h
import peer
from harness import DEADLINE, check, equal

pb, rpc = peer.pb, peer.rpc
HEADING = "### Calls at the network front end"


def table():
    """{state: {call: answer}} of the page."""
    with open(os.path.join(os.environ["FL_SRCDIR"], "docs", "clients.md")) as f:
        lines = f.read().split(HEADING, 1)[1].splitlines()
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    calls = rows[0][1:]
    return {row[0]: dict(zip(calls, row[1:])) for row in rows[2:] if len(row) == len(rows[0])}


def status_of(work):
    try:
        work()
    except grpc.RpcError as e:
        return e.code().name
    return "OK"


def other(task):
    return pb.Task(round=task.round + 7, attempt=task.attempt)


def calls_of(p, task, parts, data):
    """What a client can call, with the token of p and for the round of task."""
    wide = [pb.Part(payload="update", unit=0, codec=pb.CODEC_FLOAT32, bytes=44)]

    def push(of):
        return p.stub.Push(iter([p.header(of, parts, data),
                                 pb.PushMessage(chunk=pb.Chunk(offset=0, data=data))]), timeout=DEADLINE)

    return {
        "Fetch of the model": lambda: p.fetch(task.round, timeout=DEADLINE),
        "Fetch of another round": lambda: p.fetch(task.round + 7, timeout=DEADLINE),
        "Fetch of what is not its own": lambda: p.fetch(task.round, payload="personal_model", timeout=DEADLINE),
        "PushStatus": lambda: p.status(task, timeout=DEADLINE),
        "PushStatus of another round": lambda: p.status(other(task), timeout=DEADLINE),
        "Push of another round": lambda: push(other(task)),
        "Push of another shape": lambda: p.stub.Push(iter([p.header(task, wide, bytes(44))]),
                                                     timeout=DEADLINE),
        "Push": lambda: push(task),
    }


def play(rows, state, p, task, parts, data, leave_out=()):
    cells = rows.pop(state, None)
    if not check("the page has the state '%s'" % state, cells is not None):
        return
    calls = calls_of(p, task, parts, data)
    equal("the calls of the page", sorted(cells), sorted(calls))
    for name, call in calls.items():
        if name not in leave_out:
            equal("%s, %s" % (state, name), status_of(call), cells.get(name))


def attend(channel, name):
    p = peer.Peer(channel, name).attend()
    p.hello(DEADLINE)
    return p


def states(folder):
    rows = table()
    server = h.Server(folder, "states", "model: {input: [4], layers: [dense 2]}\nrounds: 1\n"
                      "evaluation: {every: 0}\nround: {start_clients: 3, min_responders: 1, lost_grace: 1h}\n")
    with server.channel() as channel:
        p = attend(channel, "one")
        task = pb.Task(round=1, attempt=1, plan=pb.Plan(round=1, attempt=1, units=b"\x01"))
        parts, data = p.update([0.5] * 10, task.plan)
        stranger = peer.Peer(channel, "stranger")
        stranger.welcome = pb.Welcome(session=b"\x07" * 16)
        play(rows, "without a session", stranger, task, parts, data)
        play(rows, "joined", p, task, parts, data)
        rest = [attend(channel, name) for name in ("two", "three")]
        task = p.expect("task", DEADLINE)
        # A wrong shape costs the round: the third client plays that, and what comes after it.
        out = rest[1].expect("task", DEADLINE)
        equal("asked, Push of another shape",
              status_of(calls_of(rest[1], out, parts, data)["Push of another shape"]),
              rows.get("asked", {}).get("Push of another shape"))
        play(rows, "rejected", rest[1], out, parts, data)
        play(rows, "asked", p, task, parts, data, leave_out=("Push of another shape", "Push"))
        newer = attend(channel, "one")
        play(rows, "fenced by a newer session", p, task, parts, data)
        p, task = newer, newer.expect("task", DEADLINE)
        p.report(task)  # an upload is answered once the report is there too
        equal("asked, Push", status_of(calls_of(p, task, parts, data)["Push"]), "OK")
        play(rows, "accepted", p, task, parts, data)
        p.leave()
        h.until("the session has ended",
                lambda: status_of(lambda: p.status(task, timeout=DEADLINE)) == "UNAUTHENTICATED")
        play(rows, "left", p, task, parts, data)
        for q in rest:
            q.leave()
    equal("states of the page that nobody played", sorted(rows), [])
    server.stop()
