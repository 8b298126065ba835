/* Buffers and blobs that are marked secret are wiped before their memory is freed. */
#include <check.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "tests/lib/suites.h"

void __real_explicit_bzero(void *data, size_t len);
void __wrap_explicit_bzero(void *data, size_t len);
void __wrap___explicit_bzero_chk(void *data, size_t len, size_t size);

static size_t n_wiped; /* calls that wiped `secret` */
static const char secret[] = "token";

void __wrap_explicit_bzero(void *data, size_t len)
{
    n_wiped += memmem(data, len, secret, sizeof(secret)) != NULL;
    __real_explicit_bzero(data, len);
}

/* What a compiler with _FORTIFY_SOURCE calls. */
void __wrap___explicit_bzero_chk(void *data, size_t len, size_t size)
{
    ck_assert_uint_le(len, size);
    __wrap_explicit_bzero(data, len);
}

static void setup(void)
{
    n_wiped = 0;
}

static struct fl_buf filled(bool is_secret)
{
    struct fl_buf buf;

    fl_buf_init(&buf, 1 << 20);
    buf.secret = is_secret;
    ck_assert_int_eq(fl_buf_add(&buf, secret, sizeof(secret)), FL_OK);
    return buf;
}

TEST_CASE("secrets", setup, NULL);

TEST(a_secret_buffer_is_wiped_when_it_is_freed)
{
    struct fl_buf buf = filled(true);

    fl_buf_clear(&buf); /* Its bytes remain until then. */
    ck_assert_uint_eq(n_wiped, 0);
    fl_buf_done(&buf);
    ck_assert_uint_eq(n_wiped, 1);
}

TEST(a_secret_buffer_that_grows_leaves_no_copy)
{
    struct fl_buf buf = filled(true);
    const uint8_t *before = buf.data;

    ck_assert_int_eq(fl_buf_reserve(&buf, 100000), FL_OK);
    ck_assert_ptr_ne(buf.data, before);
    ck_assert_uint_eq(n_wiped, 1);
    ck_assert_str_eq((const char *)buf.data, secret);
    fl_buf_done(&buf);
    ck_assert_uint_eq(n_wiped, 2);
}

TEST(a_blob_of_a_secret_buffer_is_wiped_with_its_last_reference)
{
    struct fl_buf buf = filled(true);
    struct fl_blob *blob = NULL;

    ck_assert_int_eq(fl_blob_from_buf(&buf, &blob), FL_OK);
    fl_buf_done(&buf);
    fl_blob_unref(fl_blob_ref(blob));
    ck_assert_uint_eq(n_wiped, 0);
    fl_blob_unref(blob);
    ck_assert_uint_eq(n_wiped, 1);
}

TEST(a_blob_that_is_marked_later_is_wiped)
{
    struct fl_blob *blob = NULL;

    ck_assert_int_eq(fl_blob_create(sizeof(secret), &blob), FL_OK);
    (void)memcpy(fl_blob_fill(blob), secret, sizeof(secret));
    fl_blob_set_secret(blob);
    fl_blob_unref(blob);
    ck_assert_uint_eq(n_wiped, 1);
}

TEST(other_buffers_are_not_wiped)
{
    struct fl_buf buf = filled(false);
    struct fl_blob *blob = NULL;

    ck_assert_int_eq(fl_buf_reserve(&buf, 100000), FL_OK);
    ck_assert_int_eq(fl_blob_from_buf(&buf, &blob), FL_OK);
    fl_blob_unref(blob);
    ck_assert_uint_eq(n_wiped, 0);
}
