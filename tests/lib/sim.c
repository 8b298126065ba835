/*
 * Deterministic simulation of nodes, links and disks for tests (sim.h): runs the events of one
 * agenda on the caller's thread. No real time, threads or I/O.
 */
#include "tests/lib/sim.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/sim/agenda.h"

/* At equal time: rank1 of an event is its node, rank2 its kind. */
enum kind { TIMER, DISK, NETWORK };

/* The payload of an event; owns its data. */
struct sim_event {
    uint64_t life;  /* generation of the node; events of an older one are ignored */
    uint64_t tag;   /* timer, disk */
    uint32_t peer;  /* network */
    uint64_t epoch; /* of the link, for messages */
    bool is_link;   /* network: the link went up or down; not a message */
    bool up;
    bool repair; /* network: a broken link may be up again; not reported to nodes */
    void *data;
    size_t len;
};

struct record {
    void *data;
    size_t len;
};

struct disk {
    uint64_t latency_ms;
    uint64_t last_ms; /* when the newest pending write becomes durable */
    struct record *records;
    size_t n;
    size_t cap;
    uint64_t crash_in; /* writes until the crash; 0: none */
    bool crash_after;
};

struct node {
    struct fl_sim_node_cbs cbs;
    void *ctx;
    bool alive;
    uint64_t life;
    struct disk disk;
};

/* Direction 0 is from the lower node to the higher. */
struct link {
    uint32_t a, b;
    struct fl_sim_link conf;
    bool up;
    bool cut;
    uint64_t broken_until;
    uint64_t epoch; /* number of times it went down */
    uint64_t busy_ms[2];
    uint64_t last_ms[2];
};

struct fl_sim {
    uint64_t now;
    struct fl_rng rng;
    struct fl_agenda agenda;
    struct node *nodes;
    uint32_t n_nodes;
    struct link **links; /* by (a, b) */
    size_t n_links;
};

static void *sim_grow_array(void *array, size_t bytes)
{
    void *p = realloc(array, bytes);

    FL_REQUIRE(p != NULL);
    return p;
}

static void *sim_copy_of(const void *data, size_t len)
{
    void *p = sim_grow_array(NULL, len > 0 ? len : 1);

    if (len > 0) {
        (void)memcpy(p, data, len);
    }
    return p;
}

/* Copies `what`, takes its data. */
static void sim_schedule_event(struct fl_sim *sim, uint64_t at, uint32_t node, enum kind kind,
                               const struct sim_event *what)
{
    struct fl_agenda_event e = {.at = at, .rank1 = node, .rank2 = kind};

    e.data = sim_copy_of(what, sizeof(*what));
    FL_REQUIRE(fl_agenda_push(&sim->agenda, &e) == FL_OK);
}

static void sim_free_event(struct sim_event *what)
{
    free(what->data);
    free(what);
}

int fl_sim_create(uint64_t seed, struct fl_sim **ret)
{
    struct fl_sim *sim = calloc(1, sizeof(*sim));

    if (sim == NULL) {
        return FL_ENOMEM;
    }
    fl_rng_seed(&sim->rng, seed);
    *ret = sim;
    return FL_OK;
}

void fl_sim_free(struct fl_sim *sim)
{
    struct fl_agenda_event e;
    size_t i;
    size_t k;

    if (sim == NULL) {
        return;
    }
    for (i = 0; i < sim->n_nodes; i++) {
        for (k = 0; k < sim->nodes[i].disk.n; k++) {
            free(sim->nodes[i].disk.records[k].data);
        }
        free(sim->nodes[i].disk.records);
    }
    for (i = 0; i < sim->n_links; i++) {
        free(sim->links[i]);
    }
    free(sim->links);
    free(sim->nodes);
    while (fl_agenda_pop(&sim->agenda, &e)) {
        sim_free_event(e.data);
    }
    fl_agenda_done(&sim->agenda);
    free(sim);
}

int fl_sim_add(struct fl_sim *sim, const struct fl_sim_node_cbs *cbs, void *ctx, uint32_t *ret_node)
{
    struct node *nodes = realloc(sim->nodes, (sim->n_nodes + (size_t)1) * sizeof(*nodes));

    if (nodes == NULL) {
        return FL_ENOMEM;
    }
    sim->nodes = nodes;
    nodes[sim->n_nodes] = (struct node){.cbs = *cbs, .ctx = ctx};
    *ret_node = sim->n_nodes++;
    return FL_OK;
}

uint64_t fl_sim_now(const struct fl_sim *sim)
{
    return sim->now;
}

/* --- links --- */

static size_t link_position(const struct fl_sim *sim, uint32_t a, uint32_t b)
{
    size_t low = 0;
    size_t high = sim->n_links;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct link *l = sim->links[mid];

        if (l->a < a || (l->a == a && l->b < b)) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

static struct link *find_link(const struct fl_sim *sim, uint32_t x, uint32_t y)
{
    uint32_t a = x < y ? x : y;
    uint32_t b = x < y ? y : x;
    size_t at = link_position(sim, a, b);

    return at < sim->n_links && sim->links[at]->a == a && sim->links[at]->b == b ? sim->links[at]
                                                                                 : NULL;
}

static void sim_notify_link(struct fl_sim *sim, const struct link *l, uint32_t node, uint32_t peer)
{
    struct sim_event what = {
        .life = sim->nodes[node].life,
        .peer = peer,
        .is_link = true,
        .up = l->up,
    };

    if (sim->nodes[node].alive) {
        sim_schedule_event(sim, sim->now + l->conf.latency_ms, node, NETWORK, &what);
    }
}

/* Update the state of a link; both ends are notified of a change. */
static void update_link(struct fl_sim *sim, struct link *l)
{
    bool up =
        sim->nodes[l->a].alive && sim->nodes[l->b].alive && !l->cut && sim->now >= l->broken_until;

    if (up == l->up) {
        return;
    }
    l->up = up;
    l->epoch += !up;
    l->busy_ms[0] = l->busy_ms[1] = l->last_ms[0] = l->last_ms[1] = sim->now;
    sim_notify_link(sim, l, l->a, l->b);
    sim_notify_link(sim, l, l->b, l->a);
}

static void update_links_of(struct fl_sim *sim, uint32_t node)
{
    size_t i;

    for (i = 0; i < sim->n_links; i++) {
        if (sim->links[i]->a == node || sim->links[i]->b == node) {
            update_link(sim, sim->links[i]);
        }
    }
}

static void break_link(struct fl_sim *sim, struct link *l)
{
    struct sim_event repair = {.peer = l->b, .repair = true};

    l->broken_until = sim->now + 2 * l->conf.latency_ms + 1;
    update_link(sim, l);
    sim_schedule_event(sim, l->broken_until, l->a, NETWORK, &repair);
}

void fl_sim_set_link(struct fl_sim *sim, uint32_t a, uint32_t b, const struct fl_sim_link *conf)
{
    struct link *l = find_link(sim, a, b);

    FL_REQUIRE(a != b && a < sim->n_nodes && b < sim->n_nodes);
    if (l == NULL) {
        uint32_t low = a < b ? a : b;
        uint32_t high = a < b ? b : a;
        size_t at = link_position(sim, low, high);

        l = sim_grow_array(NULL, sizeof(*l));
        *l = (struct link){.a = low, .b = high};
        sim->links = sim_grow_array(sim->links, (sim->n_links + 1) * sizeof(struct link *));
        (void)memmove(&sim->links[at + 1], &sim->links[at],
                      (sim->n_links - at) * sizeof(struct link *));
        sim->links[at] = l;
        sim->n_links++;
    }
    l->conf = *conf;
    update_link(sim, l);
}

void fl_sim_partition(struct fl_sim *sim, uint32_t a, uint32_t b, bool cut)
{
    struct link *l = find_link(sim, a, b);

    if (l != NULL) {
        l->cut = cut;
        update_link(sim, l);
    }
}

void fl_sim_send(struct fl_sim *sim, uint32_t from, uint32_t to, const void *data, size_t len)
{
    struct link *l = find_link(sim, from, to);
    struct sim_event what = {.peer = from, .len = len};
    int dir = from < to ? 0 : 1;
    uint64_t at;

    if (l == NULL || !l->up) {
        return;
    }
    if (l->conf.break_rate > 0 && fl_rng_unit(&sim->rng) < l->conf.break_rate) {
        break_link(sim, l);
        return;
    }
    at = l->busy_ms[dir] > sim->now ? l->busy_ms[dir] : sim->now;
    if (l->conf.bytes_per_s > 0) {
        at += ((uint64_t)len * 1000 + l->conf.bytes_per_s - 1) / l->conf.bytes_per_s;
    }
    l->busy_ms[dir] = at;
    at += l->conf.latency_ms;
    at += l->conf.jitter_ms > 0 ? fl_rng_below(&sim->rng, l->conf.jitter_ms + 1) : 0;
    at = at > l->last_ms[dir] ? at : l->last_ms[dir];
    l->last_ms[dir] = at;
    what.life = sim->nodes[to].life;
    what.epoch = l->epoch;
    what.data = sim_copy_of(data, len);
    sim_schedule_event(sim, at, to, NETWORK, &what);
}

/* --- timers, disks --- */

void fl_sim_timer(struct fl_sim *sim, uint32_t node, uint64_t at_ms, uint64_t tag)
{
    struct sim_event what = {.life = sim->nodes[node].life, .tag = tag};

    sim_schedule_event(sim, at_ms > sim->now ? at_ms : sim->now, node, TIMER, &what);
}

void fl_sim_set_disk_latency(struct fl_sim *sim, uint32_t node, uint64_t latency_ms)
{
    sim->nodes[node].disk.latency_ms = latency_ms;
}

void fl_sim_write(struct fl_sim *sim, uint32_t node, uint64_t tag, const void *data, size_t len)
{
    struct disk *disk = &sim->nodes[node].disk;
    struct sim_event what = {
        .life = sim->nodes[node].life,
        .tag = tag,
        .data = sim_copy_of(data, len),
        .len = len,
    };
    uint64_t at = sim->now + disk->latency_ms;

    /* in order, also after a change of the latency */
    at = at > disk->last_ms ? at : disk->last_ms;
    disk->last_ms = at;
    sim_schedule_event(sim, at, node, DISK, &what);
}

size_t fl_sim_disk_count(const struct fl_sim *sim, uint32_t node)
{
    return sim->nodes[node].disk.n;
}

const void *fl_sim_disk_record(const struct fl_sim *sim, uint32_t node, size_t i, size_t *ret_len)
{
    const struct disk *disk = &sim->nodes[node].disk;

    FL_REQUIRE(i < disk->n);
    *ret_len = disk->records[i].len;
    return disk->records[i].data;
}

void fl_sim_crash_at_write(struct fl_sim *sim, uint32_t node, uint64_t n, bool after)
{
    sim->nodes[node].disk.crash_in = n;
    sim->nodes[node].disk.crash_after = after;
}

/* Takes the data of `what`. False: the node crashed at or before this write. */
static bool sim_complete_write(struct fl_sim *sim, uint32_t node, struct sim_event *what)
{
    struct disk *disk = &sim->nodes[node].disk;
    bool crash = disk->crash_in == 1;

    disk->crash_in -= disk->crash_in > 0;
    if (crash && !disk->crash_after) {
        fl_sim_crash(sim, node);
        return false;
    }
    if (disk->n == disk->cap) {
        disk->cap = disk->cap > 0 ? 2 * disk->cap : 16;
        disk->records = sim_grow_array(disk->records, disk->cap * sizeof(*disk->records));
    }
    disk->records[disk->n++] = (struct record){.data = what->data, .len = what->len};
    what->data = NULL;
    if (crash) {
        fl_sim_crash(sim, node);
    }
    return !crash;
}

/* --- control by the test --- */

void fl_sim_crash(struct fl_sim *sim, uint32_t node)
{
    struct node *n = &sim->nodes[node];

    if (!n->alive) {
        return;
    }
    n->alive = false;
    n->life++;
    n->disk.last_ms = 0;
    if (n->cbs.on_crash != NULL) {
        n->cbs.on_crash(n->ctx, sim, node);
    }
    update_links_of(sim, node);
}

void fl_sim_start(struct fl_sim *sim, uint32_t node)
{
    struct node *n = &sim->nodes[node];

    if (n->alive) {
        return;
    }
    n->alive = true;
    n->life++;
    if (n->cbs.on_start != NULL) {
        n->cbs.on_start(n->ctx, sim, node);
    }
    update_links_of(sim, node);
}

bool fl_sim_alive(const struct fl_sim *sim, uint32_t node)
{
    return sim->nodes[node].alive;
}

static void sim_run_network(struct fl_sim *sim, uint32_t node, const struct sim_event *what)
{
    const struct node *n = &sim->nodes[node];
    const struct link *l = find_link(sim, node, what->peer);

    if (what->is_link) {
        if (n->cbs.on_link != NULL) {
            n->cbs.on_link(n->ctx, sim, node, what->peer, what->up);
        }
    } else if (l->up && l->epoch == what->epoch && n->cbs.on_message != NULL) {
        n->cbs.on_message(n->ctx, sim, node, what->peer, what->data, what->len);
    }
}

static void sim_run_event(struct fl_sim *sim, uint32_t node, enum kind kind, struct sim_event *what)
{
    const struct node *n = &sim->nodes[node];

    if (what->repair) {
        update_link(sim, find_link(sim, node, what->peer));
        return;
    }
    if (!n->alive || n->life != what->life) {
        return;
    }
    switch (kind) {
    case TIMER:
        if (n->cbs.on_timer != NULL) {
            n->cbs.on_timer(n->ctx, sim, node, what->tag);
        }
        break;
    case DISK:
        if (sim_complete_write(sim, node, what) && n->cbs.on_disk != NULL) {
            n->cbs.on_disk(n->ctx, sim, node, what->tag);
        }
        break;
    case NETWORK:
        sim_run_network(sim, node, what);
        break;
    }
}

bool fl_sim_step(struct fl_sim *sim)
{
    struct fl_agenda_event e;

    if (!fl_agenda_pop(&sim->agenda, &e)) {
        return false;
    }
    sim->now = e.at;
    sim_run_event(sim, e.rank1, (enum kind)e.rank2, e.data);
    sim_free_event(e.data);
    return true;
}
