/* The first start of a folder that was restored from a backup: new identity, new generation. On the
 * thread that owns the store. */

#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "server/store/generation_impl.h"

/* The restore that a note describes. */
struct restore_note {
    uint8_t identity[FL_DIGEST_SIZE]; /* identity for the restored folder: its first FL__IDENTITY
                                         bytes */
};

/* Without what would not be text. Returns how many bytes were read. */
static size_t take_line(const struct fl_buf *buf, size_t from, char *out, size_t size)
{
    size_t n = 0;

    while (from + n < buf->len && n + 1 < size && buf->data[from + n] >= ' ' &&
           buf->data[from + n] <= '~')
    {
        out[n] = (char)buf->data[from + n];
        n++;
    }
    out[n] = '\0';
    return n;
}

static int read_note(const char *path, struct restore_note *ret, char *text, size_t size,
                     struct fl_err *err)
{
    char name[FL__RESTORED_NAME + 1];
    struct fl_buf buf;
    size_t n;
    int rv;

    if (!fl_fs_exists(path)) {
        return FL_ENOENT;
    }
    rv = fl_fs_read(path, 4096, &buf, err);
    if (rv != FL_OK) {
        return rv;
    }
    n = take_line(&buf, 0, text, size);
    n = take_line(&buf, n + 1, name, sizeof(name));
    fl_buf_done(&buf);
    if (n != FL__RESTORED_NAME) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' is damaged: its second line is not the name of a restore; restore "
                          "the folder again ('flctl restore')",
                          path);
    }
    rv = fl_sha256(name, FL__RESTORED_NAME, ret->identity);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
    }
    return FL_OK;
}

static int begin_generation(struct fl_store *store, const struct fl_restored *r, uint64_t wall_ms,
                            struct fl_err *err)
{
    struct fl__folder row;
    struct fl_change_rec change = {.round = r->committed + 1,
                                   .at_ms = wall_ms,
                                   .name = "the state folder",
                                   .before = "as it was",
                                   .after = r->note};
    int rv = fl__generation_read(store, &row, err);

    if (rv != FL_OK) {
        return rv;
    }
    change.generation = ++row.generation;
    rv = fl__generation_write(store, &row, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__generation_put_change(store, &change, err);
}

/* Restart the state shared by clients and server, without the open attempt. */
static int drop_state(struct fl_store *store, uint64_t wall_ms, struct fl_restored *r,
                      struct fl_err *err)
{
    const struct fl_rewind why = {.reason = r->note, .restart_state = true, .wall_ms = wall_ms};
    int rv = fl__store_open_attempt(store, &r->dropped_round, &r->dropped_attempt,
                                    &r->dropped_updates, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl__store_rewind(store, r->committed, &why, err);
}

static int carry_out_restore(struct fl_store *store, const struct restore_note *note,
                             bool restart_state, uint64_t wall_ms, struct fl_restored *r,
                             struct fl_err *err)
{
    struct fl__folder row;
    int rv = fl__store_last_round(store, &r->committed, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = restart_state ? drop_state(store, wall_ms, r, err)
                       : begin_generation(store, r, wall_ms, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__generation_read(store, &row, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(row.identity, note->identity, sizeof(row.identity));
    if (restart_state) {
        (void)memcpy(row.kept_identity, row.identity, sizeof(row.identity));
    }
    return fl__generation_write(store, &row, err);
}

int fl_store_carry_restored(struct fl_store *store, bool restart_state, uint64_t wall_ms,
                            struct fl_restored *ret, struct fl_err *err)
{
    struct fl_restored r = {.committed = 0};
    struct restore_note note = {{0}};
    struct fl__folder row;
    char path[FL__STORE_PATH_MAX];
    bool done;
    int rv = fl__store_join(path, store->dir, FL__RESTORED_NOTE, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = read_note(path, &note, r.note, sizeof(r.note), err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__generation_read(store, &row, err);
    if (rv != FL_OK) {
        return rv;
    }
    /* The restore was carried out already when a crash or power failure kept the note. */
    done = memcmp(row.identity, note.identity, FL__IDENTITY) == 0;
    if (!done) {
        rv = fl_db_begin_durable(&store->db, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_db_end(&store->db, carry_out_restore(store, &note, restart_state, wall_ms, &r, err),
                       err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl_fs_remove(path);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot remove '%s': %s", path, fl_strerror(rv));
    }
    rv = fl_fs_sync_dir(store->dir, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (done) {
        return FL_ENOENT;
    }
    *ret = r;
    return FL_OK;
}
