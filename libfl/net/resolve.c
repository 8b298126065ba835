/*
 * Name resolution with getaddrinfo(), on a detached thread per name; the result is posted to the
 * loop. Also the blocking variant for listening. Does not connect and caches nothing.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/net/net_impl.h"

/*
 * Shared by two threads: the loop's and the resolving one. `lock` guards `loop`, which is NULL once
 * the loop's side has cancelled; the last of the two frees.
 */
struct fl__resolve {
    struct fl__post post; /* First: the loop frees it after it ran. */
    pthread_mutex_t lock;
    struct fl_loop *loop;
    fl__resolve_cb cb;
    void *ctx;
    struct fl__resolved result;
    uint16_t port;
    char host[FL_ADDRESS_HOST_MAX];
};

static void add_address(struct fl__resolved *out, const struct sockaddr *from, size_t len,
                        uint16_t port)
{
    struct sockaddr_storage *to = &out->addrs[out->n];

    (void)memset(to, 0, sizeof(*to));
    (void)memcpy(to, from, len);
    if (from->sa_family == AF_INET) {
        ((struct sockaddr_in *)(void *)to)->sin_port = htons(port);
    } else {
        ((struct sockaddr_in6 *)(void *)to)->sin6_port = htons(port);
    }
    out->n++;
}

void fl__resolve_now(const char *host, uint16_t port, struct fl__resolved *ret)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct addrinfo *entry;

    ret->n = 0;
    ret->status = getaddrinfo(host, NULL, &hints, &list);
    if (ret->status != 0) {
        return;
    }
    for (entry = list; entry != NULL && ret->n < FL__RESOLVE_MAX; entry = entry->ai_next) {
        if (entry->ai_family == AF_INET || entry->ai_family == AF_INET6) {
            add_address(ret, entry->ai_addr, entry->ai_addrlen, port);
        }
    }
    freeaddrinfo(list);
    if (ret->n == 0) {
        ret->status = EAI_NONAME;
    }
}

void fl__resolve_literal(const struct fl_address *address, struct fl__resolved *ret)
{
    struct sockaddr_in ip4 = {.sin_family = AF_INET};
    struct sockaddr_in6 ip6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};

    ret->status = 0;
    ret->n = 0;
    if (address->kind == FL_ADDRESS_IP4) {
        FL_REQUIRE(inet_pton(AF_INET, address->host, &ip4.sin_addr) == 1);
        add_address(ret, (const struct sockaddr *)&ip4, sizeof(ip4), address->port);
        return;
    }
    if (address->kind == FL_ADDRESS_IP6) {
        FL_REQUIRE(inet_pton(AF_INET6, address->host, &ip6.sin6_addr) == 1);
    }
    add_address(ret, (const struct sockaddr *)&ip6, sizeof(ip6), address->port);
    if (address->kind == FL_ADDRESS_ANY) {
        /* "::" accepts IPv4 too; this address is for machines without IPv6. */
        ip4.sin_addr.s_addr = htonl(INADDR_ANY);
        add_address(ret, (const struct sockaddr *)&ip4, sizeof(ip4), address->port);
    }
}

static void resolve_deliver(void *arg)
{
    struct fl__resolve *self = arg;
    struct fl_loop *loop;

    /* The resolving thread still held the lock when it posted: wait until it has released it. */
    (void)pthread_mutex_lock(&self->lock);
    loop = self->loop;
    (void)pthread_mutex_unlock(&self->lock);
    (void)pthread_mutex_destroy(&self->lock);
    if (loop != NULL) {
        self->cb(self->ctx, &self->result);
    }
}

static void *resolve_main(void *arg)
{
    struct fl__resolve *self = arg;
    bool posted = false;

    fl__resolve_now(self->host, self->port, &self->result);
    (void)pthread_mutex_lock(&self->lock);
    if (self->loop != NULL) {
        fl__loop_post(self->loop, &self->post);
        posted = true;
    }
    (void)pthread_mutex_unlock(&self->lock);
    if (!posted) {
        (void)pthread_mutex_destroy(&self->lock);
        free(self);
    }
    return NULL;
}

int fl__resolve_start(struct fl_loop *loop, const char *host, uint16_t port, fl__resolve_cb cb,
                      void *ctx, struct fl__resolve **ret)
{
    struct fl__resolve *self = calloc(1, sizeof(*self));
    pthread_t id;
    int rv;

    if (self == NULL) {
        return FL_ENOMEM;
    }
    self->post.fn = resolve_deliver;
    self->post.arg = self;
    self->loop = loop;
    self->cb = cb;
    self->ctx = ctx;
    self->port = port;
    rv = fl_str_copy(self->host, sizeof(self->host), host);
    FL_REQUIRE(rv == FL_OK);
    (void)pthread_mutex_init(&self->lock, NULL);
    rv = fl__thread_start(&id, "fl-resolve", true, resolve_main, self);
    if (rv != FL_OK) {
        (void)pthread_mutex_destroy(&self->lock);
        free(self);
        return rv;
    }
    *ret = self;
    return FL_OK;
}

void fl__resolve_cancel(struct fl__resolve *self)
{
    if (self == NULL) {
        return;
    }
    /*
     * Resolved already: resolve_deliver() finds no loop. Otherwise the thread finds none and frees.
     */
    (void)pthread_mutex_lock(&self->lock);
    self->loop = NULL;
    (void)pthread_mutex_unlock(&self->lock);
}
