#ifndef FL_CLIENT_CENTRAL_FILE_H
#define FL_CLIENT_CENTRAL_FILE_H

/*
 * The central settings that the server sent last, as <state_dir>/central.bin: bytes of the caller.
 * Synchronous; any thread, one at a time.
 */

#include "libfl/base/buf.h"

/*
 * Appends them to `out`. FL_ENOENT: none; FL_EFORMAT: damaged, `err` names the file; the server
 * sends them again.
 */
FL_MUST_CHECK int fl_central_file_load(const char *state_dir, struct fl_buf *out,
                                       struct fl_err *err);
/* Replaces them, durable. */
FL_MUST_CHECK int fl_central_file_save(const char *state_dir, const void *data, size_t len,
                                       struct fl_err *err);

#endif
