"""fl-clientd as a foreign server sees it. Run by test_grpcio_server.sh."""
import concurrent.futures
import socket
import threading

import grpc

import harness as h
import scenarios
import stateful
from fl.v1 import federation_pb2_grpc as rpc
from harness import check, contains, until

RECONNECT = "reconnect: {first: 50ms, longest: 200ms, after_refusal: 0s}\n"


class Federation(rpc.FederationServicer):
    """Hands each call to the scenario of its client; the session tells which."""

    def __init__(self):
        self.scenarios = {s.__name__: s() for s in scenarios.ALL + stateful.ALL}
        self.sessions = {}

    def Attend(self, requests, context):
        hello = next(requests).hello
        scenario = self.scenarios[hello.client]
        scenario.visits += 1
        self.sessions[scenario.session()] = scenario
        yield from scenario.attend(hello, requests, context)

    def find(self, session, context):
        if session not in self.sessions:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "unknown session")
        return self.sessions[session]

    def Fetch(self, request, context):
        yield from self.find(request.session, context).fetch(request, context)

    def Push(self, requests, context):
        first = next(requests)

        def rest():
            yield first
            yield from requests

        return self.find(first.header.session, context).push(rest(), context)

    def PushStatus(self, request, context):
        return self.find(request.session, context).status(request, context)


def serve(servicer):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=128))
    if servicer is not None:
        rpc.add_FederationServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, "127.0.0.1:%d" % port


def no_grpc(answer):
    """A server that answers every connection with these bytes and hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            connection, _ = listener.accept()
            connection.recv(10)
            connection.sendall(answer)
            connection.close()

    threading.Thread(target=accept, daemon=True).start()
    return "127.0.0.1:%d" % listener.getsockname()[1]


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return "127.0.0.1:%d" % s.getsockname()[1]


def hopeless(folder, data):
    """No gRPC there: it keeps trying, says why, and stops when it is told."""
    clients = {
        "http1": no_grpc(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        "noise": no_grpc(bytes(range(256)) * 40),
        "mute": no_grpc(b""),
        "nobody": closed_port()}
    daemons = [h.clientd(folder, name, address, data, RECONNECT)
               for name, address in clients.items()]
    for d in daemons:
        until("%s tries again" % d.name, lambda: d.log().count("no connection to") >= 2)
        contains("%s names the server" % d.name, d.log(), clients[d.name])
        d.stop()


def main():
    folder = h.scratch()
    data = h.make_data(folder)[0]
    federation = Federation()
    server, address = serve(federation)
    empty, other = serve(None)
    daemons = [h.clientd(folder, name, address, data, RECONNECT) for name in federation.scenarios]
    for d in daemons:
        federation.scenarios[d.name].power.set_result(d)
    stranger = h.clientd(folder, "stranger", other, data, RECONNECT)
    hopeless(folder, data)
    for d in daemons:
        scenario = federation.scenarios[d.name]
        until("%s was killed: %s" % (d.name, scenario.kills), lambda: not scenario.kills)
        d.ended(scenario.exit_code)
        scenario.judge(d.log())
    stranger.ended(7)
    contains("a server of something else", stranger.log(), "refused this client")
    check("every scenario was seen", all(s.visits for s in federation.scenarios.values()))
    server.stop(None)
    empty.stop(None)


h.run(main)
