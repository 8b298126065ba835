/* NPZ, numpy's archive of arrays: features and labels are two entries of a ZIP archive. */
#include <stdio.h>

#include "libfl/data/format.h"
#include "libfl/data/zip.h"

#define NAME_SIZE 4352

/* "ARCHIVE: ENTRY", for messages. */
static int npz_source(struct fl_source *src, const struct fl__zip *zip, const char *entry,
                      char name[NAME_SIZE], struct fl_err *err)
{
    (void)snprintf(name, NAME_SIZE, "%s: %s", zip->name, entry);
    return fl__zip_source(src, zip, entry, name, err);
}

int fl__npz_read(const struct fl__zip *zip, const char *x_name, const char *y_name,
                 struct fl_dataset **ret, struct fl_err *err)
{
    char x_text[NAME_SIZE];
    char y_text[NAME_SIZE];
    struct fl_source x;
    struct fl_source y;
    int rv = npz_source(&x, zip, x_name, x_text, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = npz_source(&y, zip, y_name, y_text, err);
    if (rv != FL_OK) {
        fl__source_close(&x);
        return rv;
    }
    rv = fl__npy_read(&x, &y, ret, err);
    fl__source_close(&y);
    fl__source_close(&x);
    return rv;
}
