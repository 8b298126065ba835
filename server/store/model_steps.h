#ifndef FL_STORE_MODEL_STEPS_H
#define FL_STORE_MODEL_STEPS_H

/*
 * What changed between the models that clients may still hold
 * (libfl/strategy/broadcast/versions.h): <dir>/steps/NNNNNN.step for the step that ends with the
 * model of round N, written before the round is committed. A step that is missing or damaged costs
 * whole downloads and nothing else: a client is sent moves only from a model whose SHA-256 is
 * known.
 *
 * Threading: one thread at a time. Errors: as store.h.
 */

#include "libfl/base/log.h"
#include "libfl/strategy/broadcast/versions.h"

/* Replace the file of `step`, durably when `sync`. */
FL_MUST_CHECK int fl_model_steps_save(const char *dir, const struct fl_step *step, bool sync,
                                      struct fl_err *err);
/*
 * The versions that end with the model `newest` of the committed `round`: as far back as the files
 * lead. A damaged file is logged. FL_ENOMEM; no other error.
 */
FL_MUST_CHECK int fl_model_steps_load(const char *dir, const struct fl_layout *layout,
                                      uint64_t round, const uint8_t newest[FL_DIGEST_SIZE],
                                      const struct fl_log *log, struct fl_versions **ret);
/* Remove all files but those of the rounds `oldest` to `newest`. */
FL_MUST_CHECK int fl_model_steps_clean(const char *dir, uint64_t oldest, uint64_t newest,
                                       struct fl_err *err);

#endif
