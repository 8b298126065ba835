#ifndef FL_SIM_WORLD_IMPL_H
#define FL_SIM_WORLD_IMPL_H

/*
 * Shared by the files of this folder only. Quantities are doubles in base units: bytes a second,
 * seconds, bytes, shares, samples a second.
 */

#include "libfl/base/rng.h"
#include "tools/fl_sim/world/world.h"

/* --- numbers (number.c) --- */

enum fl__unit_kind {
    FL__RATE,
    FL__TIME,
    FL__SIZE,
    FL__SHARE,
    FL__SPEED,  /* samples a second */
    FL__NUMBER, /* without unit */
};

/* Is `unit` a unit, and of which kind? `ret_factor` converts to the base unit. */
bool fl__unit_find(const char *text, enum fl__unit_kind *ret_kind, double *ret_factor);
/* "bit/s, kbit/s, …" and "a rate such as 2Mbit/s". */
const char *fl__unit_list(enum fl__unit_kind kind);
const char *fl__unit_words(enum fl__unit_kind kind);
/* A plain decimal number, finite. */
bool fl__number(const char *text, double *ret);
/* NULL, or why a number of base units is not valid for this kind: "is negative". */
const char *fl__refuses(enum fl__unit_kind kind, double value);
/* Clamps a drawn value to what this kind allows. */
double fl__within(enum fl__unit_kind kind, double value);
/* Parses "2Mbit/s". FL_ECONF with a message without file and line. */
FL_MUST_CHECK int fl__quantity(enum fl__unit_kind kind, const char *text, double *ret,
                               struct fl_err *err);
uint64_t fl__us(double seconds);

/* --- table files (world_table.c): docs/simulation.md#tables-and-traces --- */

#define FL__TABLE_MAX    ((size_t)256 << 20) /* bytes */
#define FL__COLUMNS_MAX  64
#define FL__NAME_OF_WHOM "client" /* the one column without a unit: whole numbers */

struct fl__column {
    char *name;
    enum fl__unit_kind kind;
    double factor;
};

struct fl__table {
    char *path;    /* for messages */
    char *source;  /* `source:` of its header */
    double length; /* seconds, `length:` of its header; 0: not given */
    struct fl__column columns[FL__COLUMNS_MAX];
    size_t n_columns, n_rows;
    double *cells;   /* rows one after the other, in base units */
    uint32_t *lines; /* of each row */
    struct fl__table *next;
};

/* FL_ECONF with file, line and reason. `data` need not end with NUL. */
FL_MUST_CHECK int fl__table_parse(const char *path, const void *data, size_t len,
                                  struct fl__table **ret, struct fl_err *err);
void fl__table_free(struct fl__table *table); /* NULL is allowed. */
/* n_columns when no column has that name. */
size_t fl__table_column(const struct fl__table *table, const char *name);

/* --- random streams and distributions (dist.c) --- */

/* A random stream of (seed, property, client). */
void fl__world_key(struct fl_rng *rng, uint64_t seed, unsigned what, uint64_t client);
/* The same for each (a, b): (round, attempt) or (period, 0). */
void fl__world_key2(struct fl_rng *rng, uint64_t seed, unsigned what, uint64_t client, uint64_t a,
                    uint64_t b);

enum fl__dist_kind {
    FL__CONSTANT,    /* a */
    FL__UNIFORM,     /* a to b */
    FL__LOGNORMAL,   /* median a, sigma b */
    FL__EXPONENTIAL, /* mean a */
    FL__CHOICE,
    FL__COLUMN
};

struct fl__dist {
    enum fl__dist_kind kind;
    enum fl__unit_kind unit;
    double a, b;
    double *values, *until; /* choice: of each its value, and its weight added to those before it */
    size_t n;
    const struct fl__table *table; /* borrowed */
    size_t column;
    bool in_order; /* client i has row i; false: its row is drawn */
};

void fl__dist_set(struct fl__dist *dist, enum fl__unit_kind unit, double value);
void fl__dist_done(struct fl__dist *dist);
/* All columns of one table give one client the same row. */
double fl__dist_draw(const struct fl__dist *dist, uint64_t seed, uint64_t client,
                     struct fl_rng *rng);

/* --- traces (trace.c) --- */

/* Values between two times; the rows of one trace client are sorted by time. */
struct fl__span {
    uint64_t from, until; /* us */
    double up, down;
};

struct fl__trace {
    struct fl__span *spans;
    size_t *first; /* index of the first row of each trace client, and one more */
    size_t n_clients;
    uint64_t length; /* us; where the trace repeats */
    bool has_up, has_down;
    bool repeat;
    bool in_order; /* client i is trace client i; false: it is drawn */
};

/* Requirements on a trace file. */
struct fl__trace_ask {
    bool rates;  /* a bandwidth trace; else one of availability */
    bool repeat; /* `length` was given */
    bool in_order;
    uint64_t n; /* clients of the network and device model */
    uint64_t horizon_us;
};

/* FL_ECONF with file, line and reason. Copies what it needs of the table. */
FL_MUST_CHECK int fl__trace_make(const struct fl__table *table, const struct fl__trace_ask *ask,
                                 struct fl__trace **ret, struct fl_err *err);
void fl__trace_free(struct fl__trace *trace);
/*
 * The row of a client that holds at `t`, or NULL between two rows and behind the last; `*ret_until`
 * is the end of that answer.
 */
const struct fl__span *fl__trace_at(const struct fl__trace *trace, uint64_t seed, uint64_t client,
                                    uint64_t t, uint64_t *ret_until);

/* --- the loaded model (world.c, load.c) --- */

/* Properties that are drawn. Their numbers are keys of the random streams: never change them. */
enum fl__prop {
    FL__UPLINK,
    FL__DOWNLINK,
    FL__LATENCY,
    FL__MEMORY,
    FL__TRAIN_FIXED,
    FL__TRAIN_SPEED,
    FL__TRAIN_JITTER,
    FL__DROP_CHANCE,
    FL__DROP_AT,
    FL__DROP_DISCONNECTED,
    FL__UP_FROM,
    FL__UP_FOR,
    FL__N_PROPS,
    /* Keys of other draws. */
    FL__DRAW_JITTER,
    FL__DRAW_ROW,
    FL__DRAW_TRACE,
    FL__DRAW_DROP
};

struct fl_world {
    uint64_t seed, n;
    struct fl__dist props[FL__N_PROPS];
    struct fl_world_server server;
    bool windows; /* up in a window of each period; false: always, or as the trace says */
    uint64_t period_us;
    struct fl__trace *availability, *bandwidth;
    struct fl__table *tables;
};

/* --- reading (prop.c, load.c) --- */

struct fl__loader {
    const struct fl_world_ask *ask;
    struct fl_world *world; /* owns the tables */
    struct fl_err *err;
};

/* A key that describes clients; `section` "" is the top level of `world:`. */
struct fl__prop_spec {
    const char *section, *key;
    enum fl__unit_kind unit;
    bool unlimited; /* the word that is accepted */
};

/* The table file that a node names; each is read once. */
FL_MUST_CHECK int fl__open_table(struct fl__loader *l, const struct fl_conf_node *node,
                                 const struct fl__table **ret);
/* `assign:` in_order or drawn; drawn is the default. */
FL_MUST_CHECK int fl__read_assign(struct fl__loader *l, const struct fl_conf_node *map,
                                  bool *ret_in_order);
FL_MUST_CHECK int fl__read_quantity(struct fl__loader *l, enum fl__unit_kind unit,
                                    const struct fl_conf_node *node, double *ret);
/* Replaces `ret`. */
FL_MUST_CHECK int fl__read_prop(struct fl__loader *l, const struct fl__prop_spec *prop,
                                const struct fl_conf_node *node, struct fl__dist *ret);
/* Reads `node` into a model that is ideal so far. */
FL_MUST_CHECK int fl__world_read(struct fl_world *world, const struct fl_world_ask *ask,
                                 struct fl_err *err);

#endif
