/* NPZ archives: stored and deflated entries, and archives with false headers. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "libfl/data/dataset.h"
#include "libfl/data/zip.h"
#include "tests/lib/data_files.h"
#include "tests/lib/suites.h"

#define NPY_X "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }"
#define NPY_Y "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }"

static char dir[T_PATH];
static uint8_t archive[8192];
static size_t length;
/* Of the next entry: what its directory says differently. */
static struct forged {
    unsigned method, flags;
    uint32_t size, packed, crc;
    bool set;
} forged;

static void setup(void)
{
    t_dir(dir);
    length = 0;
    forged = (struct forged){.set = false};
}

static void teardown(void)
{
    t_dir_remove(dir);
}

static void put(size_t n, uint64_t value)
{
    for (; n > 0; n--, value >>= 8) {
        ck_assert(length < sizeof(archive));
        archive[length++] = (uint8_t)value;
    }
}

static void put_bytes(const void *data, size_t len)
{
    ck_assert(len <= sizeof(archive) - length);
    (void)memcpy(archive + length, data, len);
    length += len;
}

static struct entry {
    const char *name;
    unsigned method, flags;
    uint32_t crc, packed, size, at;
} entries[4];
static size_t n_entries;

/* An NPY array as an entry, deflated or stored. */
static void add_array(const char *name, const char *dict, const void *data, size_t len,
                      bool deflated)
{
    uint8_t npy[512], out[1024];
    struct entry *e = &entries[n_entries++];
    size_t n =
        (size_t)snprintf((char *)npy, sizeof(npy), "\x93NUMPY\1%c%c%c%s", 'x', 'x', 'x', dict);
    z_stream z = {.next_in = npy};

    npy[7] = 0;
    npy[8] = (uint8_t)strlen(dict);
    npy[9] = 0;
    (void)memcpy(npy + n, data, len);
    n += len;
    *e = (struct entry){.name = name,
                        .method = deflated ? 8 : 0,
                        .crc = (uint32_t)crc32(0, npy, (uInt)n),
                        .size = (uint32_t)n,
                        .packed = (uint32_t)n,
                        .at = (uint32_t)length};
    (void)memcpy(out, npy, n);
    if (deflated) {
        z.avail_in = (uInt)n;
        z.next_out = out;
        z.avail_out = sizeof(out);
        ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
        ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
        e->packed = (uint32_t)z.total_out;
        (void)deflateEnd(&z);
    }
    put(4, 0x04034b50);
    put(22, 0);
    put(2, strlen(name));
    put(2, 0);
    put_bytes(name, strlen(name));
    put_bytes(out, e->packed);
    if (forged.set) {
        e->method = forged.method;
        e->flags = forged.flags;
        e->size = forged.size != 0 ? forged.size : e->size;
        e->packed = forged.packed != 0 ? forged.packed : e->packed;
        e->crc ^= forged.crc;
        forged.set = false;
    }
}

static void add_directory(const char *comment)
{
    uint32_t at = (uint32_t)length;
    uint32_t size;
    size_t i;

    for (i = 0; i < n_entries; i++) {
        const struct entry *e = &entries[i];

        put(4, 0x02014b50);
        put(4, 0);
        put(2, e->flags);
        put(2, e->method);
        put(4, 0);
        put(4, e->crc);
        put(4, e->packed);
        put(4, e->size);
        put(2, strlen(e->name));
        put(12, 0);
        put(4, e->at);
        put_bytes(e->name, strlen(e->name));
    }
    size = (uint32_t)length - at;
    put(4, 0x06054b50);
    put(4, 0);
    put(2, n_entries);
    put(2, n_entries);
    put(4, size);
    put(4, at);
    put(2, strlen(comment));
    put_bytes(comment, strlen(comment));
    n_entries = 0;
}

static void add_pair(bool deflated)
{
    const float x[2] = {1.5F, -2};

    add_array("x.npy", NPY_X, x, sizeof(x), deflated);
    add_array("y.npy", NPY_Y, "\3\1", 2, deflated);
}

static void expect(int code, const char *rest)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    char want[T_PATH + 512];
    int rv;

    t_write(dir, "train.npz", archive, length);
    rv = fl_dataset_open(dir, "train", &ds, &err);
    (void)snprintf(want, sizeof(want), "'%s/train.npz%s", dir, rest);
    ck_assert_msg(rv == code && strstr(err.msg, want) != NULL, "%d: \"%s\" lacks \"%s\"", rv,
                  err.msg, want);
    ck_assert_ptr_null(ds);
}

static void expect_pair(void)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};

    t_write(dir, "train.npz", archive, length);
    ck_assert_msg(fl_dataset_open(dir, "train", &ds, &err) == FL_OK, "%s", err.msg);
    ck_assert_str_eq(ds->format, "npz");
    ck_assert(ds->n == 2 && ds->classes == 4);
    ck_assert_mem_eq(ds->x, ((float[]){1.5F, -2}), 2 * sizeof(float));
    ck_assert_mem_eq(ds->y, ((int32_t[]){3, 1}), 2 * sizeof(int32_t));
    fl_dataset_free(ds);
}

TEST_CASE("archives", setup, teardown);

TEST(stored_and_deflated_arrays_are_read)
{
    add_pair(false);
    add_directory("");
    expect_pair();
    length = 0;
    add_pair(true);
    add_directory("with a comment");
    expect_pair();
}

TEST(one_archive_can_hold_both_parts)
{
    struct fl_dataset *ds = NULL;
    const float x[2] = {0, 0};

    add_array("x_test.npy", NPY_X, x, sizeof(x), true);
    add_array("y_test.npy", NPY_Y, "\0\1", 2, true);
    add_directory("");
    t_write(dir, "data.npz", archive, length);
    ck_assert(fl_dataset_has(dir, "test") && fl_dataset_has(dir, "train"));
    ck_assert_int_eq(fl_dataset_open(dir, "test", &ds, NULL), FL_OK);
    fl_dataset_free(ds);
    ds = NULL;
    ck_assert_int_eq(fl_dataset_open(dir, "train", &ds, NULL), FL_ENOENT);
}

TEST(what_is_no_archive_or_cut_short_is_refused)
{
    add_pair(true);
    add_directory("");
    length -= 1;
    expect(FL_EFORMAT, "': expected a ZIP archive, found no end record");
    length = 10;
    expect(FL_EFORMAT, "': expected a ZIP archive, found too few bytes");
}

TEST(a_missing_array_is_named)
{
    const float x[2] = {0, 0};

    add_array("x.npy", NPY_X, x, sizeof(x), true);
    add_array("labels.npy", NPY_Y, "\0\1", 2, true);
    add_directory("");
    expect(FL_ENOENT, "': expected the entry 'y.npy', found none of this name");
}

TEST(an_array_that_is_wrong_is_named_with_its_archive)
{
    add_array("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (9000000000, 1), }", "",
              0, true);
    add_array("y.npy", NPY_Y, "\0\1", 2, true);
    add_directory("");
    expect(FL_ELIMIT, ": x.npy': expected at most 2147483648 samples, found 9000000000");
    length = 0;
    add_array("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99), }", "", 0, true);
    add_array("y.npy", NPY_Y, "\0\1", 2, true);
    add_directory("");
    expect(FL_EFORMAT, ": x.npy': truncated: expected ");
}

static const struct {
    struct forged forged;
    int code;
    const char *message;
} bad_entries[] = {
    {{.method = 8, .flags = 1}, FL_EFORMAT, ": x.npy': expected no encryption"},
    {{.method = 12}, FL_EFORMAT, ": x.npy': expected a stored or deflated entry, found method 12"},
    {{.method = 8, .crc = 1}, FL_EFORMAT, ": x.npy': damaged: wrong checksum"},
    {{.method = 8, .size = 70}, FL_EFORMAT, ": x.npy': damaged: expected 70 bytes, found more"},
    {{.method = 8, .size = 99}, FL_EFORMAT, ": x.npy': damaged: expected 99 bytes, found 77"},
    {{.method = 8, .packed = 20}, FL_EFORMAT, ": x.npy': damaged: after "},
    {{.method = 8, .packed = 1000000},
     FL_EFORMAT,
     ": x.npy': damaged archive: its 1000000 packed bytes are not there"},
    {{.method = 8, .size = 1000000000}, FL_ELIMIT, ": x.npy': expected at most 200 times the "},
    {{.method = 0, .size = 12}, FL_EFORMAT, ": x.npy': damaged archive: 12 bytes are stored as "},
};

TEST_EACH(an_entry_that_lies_is_refused, sizeof(bad_entries) / sizeof(*bad_entries))
{
    const float x[2] = {1.5F, -2};

    forged = bad_entries[_i].forged;
    forged.set = true;
    add_array("x.npy", NPY_X, x, sizeof(x), true);
    add_array("y.npy", NPY_Y, "\3\1", 2, true);
    add_directory("");
    expect(bad_entries[_i].code, bad_entries[_i].message);
}

TEST(a_bomb_is_refused_before_it_is_unpacked)
{
    /* 300 MB of zeros pack 1000 to 1: more than deflate of data does. */
    struct forged bomb = {.method = 8, .size = 300000000, .packed = 400000, .set = true};
    uint8_t *file = calloc(1, 500000);
    char path[T_PATH];
    struct fl__zip zip;
    struct fl_source src;
    struct fl_err err = {0};

    ck_assert_ptr_nonnull(file);
    forged = bomb;
    add_array("x.npy", NPY_X, "12345678", 8, true);
    /* The packed bytes end far behind: the directory is put there. */
    (void)memcpy(file, archive, length);
    length = 0;
    add_directory("");
    (void)memcpy(file + 450000, archive, length);
    file[450000 + length - 6] = (uint8_t)(450000 & 0xff); /* where the directory is */
    file[450000 + length - 5] = (uint8_t)(450000 >> 8 & 0xff);
    file[450000 + length - 4] = (uint8_t)(450000 >> 16);
    t_write(dir, "z", file, 450000 + length);
    ck_assert_msg(fl__zip_open(&zip, t_path(path, dir, "z"), &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl__zip_source(&src, &zip, "x.npy", "z: x.npy", &err), FL_ELIMIT);
    ck_assert_ptr_nonnull(strstr(err.msg, "this looks like a ZIP bomb"));
    fl__zip_close(&zip);
    free(file);
}
