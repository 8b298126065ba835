#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/data/zip.h"
#include "tests/fuzz/fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    struct fl__zip zip;
    char path[64];
    int fd = memfd_create("npz", MFD_CLOEXEC);
    int rv;

    FL_REQUIRE(fd >= 0 && fl_fs_pwrite(fd, data, size, 0) == FL_OK);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    rv = fl__zip_open(&zip, path, &err);
    (void)close(fd);
    if (rv != FL_OK) {
        check_set(rv, ds, &err);
        return 0;
    }
    rv = fl__npz_read(&zip, "x.npy", "y.npy", &ds, &err);
    check_set(rv, ds, &err);
    fl__zip_close(&zip);
    return 0;
}
