/* The history of tasks as a container file: totals as its fields, records and errors as sections.
 */
#include "client/store/task_log.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/container/container.h"

#define TASK_LOG_PATH 4096

struct task_log_fields {
    struct fl_task_totals totals;
    char federation[FL_NAME_MAX];
};

static const struct fl_container_kind task_log_kind = {
    .name = "tasks", .version = 1, .max_sections = 2, .max_fields = sizeof(struct task_log_fields)};

static int task_log_path(const char *state_dir, char path[TASK_LOG_PATH], struct fl_err *err)
{
    return fl_fs_join(path, TASK_LOG_PATH, state_dir, "tasks.bin") == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", state_dir);
}

static bool task_log_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* Are the values of a file in their ranges? */
static bool task_log_valid(const struct fl_task_history *h)
{
    uint32_t i;

    if (h->n_records > FL_TASK_RECORDS || h->n_errors > FL_TASK_ERRORS ||
        !task_log_text(h->federation, sizeof(h->federation)))
    {
        return false;
    }
    for (i = 0; i < h->n_records; i++) {
        const struct fl_task_record *r = &h->records[i];

        if (r->kind >= FL_TASK_KINDS || r->end >= FL_TASK_ENDS || r->plan >= FL_TASK_LAYERS_N ||
            !task_log_text(r->reason, sizeof(r->reason)))
        {
            return false;
        }
    }
    for (i = 0; i < h->n_errors; i++) {
        if (!task_log_text(h->errors[i].text, sizeof(h->errors[i].text))) {
            return false;
        }
    }
    return true;
}

/* How many items of `size` bytes a section has. False: not a whole number, or above `most`. */
static bool task_log_count(const struct fl_container *file, size_t section, size_t size,
                           uint32_t most, uint32_t *ret)
{
    uint64_t bytes = file->head.sections[section].bytes;

    *ret = (uint32_t)(bytes / size);
    return bytes % size == 0 && bytes / size <= most;
}

static int task_log_read(const struct fl_container *file, struct fl_task_history *h,
                         struct fl_err *err)
{
    struct task_log_fields fields;
    int rv;

    if (file->head.n != 2 || fl_container_fields(&file->head, &fields, sizeof(fields)) != FL_OK ||
        !task_log_count(file, 0, sizeof(h->records[0]), FL_TASK_RECORDS, &h->n_records) ||
        !task_log_count(file, 1, sizeof(h->errors[0]), FL_TASK_ERRORS, &h->n_errors))
    {
        goto damaged;
    }
    h->totals = fields.totals;
    (void)memcpy(h->federation, fields.federation, sizeof(h->federation));
    rv = fl_container_read(file, 0, h->records, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_container_read(file, 1, h->errors, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (task_log_valid(h)) {
        return FL_OK;
    }
damaged:
    return fl_err_set(err, FL_EFORMAT, "'%s' is no history of tasks of this version", file->path);
}

int fl_task_log_load(const char *state_dir, struct fl_task_history *history, struct fl_err *err)
{
    char path[TASK_LOG_PATH];
    struct fl_container file = {.fd = -1};
    struct fl_task_history *read;
    int rv = task_log_path(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    read = calloc(1, sizeof(*read));
    if (read == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_container_open(path, &task_log_kind, &file, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = task_log_read(&file, read, err);
    fl_container_close(&file);
    if (rv != FL_OK) {
        goto done;
    }
    *history = *read;
done:
    free(read);
    return rv;
}

int fl_task_log_save(const char *state_dir, const struct fl_task_history *h, struct fl_err *err)
{
    const struct fl_container_part parts[] = {
        {"records", h->records, h->n_records * sizeof(h->records[0])},
        {"errors", h->errors, h->n_errors * sizeof(h->errors[0])}};
    struct task_log_fields fields = {.totals = h->totals};
    const struct fl_container_content content = {&fields, sizeof(fields), parts, 2};
    char path[TASK_LOG_PATH];
    int rv = task_log_path(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(fields.federation, h->federation, sizeof(fields.federation));
    return fl_container_replace(path, &task_log_kind, &content, /* sync= */ false, err);
}
