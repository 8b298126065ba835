#ifndef FL_STORE_UPLOADS_H
#define FL_STORE_UPLOADS_H

/*
 * Uploads in memory instead of spool files, for simulations: validated like spool files, read by
 * the same readers, lost when the process ends. They carry no checksums, as no disk is involved.
 *
 * Threading: all functions from any thread; an upload in a collection must not be changed, and each
 * reader belongs to one thread.
 */

#include "libfl/base/buf.h"
#include "server/store/store.h"

/* A complete, validated upload of one client. */
struct fl_upload;

/*
 * Make an upload of `bytes`, to which it keeps a reference, with the manifest `parts`
 * (fl_spool_check()). Rejects the same uploads as fl_spool_open(), fl_spool_write() and
 * fl_spool_finish(), with the same codes and messages: FL_EINVAL, FL_ELIMIT, FL_ESTATE,
 * fl_spool_is_bad(). FL_ENOMEM.
 */
FL_MUST_CHECK int fl_upload_make(const struct fl_spool_part *parts, size_t n_parts,
                                 struct fl_blob *bytes, const struct fl_layout *layout,
                                 double norm_bound, struct fl_upload **ret, struct fl_err *err);
/* As fl_spool_take_norms(). */
struct fl_norms fl_upload_take_norms(struct fl_upload *upload);
void fl_upload_free(struct fl_upload *upload); /* NULL is allowed. */

/* The uploads of the open rounds, by client. */
struct fl_uploads;

FL_MUST_CHECK int fl_uploads_create(struct fl_uploads **ret);
void fl_uploads_free(struct fl_uploads *uploads); /* NULL is allowed. */
/* Takes `upload` on success; replaces an earlier one of the same client and attempt. FL_EINVAL: no
 * valid name; FL_ENOMEM. */
FL_MUST_CHECK int fl_uploads_put(struct fl_uploads *uploads, uint64_t round, uint32_t attempt,
                                 const char *client, struct fl_upload *upload);
/* Coded bytes of all uploads. */
uint64_t fl_uploads_bytes(struct fl_uploads *uploads);
/* Remove all uploads except those of (round, attempt); round 0: all. Not while a reader is open. */
void fl_uploads_clean(struct fl_uploads *uploads, uint64_t round, uint32_t attempt);
/* As fl_spool_reader_open(); the upload must outlive the reader. FL_ENOENT: no such upload. */
FL_MUST_CHECK int fl_uploads_open(struct fl_uploads *uploads, uint64_t round, uint32_t attempt,
                                  const char *client, const struct fl_layout *layout,
                                  struct fl_spool_reader **ret, struct fl_err *err);

#endif
