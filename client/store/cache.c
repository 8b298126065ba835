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

static int cache_path(const char *state_dir, char path[CACHE_PATH])
{
    return fl_fs_join(path, CACHE_PATH, state_dir, "summaries.bin");
}

/* FL_ENOENT: the file holds other bytes. */
static int cache_read(const struct fl_container *c, const uint8_t digest[FL_DIGEST_SIZE],
                      size_t len, uint8_t **ret)
{
    uint8_t found[FL_DIGEST_SIZE];
    uint8_t *data;
    int rv;

    if (c->head.n != 1 || c->head.sections[0].bytes != len ||
        fl_container_fields(&c->head, found, sizeof(found)) != FL_OK ||
        memcmp(found, digest, sizeof(found)) != 0)
    {
        return FL_ENOENT;
    }
    data = malloc(len + 1);
    if (data == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_container_read(c, 0, data, NULL);
    if (rv != FL_OK) {
        free(data);
        return FL_ENOENT;
    }
    *ret = data;
    return FL_OK;
}

int fl_cache_load(const char *state_dir, const uint8_t digest[FL_DIGEST_SIZE], size_t len,
                  uint8_t **ret)
{
    char path[CACHE_PATH];
    struct fl_container c;
    int rv;

    if (cache_path(state_dir, path) != FL_OK) {
        return FL_ENOENT;
    }
    rv = fl_container_open(path, &cache_kind, &c, NULL);
    if (rv != FL_OK) {
        return rv == FL_ENOMEM ? rv : FL_ENOENT;
    }
    rv = cache_read(&c, digest, len, ret);
    fl_container_close(&c);
    return rv;
}

int fl_cache_save(const char *state_dir, const void *data, size_t len, struct fl_err *err)
{
    uint8_t digest[FL_DIGEST_SIZE];
    const struct fl_container_part part = {"data", data, len};
    const struct fl_container_content content = {digest, sizeof(digest), &part, 1};
    char path[CACHE_PATH];
    int rv = fl_sha256(data, len, digest);

    if (rv != FL_OK) {
        return rv;
    }
    if (cache_path(state_dir, path) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", state_dir);
    }
    return fl_container_replace(path, &cache_kind, &content, /* sync= */ true, err);
}
