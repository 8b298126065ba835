/* What clients may fetch in a round, told to the network. */

#include <stdlib.h>
#include <string.h>

#include "server/daemon/driver_impl.h"

void fl_driver_bundle(struct fl_driver *driver, const char *name, uint64_t round,
                      struct fl_blob *blob)
{
    struct fl_down *down = fl_down_new(driver, FL_DOWN_BUNDLE);

    down->text = fl_down_text(driver, name);
    down->client = FL_EVERYBODY;
    down->round = round;
    down->bytes.blob = blob != NULL ? fl_blob_ref(blob) : NULL;
    fl_driver_down(driver, down);
}

struct opening {
    struct fl_driver *driver;
    uint64_t round;
};

static void tell(void *ctx, const struct fl_bundle *bundle)
{
    const struct opening *o = ctx;
    uint32_t client =
        bundle->client != NULL ? fl_coord_find(o->driver->coord, bundle->client) : FL_EVERYBODY;
    struct fl_down *down;

    if (bundle->client != NULL && client == UINT32_MAX) {
        return; /* It was forgotten since. */
    }
    down = fl_down_new(o->driver, FL_DOWN_BUNDLE);
    down->text = fl_str_dup(bundle->name);
    down->client = client;
    down->round = o->round;
    down->bytes = fl_bytes_ref(&bundle->bytes);
    down->has_digest = bundle->digest != NULL;
    if (down->has_digest) {
        (void)memcpy(down->digest, bundle->digest, sizeof(down->digest));
    }
    fl_driver_down(o->driver, down);
}

void fl_driver_round_open(struct fl_driver *driver, const struct fl_effect *e)
{
    struct opening o = {driver, e->round};

    if (fl_bundles_open(&driver->federation, &driver->progress, e->round, &e->size, tell, &o) !=
        FL_OK) {
        fl_serverd_no_memory(driver->srv, "what clients are told of the server's state");
    }
}

void fl_driver_round_bundles_closed(struct fl_driver *driver, uint64_t round)
{
    struct fl_bundle_name list[FL_BUNDLES_MAX];
    size_t n = fl_bundles_of(driver->federation.strategy, list);
    size_t i;

    for (i = 0; i < n; i++) {
        if (list[i].kind != FL_BUNDLE_IS_MIXTURE) { /* Which is known by its round. */
            fl_driver_bundle(driver, list[i].name, round, NULL);
        }
    }
    fl_driver_bundle(driver, FL_BUNDLE_CANDIDATE, round, NULL);
}
