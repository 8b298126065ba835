/*
 * Every allocation of two connections, the second of which is resumed, fails once: those of ours,
 * of libfl/pki and of OpenSSL. Nothing crashes, leaks (the sanitizers tell) or stays open, nobody
 * is let in as somebody else, and what fails is told as want of memory.
 */
#include <check.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/failmalloc.h"
#include "tests/lib/memlink.h"
#include "tests/lib/suites.h"
#include "tests/lib/tlsrig.h"

static struct tlsrig rig;

/* One end, without assertions: they allocate. */
struct top {
    struct fl_stream *stream;
    bool hello; /* not sent yet */
    bool got;
    bool wrong;
    unsigned closed;
    int code;
};

static void on_open(void *ctx)
{
    (void)ctx;
}

static void on_data(void *ctx, const uint8_t *data, size_t len)
{
    struct top *top = ctx;

    top->got = true;
    top->wrong = top->wrong || len != 5 || memcmp(data, "hello", 5) != 0;
}

static int output(void *ctx, struct iovec *iov, int max)
{
    static char hello[] = "hello";
    const struct top *top = ctx;

    (void)max;
    iov[0] = (struct iovec){.iov_base = hello, .iov_len = 5};
    return top->hello ? 1 : 0;
}

static void sent(void *ctx, size_t n)
{
    struct top *top = ctx;

    top->wrong = top->wrong || n != 5;
    top->hello = false;
}

static void on_close(void *ctx, int code, const char *text)
{
    struct top *top = ctx;

    top->wrong = top->wrong || text == NULL;
    top->closed++;
    top->code = code;
    top->stream = NULL;
}

static const struct fl_stream_cbs cbs = {on_open, on_data, NULL, output, sent, on_close};

static struct {
    struct memlink link;
    struct top top[2];
    bool was_somebody;
} talk;

static void look_who(void)
{
    const struct fl_identity *identity;

    if (talk.top[TLSRIG_SERVER].stream == NULL) {
        return;
    }
    identity = fl_stream_identity(talk.top[TLSRIG_SERVER].stream);
    /* A client whose library lacked memory to choose its certificate shows none: it is nobody then.
     */
    talk.was_somebody = identity != NULL && identity->kind == FL_IDENTITY_CERTIFICATE;
    talk.top[TLSRIG_SERVER].wrong =
        talk.top[TLSRIG_SERVER].wrong ||
        (talk.was_somebody && strcmp(identity->name, "edge-001") != 0) ||
        (identity != NULL && !talk.was_somebody && identity->kind != FL_IDENTITY_NONE);
}

/* True when all that happened may happen. */
static bool connection(void)
{
    bool right = true;
    int i;

    memset(&talk, 0, sizeof(talk));
    failmalloc_pause(true);
    memlink_init(&talk.link);
    for (i = 0; i < 2; i++) {
        struct top *top = &talk.top[i];

        top->hello = true;
        top->stream = &talk.link.end[i].stream;
        failmalloc_pause(false);
        if (fl_stream_wrap(&rig.filter[i], &top->stream) != FL_OK) {
            top->stream = NULL;
        }
        failmalloc_pause(true);
        if (top->stream != NULL) {
            fl_stream_start(top->stream, &cbs, top);
        } else {
            talk.link.end[i].opened = true;
            talk.link.end[i].finished = true;
        }
    }
    memlink_run(&talk.link);
    look_who();
    for (i = 0; i < 2; i++) {
        if (talk.top[i].stream != NULL) {
            fl_stream_close_flushed(talk.top[i].stream, 1000);
        }
    }
    memlink_run(&talk.link);
    for (i = 0; i < 2; i++) {
        const struct top *top = &talk.top[i];

        right = right && !top->wrong && top->stream == NULL;
        right = right && (top->closed == 1 || talk.link.end[i].cbs == NULL);
        /* The other side's want of memory is an end, a refusal or an alert. */
        right = right && (top->code == FL_OK || top->code == FL_ENOMEM || top->code == FL_EPROTO ||
                          top->code == FL_EUNAVAIL || top->code == FL_EPERM);
    }
    memlink_done(&talk.link);
    failmalloc_pause(false);
    return right;
}

static bool life(void)
{
    struct fl_tls_setup setup;
    bool right = true;
    int i;

    for (i = 0; i < 2 && right; i++) {
        struct fl_tls *tls = NULL;
        int rv;

        setup = tlsrig_setup(&rig, i);
        rv = fl_tls_create(&setup, &tls, NULL);
        right = rv == FL_OK || rv == FL_ENOMEM || rv == FL_ECONF;
        if (rv == FL_OK) {
            rv = fl_tls_renew(tls, setup.chain, setup.key, setup.trust, NULL);
            right = rv == FL_OK || rv == FL_ENOMEM || rv == FL_ECONF;
            fl_tls_unref(rig.tls[i]);
            rig.tls[i] = tls;
            rig.filter[i] = fl_tls_filter(tls);
        }
    }
    right = right && connection();
    return right && connection();
}

static void theirs(bool now)
{
    failmalloc_pause(!now);
}

void *__real_malloc(size_t size);
void *__real_realloc(void *ptr, size_t size);

static bool library_fails;

static void *library_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return library_fails ? malloc(size) : __real_malloc(size);
}

static void *library_realloc(void *ptr, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return library_fails ? realloc(ptr, size) : __real_realloc(ptr, size);
}

static void library_free(void *ptr, const char *file, int line)
{
    (void)file;
    (void)line;
    free(ptr);
}

/* One allocation in so many of each kind, from `first` on. */
static void try_all(size_t first, size_t step, bool and_all_later)
{
    size_t n;
    size_t i;

    tlsrig_begin(&rig);
    (void)life(); /* What the library makes once. */
    memlink_theirs = theirs;
    failmalloc_start(SIZE_MAX, false);
    ck_assert(life());
    n = failmalloc_stop();
    ck_assert(talk.top[0].got && talk.top[1].got && talk.was_somebody);
    ck_assert_uint_gt(n, 20);
    for (i = first; i < n; i += step) {
        bool right;

        failmalloc_start(i, and_all_later);
        right = life();
        (void)failmalloc_stop();
        ck_assert_msg(right, "allocation %zu of %zu: closed %u %u, codes %d %d, wrong %d %d", i, n,
                      talk.top[0].closed, talk.top[1].closed, talk.top[0].code, talk.top[1].code,
                      talk.top[0].wrong, talk.top[1].wrong);
    }
    /* All is well again. */
    ck_assert(life());
    ck_assert(talk.top[0].got && talk.top[1].got && talk.was_somebody);
    tlsrig_end(&rig);
}

TEST_EACH(every_allocation_of_ours_may_fail, 2)
{
    library_fails = false;
    try_all(0, 1, _i == 1);
}

/* The library makes 20000, so a few are taken; FL_TLS_NOMEM_STEP=1 takes them all. */
#define PARTS 8
#define STEP  97

TEST_EACH(any_allocation_of_the_library_may_fail, 2 * PARTS)
{
    const char *wanted = getenv("FL_TLS_NOMEM_STEP");
    size_t step = wanted != NULL ? strtoul(wanted, NULL, 10) : STEP;
    size_t part = (size_t)_i % PARTS;

    ck_assert_uint_gt(step, 0);
    library_fails = true;
    try_all(part * step, PARTS * step, _i >= PARTS);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (CRYPTO_set_mem_functions(library_malloc, library_realloc, library_free) != 1) {
        return EXIT_FAILURE;
    }
    return suites_run(argv[0]);
}
