"""A client of bench/trainer: trainer_client.py CLIENT SAMPLES. With NOTES in the environment it writes there
when it began to import and when it had done so, a line each."""
import os
import sys
import time

began = time.monotonic()

import fl_trainer  # noqa: E402
import trainer_model  # noqa: E402

client, samples = int(sys.argv[1]), int(sys.argv[2])
data = trainer_model.data_of(client, samples)
with open(os.environ["NOTES"], "a", encoding="ascii") as f:
    f.write(f"{client} import_s={time.monotonic() - began:.2f}\n")


def train(model, task):
    return trainer_model.train(model, task.optimizer(), data, task.round, client)


fl_trainer.run(trainer_model.network(), train, samples=samples)
