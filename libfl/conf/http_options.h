#ifndef FL_CONF_HTTP_OPTIONS_H
#define FL_CONF_HTTP_OPTIONS_H

/*
 * The section `http` of a daemon's configuration (docs/http.md). fl_http_conf_check()
 * (libfl/http) checks its values; a simulation only reads past them.
 */

#include "libfl/conf/options.h"

struct fl_http_conf {
    struct fl_opt_texts listen; /* host:port; none: no HTTP port */
    const char *token_file;     /* "": no token is asked for */
};

extern const struct fl_opt_spec fl_http_specs[];

#endif
