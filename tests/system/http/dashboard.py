"""The Grafana dashboard against real series: PORT of a Prometheus, URL of /metrics, FILE.

Every query evaluates without an error, every metric in it is in /metrics, and every query but those of problems, alerts and of
what this run does not have answers with a series."""

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

port, metrics, path = sys.argv[1:]
QUIET = re.compile(r"ALERTS|fl_problem|_planned|_backup_|_certificate_end_|_waiting_since_|_busy_since_")
VARIABLES = {"$instance": ".*", "$__rate_interval": "4s", "$__interval": "1s"}


def queries(panels):
    for panel in panels:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
        yield from queries(panel.get("panels", []))


with open(path, encoding="utf-8") as f:
    dashboard = json.load(f)
text = urllib.request.urlopen(metrics, timeout=60).read().decode()
known = set(re.findall(r"^(fl_\w+?)(?:\{| )", text, re.M))
n = bad = 0
ids = [p["id"] for p in dashboard["panels"]]
assert len(ids) == len(set(ids)), "two panels of one id"
for title, query in queries(dashboard["panels"]):
    n += 1
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    for metric in re.findall(r"\bfl_\w+", query):
        if metric not in known:
            bad += 1
            print(f"{title}: no metric {metric} in /metrics: {query}")
    url = f"http://127.0.0.1:{port}/api/v1/query?query=" + urllib.parse.quote(query)
    try:
        answer = json.load(urllib.request.urlopen(url, timeout=60))
    except urllib.error.HTTPError as e:
        answer = json.load(e)
    if answer["status"] != "success":
        bad += 1
        print(f"{title}: {answer.get('error')}: {query}")
    elif not answer["data"]["result"] and not QUIET.search(query):
        bad += 1
        print(f"{title}: no series: {query}")
assert n > 30, f"only {n} queries"
print(f"{n} queries, {bad} of them wrong")
sys.exit(bad > 0)
