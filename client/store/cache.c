#include "client/store/cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/store/whole.h"
#include "libfl/base/fs.h"
#include "libfl/model/digest.h"

#define CACHE_PATH 4096

static int cache_path(const char *state_dir, char path[CACHE_PATH])
{
    return fl_fs_join(path, CACHE_PATH, state_dir, "summaries.bin");
}

int fl_cache_load(const char *state_dir, const uint8_t digest[FL_DIGEST_SIZE], size_t len,
                  uint8_t **ret)
{
    char path[CACHE_PATH];
    uint8_t sha[FL_DIGEST_SIZE];
    uint8_t *data = NULL;
    struct stat st;
    int fd;
    int rv = FL_ENOENT;

    if (cache_path(state_dir, path) != FL_OK || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
        return FL_ENOENT;
    }
    if (fstat(fd, &st) == 0 && st.st_size >= 0 && (uint64_t)st.st_size == len) {
        data = malloc(len + 1);
        rv = data == NULL ? FL_ENOMEM
             : fl_fs_pread(fd, data, len, 0) == FL_OK && fl_sha256(data, len, sha) == FL_OK &&
                     memcmp(sha, digest, sizeof(sha)) == 0
                 ? FL_OK
                 : FL_ENOENT;
    }
    (void)close(fd);
    if (rv != FL_OK) {
        free(data);
        return rv;
    }
    *ret = data;
    return FL_OK;
}

int fl_cache_save(const char *state_dir, const void *data, size_t len, struct fl_err *err)
{
    struct fl_run run = {data, len};
    char path[CACHE_PATH];

    return cache_path(state_dir, path) == FL_OK
               ? fl_whole_write(path, &run, 1, /* sync= */ true, err)
               : fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", state_dir);
}
