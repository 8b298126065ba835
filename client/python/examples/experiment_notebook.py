"""A notebook with fl_sim, in cells ("# %%", which Jupyter and editors open); runs as a script too.

It compares the points of the experiment in argv[1]: fl-sim new digits && python3 experiment_notebook.py digits.yaml
"""
# %% Run the experiment, or what is missing of it
import statistics
import sys

import fl_sim

experiment = sys.argv[1] if len(sys.argv) > 1 else "digits.yaml"
results = fl_sim.run(experiment, set={"stop.rounds": 3}, clients=True)
print(results.name, results.points)


# %% Tables: data frames with pandas, lists of dictionaries without
def rows_of(table):
    return table if isinstance(table, list) else table.to_dict("records")


rounds = rows_of(results.rounds)
print(len(rounds), "rounds:", ", ".join(list(rounds[0])[:6]), "…")

# %% Last accuracy of each point, mean over its seeds
for point in results.points:
    last = [r["accuracy.last"] for r in rows_of(results.summary) if r["point"] == point]
    print(f"{point}: accuracy {statistics.mean(last):.3f} of {len(last)} trials")

# %% Bytes that each client sent
sent = {}
for row in rows_of(results.clients):
    sent[row["point"], row["name"]] = sent.get((row["point"], row["name"]), 0) + row["bytes_up"]
for (point, client), n in sorted(sent.items())[:4]:
    print(point, client, n)
