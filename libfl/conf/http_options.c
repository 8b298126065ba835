#include "libfl/conf/http_options.h"

const struct fl_opt_spec fl_http_specs[] = {
    {FL_OPT(struct fl_http_conf, STRING_LIST, listen),
     .help = "Addresses of the read-only HTTP port (docs/http.md), such as 127.0.0.1:7880: metrics "
             "for Prometheus, health, status as JSON; host:port or [v6]:port, port 0 picks a free "
             "one. Plaintext: others than loopback need token_file. Default: none"},
    {FL_OPT(struct fl_http_conf, STRING, token_file),
     .help = "File with one line, the bearer token that readers of the HTTP port show: 16 to 512 "
             "characters; read at the start. Default: none, every reader is answered"},
    FL_OPT_END_OF(struct fl_http_conf)};
