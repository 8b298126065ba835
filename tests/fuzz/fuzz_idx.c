#include "tests/fuzz/fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    struct fl_source x;
    struct fl_source y;
    int rv;

    if (size >= 2) {
        split_input(data, size, &x, &y);
        rv = fl__idx_read(&x, &y, &ds, &err);
        check_set(rv, ds, &err);
    }
    return 0;
}
