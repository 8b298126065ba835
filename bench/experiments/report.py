#!/usr/bin/env python3
"""The tables of docs/results.md, from results of fl-sim.

    fl-sim run bench/experiments/NAME.yaml            (share-cap, share-attacks and imitation with --clients,
                                                       igfl-attention with --local 10 --keep-state)
    bench/experiments/report.py keep NAME.results     writes bench/experiments/NAME.csv, what the page needs of a run
    bench/experiments/report.py keep --add NAME.results   keeps what the file has and this run has not: other points, other seeds
    bench/experiments/report.py page                  writes these tables into docs/results.md, and its pictures (make results)

`keep` asks `fl-sim table` (--sim FILE: which one) for figures, and of share-cap, share-attacks and imitation reads clients.jsonl and rounds.jsonl.
Of some it also writes NAME.curves.csv (accuracy over rounds, bytes and models).
`page --print` prints the page instead, `pictures` the names of the pictures, `heat-map --print` one of them.
What papers print stands in NAME.paper.csv. A figure within half a point of the paper's is called reproduced.
"""
import glob
import os
import re
import sys

import pictures
from keeping import HERE, keep, kept, paper

PAGE = os.path.join(HERE, "..", "..", "docs", "results.md")
TOLERANCE = 0.5  # points

# --- tables ---

def markdown(heads, rows):
    out = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join(out + ["| " + " | ".join(row) + " |" for row in rows])


def settings(name):
    """What a line of the sweep says of the server, as it stands there."""
    with open(os.path.join(HERE, name + ".yaml"), encoding="utf-8") as file:
        return dict(re.findall(r"^- \{label: ([^,]+), server: \{(.*)\}\}$", file.read(), re.MULTILINE))


JUDGED = {True: "each client's own", False: "for all"}
# Their clients have models of their own for a while, but what the paper prints is the one for all.
FOR_ALL = {"fedmcsa_mean"}


def mcsa(name):
    """FedMCSA's BMTA: the best accuracy over the rounds, of the model that the row is about."""
    printed, said = paper(name), settings(name)
    rows = []
    for row in kept(name)[1]:
        point = row["point"]
        for_all = point.split()[-1] in FOR_ALL
        key = "personal:best" if row["personal:best"] and not for_all else "accuracy:best"
        theirs = printed.get(point, {})
        if row[key] == "":
            rows.append([point, f"`{said[point]}`", theirs.get("accuracy", ""), "not run", "", "", ""])
            continue
        ours = 100 * float(row[key])
        verdict = ""
        if theirs:
            value = float(theirs["accuracy"])
            verdict = ("" if abs(ours - value) <= TOLERANCE else "not ") + f"reproduced: {ours - value:+.2f}"
        rows.append([point, f"`{said[point]}`", f"{float(theirs['accuracy']):.2f} ({theirs['where']})" if theirs else "not in it",
                     amount(row, key, 0.01, 2) if int(row["trials"]) > 1 else f"{ours:.2f}", JUDGED[key == "personal:best"],
                     f"{100 * float(row['clients:best']):.2f}" if not for_all else "", verdict])
    return markdown(["row", "settings of ours", "paper", "ours", "model", "unweighted", ""], rows)


def amount(row, key, unit=1.0, digits=0):
    """Mean and deviation over the trials that got there."""
    if row[key] == "":
        return "-"
    mean, off, n = float(row[key]) / unit, float(row[key + ".std"]) / unit, int(row[key + ".trials"])
    text = f"{mean:.{digits}f} ± {off:.{digits}f}"
    return text if n == int(row.get("trials", n)) else f"{text} ({n} of {row['trials']})"


def megabytes(row, key):
    small = row[key] != "" and float(row[key]) < 2e7
    return amount(row, key, 1e6, 2 if small else 0)


def models(row, key):
    return amount(row, key, 1, 1 if row[key] != "" and float(row[key]) < 20 else 0)


def shards():
    printed = paper("mnist-shards")
    rows = [[row["point"], amount(row, "rounds@0.9"), megabytes(row, "uplink@0.9"), models(row, "models@0.9"),
             amount(row, "rounds@0.95"), megabytes(row, "uplink@0.95"), models(row, "models@0.95"),
             models(row, "mean10:models@0.9"), printed.get(row["point"], {}).get("units", "")]
            for row in kept("mnist-shards")[1]]
    return markdown(["", "rounds to 90 %", "MB up", "units", "rounds to 95 %", "MB up", "units",
                     "units to 90 %, mean of 10", "AdaFL, Table 2"], rows)


def rates():
    return markdown(["", "best mean of ten", "rounds to 90 %", "to 91 %"],
                    [[row["point"], alone(row, "mean10:best", 0.01, 2), alone(row, "mean10:rounds@0.9"), alone(row, "mean10:rounds@0.91")]
                     for row in kept("adafl-rate")[1]])


def adafl(name, targets):
    """Tables 1 and 2, MNIST: ours (the paper's, where it is printed). What is not reached within the rounds that were run is not known."""
    printed = paper(name)
    columns = [("best", 0.01, 2, "best")]
    for target in targets:
        share = f"{target / 100:g}"
        columns += [(f"mean10:rounds@{share}", 1, 0, f"to{target}"), (f"mean10:models@{share}", 1, 0, f"units{target}")]
    rows = []
    for row in kept(name)[1]:
        theirs, cells = printed[row["point"]], [row["point"]]
        if row["trials"] == "0":
            rows.append(cells + ["not run"] + [""] * len(columns))
            continue
        for key, unit, digits, column in columns:
            cells.append(alone(row, key, unit, digits) + (f" ({theirs[column]})" if theirs[column] else ""))
        rows.append(cells[:1] + [alone(row, "mean10:best", 0.01, 2)] + cells[1:])
    heads = [head for target in targets for head in (f"rounds to {target} %", "units")]
    return markdown(["", "best mean of ten", "best (printed)", *heads], rows)


def lean():
    printed = paper("lean")
    rows = [[row["point"], f"{target} %", amount(row, f"mean10:rounds@{share}"),
             megabytes(row, f"mean10:uplink@{share}") + " MB", printed[row["point"]][share] + " MB"]
            for row in kept("lean")[1] for target, share in ((90, "0.9"), (95, "0.95"))]
    return markdown(["", "to", "rounds", "up", "expected"], rows)


def directions():
    rows = [[row["point"], f"{target} %", amount(row, f"rounds@{share}"), megabytes(row, f"uplink@{share}"),
             megabytes(row, f"bytes@{share}")]
            for row in kept("both-directions")[1] for target, share in ((90, "0.9"), (95, "0.95"))]
    return markdown(["", "to", "rounds", "MB up", "MB up and down"], rows)


def seconds(row, key):
    """Of all trials, in the unit that people would use."""
    if row[key] == "":
        return "-"
    mean = float(row[key]) / 1e6
    return f"{mean:.0f} s" if mean < 600 else f"{mean / 60:.0f} min" if mean < 36000 else f"{mean / 3600:.0f} h"


def linked():
    """Time to an accuracy by link, and what lost clients cost in rounds and bytes."""
    cells = {}
    for row in kept("links")[1]:
        link, what = row["point"].split(" / ")
        cells.setdefault(what, {})[link] = row
    links = list(next(iter(cells.values())))
    steady, lost = links[1], links[-1]
    heads = [""] + [f"{target} %, {link}" for target in (90, 95) for link in links] + [f"rounds to 95 %, {steady}", lost, f"MB, {steady}", lost]
    return markdown(heads, [[what] + [seconds(found[link], f"time@{share}") for share in ("0.9", "0.95") for link in links] +
                            [alone(found[link], "rounds@0.95") for link in (steady, lost)] +
                            [megabytes(found[link], "bytes@0.95").split(" ±")[0] for link in (steady, lost)]
                            for what, found in cells.items()])


def alone(row, key, unit=1.0, digits=0):
    """Of a single trial."""
    return f"{float(row[key]) / unit:.{digits}f}" if row[key] != "" else "-"


def hashed():
    rows = [[row["point"]] + [alone(row, f"{view}bytes@{share}", 1e6, 2) for view in ("", "mean10:")
                              for share in ("0.9", "0.93", "0.95")] + [alone(row, "mean10:best", 0.01, 2)]
            for row in kept("hashed")[1]]
    return markdown(["", "first round at 90 %", "93 %", "95 %", "mean of ten at 90 %", "93 %", "95 %", "best mean of ten"],
                    rows)


def confirmed():
    rows = [[row["point"], amount(row, "rounds@0.9"), megabytes(row, "bytes@0.9"), megabytes(row, "mean10:bytes@0.9"),
             amount(row, "rounds@0.95"), megabytes(row, "bytes@0.95"), megabytes(row, "mean10:bytes@0.95"),
             amount(row, "mean10:best", 0.01, 2), megabytes(row, "bytes")]
            for row in kept("hashed-confirm")[1]]
    return markdown(["", "rounds to 90 %", "MB", "mean of ten", "rounds to 95 %", "MB", "mean of ten",
                     "best mean of ten", "MB of 300 rounds"], rows)


def unequal():
    rows = [[row["point"], amount(row, "rounds@0.9"), megabytes(row, "uplink@0.9"), megabytes(row, "bytes@0.9"),
             amount(row, "mean10:best", 0.01, 2), megabytes(row, "bytes")]
            for row in kept("unequal-sizes")[1]]
    return markdown(["", "rounds to 90 %", "MB up", "MB up and down", "best mean of ten", "MB in all"], rows)


def other():
    rows = [[row["point"], amount(row, "mean50:best", 0.01, 2), megabytes(row, "uplink"), megabytes(row, "bytes")]
            for row in kept("other-data")[1]]
    return markdown(["", "best mean of 50 rounds", "MB up", "MB up and down"], rows)


def attacked(name):
    """Accuracy by rule and attack; the worst over the attacks at the end."""
    cells, attacks = {}, []
    for row in kept(name)[1]:
        attack, rule = row["point"].split(" / ")
        cells.setdefault(rule, {})[attack] = float(row["accuracy"]) * 100 if row["accuracy"] else 0.0
        if attack not in attacks:
            attacks.append(attack)
    rows = [[rule] + [f"{found[attack]:.1f}" for attack in attacks] + [f"**{min(found[a] for a in attacks):.1f}**"]
            for rule, found in cells.items()]
    return markdown([""] + attacks + ["worst"], rows)


def bucketed(name):
    """Accuracy by rule, without and with bucketing, beside what the paper prints without it."""
    printed, cells = paper(name), {}
    for row in kept(name)[1]:
        rule, mix = row["point"].split(" / ")
        cells.setdefault(rule, {})[mix] = amount(row, "accuracy", 0.01, 1)
    rows = [[rule, found["none"], found.get("bucketing", ""), printed.get(rule, {}).get("accuracy", "")]
            for rule, found in cells.items()]
    return markdown(["", "without bucketing", "with", "printed, without"], rows)


# --- grids of data, attacks and rules ---

SPLITS = {"iid": "IID", "dirichlet": "Dirichlet 0.3", "shards": "shards"}
DIRECTIONS = {None: "std", "inverse_std": "std", "inverse_unit": "unit"}


def grid(name):
    """Rows by (split, attack with its options, rule), from the labels that fl-sim makes of a grid."""
    found = {}
    for row in kept(name)[1]:
        split, attack, rule = row["point"].split(" / ")
        options = dict(re.findall(r"(\w+):([^,]+)", attack))
        options["attack"] = "clean" if options["clients"] == "0" else options["attack"]
        policy, mix, feature = (re.search(rf"{key}=(\w+)", rule) for key in ("policy", "mix", "feature"))
        rule = "no-bounds" if "norm_clip=0" in rule else policy[1] if policy else "defaults"
        rule += f" {feature[1]}" if feature else ""
        found[SPLITS[split], tuple(options.items()), f"{mix[1]}+{rule}" if mix else rule] = row
    return found


def listed(keys):
    return list(dict.fromkeys(keys))


HEAT_SHARES = [share for share in (10, 20, 30) if os.path.exists(os.path.join(HERE, f"heat-map-{share}.csv"))]


def worst_cases():
    """Of each split, rule and share of attackers: the lowest accuracy in percent with its attack, and that without attackers."""
    worst, clean = {}, {}
    for share in HEAT_SHARES:
        for (split, options, rule), row in grid(f"heat-map-{share}").items():
            attack, accuracy = dict(options)["attack"], 100 * float(row["accuracy"] or 0)
            if attack == "clean":
                clean[split, rule, share] = accuracy
            elif (split, rule, share) not in worst or accuracy < worst[split, rule, share][0]:
                worst[split, rule, share] = accuracy, attack
    return worst, clean


def means_without_attackers():
    """Of each split the mean and deviation of the seeds, in percent."""
    found = {}
    for row in kept("heat-clean")[1]:
        found[SPLITS[re.search(r"method:(\w+)", row["point"])[1]]] = 100 * float(row["accuracy"]), 100 * float(row["accuracy.std"])
    return found


def heat():
    worst, clean = worst_cases()
    means = means_without_attackers()
    rows = []
    for rule in listed(key[1] for key in worst):
        cells = [rule]
        for split in means:
            cells.append(f"{clean[split, rule, min(share for share in HEAT_SHARES if (split, rule, share) in clean)]:.1f}")
            for share in HEAT_SHARES:
                found = worst.get((split, rule, share))
                cells.append(f"{found[0]:.1f} {found[1]}" if found else "")
        rows.append(cells)
    heads = [f"{split}, {what}" for split in means for what in ("clean", *(f"{share} %" for share in HEAT_SHARES))]
    spread = "; ".join(f"{split} {mean:.2f} ± {off:.2f}" for split, (mean, off) in means.items())
    return f"Mean of ten seeds without bounds and attackers: {spread}.\n\n" + markdown([""] + heads, rows)


CELL, LEFT, TOP = (62, 20), 190, 68


def heat_map():
    """The worst cases as a picture: green is the mean without attackers, red is lost."""
    worst, _ = worst_cases()
    means = means_without_attackers()
    rules = listed(key[1] for key in worst)
    columns = [(split, share) for split in means for share in HEAT_SHARES]
    out = []
    for i, split in enumerate(means):
        x = LEFT + (i + 0.5) * len(HEAT_SHARES) * CELL[0]
        out += [pictures.text(x, 20, split), pictures.text(x, 38, f"clean {means[split][0]:.1f}")]
    out += [pictures.text(LEFT + (i + 0.5) * CELL[0], 60, f"{share} %") for i, (_, share) in enumerate(columns)]
    for y, rule in enumerate(rules):
        out.append(pictures.text(LEFT - 8, TOP + y * CELL[1] + 14, rule, "end"))
        for x, (split, share) in enumerate(columns):
            found = worst.get((split, rule, share))
            if found:
                lost = min(max((means[split][0] - found[0]) / 50, 0), 1) ** 0.5
                out += pictures.cell(LEFT + x * CELL[0], TOP + y * CELL[1], CELL, pictures.mixed((120, 200, 130), (220, 70, 60), lost),
                                     f"{found[0]:.1f}", found[1])
    return pictures.document(LEFT + len(columns) * CELL[0] + 10, TOP + len(rules) * CELL[1] + 10, "Worst accuracy over ten attacks, in percent", out)


def known():
    """Accuracy by rule, of attackers that do not know the rule and of those that do."""
    rows = grid("tailored")
    cells = {}
    for (split, options, rule), row in rows.items():
        options = dict(options)
        cells[split, rule, options["attack"], DIRECTIONS[options.get("perturbation")]] = 100 * float(row["accuracy"] or 0)
    splits, rules = listed(key[0] for key in cells), listed(key[1] for key in cells)
    columns = [(split, attack, direction) for split in splits for direction in ("std", "unit") for attack in ("min_max", "tailored")]
    heads = [""] + [f"{split}, {attack} {direction}" for split, attack, direction in columns]
    return markdown(heads, [[rule] + [f"{cells[split, rule, attack, direction]:.1f}" for split, attack, direction in columns] for rule in rules])


def backdoors():
    """Accuracy and success rate of the backdoor by rule."""
    rows = grid("backdoor")
    cells = {(split, rule, dict(options)["scale"]): row for (split, options, rule), row in rows.items()}
    splits, rules, scales = (listed(key[i] for key in cells) for i in range(3))
    columns = [(split, scale) for split in splits for scale in scales]
    heads = [""] + [text for split, scale in columns for text in (f"{split}, x {scale}: accuracy", "success")]
    return markdown(heads, [[rule] + [f"{100 * float(cells[split, rule, scale][key]):.1f}" for split, scale in columns
                                      for key in ("accuracy", "backdoor_success")] for rule in rules])


def without_and_with(name, cells):
    """A line for each pair of points, `NAME / off` and `NAME / default`."""
    pairs = {}
    for row in kept(name)[1]:
        what, cap = row["point"].split(" / ")
        pairs.setdefault(what, {})[cap] = row
    return [[what] + [cell for make in cells for cell in make(pair["off"], pair["default"])] for what, pair in pairs.items()]


def cap_off_and_on(name, figure, shares, heads):
    """What share_cap costs: the figure, the largest of the shares, and how often it acts."""
    rows = without_and_with(name, [
        lambda off, on: [amount(row, figure, 0.01, 2) for row in (off, on)],
        lambda off, on: [f"{max(float(row['share:' + key]) for key in shares):.2f}" for row in (off, on)],
        lambda off, on: [f"{float(on['share:acted']):.2f}"]])
    return markdown(["", heads[0], "default", heads[1], "default", "clients lowered in a round"], rows)


def honest():
    return cap_off_and_on("share-cap", "mean10:best", ("layers", "weight"), ("best mean of ten, off", "largest share, off"))


def defaults():
    """What the bounds that are on by default cost: accuracy without and with them, and how often each acted."""
    rows = []
    for name in ("defaults", "defaults-personal"):
        for what, off, on in without_and_with(name, [lambda off, on: [off, on]]):
            figure = "mean10:best" if name == "defaults" else "personal_accuracy" if on["personal_accuracy"] else "accuracy"
            rows.append([what, *(amount(row, figure, 0.01, 2) for row in (off, on)),
                         f"{100 * (float(on[figure]) - float(off[figure])):+.2f}", on["acted:out"],
                         *(f"{100 * float(on['acted:' + key]):.1f} %" for key in ("clipped", "capped", "share_capped"))])
    return markdown(["", "off", "default", "difference", "left out or quarantined", "shortened", "weight capped", "share lowered"], rows)


def imitated():
    return cap_off_and_on("imitation", "personal_accuracy", ("weight",), ("accuracy of the clients' models, off", "largest weight, off"))


SHARES = {"fedldf": "layers", "lean": "layers", "attn": "draws", "igfl_s": "weight"}


def bounded():
    rows = []
    for what, off, on in without_and_with("share-attacks", [lambda off, on: [off, on]]):
        share = SHARES[what.split()[0]]
        rows.append([what, share, f"{float(off['share:' + share]):.2f}", f"{float(on['share:' + share]):.2f}"])
    return markdown(["", "share of", "off", "default"], rows)


# --- curves ---

def curves(name, x, y):
    """Of each point its [(x(row), y(row))]."""
    found = {}
    if not os.path.exists(os.path.join(HERE, name + ".curves.csv")): # Nothing was run.
        return found
    for row in kept(name + ".curves")[1]:
        found.setdefault(row["point"], []).append((x(row), y(row)))
    return found


def half(of, prefix):
    return {point[len(prefix):]: points for point, points in of.items() if point.startswith(prefix)}


def fedldf_curves():
    """Figures 3 and 4 of the paper: test error over rounds and over bytes."""
    def error(row):
        return 100 - 100 * float(row["accuracy"])
    rounds = curves("fedldf", lambda row: int(row["round"]), error)
    bytes_up = curves("fedldf", lambda row: float(row["uplink"]) / 1e9, error)
    panels = []
    for prefix, head in (("iid / ", "IID"), ("dirichlet / ", "Dirichlet 1")):
        if half(rounds, prefix):
            panels += [(f"{head}, over rounds", "round", "test error, %", half(rounds, prefix)),
                       (f"{head}, over uploads", "GB up", "test error, %", half(bytes_up, prefix))]
    return pictures.lines("FedLDF and its baselines: test error over rounds and bytes", panels)


def igfl_curves():
    found = curves("igfl-devices", lambda row: int(row["round"]), lambda row: 100 * float(row["accuracy"]))
    return pictures.lines("IGFL on devices: accuracy over rounds",
                          [(head, "round", "accuracy, %", half(found, prefix))
                           for prefix, head in (("rho 0.1 / ", "rho = 0.1"), ("rho 1000 / ", "rho = 1000")) if half(found, prefix)])


def adafl_curves():
    return pictures.lines("AdaFL and its ablations: accuracy over units",
                          [("MNIST in shards", "units (models up)", "accuracy, %",
                            curves("adafl-mnist", lambda row: float(row["models"]), lambda row: 100 * float(row["accuracy"])))])


def scored(seed):
    """Of a seed of igfl-attention [(name, labels, scores)], by name."""
    return [(row["point"].split(" / ")[1], row["labels"].split(), [float(row[f"score {i}"]) for i in range(len(row) - 3)])
            for row in kept("igfl-attention")[1] if row["point"].startswith(f"{seed} / ")]


def attention():
    """Mean scores by what two clients have in common; and how many of those with the highest scores share a label."""
    rows = []
    for seed in listed(row["point"].split(" / ")[0] for row in kept("igfl-attention")[1]):
        clients = scored(seed)
        sums, matches, wanted = {"itself": [], "shares": [], "none": []}, 0, 0
        for i, (_, labels, scores) in enumerate(clients):
            others = sorted((j for j in range(len(clients)) if j != i), key=lambda j, of=scores: -of[j])
            sharing = {j for j in others if set(labels) & set(clients[j][1])}
            matches += sum(j in sharing for j in others[:len(sharing)])
            wanted += len(sharing)
            sums["itself"].append(scores[i])
            for j in others:
                sums["shares" if j in sharing else "none"].append(scores[j])
        rows.append([seed, *(f"{sum(of) / len(of):.3f}" if of else "" for of in sums.values()), f"{100 * matches / wanted:.0f} %"])
    return markdown(["seed", "score of itself", "of a client that shares a label", "of one that shares none", "highest scores that share a label"], rows)


def attention_map():
    """Figure 2 of the paper: the matrix of the first seed."""
    clients = scored(kept("igfl-attention")[1][0]["point"].split(" / ")[0])
    between = [score for i, (_, _, scores) in enumerate(clients) for j, score in enumerate(scores) if i != j]
    least, most = min(between), max(between)
    out = [pictures.text(LEFT + (i + 0.5) * CELL[0], 60, ", ".join(labels)) for i, (_, labels, _) in enumerate(clients)]
    out.append(pictures.text(LEFT + len(clients) * CELL[0] / 2, 30, "mean score of the update of the client with these labels, for the one of the row"))
    for y, (name, labels, scores) in enumerate(clients):
        out.append(pictures.text(LEFT - 8, TOP + y * CELL[1] + 14, f"{name}: {', '.join(labels)}", "end"))
        for x, score in enumerate(scores):
            common = sorted(set(labels) & set(clients[x][1]))
            remark = "itself" if x == y else f"common label {', '.join(common)}" if common else "no common label"
            out += pictures.cell(LEFT + x * CELL[0], TOP + y * CELL[1], CELL, pictures.mixed((245, 245, 245), (90, 150, 220), min((score - least) / (most - least or 1), 1)),
                                 f"{score:.3f}" + ("*" if common and x != y else ""), remark)
    return pictures.document(LEFT + len(clients) * CELL[0] + 10, TOP + len(clients) * CELL[1] + 10,
                             "IGFL: scores of self attention between clients; * they share a label", out)


def fedldf():
    """Final accuracy, and what it costs; differences in points from fedavg-0.4, as the paper states them."""
    rows = []
    cells = {row["point"]: row for row in kept("fedldf")[1]}
    for point, row in cells.items():
        split, name = point.split(" / ")
        base = cells[f"{split} / fedavg-0.4"]
        if row["trials"] == "0" or base["trials"] == "0":
            rows.append([point, "not run"] + [""] * 5)
            continue
        rows.append([point, alone(row, "accuracy", 0.01, 2), f"{100 * (float(row['accuracy']) - float(base['accuracy'])):+.2f}" if name != "fedavg-0.4" else "",
                     alone(row, "best", 0.01, 2), alone(row, "uplink", 1e9, 2), f"{100 - 100 * float(row['uplink']) / float(base['uplink']):.1f} %",
                     alone(row, "uplink@0.5", 1e9, 2)])
    return markdown(["", "last accuracy", "points from FedAvg", "best", "GB up", "saved", "GB up to 50 %"], rows)


def igfl():
    """A row for each rho, a column for each algorithm: last tenth of the rounds (printed)."""
    printed, names, cells = paper("igfl-devices"), [], {}
    of = curves("igfl-devices", lambda row: int(row["round"]), lambda row: 100 * float(row["accuracy"]))
    for row in kept("igfl-devices")[1]:
        rho, name = row["point"].split(" / ")
        points = of.get(row["point"], [])
        last = [y for x, y in points if x > 0.9 * points[-1][0]]
        cells.setdefault(rho, {})[name] = (f"{sum(last) / len(last):.2f}" if last else "not run") + f" ({printed[row['point']]['accuracy']})"
        names += [name] if name not in names else []
    return markdown([""] + names, [[rho] + [found.get(name, "") for name in names] for rho, found in cells.items()])


PICTURES = {"heat-map": heat_map, "fedldf": fedldf_curves, "igfl-devices": igfl_curves, "adafl-mnist": adafl_curves,
            "igfl-attention": attention_map}


def picture_path(name):
    return os.path.join(HERE, "..", "..", "docs", name + ".svg")


def drawn():
    """The pictures whose figures are kept."""
    return [name for name in PICTURES if name in ("heat-map", "igfl-attention") or glob.glob(os.path.join(HERE, name + ".*s.csv"))]


TABLES = {"share-cap": honest, "share-attacks": bounded, "defaults": defaults, "unequal-sizes": unequal, "other-data": other, "one-attacker": lambda: attacked("one-attacker"),
          "attacks": lambda: attacked("attacks"), "fedmcsa-synthetic": lambda: mcsa("fedmcsa-synthetic"),
          "fedmcsa-mnist": lambda: mcsa("fedmcsa-mnist"), "fedmcsa-fashion": lambda: mcsa("fedmcsa-fashion"), "mnist-shards": shards, "adafl-rate": rates, "adafl-mnist": lambda: adafl("adafl-mnist", (90, 91)),
          "adafl-with": lambda: adafl("adafl-with", (89, 90, 91)), "lean": lean, "both-directions": directions, "links": linked,
          "bucketing-mimic": lambda: bucketed("bucketing-mimic"),
          "bucketing-clean": lambda: bucketed("bucketing-clean"), "heat-map": heat, "tailored": known, "backdoor": backdoors,
          "imitation": imitated,
          "fedldf": fedldf, "igfl-devices": igfl, "igfl-attention": attention,
          "hashed": hashed, "hashed-confirm": confirmed}
# Tables of more than one run.
RUNS = {"defaults": ["defaults", "defaults-personal"],
        "heat-map": [f"heat-map-{share}" for share in HEAT_SHARES] + ["heat-clean"]}


def about(name):
    head, rows = kept(name)
    if head["seeds"] == "none":
        return f"`{head['command']}`: {len(rows)} rows, not run."
    return (f"`{head['command']}`: {len(rows)} rows, seeds {head['seeds']}, {head['run time']}; "
            f"{head['date'][:10]}, commit {head['commit']}, {head['machine']}.")


def page():
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    for name, make in TABLES.items():
        said = "\\\n".join(about(run) for run in RUNS.get(name, [name]))
        mark = re.escape(name)
        text, n = re.subn(rf"(<!-- report.py {mark} -->\n).*?(<!-- end of report.py {mark} -->)",
                          lambda found, made=make(), said=said: f"{found[1]}{said}\n\n{made}\n{found[2]}", text, flags=re.DOTALL)
        if n != 1:
            sys.exit(f"report.py: {PAGE} has no place for the table of {name}")
    return text


def main():
    arguments = sys.argv[1:]
    sim = "fl-sim"
    if "--sim" in arguments[:-1]:
        at = arguments.index("--sim")
        sim = arguments[at + 1]
        del arguments[at:at + 2]
    add = arguments[:2] == ["keep", "--add"]
    if len(arguments) == 2 + add and arguments[0] == "keep":
        keep(arguments[-1], sim, add)
    elif arguments == ["page", "--print"]:
        sys.stdout.write(page())
    elif arguments == ["pictures"]:
        print("\n".join(drawn()))
    elif len(arguments) == 2 and arguments[0] in PICTURES and arguments[1] == "--print":
        sys.stdout.write(PICTURES[arguments[0]]())
    elif arguments == ["page"]:
        text = page()
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)
        for name in drawn():
            with open(picture_path(name), "w", encoding="utf-8") as file:
                file.write(PICTURES[name]())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
