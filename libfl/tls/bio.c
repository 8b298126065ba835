#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>

#include "libfl/tls/tls_impl.h"

/* Size of handshake output: flights of a few KiB. */
#define FIRST_BYTES ((size_t)4 * 1024)

static int bio_on_read(BIO *bio, char *data, size_t len, size_t *ret)
{
    struct fl__tls_stream *s = BIO_get_data(bio);
    size_t n = len < s->in_len ? len : s->in_len;

    BIO_clear_retry_flags(bio);
    if (n == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    (void)memcpy(data, s->in, n);
    s->in += n;
    s->in_len -= n;
    *ret = n;
    return 1;
}

/*
 * Slow links have small batches and allocate only what these need; large buffers are passed on as
 * the spare.
 */
static bool out_make_room(struct fl_tls *tls, struct fl__tls_out *out, size_t len)
{
    size_t need = out->len + len;
    size_t cap = out->cap;
    uint8_t *data;

    if (need <= cap) {
        return true;
    }
    if (out->data == NULL && need > FL__TLS_BATCH_BYTES / 2 && need <= FL__TLS_BATCH_BYTES) {
        if (tls->spare != NULL) {
            out->data = tls->spare;
            out->cap = FL__TLS_BATCH_BYTES;
            tls->spare = NULL;
            return true;
        }
        cap = FL__TLS_BATCH_BYTES;
    } else if (out->data == NULL) {
        cap = need > FIRST_BYTES ? need : FIRST_BYTES;
    }
    while (cap < need) {
        cap *= 2;
    }
    data = realloc(out->data, cap);
    if (data == NULL) {
        return false;
    }
    out->data = data;
    out->cap = cap;
    return true;
}

bool fl__tls_out_reserve(struct fl__tls_stream *s, size_t plain)
{
    FL_REQUIRE(!s->out_busy);
    return out_make_room(s->tls, &s->out, FL__TLS_WIRE_BYTES(plain));
}

bool fl__tls_out_add(struct fl__tls_stream *s, const void *data, size_t len)
{
    struct fl__tls_out *out = s->out_busy ? &s->later : &s->out;

    if (!out_make_room(s->tls, out, len)) {
        s->no_memory = true;
        return false;
    }
    (void)memcpy(out->data + out->len, data, len);
    out->len += len;
    return true;
}

void fl__tls_out_done(struct fl__tls_stream *s, struct fl__tls_out *out)
{
    if (out->cap == FL__TLS_BATCH_BYTES && s->tls->spare == NULL) {
        s->tls->spare = out->data;
    } else {
        free(out->data);
    }
    *out = (struct fl__tls_out){0};
}

static int on_write(BIO *bio, const char *data, size_t len, size_t *ret)
{
    BIO_clear_retry_flags(bio);
    if (!fl__tls_out_add(BIO_get_data(bio), data, len)) {
        return 0;
    }
    *ret = len;
    return 1;
}

static long on_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    (void)bio;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD *fl__tls_bio_method(void)
{
    BIO_METHOD *made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "fl stream");

    if (made == NULL || BIO_meth_set_read_ex(made, bio_on_read) != 1 ||
        BIO_meth_set_write_ex(made, on_write) != 1 || BIO_meth_set_ctrl(made, on_ctrl) != 1)
    {
        BIO_meth_free(made);
        return NULL;
    }
    return made;
}

BIO *fl__tls_bio(struct fl__tls_stream *s)
{
    BIO *bio = BIO_new(s->tls->bio_method);

    if (bio != NULL) {
        BIO_set_data(bio, s);
        BIO_set_init(bio, 1);
    }
    return bio;
}
