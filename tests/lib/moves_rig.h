#ifndef FL_LIB_MOVES_RIG_H
#define FL_LIB_MOVES_RIG_H

/*
 * Models on a lattice, one a round, each a step from the one before, and what a server knows of
 * them (libfl/strategy/broadcast/versions.h). Every failure ends the test.
 */

#include "libfl/strategy/broadcast/moves.h"
#include "libfl/strategy/broadcast/versions.h"

#define MOVES_RIG_MAX 32

struct moves_rig {
    const struct fl_layout *layout;
    size_t n, bytes; /* models, and bytes of one */
    float *models[MOVES_RIG_MAX];
    uint8_t digests[MOVES_RIG_MAX][FL_DIGEST_SIZE];
};

/* `n` models, that of round 0 being `first` (NULL: zeros); borrows the layout. */
void moves_rig_init(struct moves_rig *rig, const struct fl_layout *layout, const float *first,
                    size_t n);
void moves_rig_done(struct moves_rig *rig);
/* The step of `round` from the model of the round before; `from` is set, too. */
struct fl_step moves_rig_step(const struct moves_rig *rig, uint64_t round);
/* The models from that of round `from` to that of round `to`. */
struct fl_versions *moves_rig_versions(const struct moves_rig *rig, uint64_t from, uint64_t to);
/*
 * Does a client with the model of round `held` get that of round `newest`, bit for bit? False: the
 * server does not know what changed.
 */
bool moves_rig_reaches(const struct moves_rig *rig, const struct fl_versions *versions,
                       uint64_t held, uint64_t newest);

/* A difference as one who keeps none makes it; the errors of fl_versions_difference(). */
int moves_difference(const struct fl_versions *versions, const struct fl_layout *layout,
                     const float *newest, const uint8_t held[FL_DIGEST_SIZE], struct fl_blob **ret);
/* fl_moves_encode() and fl_moves_decode() of plain lists. */
int moves_encode(const int32_t *moves, size_t n, struct fl_buf *out);
int moves_decode(const uint8_t *data, size_t len, size_t n, int32_t *sum, size_t *ret_used,
                 struct fl_err *err);

#endif
