#include "client/store/client_state_read.h"

#include <stdlib.h>
#include <string.h>

#include "client/store/client_state_impl.h"
#include "libfl/base/fs.h"

/*
 * Retries when the daemon replaces the index during reading; a round takes far longer than a read.
 */
#define TRIES 100

static int read_newest(const char *dir, const struct fl__client_state_index *index,
                       const struct fl__client_state_entry *e, bool local,
                       struct fl_client_state_found *found, struct fl_err *err)
{
    struct fl__client_state_block block = {.name = e->name, .layout = index->layout};
    uint64_t serial = e->pending != 0 ? e->pending : e->kept;

    block.n_floats = local ? fl_layout_local(found->layout) : fl_layout_count(found->layout);
    found->pending = e->pending != 0;
    found->key = found->pending ? index->pending : index->kept;
    (void)memcpy(found->federation, index->federation, sizeof(found->federation));
    return fl__client_state_block_read(dir, &block, serial, &found->data, err);
}

/* FL_ENOENT with `*missing`: a file of this index no longer exists. */
static int state_read_index_model(const char *dir, struct fl__client_state_index *index,
                                  const struct fl_client_state_request *requests, size_t n,
                                  struct fl_client_state_found *found, bool *missing,
                                  struct fl_err *err)
{
    const struct fl__client_state_entry *e = NULL;
    size_t i;
    int rv;

    for (i = 0; i < n && (e == NULL || (e->kept == 0 && e->pending == 0)); i++) {
        e = fl__client_state_find(index, requests[i].name);
        found->request = i;
    }
    if (e == NULL || (e->kept == 0 && e->pending == 0)) {
        return fl_err_set(err, FL_ENOENT, "no model in '%s'", dir);
    }
    rv = fl__client_state_layout_read(dir, index->layout, &found->layout, err);
    if (rv == FL_ENOENT) {
        (void)fl_err_set(err, rv, "'%s/layout' is missing: the next round of the daemon writes it",
                         dir);
    }
    if (rv != FL_OK) {
        *missing = true;
        return rv;
    }
    rv = read_newest(dir, index, e, requests[found->request].local, found, err);
    *missing = rv != FL_OK;
    return rv;
}

static int read_once(const char *dir, const struct fl_client_state_request *requests, size_t n,
                     struct fl_client_state_found *found, uint64_t *serial, bool *missing,
                     struct fl_err *err)
{
    struct fl__client_state_index index = {0};
    int rv = fl__client_state_index_read(dir, &index, err);

    *missing = false;
    if (rv != FL_OK) {
        return rv;
    }
    *serial = index.serial;
    rv = state_read_index_model(dir, &index, requests, n, found, missing, err);
    fl__client_state_index_done(&index);
    return rv;
}

int fl_client_state_read(const char *state_dir, const struct fl_client_state_request *requests,
                         size_t n, struct fl_client_state_found *ret, struct fl_err *err)
{
    char dir[FL__CLIENT_STATE_PATH];
    uint64_t last = UINT64_MAX;
    uint64_t serial = 0;
    bool missing = true;
    unsigned i;
    int rv = FL_ENOENT;

    *ret = (struct fl_client_state_found){.request = 0};
    if (fl_fs_join(dir, sizeof(dir), state_dir, "keep") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", state_dir);
    }
    for (i = 0; i < TRIES && serial != last; i++) {
        fl_client_state_found_done(ret);
        last = serial;
        rv = read_once(dir, requests, n, ret, &serial, &missing, err);
        if (rv == FL_OK || !missing) {
            return rv;
        }
    }
    return rv == FL_ENOENT ? FL_EFORMAT : rv;
}

void fl_client_state_found_done(struct fl_client_state_found *found)
{
    fl_layout_free(found->layout);
    free(found->data);
    *found = (struct fl_client_state_found){.request = 0};
}
