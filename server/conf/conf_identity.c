/* The option tables of authentication: TLS with the operator's own PKI, and the federation's own
   authority. */

#include "server/conf/conf_tables.h"

/* Largest duration: 100 years of 365 days. */
#define SPAN_MAX 3.2e12
/* A shorter validity would expire while the certificate is handed out. */
#define SPAN_MIN 10000

const struct fl_opt_spec fl_server_tls_specs[] = {
    {FL_OPT(struct fl_server_tls, STRING, certificate), .flags = FL_SERVER_DAEMON,
     .help = "PEM file with the server's certificate, then the chain up to a root. With it, "
             "certificates come from the operator's own PKI: the federation has no authority and "
             "issues no invitations. Default: the certificate that fl-serverd --init made in the "
             "state folder"},
    {FL_OPT(struct fl_server_tls, STRING, key), .flags = FL_SERVER_DAEMON,
     .help = "PEM file with its private key, readable only by the server's user (0600)"},
    {FL_OPT(struct fl_server_tls, STRING_LIST, ca), .flags = FL_SERVER_DAEMON,
     .help = "PEM files with the root certificates of clients and admins"},
    {FL_OPT(struct fl_server_tls, STRING_LIST, crl), .flags = FL_SERVER_DAEMON,
     .help = "PEM or DER files with certificate revocation lists, read again when they change"},
    {FL_OPT(struct fl_server_tls, STRING_LIST, names), .flags = FL_SERVER_DAEMON,
     .help = "Rules that map a certificate of the operator's own PKI to a client or admin name; "
             "the first match counts: \"client dns:{name}.edge.example.org\", \"admin "
             "email:{name}@example.org\" (docs/security.md)"},
    FL_OPT_END_OF(struct fl_server_tls)};

const struct fl_opt_spec fl_server_identity_specs[] = {
    {FL_OPT(struct fl_server_identity, STRING_LIST, hosts),
     .flags = FL_SERVER_DAEMON | FL_OPT_BASIC,
     .help = "Host names and addresses of this server for clients; they go into its certificate. "
             "The first eight go into invitations, with the port of `listen`, or with their own: "
             "fl.example.org:443, where a load balancer or a forwarded port is another one. "
             "Default: the hosts of `listen`, if it names any, and the name of this machine"},
    {FL_OPT(struct fl_server_identity, STRING, root_key), .flags = FL_SERVER_DAEMON,
     .help = "Private key of the root, when it is stored outside the state folder. Needed only to "
             "issue a new intermediate or root"},
    {FL_OPT(struct fl_server_identity, DURATION, root_validity), .flags = FL_SERVER_DAEMON,
     .def = "87600h", .min = SPAN_MIN, .max = SPAN_MAX,
     .help = "Validity of the root certificate, 10 years: longer than the life of the devices that "
             "trust it"},
    {FL_OPT(struct fl_server_identity, DURATION, intermediate_validity), .flags = FL_SERVER_DAEMON,
     .def = "17520h", .min = SPAN_MIN, .max = SPAN_MAX,
     .help = "Validity of the intermediate certificate that signs in daily operation, 2 years: "
             "each renewal needs the key of the root"},
    {FL_OPT(struct fl_server_identity, DURATION, validity), .flags = FL_SERVER_DAEMON,
     .def = "720h", .min = SPAN_MIN, .max = SPAN_MAX,
     .help = "Validity of the certificates of clients and the server, 30 days: how long a stolen "
             "certificate works that is not revoked"},
    {FL_OPT(struct fl_server_identity, DURATION, grace), .flags = FL_SERVER_DAEMON, .def = "1440h",
     .min = 0, .max = SPAN_MAX,
     .help = "How long after its expiry a client's certificate can still be renewed, 60 days: for "
             "machines that were switched off"},
    {FL_OPT(struct fl_server_identity, DURATION, invitation_validity), .flags = FL_SERVER_DAEMON,
     .def = "1h", .min = 1000, .max = 3.2e10,
     .help = "Validity of an invitation by default: long enough to carry it to a machine"},
    {FL_OPT(struct fl_server_identity, DURATION, back_date),
     .flags = FL_SERVER_DAEMON | FL_OPT_DEBUG, .def = "10m", .min = 0, .max = 86400000,
     .help = "Certificates are valid from this long before they are issued, for clients whose "
             "clocks are behind"},
    FL_OPT_END_OF(struct fl_server_identity)};
