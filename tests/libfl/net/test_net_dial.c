#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/ends.h"
#include "tests/lib/suites.h"

TESTS_APART("tests count the descriptors and the answers of one process");

/* What the linker puts in front of the real functions (--wrap). */

static struct {
    const char *const *hosts; /* What any name resolves to; NULL: nothing. */
    pthread_mutex_t *hold;    /* Resolving waits for this one. */
    atomic_uint resolved;     /* Calls that ended. */
    unsigned fail_callocs;    /* So many of the next allocations fail. */
    int connect_status;       /* uv_tcp_connect() returns it. */
} faults;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    if (faults.fail_callocs > 0) {
        faults.fail_callocs--;
        return NULL;
    }
    return __real_calloc(n, size);
}

int __real_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *tcp, const struct sockaddr *addr,
                          uv_connect_cb cb);
int __wrap_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *tcp, const struct sockaddr *addr,
                          uv_connect_cb cb);
int __wrap_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *tcp, const struct sockaddr *addr,
                          uv_connect_cb cb)
{
    if (faults.connect_status != 0) {
        return faults.connect_status;
    }
    return __real_uv_tcp_connect(req, tcp, addr, cb);
}

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **res);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **res);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **res)
{
    struct addrinfo numeric = *hints;
    struct addrinfo **tail = res;
    unsigned i;

    (void)node;
    if (faults.hold != NULL) {
        (void)pthread_mutex_lock(faults.hold);
        (void)pthread_mutex_unlock(faults.hold);
    }
    *res = NULL;
    numeric.ai_flags = AI_NUMERICHOST;
    for (i = 0; faults.hosts != NULL && faults.hosts[i] != NULL; i++) {
        if (__real_getaddrinfo(faults.hosts[i], service, &numeric, tail) != 0) {
            abort();
        }
        tail = &(*tail)->ai_next;
    }
    atomic_fetch_add(&faults.resolved, 1);
    return *res != NULL ? 0 : EAI_NONAME;
}

/* Connecting that fails. */

TEST(an_address_that_cannot_be_connected_to_is_refused_at_once)
{
    static const char *const texts[] = {"*:1", "127.0.0.1:0", "nonsense"};
    struct world world = {0};
    struct fl_stream *stream = NULL;
    struct fl_err err = {0};
    unsigned i;

    ends_begin(&world, NULL);
    for (i = 0; i < 3; i++) {
        ck_assert_int_eq(fl_conn_connect(world.loop, texts[i], 1, &stream, &err), FL_EINVAL);
        ck_assert_ptr_nonnull(strstr(err.msg, texts[i]));
    }
    ends_end(&world);
}

/* A port that was free a moment ago. */
static unsigned closed_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    (void)close(fd);
    return ntohs(addr.sin_port);
}

TEST(a_refused_connection_names_the_address)
{
    struct world world = {.done = ends_client_closed};
    char address[64];
    struct end *client;

    ends_begin(&world, NULL);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", closed_port());
    client = ends_dial(&world, CLIENT, address, 5000);
    fl_loop_run(world.loop);
    ck_assert_int_eq(client->code, FL_EUNAVAIL);
    ck_assert_ptr_nonnull(strstr(client->text, address));
    ck_assert_ptr_nonnull(strstr(client->text, "connection refused"));
    ck_assert_uint_eq(client->opened, 0);
    ends_end(&world);
}

TEST(a_unix_socket_that_is_missing_names_the_path)
{
    struct world world = {.done = ends_client_closed};
    struct end *client;

    ends_begin(&world, NULL);
    client = ends_dial(&world, CLIENT, "unix:/tmp/fl-no-such.sock", 5000);
    fl_loop_run(world.loop);
    ck_assert_int_eq(client->code, FL_EUNAVAIL);
    ck_assert_ptr_nonnull(strstr(client->text, "unix:/tmp/fl-no-such.sock"));
    ends_end(&world);
}

TEST(a_connect_that_fails_at_once_is_told_later)
{
    struct world world = {.done = ends_client_closed};
    struct end *client;

    ends_begin(&world, NULL);
    faults.connect_status = UV_ENETUNREACH;
    client = ends_dial(&world, CLIENT, "127.0.0.1:1", 5000);
    fl_loop_run(world.loop);
    ck_assert_int_eq(client->code, FL_EUNAVAIL);
    ck_assert_ptr_nonnull(strstr(client->text, "network is unreachable"));
    ends_end(&world);
}

TEST(a_name_that_does_not_resolve_is_told)
{
    struct world world = {.done = ends_client_closed};
    struct end *client;

    ends_begin(&world, NULL);
    client = ends_dial(&world, CLIENT, "nowhere.example:1", 5000);
    fl_loop_run(world.loop);
    ck_assert_int_eq(client->code, FL_EUNAVAIL);
    ck_assert_ptr_nonnull(strstr(client->text, "cannot look up nowhere.example"));
    ends_end(&world);
}

TEST(a_name_server_that_does_not_answer_holds_nothing_up)
{
    pthread_mutex_t hold = PTHREAD_MUTEX_INITIALIZER;
    struct world world = {.done = ends_client_closed};
    struct end *client;

    ends_begin(&world, NULL);
    (void)pthread_mutex_lock(&hold);
    faults.hold = &hold;
    client = ends_dial(&world, CLIENT, "slow.example:1", 20);
    fl_loop_run(world.loop);
    ck_assert_int_eq(client->code, FL_ETIMEOUT);
    ck_assert_ptr_nonnull(strstr(client->text, "slow.example"));
    /* One more, closed while it resolves: the loop can be freed all the same. */
    client->closed = 0;
    (void)ends_dial(&world, CLIENT, "slow.example:1", 60000);
    ends_end(&world);
    (void)pthread_mutex_unlock(&hold);
    while (atomic_load(&faults.resolved) < 2) {
        (void)sched_yield();
    }
}

static bool client_open(struct world *world)
{
    return world->end[CLIENT].opened > 0;
}

TEST(the_second_address_of_a_name_is_tried_when_the_first_refuses)
{
    static const char *const hosts[] = {"127.0.0.2", "127.0.0.1", NULL};
    struct world world = {.done = client_open};
    char address[64];

    ends_begin(&world, "127.0.0.1:0");
    faults.hosts = hosts;
    (void)snprintf(address, sizeof(address), "two.example:%u", fl_listener_port(world.listener));
    (void)ends_dial(&world, CLIENT, address, 5000);
    fl_loop_run(world.loop);
    ck_assert_str_eq(fl_stream_peer(world.end[CLIENT].stream), world.address);
    ends_end(&world);
}

TEST(when_all_addresses_refuse_it_is_told_once)
{
    static const char *const hosts[] = {"127.0.0.2", "127.0.0.3", "127.0.0.4", NULL};
    struct world world = {.done = ends_client_closed};
    char address[64];

    ends_begin(&world, NULL);
    faults.hosts = hosts;
    (void)snprintf(address, sizeof(address), "three.example:%u", closed_port());
    (void)ends_dial(&world, CLIENT, address, 5000);
    fl_loop_run(world.loop);
    ck_assert_int_eq(world.end[CLIENT].code, FL_EUNAVAIL);
    ck_assert_ptr_nonnull(strstr(world.end[CLIENT].text, address));
    ends_end(&world);
}

/*
 * A listening socket on `host` that answers nobody: its backlog of one is full, so that the
 * kernel drops further SYNs. Returns the port.
 */
static unsigned deaf_port(const char *host, unsigned port, int fds[3])
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t len = sizeof(addr);
    int one = 1;
    int i;

    addr.sin_port = htons((uint16_t)port);
    ck_assert_int_eq(inet_pton(AF_INET, host, &addr.sin_addr), 1);
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    (void)setsockopt(fds[0], SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    ck_assert_int_eq(bind(fds[0], (struct sockaddr *)&addr, sizeof(addr)), 0);
    ck_assert_int_eq(listen(fds[0], 0), 0);
    ck_assert_int_eq(getsockname(fds[0], (struct sockaddr *)&addr, &len), 0);
    for (i = 1; i < 3; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fds[i], (struct sockaddr *)&addr, sizeof(addr));
    }
    return ntohs(addr.sin_port);
}

static void close_all(const int fds[3])
{
    int i;

    for (i = 0; i < 3; i++) {
        (void)close(fds[i]);
    }
}

TEST(a_peer_that_does_not_answer_is_given_up_in_time)
{
    struct world world = {.done = ends_client_closed};
    char address[64];
    struct end *client;
    int fds[3];

    ends_begin(&world, NULL);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", deaf_port("127.0.0.1", 0, fds));
    client = ends_dial(&world, CLIENT, address, 50);
    fl_loop_run(world.loop);
    ck_assert_int_eq(client->code, FL_ETIMEOUT);
    ck_assert_ptr_nonnull(strstr(client->text, "timed out after 50 ms"));
    close_all(fds);
    ends_end(&world);
}

TEST(a_deaf_first_address_leaves_time_for_the_second)
{
    static const char *const hosts[] = {"127.0.0.2", "127.0.0.1", NULL};
    struct world world = {.done = client_open};
    char address[64];
    int fds[3];

    ends_begin(&world, "127.0.0.1:0");
    faults.hosts = hosts;
    (void)deaf_port("127.0.0.2", fl_listener_port(world.listener), fds);
    (void)snprintf(address, sizeof(address), "two.example:%u", fl_listener_port(world.listener));
    (void)ends_dial(&world, CLIENT, address, 400);
    fl_loop_run(world.loop);
    ck_assert_str_eq(fl_stream_peer(world.end[CLIENT].stream), world.address);
    close_all(fds);
    ends_end(&world);
}

/* Listening. */

TEST(a_port_in_use_is_told_with_its_address)
{
    struct world world = {0};
    struct fl_listener *second = NULL;
    struct fl_err err = {0};

    ends_begin(&world, "127.0.0.1:0");
    ck_assert_int_eq(fl_listen(world.loop, world.address, ends_accept, &world, &second, &err),
                     FL_EINUSE);
    ck_assert_ptr_nonnull(strstr(err.msg, world.address));
    ck_assert_ptr_nonnull(strstr(err.msg, "another process"));
    ck_assert_ptr_null(second);
    ends_end(&world);
}

TEST(an_address_of_another_machine_cannot_be_listened_on)
{
    struct world world = {0};
    struct fl_listener *listener = NULL;
    struct fl_err err = {0};

    ends_begin(&world, NULL);
    ck_assert_int_eq(fl_listen(world.loop, "192.0.2.1:0", ends_accept, &world, &listener, &err),
                     FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "192.0.2.1:0"));
    ck_assert_int_eq(
        fl_listen(world.loop, "nowhere.example:1", ends_accept, &world, &listener, &err),
        FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "nowhere.example:1"));
    ends_end(&world);
}

static int stale_socket(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

TEST(an_old_unix_socket_is_replaced_and_a_served_one_is_not)
{
    struct world world = {0};
    struct fl_listener *second = NULL;
    struct fl_err err = {0};
    struct stat st;
    char address[64];
    char *path = ends_unix_address(address, sizeof(address)) + 5;

    (void)close(stale_socket(path));
    ends_begin(&world, address);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0660);
    ck_assert_int_eq(fl_listen(world.loop, address, ends_accept, &world, &second, &err), FL_EINUSE);
    ck_assert_ptr_nonnull(strstr(err.msg, path));
    ck_assert_int_eq(stat(path, &st), 0);
    ends_end(&world);
    /* An orderly end leaves no file. */
    ck_assert_int_eq(stat(path, &st), -1);
}

TEST(a_file_that_is_no_socket_is_left_alone)
{
    struct world world = {0};
    struct fl_listener *listener = NULL;
    struct fl_err err = {0};
    char address[64];
    char *path = ends_unix_address(address, sizeof(address)) + 5;
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    (void)fclose(file);
    ends_begin(&world, NULL);
    ck_assert_int_eq(fl_listen(world.loop, address, ends_accept, &world, &listener, &err),
                     FL_EEXIST);
    ck_assert_ptr_nonnull(strstr(err.msg, "not a socket"));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(
        fl_listen(world.loop, "unix:/no-such-folder/x", ends_accept, &world, &listener, &err),
        FL_EPERM);
    ck_assert_ptr_nonnull(strstr(err.msg, "/no-such-folder/x"));
    ends_end(&world);
}

static bool one_accepted(struct world *world)
{
    return world->accepted > 0 && world->end[0].in_len > 0;
}

/* The peer sees its connection closed. */
static void assert_dropped(int fd)
{
    char byte;

    ck_assert_int_le(read(fd, &byte, 1), 0);
    (void)close(fd);
}

TEST(without_memory_a_connection_is_dropped_and_listening_goes_on)
{
    struct world world = {.done = one_accepted};
    int dropped[2];
    int fd;

    ends_begin(&world, "127.0.0.1:0");
    /* Two at once: the second comes while the first is still being closed. */
    dropped[0] = ends_raw_client(&world);
    dropped[1] = ends_raw_client(&world);
    faults.fail_callocs = 2;
    fd = ends_raw_client(&world);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.accepted, 1);
    assert_dropped(dropped[0]);
    assert_dropped(dropped[1]);
    (void)close(fd);
    ends_end(&world);
}

TEST(without_descriptors_the_newest_is_closed_and_listening_goes_on)
{
    struct world world = {.done = one_accepted};
    struct rlimit limit;
    struct rlimit small;
    int dropped;
    int fd;

    ends_begin(&world, "127.0.0.1:0");
    dropped = ends_raw_client(&world);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    small = limit;
    small.rlim_cur = (rlim_t)dropped + 1;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &small), 0);
    ck_assert_int_eq(fl_loop_post(world.loop, (fl_loop_cb)fl_loop_stop, world.loop), FL_OK);
    fl_loop_run(world.loop);
    (void)uv_run(&world.loop->uv, UV_RUN_NOWAIT);
    ck_assert_uint_eq(world.accepted, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_dropped(dropped);
    fd = ends_raw_client(&world);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    fl_loop_run(world.loop);
    ck_assert_uint_eq(world.accepted, 1);
    (void)close(fd);
    ends_end(&world);
}
