#ifndef FL_CONF_YAML_H
#define FL_CONF_YAML_H

/*
 * A YAML file as a tree whose nodes know their line, and option tables applied to it.
 *
 * Limits: file size, depth and node count are bounded (FL_ECONF). Aliases and
 * anchors, multiple documents and duplicate keys are refused.
 * Errors: FL_ECONF with "file:line: key 'a.b': what was expected, what was found".
 * Threading: none; used at start-up and reload.
 */

#include "libfl/conf/options.h"

enum fl_conf_kind { FL_CONF_SCALAR, FL_CONF_MAP, FL_CONF_SEQ };

struct fl_conf_node;
struct fl_conf_doc;
struct fl_findings;

FL_MUST_CHECK int fl_conf_load(const char *path, struct fl_conf_doc **ret, struct fl_err *err);
/* The same from memory; `name` stands for the file in messages. */
FL_MUST_CHECK int fl_conf_parse(const char *name, const void *data, size_t len,
                                struct fl_conf_doc **ret, struct fl_err *err);
void fl_conf_free(struct fl_conf_doc *doc);
/*
 * From now on an error of one key is added to `all` (borrowed, must outlive the reading) and
 * reading continues with the next key: it returns FL_OK with the default in place of an invalid
 * value, and the caller checks fl_findings_first(). NULL, the initial state: reading stops at the
 * first error.
 */
void fl_conf_collect(struct fl_conf_doc *doc, struct fl_findings *all);

const struct fl_conf_node *fl_conf_root(const struct fl_conf_doc *doc);
enum fl_conf_kind fl_conf_kind(const struct fl_conf_node *node);
size_t fl_conf_line(const struct fl_conf_node *node);
/* Full key of the node from the root, as "round.deadline" or "model.layers[2]". */
const char *fl_conf_path(const struct fl_conf_node *node);
/* Scalar text; NULL for other kinds. */
const char *fl_conf_text(const struct fl_conf_node *node);
/* Entries of a map or items of a sequence; 0 for a scalar. */
size_t fl_conf_size(const struct fl_conf_node *node);
const struct fl_conf_node *fl_conf_at(const struct fl_conf_node *node, size_t i);
const char *fl_conf_key(const struct fl_conf_node *map, size_t i);
/* Entry of a map, or NULL; `map` may be NULL. */
const struct fl_conf_node *fl_conf_get(const struct fl_conf_node *map, const char *key);

/* Sets the message "file:line: key 'path': ..." in `err`; returns FL_ECONF. */
FL_PRINTF(3, 4)
int fl_conf_error(const struct fl_conf_node *node, struct fl_err *err, const char *fmt, ...);

/*
 * Fills `options` from the entries of `map` (NULL: nothing given, so only the required keys are
 * checked; `where` then names the section). Keys in `others` (NULL-terminated, may be NULL) are
 * left for the caller; every other unknown key is rejected with the nearest known one.
 */
FL_MUST_CHECK int fl_conf_apply(const struct fl_conf_doc *doc, const struct fl_conf_node *map,
                                const char *where, const char *const *others,
                                struct fl_options *options, struct fl_err *err);

/*
 * Rejects the entries of `map` whose key is not in `known` (NULL-terminated), with the nearest
 * known one. For maps whose entries are sections.
 */
FL_MUST_CHECK int fl_conf_only(const struct fl_conf_node *map, const char *const *known,
                               struct fl_err *err);

/*
 * The reference of a table as Markdown table rows ("| `name` | type | default |
 * range | help |"), appended to `out`.
 */
struct fl_buf;
FL_MUST_CHECK int fl_conf_reference(const struct fl_opt_spec *specs, const char *prefix,
                                    struct fl_buf *out);
/*
 * The same of the rows of one tier: FL_OPT_BASIC, FL_OPT_DEBUG, or 0 for the advanced ones, which
 * have neither flag.
 */
FL_MUST_CHECK int fl_conf_reference_of(const struct fl_opt_spec *specs, const char *prefix,
                                       unsigned tier, struct fl_buf *out);

#endif
