#ifndef FL_SIM_WORLD_H
#define FL_SIM_WORLD_H

/*
 * The network and device model of a simulation: properties of clients, of their links and of the
 * server's link (docs/simulation.md#worlds). A loaded model is a pure function of (seed, client,
 * time, round): no I/O and no state. Results do not depend on the order of queries, and client i is
 * the same whatever the number of clients is. Memory does not grow with the number of clients,
 * except for the rows of trace files.
 *
 * Directions are named after the sender: a client's uplink carries uploads and its downlink
 * downloads; the server's uplink carries what clients download and its downlink what they upload.
 * Rates are bytes a second (0: unlimited), times microseconds, shares 0 to 1.
 *
 * Threading: a loaded model may be queried from any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/conf/yaml.h"

struct fl_world;

struct fl_world_ask {
    /* `world:` of an experiment: a name, or a mapping. NULL: ideal. Borrowed for the call. */
    const struct fl_conf_node *node;
    /* base folder of relative paths of tables and traces; NULL: the current folder */
    const char *dir;
    uint64_t seed;
    uint64_t n;          /* number of clients */
    uint64_t horizon_us; /* latest end of the experiment, us; 0: not known */
};

struct fl_world_client {
    double up, down;      /* unless a trace overrides them: fl_world_link() */
    uint64_t latency_us;  /* one way */
    uint64_t train_us;    /* of each training, independent of the samples */
    double samples_per_s; /* 0: samples take no time */
    double jitter;        /* of the training time: sigma of a lognormal factor with median 1 */
    uint64_t memory;      /* bytes; 0: unlimited */
    double drop_chance;   /* of one upload */
};

/* The server's own link, shared by all transfers of the moment. */
struct fl_world_server {
    double up, down;
};

/*
 * FL_ECONF with file, line and reason; FL_ENOENT, FL_EIO and FL_ELIMIT of a table or trace file;
 * FL_ENOMEM.
 */
FL_MUST_CHECK int fl_world_load(const struct fl_world_ask *ask, struct fl_world **ret,
                                struct fl_err *err);
void fl_world_free(struct fl_world *world); /* NULL is allowed. */

uint64_t fl_world_clients(const struct fl_world *world);
struct fl_world_server fl_world_server(const struct fl_world *world);
/* Below, `client` is less than fl_world_clients(). */
void fl_world_client(const struct fl_world *world, uint64_t client, struct fl_world_client *ret);
/*
 * The client's rates at `t_us`, valid at least until `*ret_until_us` (UINT64_MAX: for ever); query
 * again then.
 */
void fl_world_link(const struct fl_world *world, uint64_t client, uint64_t t_us, double *ret_up,
                   double *ret_down, uint64_t *ret_until_us);
/* Duration of a training of `samples` samples in this round. */
uint64_t fl_world_train_us(const struct fl_world *world, uint64_t client, uint64_t round,
                           uint64_t samples);
/*
 * Is the client up at `t_us`? The answer is valid at least until `ret_until_us` (later than t_us;
 * UINT64_MAX: for ever); query again then.
 */
bool fl_world_up(const struct fl_world *world, uint64_t client, uint64_t t_us,
                 uint64_t *ret_until_us);
/*
 * Does the client drop in the middle of its upload of this attempt? If so, after `ret_share` of the
 * bytes, and it stays disconnected for `ret_away_us`.
 */
bool fl_world_drop(const struct fl_world *world, uint64_t client, uint64_t round, uint64_t attempt,
                   double *ret_share, uint64_t *ret_away_us);

/* Named models, in the order of the documents; NULL past the last. */
struct fl_world_name {
    const char *name, *help; /* one line */
    const char *source;      /* source of the figures */
    const char *yaml;        /* value of `world:` that the name stands for */
};
const struct fl_world_name *fl_world_named(size_t i);

#endif
