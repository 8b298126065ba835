#include "client/store/cache.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/container/container.h"
#include "libfl/model/digest.h"

#define CACHE_PATH 4096

/* Its fields are the SHA-256 of its one section. */
static const struct fl_container_kind cache_kind = {
    .name = "fetched", .version = 1, .max_sections = 1, .max_fields = FL_DIGEST_SIZE};

static int cache_path(const char *state_dir, const char *name, char path[CACHE_PATH])
{
    return fl_fs_join(path, CACHE_PATH, state_dir, name);
}

/* Opens the file when it has one section of `len` bytes. FL_ENOENT, FL_ENOMEM. */
static int cache_open(const char *path, size_t len, struct fl_container *ret,
                      uint8_t ret_digest[FL_DIGEST_SIZE])
{
    int rv = fl_container_open(path, &cache_kind, ret, NULL);

    if (rv != FL_OK) {
        return rv == FL_ENOMEM ? rv : FL_ENOENT;
    }
    if (ret->head.n != 1 || ret->head.sections[0].bytes != len ||
        fl_container_fields(&ret->head, ret_digest, FL_DIGEST_SIZE) != FL_OK)
    {
        fl_container_close(ret);
        return FL_ENOENT;
    }
    return FL_OK;
}

int fl_cache_find(const char *state_dir, const char *name, size_t len, uint8_t ret[FL_DIGEST_SIZE])
{
    char path[CACHE_PATH];
    struct fl_container c;
    int rv;

    if (cache_path(state_dir, name, path) != FL_OK) {
        return FL_ENOENT;
    }
    rv = cache_open(path, len, &c, ret);
    if (rv != FL_OK) {
        return rv;
    }
    fl_container_close(&c);
    return FL_OK;
}

int fl_cache_load(const char *state_dir, const char *name, const uint8_t digest[FL_DIGEST_SIZE],
                  size_t len, uint8_t **ret)
{
    char path[CACHE_PATH];
    uint8_t found[FL_DIGEST_SIZE];
    struct fl_container c;
    uint8_t *data = NULL;
    int rv;

    if (cache_path(state_dir, name, path) != FL_OK) {
        return FL_ENOENT;
    }
    rv = cache_open(path, len, &c, found);
    if (rv != FL_OK) {
        return rv;
    }
    if (memcmp(found, digest, sizeof(found)) != 0) {
        rv = FL_ENOENT;
        goto done;
    }
    data = malloc(len + 1);
    if (data == NULL) {
        rv = FL_ENOMEM;
        goto done;
    }
    if (fl_container_read(&c, 0, data, NULL) != FL_OK) {
        free(data);
        rv = FL_ENOENT;
        goto done;
    }
    *ret = data;
done:
    fl_container_close(&c);
    return rv;
}

int fl_cache_save(const char *state_dir, const char *name, const void *data, size_t len,
                  struct fl_err *err)
{
    uint8_t digest[FL_DIGEST_SIZE];
    const struct fl_container_part part = {"data", data, len};
    const struct fl_container_content content = {digest, sizeof(digest), &part, 1};
    char path[CACHE_PATH];
    int rv = fl_sha256(data, len, digest);

    if (rv != FL_OK) {
        return rv;
    }
    if (cache_path(state_dir, name, path) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", state_dir);
    }
    return fl_container_replace(path, &cache_kind, &content, /* sync= */ true, err);
}

void fl_cache_drop(const char *state_dir, const char *name)
{
    char path[CACHE_PATH];

    if (cache_path(state_dir, name, path) == FL_OK && fl_fs_remove(path) != FL_OK) {
        return; /* It is found damaged, or to be of another model, when it is used. */
    }
}
