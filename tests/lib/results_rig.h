#ifndef FL_LIB_RESULTS_RIG_H
#define FL_LIB_RESULTS_RIG_H

/* Made-up simulation results, for tests of the code that writes and reads results. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/fl_sim/results/results.h"

static const struct fl_run_point rig_points[] = {{"fedavg", "FedAvg"},
                                                 {"lean", "lean, 2 \"Mbit/s\""}};
static const uint64_t rig_seeds[] = {11, 12, 13};

/* Two points and three seeds. */
static inline struct fl_run_info rig_info(void)
{
    static const struct fl_run_partition partition = {"mnist", "00112233"};
    static const char *const command[] = {"fl-sim", "run", "x.yaml"};

    return (struct fl_run_info){.name = "tiny",
                                .fingerprint = "0123456789abcdef",
                                .file = "x.yaml",
                                .text = "algorithm: fedavg\n",
                                .points = rig_points,
                                .n_points = 2,
                                .seeds = rig_seeds,
                                .n_seeds = 3,
                                .partitions = &partition,
                                .n_partitions = 1,
                                .command = command,
                                .n_command = 3};
}

/* A learning curve that improves by `speed`, with the cost of each round; accuracy every `every`
 * rounds. */
struct rig_trial {
    double speed;
    unsigned every;
    uint64_t uplink_bytes, wall_us;
};

/* Figures without a short decimal, and every kind of them. */
static inline void rig_round(const struct rig_trial *t, uint64_t seed, uint64_t round,
                             struct fl_round_rec *record, struct fl_sim_round *sim)
{
    double wobble = 0.04 * sin((double)(round * 7 + seed * seed));
    double learned = 1.0 - exp(-t->speed * (0.8 + 0.05 * (double)(seed % 5)) * (double)round);

    fl_figures_init(&fl_round_rows, record);
    fl_sim_round_init(sim);
    record->round = round;
    record->attempt = 1;
    record->n_selected = 10;
    record->n_responders = 9;
    record->train_loss = 2.3 * exp(-t->speed * (double)round);
    if (round % t->every == 0) {
        record->accuracy = 0.1 + 0.88 * learned + wobble * learned * (1.0 - learned);
        record->loss = 2.3 * (1.0 - learned) + 0.05;
    }
    record->uplink_bytes = t->uplink_bytes;
    record->downlink_bytes = 40000;
    record->started_ms = sim->time_us / 1000;
    sim->wall_us = t->wall_us > 0 ? t->wall_us + seed : 0;
    sim->time_us = round * sim->wall_us;
    sim->download_us = t->wall_us / 4;
    sim->upload_us = t->wall_us / 2;
    sim->message_us = t->wall_us > 0 ? 1000 : 0;
    sim->training_us = sim->wall_us - sim->download_us - sim->upload_us - sim->message_us;
    sim->n_late = (uint32_t)(round % 2);
    sim->n_attempts = 1;
    sim->up_update_bytes = t->uplink_bytes;
    sim->up_wasted_bytes = t->uplink_bytes / 10;
    sim->down_model_bytes = 40000;
    sim->full_models = t->wall_us > 0 ? (double)t->uplink_bytes / 3e5 : 0.0;
    (void)snprintf(sim->waiting_for, sizeof(sim->waiting_for), "edge-%03u", (unsigned)round % 10);
}

/* A whole trial; it did not begin when it is finished. */
static inline int rig_write(struct fl_results *results, const char *point, uint64_t seed,
                            const struct rig_trial *t, uint64_t rounds, struct fl_err *err)
{
    static const struct fl_trial_end done = {.how = FL_TRIAL_DONE};
    struct fl_round_rec record;
    struct fl_sim_round sim;
    struct fl_trial *trial;
    uint64_t round;
    int rv = fl_trial_begin(results, point, seed, &trial, err);

    if (rv != FL_OK || trial == NULL) {
        return rv;
    }
    for (round = 1; rv == FL_OK && round <= rounds; round++) {
        rig_round(t, seed, round, &record, &sim);
        rv = fl_trial_round(trial, &record, &sim, err);
    }
    rv = rv == FL_OK ? fl_trial_finish(trial, &done, err) : rv;
    fl_trial_free(trial);
    return rv;
}

/*
 * A finished run in `dir`: "lean" learns as fast, with a fiftieth of the bytes. `pace` 0: in no
 * time, and of nothing in full models.
 */
static inline int rig_write_run(const char *dir, unsigned pace, struct fl_err *err)
{
    struct rig_trial trials[] = {{0.05, 2, 8000000, 40000000}, {0.045, 2, 160000, 9000000}};
    struct fl_run_info info = rig_info();
    struct fl_results *results;
    size_t i;
    size_t k;
    int rv = fl_results_open(dir, &info, &results, err);

    trials[0].wall_us *= pace;
    trials[1].wall_us *= pace;
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < info.n_points; i++) {
        for (k = 0; rv == FL_OK && k < info.n_seeds; k++) {
            rv = rig_write(results, info.points[i].slug, info.seeds[k], &trials[i], 60, err);
        }
    }
    rv = rv == FL_OK ? fl_results_finish(results, err) : rv;
    fl_results_free(results);
    return rv;
}

#endif
