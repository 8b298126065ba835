/* The options of who may come: TLS with a PKI of the operator's own, and the federation's
 * authority. */

#include "server/conf/conf_tables.h"

/* As far as a duration goes: 100 years of 365 days. */
#define SPAN_MAX 3.2e12
/* Below this a certificate ends while it is handed out. */
#define SPAN_MIN 10000

const struct fl_opt_spec fl_server_tls_specs[] = {
    {FL_OPT(struct fl_server_tls, STRING, certificate), .flags = FL_SERVER_DAEMON,
     .help = "PEM file: the server's certificate, then what leads to a root. With it, certificates "
             "are the operator's own: the federation has no authority and invites nobody. Default: "
             "what fl-serverd --init made in the state folder"},
    {FL_OPT(struct fl_server_tls, STRING, key), .flags = FL_SERVER_DAEMON,
     .help = "PEM file with its private key, for the server's user alone (0600)"},
    {FL_OPT(struct fl_server_tls, STRING_LIST, ca), .flags = FL_SERVER_DAEMON,
     .help = "PEM files with the roots that clients' and admins' certificates lead to"},
    {FL_OPT(struct fl_server_tls, STRING_LIST, crl), .flags = FL_SERVER_DAEMON,
     .help = "PEM or DER files with lists of revoked certificates, read again when they change"},
    {FL_OPT(struct fl_server_tls, STRING_LIST, names), .flags = FL_SERVER_DAEMON,
     .help = "Rules, the first that fits counts, that say who a certificate of an own PKI is for: "
             "\"client dns:{name}.edge.example.org\", \"admin email:{name}@example.org\" "
             "(docs/joining.md)"},
    FL_OPT_END_OF(struct fl_server_tls)};

const struct fl_opt_spec fl_server_identity_specs[] = {
    {FL_OPT(struct fl_server_identity, STRING_LIST, hosts), .flags = FL_SERVER_DAEMON,
     .help = "Names and addresses by which clients reach this server; they stand in its "
             "certificate, the first one in invitations. Default: those of `listen`, where they "
             "say one, and the name of this machine"},
    {FL_OPT(struct fl_server_identity, STRING, root_key), .flags = FL_SERVER_DAEMON,
     .help = "The root's private key, where it is not kept in the state folder. Only a new "
             "intermediate or root needs it"},
    {FL_OPT(struct fl_server_identity, DURATION, root_validity), .flags = FL_SERVER_DAEMON,
     .def = "87600h", .min = SPAN_MIN, .max = SPAN_MAX,
     .help = "Of the root, 10 years: longer than the devices live that know it"},
    {FL_OPT(struct fl_server_identity, DURATION, intermediate_validity), .flags = FL_SERVER_DAEMON,
     .def = "17520h", .min = SPAN_MIN, .max = SPAN_MAX,
     .help = "Of the intermediate that signs day by day, 2 years: how often the root's key is "
             "fetched from where it is kept"},
    {FL_OPT(struct fl_server_identity, DURATION, validity), .flags = FL_SERVER_DAEMON,
     .def = "720h", .min = SPAN_MIN, .max = SPAN_MAX,
     .help = "Of clients' and the server's certificates, 30 days: how long a stolen one is of use "
             "that nobody denied"},
    {FL_OPT(struct fl_server_identity, DURATION, grace), .flags = FL_SERVER_DAEMON, .def = "1440h",
     .min = 0, .max = SPAN_MAX,
     .help = "How long a client's certificate that is over may still be renewed, 60 days: for "
             "machines that were switched off"},
    {FL_OPT(struct fl_server_identity, DURATION, invitation_validity), .flags = FL_SERVER_DAEMON,
     .def = "1h", .min = 1000, .max = 3.2e10,
     .help = "Of an invitation that says nothing else: long enough to carry it to a machine"},
    {FL_OPT(struct fl_server_identity, DURATION, back_date), .flags = FL_SERVER_DAEMON,
     .def = "10m", .min = 0, .max = 86400000,
     .help = "Certificates begin so long ago, for clients whose clocks are behind"},
    FL_OPT_END_OF(struct fl_server_identity)};
