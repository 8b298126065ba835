/* Records that are being written while the phase goes on: deletions of clients, accepted
   updates, quarantines, the pause. */
#include <string.h>

#include "server/core/coord_impl.h"

uint64_t fl__coord_pend(struct fl_coord *c, enum fl__pending_kind kind, uint32_t client)
{
    uint64_t seq = ++c->seq;

    FL_REQUIRE(c->n_pending < c->cap_pending);
    c->pending[c->n_pending++] = (struct fl__pending){.seq = seq, .kind = kind, .client = client};
    return seq;
}

bool fl__coord_unpend(struct fl_coord *c, uint64_t seq, struct fl__pending *ret)
{
    size_t low = 0;
    size_t high = c->n_pending;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (c->pending[mid].seq < seq) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (low == c->n_pending || c->pending[low].seq != seq) {
        return false;
    }
    *ret = c->pending[low];
    c->n_pending--;
    (void)memmove(&c->pending[low], &c->pending[low + 1],
                  (c->n_pending - low) * sizeof(*c->pending));
    return true;
}

void fl__coord_unpend_updates(struct fl_coord *c)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < c->n_pending; i++) {
        if (c->pending[i].kind != FL__PENDING_UPDATE) {
            c->pending[kept++] = c->pending[i];
        }
    }
    c->n_pending = kept;
}
