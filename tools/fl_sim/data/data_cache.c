/*
 * Partitions in container files (libfl/container), so that a continued run has the partition that
 * it started with. Called by one thread at a time for one file; it reads no samples.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/container/container.h"
#include "libfl/model/digest.h"
#include "tools/fl_sim/data/data_impl.h"

struct partition_fields {
    uint8_t key[32];
};

/* Sections: the offset of each client's list (8 bytes each, one more than clients), the lists. */
enum { PART_STARTS, PART_ITEMS, PART_SECTIONS };

static const struct fl_container_kind partition_kind = {.name = "split",
                                                        .version = 1,
                                                        .max_sections = PART_SECTIONS,
                                                        .max_fields =
                                                            sizeof(struct partition_fields)};

void fl__data_describe_partition(const struct fl_split_conf *conf, struct fl_writer *w)
{
    const struct fl_partition_option *option;

    fl_writer_printf(w, " %s clients=%zu seed=%" PRIu64 " test_share=%.17g", conf->method->name,
                     conf->partition.n_clients, conf->partition.seed, conf->test_share);
    for (option = conf->method->options; option->name != NULL; option++) {
        const char *at = (const char *)&conf->partition + option->offset;
        uint64_t count;
        double value;

        if (option->type == FL_PARTITION_REAL) {
            (void)memcpy(&value, at, sizeof(value));
            fl_writer_printf(w, " %s=%.17g", option->name, value);
        } else {
            (void)memcpy(&count, at, sizeof(count));
            fl_writer_printf(w, " %s=%" PRIu64, option->name, count);
        }
    }
}

/* Labels, method, options and seed determine a partition completely. */
int fl__data_partition_key(const struct fl_dataset *train, const struct fl_split_conf *conf,
                           struct fl__data_key *ret, struct fl_err *err)
{
    struct fl_buf text;
    struct fl_writer w = {.out = &text};

    fl_buf_init(&text, 4096);
    fl_writer_printf(&w, "n=%zu classes=%zu labels=%016" PRIx64, train->n, train->classes,
                     fl_checksum(train->y, train->n * sizeof(*train->y)));
    fl__data_describe_partition(conf, &w);
    fl_writer_note(&w, fl_sha256(text.data, text.len, ret->sha));
    fl_buf_done(&text);
    if (w.code != FL_OK) {
        return fl_err_set(err, w.code, "partition: %s", fl_strerror(w.code));
    }
    return FL_OK;
}

static int cache_path(const char *folder, const struct fl__data_key *key, char path[FL__DATA_PATH],
                      struct fl_err *err)
{
    char name[2 * 8 + 8];
    size_t n = strlen(fl_hex(name, key->sha, 8));

    (void)snprintf(name + n, sizeof(name) - n, ".part");
    return fl_fs_join(path, FL__DATA_PATH, folder, name) == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%.200s…' is too long", folder);
}

/* Is this the file of this partition? */
static bool cache_is_valid(const struct fl_container *file, const struct fl__data_key *key,
                           size_t n_clients, size_t n_samples)
{
    struct partition_fields fields;

    return file->head.n == PART_SECTIONS &&
           fl_container_fields(&file->head, &fields, sizeof(fields)) == FL_OK &&
           memcmp(fields.key, key->sha, sizeof(fields.key)) == 0 &&
           file->head.sections[PART_STARTS].bytes == (n_clients + 1) * sizeof(uint64_t) &&
           file->head.sections[PART_ITEMS].bytes % sizeof(uint32_t) == 0 &&
           file->head.sections[PART_ITEMS].bytes / sizeof(uint32_t) <= n_samples;
}

/* Checks the lists, as samples are read by these indices without further checks. */
static bool cache_check_lists(const uint64_t *starts, size_t n_items, size_t n_samples,
                              const struct fl_partition *part)
{
    size_t i;

    for (i = 0; i <= part->n_clients; i++) {
        if (starts[i] > n_items || (i == 0 ? starts[i] != 0 : starts[i] <= starts[i - 1])) {
            return false;
        }
        part->start[i] = (size_t)starts[i];
    }
    for (i = 0; i < n_items; i++) {
        if (part->items[i] >= n_samples) {
            return false;
        }
    }
    return part->start[part->n_clients] == n_items;
}

/* FL_ENOENT: damaged, or of another partition. */
static int cache_unpack(const struct fl_container *file, size_t n_samples,
                        struct fl_partition *part, struct fl_err *err)
{
    size_t n_items = (size_t)file->head.sections[PART_ITEMS].bytes / sizeof(uint32_t);
    uint64_t *starts = calloc(part->n_clients + 1, sizeof(*starts));
    int rv = FL_ENOENT;

    part->start = calloc(part->n_clients + 1, sizeof(*part->start));
    part->items = calloc(n_items + 1, sizeof(*part->items));
    if (starts == NULL || part->start == NULL || part->items == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "out of memory reading '%s'", file->path);
    } else if (fl_container_read(file, PART_STARTS, starts, NULL) == FL_OK &&
               fl_container_read(file, PART_ITEMS, part->items, NULL) == FL_OK &&
               cache_check_lists(starts, n_items, n_samples, part))
    {
        rv = FL_OK;
    }
    free(starts);
    return rv;
}

int fl__data_read_partition(const char *folder, const struct fl__data_key *key, size_t n_clients,
                            size_t n_samples, struct fl_partition *ret, struct fl_err *err)
{
    struct fl_partition part = {.n_clients = n_clients};
    struct fl_container file;
    char path[FL__DATA_PATH];
    int rv = cache_path(folder, key, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_container_open(path, &partition_kind, &file, err);
    if (rv != FL_OK) {
        return rv == FL_EFORMAT || rv == FL_EVERSION ? FL_ENOENT : rv;
    }
    rv = cache_is_valid(&file, key, n_clients, n_samples)
             ? cache_unpack(&file, n_samples, &part, err)
             : FL_ENOENT;
    fl_container_close(&file);
    if (rv != FL_OK) {
        fl_partition_done(&part);
        return rv;
    }
    *ret = part;
    return FL_OK;
}

int fl__data_write_partition(const char *folder, const struct fl__data_key *key,
                             const struct fl_partition *part, struct fl_err *err)
{
    struct partition_fields fields;
    struct fl_container_part parts[PART_SECTIONS] = {{.name = "starts"}, {.name = "items"}};
    const struct fl_container_content content = {&fields, sizeof(fields), parts, PART_SECTIONS};
    char path[FL__DATA_PATH];
    uint64_t *starts = NULL;
    size_t i;
    int rv = cache_path(folder, key, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_mkdirs(folder, err);
    if (rv != FL_OK) {
        return rv;
    }
    starts = calloc(part->n_clients + 1, sizeof(*starts));
    if (starts == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': %s", path, fl_strerror(FL_ENOMEM));
    }
    for (i = 0; i <= part->n_clients; i++) {
        starts[i] = part->start[i];
    }
    (void)memcpy(fields.key, key->sha, sizeof(fields.key));
    parts[PART_STARTS].data = starts;
    parts[PART_STARTS].bytes = (part->n_clients + 1) * sizeof(*starts);
    parts[PART_ITEMS].data = part->items;
    parts[PART_ITEMS].bytes = part->start[part->n_clients] * sizeof(*part->items);
    rv = fl_container_replace(path, &partition_kind, &content, /* sync= */ false, err);
    free(starts);
    return rv;
}
