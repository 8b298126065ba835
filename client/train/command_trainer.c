/*
 * The command trainer: the user's own program trains. Runs on the training thread. Each task gets a
 * folder with the model as safetensors and task.json; the program writes the trained model and
 * result.json (docs/trainers.md). A folder is removed after success; the last failed one is
 * kept for diagnosis.
 */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/command_impl.h"
#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/model/safetensors.h"

#define TASK_PLACE "{task}"

struct command {
    struct fl_trainer base;
    char **argv, **environment;
    char *data;
    char work_dir[PATH_MAX];
    char failed[PATH_MAX]; /* folder of the last failed task; "": none */
    uint64_t memory_bytes, descriptors;
    uint64_t samples; /* of the last result, initially as configured; 0: unknown */
    const struct fl_log *log;
    enum fl_program_memory memory_of;
    struct fl__limit limit;
    /* Of the last command_prepare(); layout NULL: none. */
    struct fl_layout *layout;
    struct fl__description *description;
};

static struct command *command_of(struct fl_trainer *trainer)
{
    return (struct command *)(void *)trainer;
}

static void command_forget(struct command *c)
{
    fl_layout_free(c->layout);
    fl__description_free(c->description);
    c->layout = NULL;
    c->description = NULL;
}

static void command_free(struct fl_trainer *trainer)
{
    struct command *c = command_of(trainer);

    command_forget(c);
    fl_str_list_free(c->argv);
    fl_str_list_free(c->environment);
    free(c->data);
    free(c);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_folder(const char *path)
{
    /* A folder that cannot be removed does no harm: the next task has another name. */
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int command_prepare(struct fl_trainer *trainer, const struct fl_train_model *model,
                           struct fl_err *err)
{
    struct command *c = command_of(trainer);
    const struct fl_solver_ops *s = model->solver;
    int rv;

    command_forget(c);
    fl__limit_forget(&c->limit); /* The old run times do not apply. */
    if (s->offer != NULL || fl_solver_names(s->inputs) + fl_solver_keeps(s->keeps) > 0 ||
        fl_solver_sends(s, model->solver_options) != NULL)
    {
        return fl_err_set(
            err, FL_EUNIMPL,
            "the server's solver '%s' needs more than models, which a program that is "
            "started for each task cannot exchange: use a persistent program "
            "('command.resident: yes') or 'trainer: builtin'",
            s->policy.name);
    }
    rv = fl_layout_copy(model->layout, NULL, NULL, &c->layout, err);
    if (rv == FL_OK) {
        rv = fl__description_create(model, &c->description, err);
    }
    if (rv != FL_OK) {
        command_forget(c);
    }
    return rv;
}

static int make_paths(const struct command *c, const struct fl_train_task *task,
                      struct fl__task_paths *p, struct fl_err *err)
{
    char name[64];
    int rv;

    (void)snprintf(name, sizeof(name), "round-%06" PRIu64 "-%" PRIu32, task->round, task->attempt);
    rv = fl_fs_join(p->folder, sizeof(p->folder), c->work_dir, name);
    if (rv == FL_OK) {
        rv = fl_fs_join(p->task, sizeof(p->task), p->folder, "task.json");
    }
    if (rv == FL_OK) {
        rv = fl_fs_join(p->model, sizeof(p->model), p->folder, "model.safetensors");
    }
    if (rv == FL_OK) {
        rv = fl_fs_join(p->anchor, sizeof(p->anchor), p->folder, "anchor.safetensors");
    }
    if (rv == FL_OK) {
        rv = fl_fs_join(p->result, sizeof(p->result), p->folder, "result.json");
    }
    if (rv == FL_OK) {
        rv = fl_fs_join(p->result_model, sizeof(p->result_model), p->folder, "result.safetensors");
    }
    if (rv == FL_OK) {
        rv = fl_fs_join(p->stderr_tail, sizeof(p->stderr_tail), p->folder, "stderr.txt");
    }
    return rv == FL_OK ? FL_OK : fl_err_set(err, rv, "%.200s: the path is too long", c->work_dir);
}

/* Returns `text` with each {task} replaced; owned, NULL without memory. */
static char *put_task(const char *text, const char *task)
{
    size_t size = strlen(text) + 1;
    const char *at;
    char *out;
    size_t len = 0;

    for (at = text; (at = strstr(at, TASK_PLACE)) != NULL; at += strlen(TASK_PLACE)) {
        size += strlen(task);
    }
    out = malloc(size);
    while (out != NULL && (at = strstr(text, TASK_PLACE)) != NULL) {
        (void)memcpy(out + len, text, (size_t)(at - text));
        len += (size_t)(at - text);
        (void)memcpy(out + len, task, strlen(task));
        len += strlen(task);
        text = at + strlen(TASK_PLACE);
    }
    if (out != NULL) {
        (void)memcpy(out + len, text, strlen(text) + 1);
    }
    return out;
}

/* The environment with FL_TASK; the caller frees the array and its first text only. */
static char **with_task(const struct command *c, const char *task_file)
{
    size_t size = strlen(task_file) + sizeof("FL_TASK=");
    size_t n = 0;
    char **list;

    while (c->environment[n] != NULL) {
        n++;
    }
    list = calloc(n + 2, sizeof(*list));
    if (list == NULL || (list[0] = malloc(size)) == NULL) {
        free(list);
        return NULL;
    }
    (void)snprintf(list[0], size, "FL_TASK=%s", task_file);
    (void)memcpy(list + 1, c->environment, n * sizeof(*list));
    return list;
}

static char **command_arguments(const struct command *c, const char *task_file)
{
    size_t n = 0;
    char **argv;
    size_t i;

    while (c->argv[n] != NULL) {
        n++;
    }
    argv = calloc(n + 1, sizeof(*argv));
    for (i = 0; argv != NULL && i < n; i++) {
        argv[i] = put_task(c->argv[i], task_file);
        if (argv[i] == NULL) {
            fl_str_list_free(argv);
            return NULL;
        }
    }
    return argv;
}

static int run_program(const struct command *c, const struct fl_train_task *task,
                       const struct fl__task_paths *paths, struct fl_err *err)
{
    char **argv = command_arguments(c, paths->task);
    char **additions = with_task(c, paths->task);
    struct fl__child child = {
        .conf = {.argv = (const char *const *)argv,
                 .additions = (const char *const *)additions,
                 .memory_bytes = c->memory_bytes,
                 .memory_of = c->memory_of,
                 .descriptors = c->descriptors,
                 .log = c->log},
        .stderr_file = paths->stderr_tail,
        .time_limit_ms = fl__limit_of(&c->limit, task->deadline_ms),
        .limit_note = fl__limit_note(&c->limit, task->deadline_ms),
        .cancel = task->cancel,
    };
    int rv = argv != NULL && additions != NULL
                 ? fl__child_run(&child, err)
                 : fl_err_set(err, FL_ENOMEM, "arguments of the program: out of memory");

    if (additions != NULL) {
        free(additions[0]);
    }
    free(additions);
    fl_str_list_free(argv);
    return rv;
}

static int read_result(const struct command *c, const struct fl_train_task *task,
                       const struct fl__task_paths *paths, struct fl_train_result *ret,
                       struct fl_err *err)
{
    int rv;

    if (!fl_fs_exists(paths->result) || !fl_fs_exists(paths->result_model)) {
        return fl_err_set(err, FL_ENOENT, "'%.100s' ended without writing %s in %.200s", c->argv[0],
                          fl_fs_exists(paths->result) ? "result.safetensors" : "result.json",
                          paths->folder);
    }
    ret->delta = malloc(fl_layout_count(c->layout) * sizeof(*ret->delta));
    if (ret->delta == NULL) {
        return fl_err_set(err, FL_ENOMEM, "result of %zu parameters: out of memory",
                          fl_layout_count(c->layout));
    }
    /*
     * The model is checked first: divergence is reported as such even if the loss is a NaN, which
     * JSON lacks.
     */
    rv = fl_st_load(paths->result_model, c->layout, ret->delta, err);
    if (rv == FL_OK) {
        rv = fl__train_finish(c->layout, task, ret, err);
    }
    if (rv == FL_OK) {
        rv = fl__result_read(paths->result, ret, err);
    }
    if (!task->evaluate_trained) {
        ret->has_trained = false;
    }
    return rv;
}

static int command_run(struct fl_trainer *trainer, const struct fl_train_task *task,
                       struct fl_train_result *ret, struct fl_err *err)
{
    struct command *c = command_of(trainer);
    struct fl__task_paths paths;
    uint64_t started_ms;
    uint64_t took_ms;
    int rv;

    if (c->layout == NULL) {
        return fl_err_set(err, FL_ESTATE, "training before the server described its model");
    }
    rv = make_paths(c, task, &paths, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (c->failed[0] != '\0') {
        remove_folder(c->failed);
        c->failed[0] = '\0';
    }
    /* An earlier run of this task, ended by a crash, may have left files. */
    remove_folder(paths.folder);
    rv = fl_fs_mkdirs(paths.folder, err);
    if (rv == FL_OK) {
        rv = fl_st_save(paths.model, c->layout, task->model, NULL, 0, false, err);
    }
    if (rv == FL_OK && task->anchor != NULL) {
        rv = fl_st_save(paths.anchor, c->layout, task->anchor, NULL, 0, false, err);
    }
    if (rv == FL_OK) {
        rv = fl__task_write(c->description, task, &paths, c->data,
                            fl__limit_of(&c->limit, task->deadline_ms), err);
    }
    started_ms = fl_clock_ms();
    if (rv == FL_OK) {
        rv = run_program(c, task, &paths, err);
    }
    took_ms = fl_clock_ms() - started_ms;
    if (rv == FL_OK) {
        rv = read_result(c, task, &paths, ret, err);
    }
    if (rv == FL_OK) {
        fl__limit_good(&c->limit, took_ms);
        c->samples = ret->samples;
    }
    if (rv == FL_OK || rv == FL_ECANCELED) {
        remove_folder(paths.folder);
    } else {
        (void)memcpy(c->failed, paths.folder, sizeof(c->failed));
    }
    return rv;
}

static uint64_t command_samples(const struct fl_trainer *trainer)
{
    return ((const struct command *)(const void *)trainer)->samples;
}

static int command_evaluate(struct fl_trainer *trainer, const float *model, atomic_bool *cancel,
                            uint64_t *ret_samples, uint64_t *ret_correct, double *ret_loss_sum,
                            struct fl_err *err)
{
    (void)trainer;
    (void)model;
    (void)cancel;
    (void)ret_samples;
    (void)ret_correct;
    (void)ret_loss_sum;
    return fl_err_set(err, FL_ENOENT,
                      "a command trainer evaluates only while it trains ('received' in "
                      "result.json)");
}

static int command_offer(struct fl_trainer *trainer, uint64_t seed, struct fl_buf *out,
                         struct fl_err *err)
{
    (void)trainer;
    (void)seed;
    (void)out;
    return fl_err_set(err, FL_EUNIMPL,
                      "the server wants means of this client's data, which a command trainer "
                      "cannot make: use 'trainer: builtin'");
}

static int command_adapt(struct fl_trainer *trainer, const struct fl_train_task *task,
                         struct fl_train_evaluation *ret_received,
                         struct fl_train_evaluation *ret_adapted, struct fl_err *err)
{
    (void)trainer;
    (void)task;
    (void)ret_received;
    (void)ret_adapted;
    return fl_err_set(err, FL_ENOENT,
                      "a command trainer evaluates only while it trains ('received' and 'trained' "
                      "in result.json): fitting a model before its evaluation needs 'trainer: "
                      "builtin'");
}

int fl_trainer_command_find(const char *program, struct fl_err *err)
{
    char found[PATH_MAX];

    return program == NULL || program[0] == '\0'
               ? fl_err_set(err, FL_ECONF, "the command trainer needs a program")
               : fl_program_find(program, found, sizeof(found), err);
}

static int copy_conf(struct command *c, const struct fl_command_conf *conf, struct fl_err *err)
{
    int rv = fl_trainer_command_find(conf->argv != NULL ? conf->argv[0] : NULL, err);

    if (rv == FL_OK) {
        rv = fl_fs_mkdirs(conf->work_dir, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    /* Absolute, because the program may change its working directory. */
    if (realpath(conf->work_dir, c->work_dir) == NULL) {
        return fl_err_set(err, fl_err_from_errno(errno), "%.200s: %s", conf->work_dir,
                          strerror(errno));
    }
    c->argv = fl_str_list_dup(conf->argv);
    c->environment = fl_str_list_dup(conf->environment);
    c->data = conf->data != NULL ? fl_str_dup(conf->data) : NULL;
    if (c->argv == NULL || c->environment == NULL || (conf->data != NULL && c->data == NULL)) {
        return fl_err_set(err, FL_ENOMEM, "command trainer: out of memory");
    }
    c->limit = fl__limit_from(conf);
    c->memory_bytes = conf->memory_bytes;
    c->memory_of = conf->memory_of;
    c->descriptors = conf->descriptors;
    c->samples = conf->samples;
    c->log = conf->log;
    return FL_OK;
}

int fl_trainer_command(const struct fl_command_conf *conf, struct fl_trainer **ret,
                       struct fl_err *err)
{
    static const struct fl__trainer_ops ops = {.free = command_free,
                                               .prepare = command_prepare,
                                               .run = command_run,
                                               .samples = command_samples,
                                               .offer = command_offer,
                                               .adapt = command_adapt,
                                               .evaluate = command_evaluate};
    struct command *c = calloc(1, sizeof(*c));
    int rv;

    if (c == NULL) {
        return fl_err_set(err, FL_ENOMEM, "command trainer: out of memory");
    }
    c->base.ops = &ops;
    rv = copy_conf(c, conf, err);
    if (rv != FL_OK) {
        command_free(&c->base);
        return rv;
    }
    *ret = &c->base;
    return FL_OK;
}
