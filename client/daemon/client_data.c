/*
 * Opens what a client trains on: the data set of data.path and the built-in trainer, or the
 * external training program. Runs on the loop at the start, before a session exists. It does not
 * start a program (trainer_start.c) and does not read data again later (data_watch.c).
 */

#include "client/daemon/client_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/clientd_preflight.h"
#include "libfl/base/fs.h"
#include "libfl/num/gemm.h"

/*
 * A class without samples is normal for one client of many, so this is not a warning. The line also
 * reveals labels that were numbered wrongly.
 */
static void note_missing(const struct fl_local_data *data, const struct fl_log *log)
{
    const struct fl_dataset *const sets[] = {data->train, data->test};
    char text[256];
    size_t n = 0;

    if (fl_dataset_missing(sets, 2, 0, text, sizeof(text), &n) == FL_OK && n > 0) {
        fl_log(
            log, FL_LOG_NOTICE, "client",
            "data: no samples of class %s (%zu of %zu classes are empty); labels are class numbers "
            "from 0, so renumber the labels if other clients have no such samples either",
            text, n, data->train->classes);
    }
}

static int local_data_load(const struct fl_client_conf *conf, const struct fl_log *log,
                           struct fl_local_data *data, struct fl_err *err)
{
    int rv;

    data->stamp = fl_dataset_stamp(conf->data->path);
    rv = fl_client_open_data(conf, &data->train, &data->test, err);
    if (rv != FL_OK) {
        return rv;
    }
    data->samples = data->train->n;
    data->evaluation_samples = data->test != NULL ? data->test->n : 0;
    fl_log(log, FL_LOG_INFO, "client", "data '%s': samples=%zu values=%zu classes=%zu test=%llu",
           conf->data->path, data->train->n, data->train->dim, data->train->classes,
           (unsigned long long)data->evaluation_samples);
    note_missing(data, log);
    return FL_OK;
}

/* Of a persistent program the counts are those of its `ready`; see trainer_start.c. */
static int open_command(const struct fl_client_conf *conf, const char *name, uint64_t descriptors,
                        const struct fl_log *log, struct fl_local_data *data,
                        struct fl_trainer **ret, struct fl_err *err)
{
    const struct fl_client_command *c = conf->command;
    char **environment = fl_client_conf_environment(conf->command);
    char work[4096];
    struct fl_command_conf command = {
        .program = {.argv = c->program.list,
                    .work_dir = c->persistent ? NULL : work,
                    .samples = c->samples_given ? (uint64_t)c->samples : 0,
                    .environment = (const char *const *)environment,
                    .memory_bytes = c->memory_limit,
                    .memory_of = c->memory_of,
                    .descriptors = descriptors,
                    .client = name,
                    .data = conf->data->path[0] != '\0' ? conf->data->path : NULL,
                    .start_limit_ms = c->start_limit_ms,
                    .cancel_grace_ms = c->cancel_grace_ms,
                    .idle_exit_ms = c->idle_exit_ms,
                    .log = log},
        .time_limit_ms = c->time_limit_ms,
        .first_limit_ms = fl_client_conf_first_limit(c),
        .straggler_factor = c->straggler_factor,
        .straggler_min_ms = c->straggler_min_ms};
    int rv = environment != NULL ? fl_fs_join(work, sizeof(work), conf->main->state_dir, "tasks")
                                 : FL_ENOMEM;

    data->trainer_counts = c->persistent;
    data->samples = c->persistent ? 0 : (uint64_t)c->samples;
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_trainer_command(&command, ret, err);
done:
    fl_str_list_free(environment);
    return rv;
}

int fl_local_data_open(const struct fl_client_conf *conf, const char *name, uint64_t descriptors,
                       const struct fl_log *log, struct fl_local_data *data,
                       struct fl_trainer **ret, struct fl_err *err)
{
    int rv;

    if (conf->main->trainer == FL_TRAINER_COMMAND) {
        return open_command(conf, name, descriptors, log, data, ret, err);
    }
    rv = local_data_load(conf, log, data, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_log(log, FL_LOG_NOTICE, "client", "using the built-in trainer: kernels=%s blas=%s",
           fl_kernels_name(conf->kernels), fl_gemm_kernel());
    return fl_trainer_builtin(data->train, data->test, conf->kernels, ret, err);
}

void fl_local_data_done(struct fl_local_data *data)
{
    fl_dataset_free(data->train);
    fl_dataset_free(data->test);
    *data = (struct fl_local_data){.samples = 0};
}
