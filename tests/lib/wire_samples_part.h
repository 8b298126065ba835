#ifndef FL_LIB_WIRE_SAMPLES_PART_H
#define FL_LIB_WIRE_SAMPLES_PART_H

/* Messages about rounds and participations, for wire_samples.c. */

#include "libfl/base/buf.h"

int wire_sample_list_participations(struct fl_buf *out);
int wire_recode_list_participations(const void *data, size_t len, struct fl_buf *out,
                                    struct fl_err *err);
int wire_sample_participation(struct fl_buf *out);
int wire_recode_participation(const void *data, size_t len, struct fl_buf *out, struct fl_err *err);
int wire_sample_list_rounds(struct fl_buf *out);
int wire_recode_list_rounds(const void *data, size_t len, struct fl_buf *out, struct fl_err *err);

#endif
