#ifndef FL_CONF_EDIT_H
#define FL_CONF_EDIT_H

/*
 * Changes the tree of a YAML file before it is read, and writes it. A path is keys joined by dots
 * ("server.training.learning_rate"); missing sections on the way are created. Messages about a
 * changed value name the origin of the change in place of the file's line.
 *
 * Replaced or dropped nodes stay valid, outside the tree, as long as the document. Errors: FL_ECONF
 * with the place and what was expected, FL_ENOMEM. Threading: none.
 */

#include "libfl/conf/yaml.h"

struct fl_buf;

/* An independent copy of the document: places, lines and keys are kept. FL_ENOMEM. */
FL_MUST_CHECK int fl_conf_copy(const struct fl_conf_doc *from, struct fl_conf_doc **ret);
/*
 * Sets a path from YAML text: `text` is "server.training.learning_rate=0.1" or "model.layers=[dense
 * 200, relu]", with `who` "--set". Later messages begin with "--set server.training.learning_rate:
 * ".
 */
FL_MUST_CHECK int fl_conf_assign(struct fl_conf_doc *doc, const char *who, const char *text,
                                 struct fl_err *err);
/*
 * Sets a path to a copy of a node, of this document or another; the copy has the same place and
 * line.
 */
FL_MUST_CHECK int fl_conf_put(struct fl_conf_doc *doc, const char *path,
                              const struct fl_conf_node *value, struct fl_err *err);
/* Drops the node at a path, if there is one. */
void fl_conf_drop(struct fl_conf_doc *doc, const char *path);

/*
 * Writes the node as YAML text, one entry of a mapping on a line, lists of single values in
 * brackets: files with equal contents in the same order give the same text. Parsing the text gives
 * an equal tree. FL_ENOMEM, FL_ELIMIT of the buffer.
 */
FL_MUST_CHECK int fl_conf_write(const struct fl_conf_node *node, struct fl_buf *out);

#endif
