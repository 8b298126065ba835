"""What is kept of runs of fl-sim: NAME.csv and NAME.curves.csv beside the experiments (report.py keep)."""
import csv
import io
import json
import math
import os
import re
import sqlite3
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# Arguments of `fl-sim table`; what --of and --mean-of say stands before the names of the columns.
REACHED = "rounds@0.9,uplink@0.9,models@0.9,rounds@0.95,uplink@0.95,models@0.95"
MCSA = [("", "trials", []), ("accuracy:", "best", ["--of", "accuracy"]), ("personal:", "best", ["--of", "personal_accuracy"]),
        ("clients:", "best", ["--of", "client_accuracy_mean"])]
VIEWS = {
    "fedmcsa-synthetic": MCSA,
    "fedmcsa-mnist": MCSA, "fedmcsa-fashion": MCSA,
    "adafl-rate": [("", "trials", []), ("mean10:", "best,rounds@0.9,rounds@0.91", ["--mean-of", "10"])],
    "adafl-mnist": [("", "trials,best", []), ("mean10:", "best,rounds@0.9,models@0.9,rounds@0.91,models@0.91", ["--mean-of", "10"])],
    "adafl-with": [("", "trials,best", []),
                   ("mean10:", "best,rounds@0.89,models@0.89,rounds@0.9,models@0.9,rounds@0.91,models@0.91", ["--mean-of", "10"])],
    "mnist-shards": [("", "trials," + REACHED, []), ("mean10:", "uplink@0.9,models@0.9", ["--mean-of", "10"])],
    "both-directions": [("", "trials,rounds@0.9,uplink@0.9,bytes@0.9,rounds@0.95,uplink@0.95,bytes@0.95", [])],
    "links": [("", "trials,rounds@0.9,bytes@0.9,time@0.9,rounds@0.95,bytes@0.95,time@0.95", [])],
    "hashed": [("", "trials,bytes@0.9,bytes@0.93,bytes@0.95", []),
               ("mean10:", "best,bytes@0.9,bytes@0.93,bytes@0.95", ["--mean-of", "10"])],
    "hashed-confirm": [("", "trials,bytes,rounds@0.9,bytes@0.9,rounds@0.95,bytes@0.95", []),
                       ("mean10:", "best,bytes@0.9,bytes@0.95", ["--mean-of", "10"])],
    "unequal-sizes": [("", "trials,bytes,rounds@0.9,uplink@0.9,bytes@0.9", []), ("mean10:", "best", ["--mean-of", "10"])],
    "other-data": [("", "trials,uplink,bytes", []), ("mean50:", "best", ["--mean-of", "50"])],
    "one-attacker": [("", "trials,accuracy", [])],
    "attacks": [("", "trials,accuracy", [])],
    "bucketing-mimic": [("", "trials,accuracy", [])],
    "bucketing-clean": [("", "trials,accuracy", [])],
    "heat-map-10": [("", "trials,accuracy", [])],
    "heat-map-20": [("", "trials,accuracy", [])],
    "heat-map-30": [("", "trials,accuracy", [])],
    "heat-clean": [("", "trials,accuracy", [])],
    "tailored": [("", "trials,accuracy", [])],
    "backdoor": [("", "trials,accuracy,backdoor_success", [])],
    "imitation": [("", "trials,personal_accuracy", [])],
    "defaults": [("mean10:", "best", ["--mean-of", "10"])],
    "defaults-personal": [("", "personal_accuracy,accuracy", [])],
    "share-cap": [("", "trials,uplink", []), ("mean10:", "best", ["--mean-of", "10"])],
    "share-attacks": [("", "trials,accuracy", [])],
    "fedldf": [("", "trials,accuracy,best,uplink,uplink@0.5", [])],
    "igfl-devices": [("", "trials,accuracy,best", [])],
    "igfl-attention": [],
    "lean": [("", "trials", []), ("mean10:", "best," + REACHED, ["--mean-of", "10"])],
}


# --- a run, kept ---

def table(sim, folder, columns, options):
    command = [sim, "table", "--format", "csv", "--columns", columns, *options, folder]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(text)))


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def shares(folder, run):
    """What one client got relative to its fair share, mean over the trials: of the layers and draws the attacker, or the client with the
    most when there is none; the largest weight of all rounds; and how many clients share_cap lowered in a round."""
    found = {}
    for point in run["points"]:
        trials = [trial for trial in run["trials"] if trial.startswith(point["point"] + "/")]
        sums = {"layers": 0.0, "draws": 0.0, "weight": 0.0, "acted": 0.0}
        for trial in trials:
            rounds = rows_of(os.path.join(folder, trial, "rounds.jsonl"))
            clients = rows_of(os.path.join(folder, trial, "clients.jsonl"))
            asked, fair, drawn, attackers = {}, {}, {}, set()
            layers = {row["round"]: [0, 0] for row in rounds}
            for row in clients:
                if row["asked"] is not None:
                    layers[row["round"]][0] += row["asked"].count("1")
                    layers[row["round"]][1] += 1
            for row in clients:
                name = row["name"]
                drawn[name] = drawn.get(name, 0) + 1
                if row.get("attacker"):
                    attackers.add(name)
                if row["asked"] is not None:
                    asked[name] = asked.get(name, 0) + row["asked"].count("1")
                    fair[name] = fair.get(name, 0) + layers[row["round"]][0] / layers[row["round"]][1]
            of = attackers or set(drawn)
            known = max(len(drawn), 1)
            sums["layers"] += max(asked.get(name, 0) / fair[name] if fair.get(name) else 0 for name in of)
            sums["draws"] += max(drawn[name] * known / len(clients) for name in of)
            sums["weight"] += max(row["influence"] or 0 for row in rounds)
            sums["acted"] += sum(row["share_capped"] for row in rounds) / len(rounds)
        found[point["label"]] = {f"share:{key}": f"{value / len(trials):.3f}" for key, value in sums.items()}
    return found


def bounds_that_acted(folder, run):
    """How often each bound acted, of all participants of all rounds of all trials, and how many clients were left out or quarantined."""
    found = {}
    for point in run["points"]:
        rounds = [row for trial in run["trials"] if trial.startswith(point["point"] + "/")
                  for row in rows_of(os.path.join(folder, trial, "rounds.jsonl"))]
        responders = sum(row["responders"] for row in rounds)
        row = {"out": sum((row["left_out"] or 0) + (row["quarantined"] or 0) for row in rounds)}
        row.update((key, f"{sum(row[key] or 0 for row in rounds) / responders:.4f}") for key in ("capped", "clipped", "share_capped"))
        found[point["label"]] = {f"acted:{key}": value for key, value in row.items()}
    return found


def scores_of(folder, run):
    """Of each client of each trial with daemons its labels, and the mean over the rounds of the scores that its update gives to those of
    all clients, by name (server.state/federation.db, participation.mixing)."""
    import numpy  # of the other runs nothing needs it
    rows = []
    for trial in sorted(run["trials"]):
        state = os.path.join(folder, trial, "state")
        base = sqlite3.connect(f"file:{os.path.join(state, 'server.state', 'federation.db')}?mode=ro", uri=True)
        found = {}
        for name, mixing in base.execute("SELECT client, mixing FROM participation WHERE aborted = '' AND mixing IS NOT NULL"):
            found.setdefault(name, []).append(numpy.frombuffer(mixing, numpy.float32))
        names = sorted(found)
        for name in names:
            of = [scores for scores in found[name] if len(scores) == len(names)]  # Of rounds in which all were accepted.
            labels = sorted(set(numpy.load(os.path.join(state, "data", name, "train-y.npy")).tolist()))
            rows.append({"point": f"{trial.rsplit('-', 1)[1]} / {name}", "labels": " ".join(map(str, labels)), "rounds": len(of),
                         **{f"score {i}": f"{value:.5f}" for i, value in enumerate(numpy.mean(of, axis=0))}})
    return {row["point"]: row for row in rows}


# Runs of which the accuracy of the first trial is kept round by round, at most so many rounds of it.
CURVES = {"fedldf": 60, "igfl-devices": 60, "adafl-mnist": 100}


def short(label):
    """The label that fl-sim makes of a grid, without the data's mapping."""
    label = re.sub(r"^data=\{.*?method:(\w+).*?\} attackers=\{(.*?)\} ", r"\1 / \2 / ", label)
    label = re.sub(r"^data=\{.*?method:device,rho:([\d.]+).*?\} ", r"rho \1 / ", label)
    return re.sub(r"^data=\{.*?method:(\w+).*?\} ", r"\1 / ", label).replace("/ algorithm=", "/ ")


def write_rows(path, head, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write("".join(f"# {line}\n" for line in head))
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def thinned(rows, most):
    """About every n-th, and the last."""
    every = -(-len(rows) // most)
    return rows[every - 1::every] + ([rows[-1]] if len(rows) % every else [])


def curves_of(folder, run, most):
    found = []
    for point in run["points"]:
        trials = [trial for trial in run["trials"] if trial.startswith(point["point"] + "/")]
        if not trials:
            continue
        uplink = models = 0
        known = []
        for row in rows_of(os.path.join(folder, trials[0], "rounds.jsonl")):
            uplink += row["uplink_bytes"]
            models += row["full_models"]
            if row["accuracy"] is not None:
                known.append({"point": short(point["label"]), "round": row["round"], "uplink": uplink, "models": f"{models:.6g}",
                              "accuracy": f"{row['accuracy']:.5g}"})
        found += thinned(known, most)
    return found


def joined(old, new):
    """Of one point: the row that has trials, or both as one row when they have other seeds (means and deviations, n - 1)."""
    if int(old["trials"] or 0) == 0 or int(new["trials"]) == 0:
        return old if int(new["trials"]) == 0 else new
    row = {"point": new["point"], "trials": int(old["trials"]) + int(new["trials"])}
    for key in new:
        if key + ".trials" not in new:
            row.setdefault(key, new[key])
            continue
        parts = [(int(part[key + ".trials"]), float(part[key]), float(part[key + ".std"])) for part in (old, new) if part.get(key)]
        n = sum(count for count, _, _ in parts)
        mean = sum(count * value for count, value, _ in parts) / n if n else ""
        square = sum((count - 1) * off ** 2 + count * (value - mean) ** 2 for count, value, off in parts)
        row.update({key: mean, key + ".std": math.sqrt(square / (n - 1)) if n > 1 else 0.0 if n else "", key + ".trials": n})
    return row


def add_kept(name, rows, head):
    """Rows and lines of the head together with those of the file."""
    if not os.path.exists(os.path.join(HERE, name + ".csv")):
        return
    old_head, old_rows = kept(name)
    if old_head["seeds"] == "none":
        return
    same = old_head["seeds"] == head["seeds"]
    if not same and set(old_head["seeds"].split()) & set(head["seeds"].split()):
        sys.exit(f"report.py: {name}.csv has seeds {old_head['seeds']}, the run {head['seeds']}: expected the same or all others")
    for old in old_rows:
        new = rows.get(old["point"])
        if new is None or not (same and int(new["trials"])):
            rows[old["point"]] = old if new is None else joined(old, new)
    for key in ("set", "commit", "machine"):
        head[key] = " and ".join(dict.fromkeys([*old_head[key].split(" and "), head[key]]))
    head["seeds"] = head["seeds"] if same else f"{old_head['seeds']} {head['seeds']}"
    head["run time"] = f"{int(old_head['run time'].split()[0]) + int(head['run time'].split()[0])} s, the sum of its trials"


def keep(folder, sim, add):
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
        run = json.load(file)
    name = run["experiment"]["name"]
    rows = {}
    for prefix, columns, options in VIEWS[name]:
        for row in table(sim, folder, columns, options):
            point = short(row.pop("point"))
            rows.setdefault(point, {"point": point}).update((prefix + key, value) for key, value in row.items())
    if name == "igfl-attention":
        rows = scores_of(folder, run)
    if name in ("share-cap", "share-attacks", "imitation"):
        for label, row in shares(folder, run).items():
            rows[label].update(row)
    if name.startswith("defaults"):
        for label, row in bounds_that_acted(folder, run).items():
            rows[label].update(row)
    last = run["runs"][-1]
    machine = last["machine"]
    seconds = sum(trial["wall_s"] for trial in run["trials"].values())
    head = {"command": f"fl-sim run bench/experiments/{name}.yaml{' --local 10 --keep-state' if name == 'igfl-attention' else ''}", "set": " ".join(run["experiment"]["set"]) or "nothing",
            "seeds": " ".join(str(seed) for seed in run["seeds"] if any(trial.endswith(f"/seed-{seed}") for trial in run["trials"])) or "none", "run time": f"{seconds:.0f} s, the sum of its trials", "date": last["date"],
            "commit": " and ".join(dict.fromkeys(run["git"] for run in run["runs"])),
            "machine": f"{machine['cores']} cores, {machine['cpu']}, {machine['blas_kernel']}"}
    if add:
        add_kept(name, rows, head)
    write_rows(os.path.join(HERE, name + ".csv"), ["What fl-sim table printed of a run; docs/results.md is made of it (report.py).",
                                                   *(f"{key}: {value}" for key, value in head.items())], list(rows.values()))
    if name in CURVES:
        path = os.path.join(HERE, name + ".curves.csv")
        curves = curves_of(folder, run, CURVES[name])
        run_now = {row["point"] for row in curves}
        if add and os.path.exists(path):
            curves = [row for row in kept(name + ".curves")[1] if row["point"] not in run_now] + curves
        if curves:
            write_rows(path, [f"Accuracy of the first trial over its rounds, bytes up and models up, of the run of {name}.csv."], curves)


def kept(name):
    """Its head, and its rows."""
    with open(os.path.join(HERE, name + ".csv"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    head = dict(line[2:].split(": ", 1) for line in lines[1:] if line.startswith("# ") and ": " in line)
    return head, list(csv.DictReader(line for line in lines if not line.startswith("#")))


def paper(name):
    with open(os.path.join(HERE, name + ".paper.csv"), encoding="utf-8") as file:
        return {row["point"]: row for row in csv.DictReader(file)}
