#ifndef FL_LIB_DATA_FILES_H
#define FL_LIB_DATA_FILES_H

/* Small data files for tests, in a folder that is removed after the test. */

#include <stddef.h>
#include <stdint.h>

#define T_PATH 4096

/* A new empty folder under $TMPDIR or /tmp, into `out`. */
void t_dir(char out[T_PATH]);
/* Remove it and the files in it, one level of folders deep. */
void t_dir_remove(const char *dir);
const char *t_path(char out[T_PATH], const char *dir, const char *name);
/* Write `len` bytes to dir/name; packed with gzip when the name ends in ".gz". */
void t_write(const char *dir, const char *name, const void *data, size_t len);
void t_text(const char *dir, const char *name, const char *text);
/* IDX with any magic and any promised counts, followed by `len` bytes. */
void t_idx(const char *dir, const char *name, uint32_t magic, const uint32_t *numbers, size_t n,
           const void *data, size_t len);
/* NPY 1.0 with any dict text, followed by `len` bytes. */
void t_npy(const char *dir, const char *name, const char *dict, const void *data, size_t len);

#endif
