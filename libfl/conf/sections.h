#ifndef FL_CONF_SECTIONS_H
#define FL_CONF_SECTIONS_H

/*
 * A configuration file whose sections fill structs. A daemon lists its sections once; reader,
 * checker and reference use that list.
 *
 * Ownership: a struct fl_conf_file owns the tree of the file and the structs of the sections.
 * Errors: FL_ECONF with "file:line: key 'a.b': what was expected, what was found". Threading:
 * read-only once it was read.
 */

#include "libfl/conf/yaml.h"

struct fl_conf_section {
    /* key in the root, "round.eligible": the key of a section that stands before it; "": the keys
       of the root itself */
    const char *name;
    const struct fl_opt_spec *specs;
    size_t offset;  /* offset of the pointer to the section's struct in the filled struct */
    size_t size;    /* of the section's struct */
    unsigned flags; /* the owner's */
};

/*
 * The section `name` bound by `table` to a T, to which the field of S points. A field of another
 * type does not compile; a table for a struct of another size is found when it is first read.
 */
/* clang-format off */
#define FL_CONF_SECTION(section, table, S, field, T) \
    .name = section, .specs = table, .size = sizeof(T), \
    .offset = offsetof(S, field) + _Generic(((S *)0)->field, const T *: 0)
/* clang-format on */

struct fl_conf_file;
struct fl_buf;
struct fl_findings;

/*
 * Read `path` through `sections` (ended by a row without name) and point the fields of `base` at
 * the structs. `others` (NULL-terminated, may be NULL): keys of the root that are the caller's.
 * `all`: as fl_conf_collect(), may be NULL.
 */
FL_MUST_CHECK int fl_conf_read(const char *path, const struct fl_conf_section *sections,
                               const char *const *others, struct fl_findings *all, void *base,
                               struct fl_conf_file **ret, struct fl_err *err);
/* A mapping inside a document. */
struct fl_conf_part {
    const struct fl_conf_doc *doc;  /* the caller's; must outlive what is read from it */
    const struct fl_conf_node *map; /* NULL: not given */
    unsigned optional;              /* rows with one of these owner's flags need not be given */
};

/* As fl_conf_read(). */
FL_MUST_CHECK int fl_conf_read_map(const struct fl_conf_part *part,
                                   const struct fl_conf_section *sections,
                                   const char *const *others, void *base, struct fl_conf_file **ret,
                                   struct fl_err *err);
/* Also frees the structs that `base` points to. */
void fl_conf_file_free(struct fl_conf_file *file);
const struct fl_conf_doc *fl_conf_file_doc(const struct fl_conf_file *file);
/* The mapping that was read: the root of a file; NULL: not given. */
const struct fl_conf_node *fl_conf_file_map(const struct fl_conf_file *file);
/* The options of the i-th section, for code that iterates over them. */
const struct fl_options *fl_conf_file_options(const struct fl_conf_file *file, size_t i);

/*
 * The node of a field's key in the file, for messages: the section, or the whole file, when the key
 * is not given. `field` points into a section's struct.
 */
const struct fl_conf_node *fl_conf_field(const struct fl_conf_file *file, const void *field);
/*
 * Attributes an error to a key: puts file, line and key before the message of `err` and keeps the
 * code; returns `rv`. FL_ENOMEM is not attributed and stays unchanged.
 */
int fl_conf_blame(const struct fl_conf_file *file, const void *field, int rv, struct fl_err *err);
/* The same for a section as a whole, by its struct. */
const struct fl_conf_node *fl_conf_section(const struct fl_conf_file *file, const void *values);

/*
 * Appends the given keys that have one of `flags` (in their row or section), separated by ", ",
 * each with `prefix` ("server."); a section that has the flag itself is listed by its name alone.
 * FL_ENOMEM, FL_ELIMIT of the buffer.
 */
FL_MUST_CHECK int fl_conf_given(const struct fl_conf_file *file, unsigned flags, const char *prefix,
                                struct fl_buf *out);

/*
 * Flags of the row of `key` ("round.retry") together with its section's, or of a section ("round"):
 * the owner's and enum fl_opt_flags. 0 when there is none.
 */
unsigned fl_conf_key_flags(const struct fl_conf_section *sections, const char *key);

/* The reference of all sections, as a Markdown table with its head for each tier; appends. */
FL_MUST_CHECK int fl_conf_sections_reference(const struct fl_conf_section *sections,
                                             struct fl_buf *out);

#endif
