#ifndef FL_WIRE_IDENTITY_IMPL_H
#define FL_WIRE_IDENTITY_IMPL_H

/* Shared by the messages about certificates; private to libfl/wire. */

#include "fl/v1/identity.pb-c.h"
#include "libfl/wire/wire_identity.h"
#include "libfl/wire/wire_impl.h"

/* `min` to `max` bytes. */
FL_MUST_CHECK int fl__wire_check_bytes(const char *field, const ProtobufCBinaryData *value,
                                       size_t min, size_t max, struct fl_err *err);
FL_MUST_CHECK int fl__wire_take_csr(const char *field, const ProtobufCBinaryData *value,
                                    struct fl_wire_bytes *ret, struct fl_err *err);
/* On an error `ret` holds the entries copied so far; the caller frees them. */
FL_MUST_CHECK int fl__wire_take_chain(const char *field, const ProtobufCBinaryData *list, size_t n,
                                      struct fl_wire_chain *ret, struct fl_err *err);
/* NULL without memory. */
ProtobufCBinaryData *fl__wire_put_chain(struct fl__wire_arena *arena,
                                        const struct fl_wire_chain *chain);
/* `ret` is NULL (the field is then absent) without labels. */
FL_MUST_CHECK int fl__wire_put_labels(struct fl__wire_arena *arena,
                                      const struct fl_wire_labels *labels, Fl__V1__Labels **ret);
FL_MUST_CHECK int fl__wire_take_labels(const char *field, const Fl__V1__Labels *msg,
                                       struct fl_wire_labels *ret, struct fl_err *err);
/* A name, or "". */
FL_MUST_CHECK int fl__wire_copy_optional(const char *field, const char *value,
                                         char ret[FL_NAME_MAX], struct fl_err *err);

#endif
