/* The first start of a folder that was restored from a backup: new identity, new generation. On the
 * thread that owns the store. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "server/store/generation_impl.h"

static int restored_note_path(const char *dir, char path[FL__STORE_PATH_MAX], struct fl_err *err)
{
    return fl_fs_join(path, FL__STORE_PATH_MAX, dir, FL__RESTORED_NOTE) == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

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
    return rv == FL_OK ? FL_OK : fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
}

static int find_dropped(struct fl_store *store, struct fl_restored *r, struct fl_err *err)
{
    int rv = fl__store_open_attempt(store, &r->dropped_round, &r->dropped_attempt,
                                    &r->dropped_updates, err);

    return rv == FL_ENOENT ? FL_OK : rv;
}

static int begin_line(struct fl_store *store, const struct fl_restored *r, uint64_t wall_ms,
                      struct fl_err *err)
{
    struct fl__generation_row row;
    struct fl_change_rec change = {.round = r->committed + 1,
                                   .at_ms = wall_ms,
                                   .name = "the state folder",
                                   .before = "as it was",
                                   .after = r->note};
    int rv = fl__generation_read(store, &row, err);

    if (rv != FL_OK) {
        return rv;
    }
    change.line = ++row.line;
    rv = fl__generation_write(store, &row, err);
    return rv == FL_OK ? fl__generation_put_change(store, &change, err) : rv;
}

static int be_another(struct fl_store *store, const struct restore_note *note, bool keep_anew,
                      struct fl_err *err)
{
    struct fl__generation_row row;
    int rv = fl__generation_read(store, &row, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(row.identity, note->identity, sizeof(row.identity));
    if (keep_anew) {
        (void)memcpy(row.kept_identity, row.identity, sizeof(row.identity));
    }
    return fl__generation_write(store, &row, err);
}

static int carry_out_restore(struct fl_store *store, const struct restore_note *note,
                             bool keep_anew, uint64_t wall_ms, struct fl_restored *r,
                             struct fl_err *err)
{
    const struct fl_rewind why = {.reason = r->note, .keep_anew = true, .wall_ms = wall_ms};
    int rv = fl__store_last_round(store, &r->committed, err);

    if (rv == FL_OK && keep_anew) {
        rv = find_dropped(store, r, err);
        rv = rv == FL_OK ? fl__store_rewind(store, r->committed, &why, err) : rv;
    } else if (rv == FL_OK) {
        rv = begin_line(store, r, wall_ms, err);
    }
    return rv == FL_OK ? be_another(store, note, keep_anew, err) : rv;
}

/* true: the restore was carried out already, but a crash or power failure kept the note. */
static int is_done(struct fl_store *store, const struct restore_note *note, bool *ret,
                   struct fl_err *err)
{
    struct fl__generation_row row;
    int rv = fl__generation_read(store, &row, err);

    *ret = rv == FL_OK && memcmp(row.identity, note->identity, FL__IDENTITY) == 0;
    return rv;
}

static int remove_note(const struct fl_store *store, const char *path, struct fl_err *err)
{
    int rv = fl_fs_remove(path);

    return rv == FL_OK ? fl_fs_sync_dir(store->dir, err)
                       : fl_err_set(err, rv, "cannot remove '%s': %s", path, fl_strerror(rv));
}

int fl_store_carry_restored(struct fl_store *store, bool keep_anew, uint64_t wall_ms,
                            struct fl_restored *ret, struct fl_err *err)
{
    struct fl_restored r = {.committed = 0};
    struct restore_note note = {{0}};
    char path[FL__STORE_PATH_MAX];
    bool done = false;
    int rv = restored_note_path(store->dir, path, err);

    rv = rv == FL_OK ? read_note(path, &note, r.note, sizeof(r.note), err) : rv;
    rv = rv == FL_OK ? is_done(store, &note, &done, err) : rv;
    if (rv == FL_OK && !done) {
        rv = fl_db_begin_durable(&store->db, err);
        rv = rv == FL_OK
                 ? fl_db_end(&store->db,
                             carry_out_restore(store, &note, keep_anew, wall_ms, &r, err), err)
                 : rv;
    }
    rv = rv == FL_OK ? remove_note(store, path, err) : rv;
    if (rv != FL_OK || done) {
        return rv == FL_OK ? FL_ENOENT : rv;
    }
    *ret = r;
    return FL_OK;
}
