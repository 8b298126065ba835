#ifndef FL_CONF_CONF_IMPL_H
#define FL_CONF_CONF_IMPL_H

/* Private to libfl/conf. Messages made here have no place: the caller adds it. */

#include "libfl/base/buf.h"
#include "libfl/base/findings.h"
#include "libfl/conf/options.h"
#include "libfl/conf/yaml.h"

/* A parsed number; the type of the option selects the member. */
struct fl__opt_number {
    int64_t i;  /* bool, int, index of an enum */
    double f;   /* float */
    uint64_t u; /* bytes, ms, bytes/s */
};

/* The value of a field: its public type, but writable. */
union fl__opt_field {
    bool flag;
    int choice;
    int64_t i;
    double f;
    uint64_t u;
    char *text;
    struct {
        union {
            void *any;
            char **texts;
            int64_t *ints;
            struct fl_pair *pairs;
        } list;
        size_t n;
    } items;
};

struct fl_options {
    const struct fl_opt_spec *specs;
    size_t n;
    char *values; /* the struct of the table */
    bool given[]; /* not just the default */
};

/*
 * Maximum items of one list: far above any real setting, so that the option text of a peer stays
 * bounded.
 */
#define FL__OPT_ITEMS_MAX 65536

/* --- the value of a field; all zero: empty --- */

size_t fl__field_size(enum fl_opt_type type);
/* Frees the value of the field and zeroes it. */
void fl__field_clear(const struct fl_opt_spec *spec, union fl__opt_field *field);
/*
 * Appends an item to a list, or sets a key of a map: copies. FL_ELIMIT: more than
 * FL__OPT_ITEMS_MAX; FL_ENOMEM: the value is unchanged, but its memory may have moved.
 */
FL_MUST_CHECK int fl__field_put(const struct fl_opt_spec *spec, union fl__opt_field *field,
                                const char *key, const char *text, int64_t number);
/* FL_ENOMEM: `to` is a partial copy, which the caller clears. */
FL_MUST_CHECK int fl__field_copy(const struct fl_opt_spec *spec, const union fl__opt_field *from,
                                 union fl__opt_field *to);
/* True for lists and maps, the types with items. */
bool fl__opt_is_list(enum fl_opt_type type);
/* The expected form of one value in words: "a whole number, 1 to 9". Returns `out`. */
const char *fl__opt_describe(const struct fl_opt_spec *spec, char *out, size_t size);
/* The range alone, "1 to 9"; "" for none. Returns `out`. */
const char *fl__opt_range(const struct fl_opt_spec *spec, char *out, size_t size);
/* FL_ECONF "expected …, found …"; `found` is ready to print. */
int fl__opt_refuse(const struct fl_opt_spec *spec, const char *found, struct fl_err *err);
/* Checks one value (of a list: one item) and parses its number. Strings pass unchanged. */
FL_MUST_CHECK int fl__opt_parse(const struct fl_opt_spec *spec, const char *text,
                                struct fl__opt_number *ret, struct fl_err *err);
/* The shortest text that reads back as the same value. Returns `out`. */
const char *fl__opt_format(enum fl_opt_type type, const struct fl__opt_number *number, char *out,
                           size_t size);

/*
 * FL_ECONF "unknown key 'x', did you mean 'y'?", or a list of the known ones; `what` is "key" or
 * "option".
 */
int fl__opt_unknown(const char *what, const char *name, const char *const *known, size_t n,
                    struct fl_err *err);

const struct fl_opt_spec *fl__opt_find(const struct fl_opt_spec *specs, const char *name);
/* As fl_options_set(), with a bare message. */
FL_MUST_CHECK int fl__options_set(struct fl_options *options, const struct fl_opt_spec *spec,
                                  const char *text, struct fl_err *err);
/* Appends to a list, or sets a key of a map. The first call replaces the default. */
FL_MUST_CHECK int fl__options_add(struct fl_options *options, const struct fl_opt_spec *spec,
                                  const char *key, const char *text, struct fl_err *err);
/* Clears a list or map and marks it as given. */
void fl__options_clear(struct fl_options *options, const struct fl_opt_spec *spec);

/* --- the tree of a file; made in yaml.c, changed in edit.c, read through tree.c --- */

/*
 * Configuration files are written by hand: these limits are far above any real file, and bound the
 * memory for a hostile or wrong file to tens of MiB.
 */
#define FL__CONF_MAX_BYTES   (1u << 20)
#define FL__CONF_MAX_DEPTH   32
#define FL__CONF_MAX_NODES   65536
#define FL__CONF_MAX_ENTRIES 1024 /* of one mapping: duplicates are found by comparing all */
#define FL__CONF_MAX_KEY     255
#define FL__CONF_MAX_PATH    1023

/* A place other than a line of the document's file, owned by the document. */
struct fl__conf_place {
    struct fl__conf_place *next;
    char text[];
};

struct fl_conf_node {
    const struct fl_conf_doc *doc;
    struct fl_conf_node *next; /* of the document, for freeing */
    enum fl_conf_kind kind;
    bool null;
    const char *place; /* NULL: the document's file */
    size_t line;       /* 0: the place has no lines */
    char *path;
    char *text;                /* scalars */
    char **keys;               /* maps */
    struct fl_conf_node **all; /* entries of a map, items of a sequence */
    size_t n;
    size_t cap;
};

struct fl_conf_doc {
    char *name;
    struct fl_conf_node *root;
    struct fl_conf_node *nodes;
    size_t n_nodes;
    struct fl__conf_place *places;
    struct fl_findings *all; /* borrowed; NULL: reading stops at the first error */
};

/*
 * Parses the YAML text into the tree of the document. `bare`: a value of any kind, whose messages
 * have no line. After an error the caller frees the document.
 */
FL_MUST_CHECK int fl__conf_build(struct fl_conf_doc *doc, const void *data, size_t len, bool bare,
                                 struct fl_err *err);
/* Creates an empty document. FL_ENOMEM. */
FL_MUST_CHECK int fl__conf_new(const char *name, struct fl_conf_doc **ret);
/*
 * Creates a node that is not in the tree yet; `parent` (NULL: the root) and `key` (NULL for an
 * item, which is appended) make its path. FL_ELIMIT: more than FL__CONF_MAX_NODES, FL_ENOMEM.
 */
FL_MUST_CHECK int fl__conf_node(struct fl_conf_doc *doc, enum fl_conf_kind kind,
                                const struct fl_conf_node *parent, const char *key,
                                struct fl_conf_node **ret);
/* Appends the node to its parent; copies the key. FL_ENOMEM. */
FL_MUST_CHECK int fl__conf_attach(struct fl_conf_node *parent, const char *key,
                                  struct fl_conf_node *node);
/* The index of an entry; n: it does not exist. */
size_t fl__conf_index(const struct fl_conf_node *map, const char *key);
/* "file:line: " or the place that replaces it. Returns `out`. */
const char *fl__conf_at(const struct fl_conf_node *node, char *out, size_t size);

/* As fl_conf_apply(); rows with one of the flags in `optional` need not be given. */
FL_MUST_CHECK int fl__conf_apply(const struct fl_conf_doc *doc, const struct fl_conf_node *map,
                                 const char *where, const char *const *others, unsigned optional,
                                 struct fl_options *options, struct fl_err *err);
/* Plain null or no value at all: "key:", "~", "null". */
bool fl__conf_is_null(const struct fl_conf_node *node);
const char *fl__conf_name(const struct fl_conf_doc *doc);

#endif
