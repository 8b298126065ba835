#ifndef FL_WIRE_SAMPLES_H
#define FL_WIRE_SAMPLES_H

/* One complete message of every wire type, for tests and as seeds for fuzzing. */

#include "libfl/wire/messages.h"
#include "libfl/wire/wire_admin.h"

struct wire_sample {
    const char *name;
    int (*encode)(struct fl_buf *out);
    /* Decode and encode again what came out. */
    int (*recode)(const void *data, size_t len, struct fl_buf *out, struct fl_err *err);
};

/* Ended by a NULL name. */
extern const struct wire_sample wire_samples[];

/* A model of two units, four tensors; free with fl_layout_free(). */
struct fl_layout *wire_sample_layout(void);

int wire_recode_event(const void *data, size_t len, struct fl_buf *out, struct fl_err *err);
int wire_recode_command(const void *data, size_t len, struct fl_buf *out, struct fl_err *err);
int wire_recode_push(const void *data, size_t len, struct fl_buf *out, struct fl_err *err);

#endif
