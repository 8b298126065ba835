#ifndef FL_JSON_ADMIN_JSON_H
#define FL_JSON_ADMIN_JSON_H

/*
 * The JSON documents about a federation: what `flctl --json` prints and the HTTP port of a server
 * answers (docs/http.md). Each function returns a new object, or NULL when out of memory.
 */

#include <jansson.h>

#include "libfl/wire/wire_admin.h"

json_t *fl_json_status(const struct fl_wire_status *status);
json_t *fl_json_round(const struct fl_wire_round *round);
json_t *fl_json_participation(const struct fl_wire_participation *participation);
json_t *fl_json_client(const struct fl_wire_client *client);
/* The labels of a client, or of an invitation. */
json_t *fl_json_labels(const struct fl_pair *labels, size_t n);

#endif
