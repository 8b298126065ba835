#ifndef FL_STORE_UPLOADS_H
#define FL_STORE_UPLOADS_H

/*
 * Uploads in memory in place of spool files, for a server that simulates: checked as those are
 * when they are complete, read by the same readers, gone with the process. There is no disk between
 * what came and what is read, so they carry no checksums.
 *
 * Threading: all from any thread; an upload that is in a collection is left alone by others, and
 * each reader belongs to one thread.
 */

#include "libfl/base/buf.h"
#include "server/store/store.h"

/* What one client sent, whole and good. */
struct fl_upload;

/*
 * Of `bytes`, to which a reference is taken, as the manifest `parts` says (fl_spool_check()). What
 * fl_spool_open(), fl_spool_write() and fl_spool_finish() refuse is refused, with their codes and
 * words: FL_EINVAL, FL_ELIMIT, FL_ESTATE, fl_spool_is_bad(). FL_ENOMEM.
 */
FL_MUST_CHECK int fl_upload_make(const struct fl_spool_part *parts, size_t n_parts,
                                 struct fl_blob *bytes, const struct fl_layout *layout,
                                 double norm_bound, struct fl_upload **ret, struct fl_err *err);
/* As fl_spool_take_norms(). */
struct fl_norms fl_upload_take_norms(struct fl_upload *upload);
void fl_upload_free(struct fl_upload *upload); /* NULL is allowed. */

/* Those of the rounds that are open, by client. */
struct fl_uploads;

FL_MUST_CHECK int fl_uploads_create(struct fl_uploads **ret);
void fl_uploads_free(struct fl_uploads *uploads); /* NULL is allowed. */
/* Takes `upload` on success, in place of one that the client sent before. FL_EINVAL: no valid name;
   FL_ENOMEM. */
FL_MUST_CHECK int fl_uploads_put(struct fl_uploads *uploads, uint64_t round, uint32_t attempt,
                                 const char *client, struct fl_upload *upload);
/* Coded bytes of all. */
uint64_t fl_uploads_bytes(struct fl_uploads *uploads);
/* Remove all but those of (round, attempt); round 0: all. Not while a reader is open. */
void fl_uploads_clean(struct fl_uploads *uploads, uint64_t round, uint32_t attempt);
/* As fl_spool_reader_open(), of one that is there; it must outlive the reader. FL_ENOENT: it is
   not. */
FL_MUST_CHECK int fl_uploads_open(struct fl_uploads *uploads, uint64_t round, uint32_t attempt,
                                  const char *client, const struct fl_layout *layout,
                                  struct fl_spool_reader **ret, struct fl_err *err);

#endif
