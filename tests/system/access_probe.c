/*
 * Calls every method of every .proto as one peer, and says what became of each.
 *
 *     access_probe make IDENTITY OTHER OUT
 *         certificates of all kinds, each as OUT/KIND.pem and OUT/KIND.key, signed by the
 * intermediate of the folder IDENTITY (or of OTHER, another federation's), and OUT/roots.pem.
 * Prints "KIND SERIAL KEY" of each. access_probe call ADDRESS plain access_probe call ADDRESS tls
 * OUT [KIND] prints "METHOD RESULT" for each method, which is one of reached   its handler has seen
 * the call (which ends without a request) refused   PERMISSION_DENIED or UNAUTHENTICATED absent
 * UNIMPLEMENTED cut       there was no connection to call it over access_probe serve OUT KIND a
 * server that shows the certificate KIND, and a client that wants to see a server's: prints
 *         "reached" or "cut"
 *
 * The methods are those of the descriptors that reflection serves, so that a new one is called
 * without a line here.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/pki/issue.h"
#include "libfl/protobuf/protobuf.h"
#include "libfl/tls/tls.h"
#include "libfl/wire/wire_identity.h"

static const uint8_t descriptor_set[] = {
#include "proto/descriptors.inc"
};

/* google/protobuf/descriptor.proto */
enum {
    SET_FILE = 1,
    FILE_PACKAGE = 2,
    FILE_SERVICE = 6,
    SERVICE_METHOD = 2,
    ANY_NAME = 1,
    SERVICE_NAME = ANY_NAME
};

#define METHODS_MAX 256
#define HOUR        INT64_C(3600)

static char methods[METHODS_MAX][160];
static size_t n_methods;

static void die(const char *what, const struct fl_err *err, int rv)
{
    (void)fprintf(stderr, "access_probe: %s: %s\n", what, fl_err_text(err, rv));
    exit(EXIT_FAILURE);
}

static int64_t now_s(void *ctx)
{
    (void)ctx;
    return (int64_t)(fl_clock_wall_ms() / 1000);
}

/* --- the methods --- */

static bool next(struct fl_pb_scan *scan, uint32_t number, struct fl_pb_field *ret)
{
    while (fl_pb_scan_next(scan, ret) == 1) {
        if (ret->number == number && ret->type == FL_PB_BYTES) {
            return true;
        }
    }
    return false;
}

static const char *text_of(struct fl_pb_field in, uint32_t number, char *out, size_t size)
{
    struct fl_pb_scan scan;
    struct fl_pb_field field = {0};

    out[0] = '\0';
    fl_pb_scan_init(&scan, in.data, in.len);
    if (next(&scan, number, &field)) {
        (void)snprintf(out, size, "%.*s", (int)field.len, (const char *)field.data);
    }
    return out;
}

static void add_service(const char *package, struct fl_pb_field service)
{
    struct fl_pb_scan scan;
    struct fl_pb_field method = {0};
    char name[64];
    char method_name[64];

    (void)text_of(service, SERVICE_NAME, name, sizeof(name));
    fl_pb_scan_init(&scan, service.data, service.len);
    while (next(&scan, SERVICE_METHOD, &method) && n_methods < METHODS_MAX) {
        (void)snprintf(methods[n_methods++], sizeof(methods[0]), "/%.40s.%s/%s", package, name,
                       text_of(method, ANY_NAME, method_name, sizeof(method_name)));
    }
}

static void find_methods(void)
{
    struct fl_pb_scan set;
    struct fl_pb_field file = {0};

    fl_pb_scan_init(&set, descriptor_set, sizeof(descriptor_set));
    while (next(&set, SET_FILE, &file)) {
        struct fl_pb_scan scan;
        struct fl_pb_field service = {0};
        char package[64];

        (void)text_of(file, FILE_PACKAGE, package, sizeof(package));
        fl_pb_scan_init(&scan, file.data, file.len);
        while (next(&scan, FILE_SERVICE, &service)) {
            add_service(package, service);
        }
    }
    /* The same messages under a name that stands in no file of ours. */
    (void)snprintf(methods[n_methods++], sizeof(methods[0]),
                   "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    (void)snprintf(methods[n_methods++], sizeof(methods[0]), "/fl.v1.Federation/NoSuchMethod");
}

/* --- certificates --- */

static const struct kind {
    const char *name;
    enum fl_role role;
    bool other;           /* of the other federation */
    int64_t begins, ends; /* hours from now on; the grace of the test is 12 h */
} kinds[] = {
    {"client", FL_ROLE_CLIENT, false, -1, 2},      {"admin", FL_ROLE_ADMIN, false, -1, 2},
    {"server", FL_ROLE_SERVER, false, -1, 2},      {"lapsed", FL_ROLE_CLIENT, false, -2, -1},
    {"expired", FL_ROLE_CLIENT, false, -22, -20},  {"expired-admin", FL_ROLE_ADMIN, false, -2, -1},
    {"future", FL_ROLE_CLIENT, false, 1, 2},       {"foreign", FL_ROLE_CLIENT, true, -1, 2},
    {"foreign-admin", FL_ROLE_ADMIN, true, -1, 2}, {"revoked-serial", FL_ROLE_CLIENT, false, -1, 2},
    {"revoked-key", FL_ROLE_CLIENT, false, -1, 2}, {"revoked-name", FL_ROLE_CLIENT, false, -1, 2},
    {"disabled", FL_ROLE_CLIENT, false, -1, 2},    {"revoked-admin", FL_ROLE_ADMIN, false, -1, 2},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static char path[4096];

static const char *in(const char *folder, const char *name, const char *end)
{
    (void)snprintf(path, sizeof(path), "%s/%s%s", folder, name, end);
    return path;
}

/* The intermediate, as whoever has its key. It is made in the past, so that old leaves fit into it.
 */
struct issuer {
    struct fl_key *key;
    struct fl_chain *chain;
};

static struct issuer load_issuer(const char *folder)
{
    struct issuer issuer = {NULL, NULL};
    struct fl_err err = {0};
    int rv = fl_key_load(in(folder, "intermediate", ".key"), &issuer.key, &err);

    rv = rv == FL_OK ? fl_chain_load(in(folder, "intermediate", ".pem"), &issuer.chain, &err) : rv;
    if (rv != FL_OK) {
        die(folder, &err, rv);
    }
    return issuer;
}

static void print_hex(const uint8_t *data, size_t n)
{
    size_t i;

    (void)putchar(' ');
    for (i = 0; i < n; i++) {
        (void)printf("%02x", data[i]);
    }
}

static void make_one(const struct kind *kind, const struct issuer *issuer, unsigned number,
                     const char *out)
{
    static const char *const hosts[] = {"localhost"};
    bool server = kind->role == FL_ROLE_SERVER;
    struct fl_issue issue = {.federation = kind->other ? "other" : "integ",
                             .not_before = now_s(NULL) + kind->begins * HOUR,
                             .not_after = now_s(NULL) + kind->ends * HOUR,
                             .serial = {0x42, (uint8_t)number},
                             .role = kind->role,
                             .name = kind->name,
                             .hosts = server ? hosts : NULL,
                             .n_hosts = server ? 1 : 0};
    struct fl_key *key = NULL;
    struct fl_chain *chain = NULL;
    struct fl_cert_info info;
    struct fl_err err = {0};
    int rv = fl_key_make(&key);

    rv = rv == FL_OK ? fl_issue_leaf(issuer->chain, issuer->key, key, &issue, &chain, &err) : rv;
    rv = rv == FL_OK ? fl_key_save(key, in(out, kind->name, ".key"), false, &err) : rv;
    rv = rv == FL_OK ? fl_chain_save(chain, in(out, kind->name, ".pem"), false, &err) : rv;
    if (rv != FL_OK) {
        die(kind->name, &err, rv);
    }
    fl_chain_info(chain, 0, &info);
    (void)printf("%s", kind->name);
    print_hex(info.serial, info.serial_len);
    print_hex(info.key, sizeof(info.key));
    (void)printf("\n");
    fl_chain_unref(chain);
    fl_key_unref(key);
}

static int make(const char *ours, const char *other, const char *out)
{
    struct issuer issuers[2] = {load_issuer(ours), load_issuer(other)};
    struct fl_chain *roots = NULL;
    struct fl_err err = {0};
    unsigned i;
    int rv = fl_chain_load(in(ours, "root", ".pem"), &roots, &err);

    rv = rv == FL_OK ? fl_chain_save(roots, in(out, "roots", ".pem"), false, &err) : rv;
    if (rv != FL_OK) {
        die(ours, &err, rv);
    }
    for (i = 0; i < N_KINDS; i++) {
        make_one(&kinds[i], &issuers[kinds[i].other], i + 1, out);
    }
    fl_chain_unref(roots);
    for (i = 0; i < 2; i++) {
        fl_chain_unref(issuers[i].chain);
        fl_key_unref(issuers[i].key);
    }
    return EXIT_SUCCESS;
}

/* --- TLS --- */

/* As the peer `kind`, NULL: nobody. */
static struct fl_tls *tls_of(const char *out, const char *kind, bool server)
{
    char certificate[4096];
    char key_path[4096];
    char roots[4096];
    const char *root_file = roots;
    struct fl_chain *chain = NULL;
    struct fl_key *key = NULL;
    struct fl_trust *trust = NULL;
    struct fl_tls *tls = NULL;
    struct fl_err err = {0};
    int rv;

    (void)snprintf(roots, sizeof(roots), "%s", in(out, "roots", ".pem"));
    rv = fl_trust_create(&(struct fl_trust_setup){.root_files = &root_file,
                                                  .n_root_files = 1,
                                                  .federation = "integ"},
                         &trust, &err);
    if (rv == FL_OK && kind != NULL) {
        (void)snprintf(certificate, sizeof(certificate), "%s", in(out, kind, ".pem"));
        (void)snprintf(key_path, sizeof(key_path), "%s", in(out, kind, ".key"));
        rv = fl_credentials_load(certificate, key_path, &chain, &key, &err);
    }
    rv = rv == FL_OK ? fl_tls_create(&(struct fl_tls_setup){.server = server,
                                                            .chain = chain,
                                                            .key = key,
                                                            .trust = trust,
                                                            .host = server ? NULL : "localhost",
                                                            .now = now_s},
                                     &tls, &err)
                     : rv;
    if (rv != FL_OK) {
        die(kind != NULL ? kind : "nobody", &err, rv);
    }
    fl_trust_unref(trust);
    fl_chain_unref(chain);
    fl_key_unref(key);
    return tls;
}

/* --- calling --- */

struct probe {
    struct fl_loop *loop;
    struct fl_grpc_channel *channel;
    size_t at;                     /* the method that is called */
    bool answered;                 /* by a status of its own */
    struct fl_grpc_server *server; /* serve: closed at the end */
    size_t n;
    struct fl_buf join; /* crowd: what each call sends; empty: nothing */
    bool leaves;        /* gone */
};

static const char *result_of(enum fl_grpc_status status)
{
    switch (status) {
    case FL_GRPC_PERMISSION_DENIED:
    case FL_GRPC_UNAUTHENTICATED:
        return "refused";
    case FL_GRPC_UNIMPLEMENTED:
        return "absent";
    default:
        return "reached";
    }
}

static void call_next(struct probe *p);

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    struct probe *p = ctx;

    (void)call;
    (void)message;
    if (p->channel == NULL || (status == FL_GRPC_UNAVAILABLE && p->join.len == 0)) {
        return; /* The connection went: on_down says so. */
    }
    (void)printf("%s %s\n", methods[p->at],
                 p->join.len > 0 ? fl_grpc_status_name(status) : result_of(status));
    p->at++;
    call_next(p);
}

static const struct fl_call_handler handler = {.on_closed = on_closed};

static void call_next(struct probe *p)
{
    struct fl_call *call = NULL;

    if (p->at == p->n ||
        fl_grpc_call(p->channel, methods[p->at], 60000, &handler, p, &call) != FL_OK) {
        fl_grpc_channel_close(p->channel);
        return;
    }
    if (p->join.len > 0) {
        struct fl_piece piece = {.data = p->join.data, .len = p->join.len};

        if (fl_call_send(call, &piece, 1) != FL_OK) {
            (void)fprintf(stderr, "a request was not sent\n");
        }
    }
    fl_call_end(call);
}

/* The request is on its way by now, and the lane may have it. */
static void leave(void *arg)
{
    struct probe *p = arg;

    if (p->channel != NULL) {
        fl_grpc_channel_close(p->channel);
    }
}

static void on_up(void *ctx)
{
    struct probe *p = ctx;

    call_next(p);
    if (p->leaves && fl_loop_post(p->loop, leave, p) != FL_OK) {
        leave(p);
    }
}

static void on_server_closed(void *arg)
{
    fl_loop_stop(((struct probe *)arg)->loop);
}

static void on_down(void *ctx, int code, const char *text)
{
    struct probe *p = ctx;

    p->channel = NULL;
    if (p->leaves) {
        p->at = p->n;
    }
    if (p->at < p->n) {
        (void)fprintf(stderr, "%s: %s\n", fl_strerror(code), text != NULL ? text : "");
    }
    for (; p->at < p->n; p->at++) {
        (void)printf("%s cut\n", methods[p->at]);
    }
    if (p->server != NULL) {
        fl_grpc_server_close(p->server, 0, on_server_closed, p);
    } else {
        fl_loop_stop(p->loop);
    }
}

static const struct fl_grpc_channel_cbs cbs = {.on_up = on_up, .on_down = on_down};

static void run(struct probe *p, const char *address, struct fl_tls *tls)
{
    struct fl_stream_filter filter;
    struct fl_rpc_limits limits;
    struct fl_err err = {0};
    int rv;

    if (tls != NULL) {
        filter = fl_tls_filter(tls);
    }
    fl_rpc_limits_default(&limits);
    rv = fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = p->loop,
                                                         .address = address,
                                                         .limits = &limits,
                                                         .timeout_ms = 60000,
                                                         .cbs = &cbs,
                                                         .ctx = p,
                                                         .filter = tls != NULL ? &filter : NULL},
                         &p->channel, &err);
    if (rv != FL_OK) {
        die(address, &err, rv);
    }
    fl_loop_run(p->loop);
}

static int call_all(const char *address, struct fl_tls *tls)
{
    struct probe p = {.n = n_methods};

    if (fl_loop_create(&p.loop, NULL) != FL_OK) {
        return EXIT_FAILURE;
    }
    run(&p, address, tls);
    fl_loop_free(p.loop);
    fl_tls_unref(tls);
    return EXIT_SUCCESS;
}

/* --- tokens that nobody gave --- */

static int crowd(const char *address, const char *out, size_t n, bool leaves)
{
    static uint8_t der[] = {0x30, 0x03, 0x02, 0x01, 0x00};
    struct fl_wire_join join = {.token = {1, 2, 3}, .request = {der, sizeof(der)}};
    size_t times = leaves ? n : 1;
    struct fl_tls *tls = tls_of(out, NULL, false);
    size_t i;

    for (i = 0; i < METHODS_MAX; i++) {
        (void)snprintf(methods[i], sizeof(methods[i]), "/fl.v1.Identity/Join");
    }
    for (i = 0; i < times; i++) {
        struct probe p = {.n = leaves ? 1 : n, .leaves = leaves};

        fl_buf_init(&p.join, FL_WIRE_MAX_IDENTITY);
        if (p.n > METHODS_MAX || fl_wire_join_encode(&join, &p.join) != FL_OK ||
            fl_loop_create(&p.loop, NULL) != FL_OK)
        {
            return EXIT_FAILURE;
        }
        run(&p, address, tls);
        fl_loop_free(p.loop);
        fl_buf_done(&p.join);
    }
    fl_tls_unref(tls);
    return EXIT_SUCCESS;
}

/* --- a certificate used as a server's --- */

static void start_method(struct fl_call *call, void *ctx)
{
    (void)ctx;
    fl_call_finish(call, FL_GRPC_OK, NULL);
}

static int serve(const char *out, const char *kind)
{
    const struct fl_rpc_method table[] = {
        {"/t.T/M", FL_WHO_ANYBODY, start_method, NULL},
        {.path = NULL},
    };
    struct probe p = {.n = 1};
    struct fl_tls *shows = tls_of(out, kind, true);
    struct fl_tls *looks = tls_of(out, NULL, false);
    struct fl_stream_filter filter = fl_tls_filter(shows);
    struct fl_grpc_server_setup setup = {.max_connections = 4, .methods = table};
    struct fl_err err = {0};
    char address[64];
    unsigned port = 0;
    int rv = fl_loop_create(&p.loop, &err);

    fl_rpc_limits_default(&setup.limits);
    setup.loop = p.loop;
    (void)snprintf(methods[0], sizeof(methods[0]), "/t.T/M");
    rv = rv == FL_OK ? fl_grpc_server_create(&setup, &p.server, &err) : rv;
    rv = rv == FL_OK
             ? fl_grpc_server_listen(
                   p.server, &(struct fl_grpc_listen){.address = "127.0.0.1:0", .filter = &filter},
                   &port, &err)
             : rv;
    if (rv != FL_OK) {
        die("serve", &err, rv);
    }
    (void)snprintf(address, sizeof(address), "localhost:%u", port);
    run(&p, address, looks);
    fl_loop_free(p.loop);
    fl_tls_unref(shows);
    fl_tls_unref(looks);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    find_methods();
    if (argc == 5 && strcmp(argv[1], "make") == 0) {
        return make(argv[2], argv[3], argv[4]);
    }
    if (argc == 4 && strcmp(argv[1], "call") == 0) {
        return call_all(argv[2], NULL);
    }
    if ((argc == 5 || argc == 6) && strcmp(argv[1], "call") == 0) {
        return call_all(argv[2], tls_of(argv[4], argc == 6 ? argv[5] : NULL, false));
    }
    if (argc == 5 && (strcmp(argv[1], "crowd") == 0 || strcmp(argv[1], "gone") == 0)) {
        return crowd(argv[2], argv[3], strtoul(argv[4], NULL, 10), argv[1][0] == 'g');
    }
    if (argc == 4 && strcmp(argv[1], "serve") == 0) {
        return serve(argv[2], argv[3]);
    }
    (void)fprintf(stderr, "usage: see the first lines of tests/system/access_probe.c\n");
    return EXIT_FAILURE;
}
