/* The first start of a folder that was restored from a backup. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/model/digest.h"
#include "server/store/line_impl.h"

static int path_of(const char *dir, char path[FL__STORE_PATH_MAX], struct fl_err *err)
{
    return fl_fs_join(path, FL__STORE_PATH_MAX, dir, FL__RESTORED_NOTE) == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

/* One line of it, without what would not be text. */
static int read_note(const char *path, char *out, size_t size, struct fl_err *err)
{
    struct fl_buf buf;
    size_t n = 0;
    int rv;

    if (!fl_fs_exists(path)) {
        return FL_ENOENT;
    }
    rv = fl_fs_read(path, 4096, &buf, err);
    if (rv != FL_OK) {
        return rv;
    }
    while (n < buf.len && n + 1 < size && buf.data[n] >= ' ' && buf.data[n] <= '~') {
        out[n] = (char)buf.data[n];
        n++;
    }
    out[n] = '\0';
    fl_buf_done(&buf);
    return FL_OK;
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
    struct fl__line_row row;
    struct fl_change_rec change = {.round = r->committed + 1,
                                   .at_ms = wall_ms,
                                   .name = "the state folder",
                                   .before = "as it was",
                                   .after = r->note};
    int rv = fl__line_read(store, &row, err);

    if (rv != FL_OK) {
        return rv;
    }
    change.line = ++row.line;
    rv = fl__line_write(store, &row, err);
    return rv == FL_OK ? fl__line_put_change(store, &change, err) : rv;
}

static int be_another(struct fl_store *store, bool keep_anew, struct fl_err *err)
{
    struct fl__line_row row;
    int rv = fl__line_read(store, &row, err);

    if (rv == FL_OK && fl_random_bytes(row.identity, sizeof(row.identity)) != FL_OK) {
        rv = fl_err_set(err, FL_EIO, "no random bytes for the state folder");
    }
    if (rv == FL_OK && keep_anew) {
        (void)memcpy(row.kept_identity, row.identity, sizeof(row.identity));
    }
    return rv == FL_OK ? fl__line_write(store, &row, err) : rv;
}

static int carry_out(struct fl_store *store, bool keep_anew, uint64_t wall_ms,
                     struct fl_restored *r, struct fl_err *err)
{
    const struct fl_rewind why = {.reason = r->note, .keep_anew = true, .wall_ms = wall_ms};
    int rv = fl__store_last_round(store, &r->committed, err);

    if (rv == FL_OK && keep_anew) {
        rv = find_dropped(store, r, err);
        rv = rv == FL_OK ? fl__store_rewind(store, r->committed, &why, err) : rv;
    } else if (rv == FL_OK) {
        rv = begin_line(store, r, wall_ms, err);
    }
    return rv == FL_OK ? be_another(store, keep_anew, err) : rv;
}

int fl_store_carry_restored(struct fl_store *store, bool keep_anew, uint64_t wall_ms,
                            struct fl_restored *ret, struct fl_err *err)
{
    struct fl_restored r = {.committed = 0};
    char path[FL__STORE_PATH_MAX];
    int rv = path_of(store->dir, path, err);

    rv = rv == FL_OK ? read_note(path, r.note, sizeof(r.note), err) : rv;
    rv = rv == FL_OK ? fl_db_begin_durable(&store->db, err) : rv;
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_db_end(&store->db, carry_out(store, keep_anew, wall_ms, &r, err), err);
    if (rv == FL_OK && (rv = fl_fs_remove(path)) != FL_OK) {
        (void)fl_err_set(err, rv, "cannot remove '%s': %s", path, fl_strerror(rv));
    }
    if (rv == FL_OK) {
        *ret = r;
    }
    return rv;
}
