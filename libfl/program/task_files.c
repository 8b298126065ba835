/*
 * A program that is started for each task (docs/trainers.md#a-program-for-each-task): its folder
 * with the model as safetensors and task.json, and the trained model and result.json that it
 * writes. A folder is removed after success; the last failed one is kept for diagnosis. Same
 * thread as persistent.c, which calls it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/model/safetensors.h"
#include "libfl/program/persistent_impl.h"

#define TASK_PLACE    "{task}"
#define TASK_VARIABLE "FL_TASK="

enum task_file {
    FILE_TASK,
    FILE_MODEL,
    FILE_ANCHOR,
    FILE_RESULT,
    FILE_TRAINED,
    FILE_STDERR,
    FILES
};
static const char *const task_file_names[FILES] = {[FILE_TASK] = "task.json",
                                                   [FILE_MODEL] = "model.safetensors",
                                                   [FILE_ANCHOR] = "anchor.safetensors",
                                                   [FILE_RESULT] = "result.json",
                                                   [FILE_TRAINED] = "result.safetensors",
                                                   [FILE_STDERR] = "stderr.txt"};

struct task_files {
    char folder[PATH_MAX];
    char path[FILES][PATH_MAX];
};

int fl__task_files_open(struct fl_persistent *r, struct fl_err *err)
{
    int rv = fl_fs_mkdirs(r->conf.work_dir, err);

    /* Absolute, because the program may change its working directory. */
    if (rv != FL_OK) {
        goto done;
    }
    if (realpath(r->conf.work_dir, r->work_dir) == NULL) {
        rv = fl_err_set(err, fl_err_from_errno(errno), "%.200s: %s", r->conf.work_dir,
                        strerror(errno));
    }
done:
    r->conf.work_dir = NULL; /* The caller's. */
    r->ready =
        (struct fl_persistent_ready){.can = 1u << FL_PERSISTENT_TRAIN, .samples = r->conf.samples};
    return rv;
}

static int task_files_name(const struct fl_persistent *r, struct task_files *f, struct fl_err *err)
{
    char name[64];
    size_t i;
    int rv;

    (void)snprintf(name, sizeof(name), "round-%06" PRIu64 "-%" PRIu32, r->task->asked.key.round,
                   r->task->asked.key.attempt);
    rv = fl_fs_join(f->folder, sizeof(f->folder), r->work_dir, name);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < FILES; i++) {
        rv = fl_fs_join(f->path[i], sizeof(f->path[i]), f->folder, task_file_names[i]);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    return FL_OK;
fail:
    return fl_err_set(err, rv, "%.200s: the path is too long", r->work_dir);
}

static void task_files_remove(const char *folder)
{
    if (fl_fs_remove_tree(folder, NULL) != FL_OK) {
        return; /* It does no harm: the next task has another name. */
    }
}

static int task_files_write(struct fl_persistent *r, struct task_files *f, struct fl_err *err)
{
    const float *const *given = r->task->given;
    const struct fl_task_paths paths = {
        .data = r->data,
        .anchor = given[FL_PERSISTENT_ANCHOR] != NULL ? f->path[FILE_ANCHOR] : NULL,
        .model = f->path[FILE_MODEL],
        .result_model = f->path[FILE_TRAINED],
        .result = f->path[FILE_RESULT]};
    char *text;
    int rv = fl_fs_mkdirs(f->folder, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_st_save(paths.model, r->layout, given[FL_PERSISTENT_MODEL], NULL, 0, false, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (paths.anchor != NULL) {
        rv = fl_st_save(paths.anchor, r->layout, given[FL_PERSISTENT_ANCHOR], NULL, 0, false, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    text = fl_message_task_file(r->description, r->task, &paths);
    rv = text != NULL ? fl_fs_replace(f->path[FILE_TASK], text, strlen(text), false, err)
                      : fl_err_set(err, FL_ENOMEM, "%s: out of memory, or a path that is not UTF-8",
                                   f->path[FILE_TASK]);
    free(text);
    return rv;
}

/* Returns `text` with each {task} replaced; owned, NULL without memory. */
static char *task_files_argument(const char *text, const char *task)
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

static int task_files_start(struct fl_persistent *r, const char *task, struct fl_err *err)
{
    char variable[sizeof(TASK_VARIABLE) + PATH_MAX];
    const char *const additions[] = {variable, NULL};
    char **argv = fl_str_list_dup(r->conf.argv);
    bool all = argv != NULL;
    size_t i;
    int rv;

    for (i = 0; all && argv[i] != NULL; i++) {
        free(argv[i]);
        argv[i] = task_files_argument(r->argv[i], task);
        all = argv[i] != NULL;
    }
    (void)snprintf(variable, sizeof(variable), TASK_VARIABLE "%s", task);
    rv = all ? fl__persistent_spawn(r,
                                    (struct fl_program_conf){.argv = (const char *const *)argv,
                                                             .additions = additions},
                                    err)
             : fl_err_set(err, FL_ENOMEM, "arguments of the program: out of memory");
    fl_str_list_free(argv);
    return rv;
}

static int task_files_read(struct fl_persistent *r, const struct task_files *f,
                           struct fl_persistent_answer *ret, struct fl_err *err)
{
    bool has_result = fl_fs_exists(f->path[FILE_RESULT]);
    int rv;

    if (!has_result || !fl_fs_exists(f->path[FILE_TRAINED])) {
        return fl_err_set(err, FL_ENOENT, "'%.100s' ended without writing %s in %.200s", r->argv[0],
                          task_file_names[has_result ? FILE_TRAINED : FILE_RESULT], f->folder);
    }
    /*
     * The model is checked first: divergence is reported as such even if the loss is a NaN, which
     * JSON lacks.
     */
    rv = fl_st_load(f->path[FILE_TRAINED], r->layout, r->task->trained, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_layout_check_trained(r->layout, r->task->trained, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_answer_read_file(f->path[FILE_RESULT], ret, err);
}

int fl__task_files_run(struct fl_persistent *r, struct fl_persistent_answer *ret,
                       struct fl_err *err)
{
    struct task_files f;
    int rv = task_files_name(r, &f, err);
    uint64_t limit;
    int why;
    char tail[FL_PROGRAM_TAIL];

    FL_REQUIRE(r->task->kind == FL_PERSISTENT_TRAIN && r->task->trained != NULL);
    if (rv != FL_OK) {
        return rv;
    }
    if (r->failed[0] != '\0') {
        task_files_remove(r->failed);
        r->failed[0] = '\0';
    }
    /* An earlier run of this task, ended by a crash, may have left files. */
    task_files_remove(f.folder);
    rv = task_files_write(r, &f, err);
    ret->handed_ms = fl__persistent_now(r);
    if (rv != FL_OK) {
        goto done;
    }
    rv = task_files_start(r, f.path[FILE_TASK], err);
    if (rv != FL_OK) {
        goto done;
    }
    /* Wait for the end of the program, and write the tail of stderr to a file when it failed. */
    limit = r->task->limit_ms;
    why = fl__persistent_wait_exit(r, limit > 0 ? fl__persistent_now(r) + limit : UINT64_MAX,
                                   r->task);
    rv = fl_program_reap(r->program, err);
    if (why != FL_OK) {
        rv = fl__persistent_canceled_error(r, why, err);
    }
    if (rv != FL_OK && rv != FL_ECANCELED) {
        fl_program_add_tail(r->program, err);
        /* The file is a convenience: the error has the same text, shortened. */
        (void)!fl_fs_replace(f.path[FILE_STDERR], tail, fl_program_tail(r->program, tail), false,
                             NULL);
    }
    fl_program_free(r->program);
    r->program = NULL;
    if (rv != FL_OK) {
        goto done;
    }
    ret->took_ms = fl__persistent_now(r) - ret->handed_ms;
    rv = task_files_read(r, &f, ret, err);
    if (rv != FL_OK) {
        goto done;
    }
    r->ready.samples = ret->samples;
done:
    if (rv != FL_OK && rv != FL_ECANCELED) {
        (void)memcpy(r->failed, f.folder, sizeof(r->failed));
        return rv;
    }
    task_files_remove(f.folder);
    return rv;
}
