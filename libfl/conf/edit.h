#ifndef FL_CONF_EDIT_H
#define FL_CONF_EDIT_H

/*
 * Changing the tree of a YAML file before it is read, and writing it. A path is keys joined by
 * dots ("server.training.learning_rate"); what is missing on the way is made. Messages about a
 * changed value say who changed it in place of the file's line.
 *
 * Nodes that are replaced or dropped stay valid, outside the tree, as long as the document.
 * Errors: FL_ECONF with the place and what was expected, FL_ENOMEM. Threading: none.
 */

#include "libfl/conf/yaml.h"

struct fl_buf;

/* A document of its own: places, lines and keys as before. FL_ENOMEM. */
FL_MUST_CHECK int fl_conf_copy(const struct fl_conf_doc *from, struct fl_conf_doc **ret);
/*
 * Put YAML text at a path: `text` is "server.training.learning_rate=0.1", "model.layers=[dense 200,
 * relu]", with `who` "--set". Later messages begin with "--set server.training.learning_rate: ".
 */
FL_MUST_CHECK int fl_conf_assign(struct fl_conf_doc *doc, const char *who, const char *text,
                                 struct fl_err *err);
/* Put a copy of a node, of this document or another, at a path; it keeps its place and line. */
FL_MUST_CHECK int fl_conf_put(struct fl_conf_doc *doc, const char *path,
                              const struct fl_conf_node *value, struct fl_err *err);
/* Drop what stands at a path, if anything does. */
void fl_conf_drop(struct fl_conf_doc *doc, const char *path);

/*
 * The node as YAML text, one entry of a mapping on a line, lists of single values in brackets:
 * the same text for all files that mean the same in the same order. What it is parsed to is equal.
 * FL_ENOMEM, FL_ELIMIT of the buffer.
 */
FL_MUST_CHECK int fl_conf_write(const struct fl_conf_node *node, struct fl_buf *out);

#endif
