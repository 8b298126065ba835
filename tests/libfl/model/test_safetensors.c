#include <check.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/model/safetensors.h"
#include "tests/lib/suites.h"

TESTS_APART("each makes a folder from the template of the process");

static char dir[] = "/tmp/fl-test-safetensors-XXXXXX";
static char path[128];

static const char model_text[] = "unit fc1\n"
                                 "fc1.weight 3x4\n"
                                 "fc1.bias 3\n"
                                 "unit bn\n"
                                 "bn.running_mean 3 buffer\n"
                                 "bn.scale scalar\n";

static const struct fl_st_meta metas[] = {{"round", "7 \"quoted\" \\ \n end"}, {"empty", ""}};

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/m.safetensors", dir);
}

static void tear_down(void)
{
    (void)unlink(path);
    (void)rmdir(dir);
}

static struct fl_layout *layout_of(const char *text)
{
    struct fl_layout *layout = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_layout_from_text(text, strlen(text), &layout, &err) == FL_OK, "%s", err.msg);
    return layout;
}

static void save_model(const struct fl_layout *layout, float *params)
{
    struct fl_err err = {0};
    size_t i;

    for (i = 0; i < fl_layout_count(layout); i++) {
        params[i] = (float)i * 0.5f - 3.0f;
    }
    ck_assert_msg(fl_st_save_sealed(path, layout, params, metas, 2, true, &err) == FL_OK, "%s",
                  err.msg);
}

TEST_CASE("safetensors", set_up, tear_down);

TEST(what_is_saved_is_loaded_with_layout_and_metadata)
{
    struct fl_layout *layout = layout_of(model_text);
    struct fl_layout *read = NULL;
    float params[19];
    float loaded[19] = {0};
    struct fl_err err = {0};
    char value[64];

    ck_assert_uint_eq(fl_layout_count(layout), 19);
    save_model(layout, params);
    ck_assert_msg(fl_st_layout(path, &read, &err) == FL_OK, "%s", err.msg);
    ck_assert(fl_layout_equal(layout, read));
    ck_assert_uint_eq(fl_layout_trainable(read), fl_layout_trainable(layout));
    ck_assert_msg(fl_st_load(path, read, loaded, &err) == FL_OK, "%s", err.msg);
    ck_assert_mem_eq(params, loaded, sizeof(params));
    ck_assert_int_eq(fl_st_meta(path, "round", value, sizeof(value), NULL), FL_OK);
    ck_assert_str_eq(value, metas[0].value);
    ck_assert_int_eq(fl_st_meta(path, "empty", value, sizeof(value), NULL), FL_OK);
    ck_assert_str_eq(value, "");
    ck_assert_int_eq(fl_st_meta(path, "nothing", value, sizeof(value), &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "nothing"));
    ck_assert_int_eq(fl_st_meta(path, "round", value, 3, &err), FL_ELIMIT);
    fl_layout_free(layout);
    fl_layout_free(read);
}

TEST(a_header_and_the_parameters_make_a_file_of_the_same_layout)
{
    struct fl_layout *layout = layout_of(model_text);
    struct fl_layout *read = NULL;
    float params[19];
    float loaded[19];
    struct fl_buf header;

    save_model(layout, params);
    ck_assert_int_eq(fl_st_header(layout, metas, 2, &header), FL_OK);
    ck_assert_int_eq(fl_buf_add(&header, params, sizeof(params)), FL_OK);
    ck_assert_int_eq(fl_fs_replace(path, header.data, header.len, false, NULL), FL_OK);
    ck_assert_int_eq(fl_st_layout(path, &read, NULL), FL_OK);
    ck_assert_mem_eq(fl_layout_digest(read), fl_layout_digest(layout), FL_DIGEST_SIZE);
    ck_assert_int_eq(fl_st_load(path, read, loaded, NULL), FL_OK);
    ck_assert_mem_eq(loaded, params, sizeof(params));
    fl_buf_done(&header);
    fl_layout_free(layout);
    fl_layout_free(read);
}

static int run_python(const char *verb)
{
    const char *python = getenv("FL_PYTHON");
    const char *src = getenv("FL_SRCDIR");
    char script[1024];
    int status = 0;
    pid_t pid;

    if (python == NULL || python[0] == '\0' || src == NULL) {
        return -1;
    }
    (void)snprintf(script, sizeof(script), "%s/tests/libfl/model/check_safetensors.py", src);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)execlp(python, python, "-c", "import numpy", (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    if (status != 0) {
        return -1;
    }
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)execlp(python, python, script, verb, path, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

TEST(python_reads_what_we_write)
{
    struct fl_layout *layout = layout_of(model_text);
    float params[19];
    int rv;

    save_model(layout, params);
    rv = run_python("check");
    if (rv < 0) {
        (void)printf("skipped: python3 with numpy is not here\n");
    } else {
        ck_assert_int_eq(rv, 0);
    }
    fl_layout_free(layout);
}

TEST(we_read_what_python_writes_in_four_types)
{
    struct fl_layout *want = layout_of("unit fc1\nfc1.weight 3x4\nfc1.bias 3\n"
                                       "unit bn\nbn.running_mean 3 buffer\n");
    struct fl_layout *have = NULL;
    struct fl_err err = {0};
    float p[18] = {0};
    char diff[256];
    int rv = run_python("write");
    size_t i;

    if (rv < 0) {
        (void)printf("skipped: python3 with numpy is not here\n");
        fl_layout_free(want);
        return;
    }
    ck_assert_int_eq(rv, 0);
    ck_assert_msg(fl_st_load(path, want, p, &err) == FL_OK, "%s", err.msg);
    for (i = 0; i < 12; i++) {
        ck_assert(p[i] == (float)i / 4.0f);
    }
    ck_assert(p[12] == 0.5f && p[13] == -2.0f && p[14] == 0x1p-24f); /* 6e-8 is the least half */
    ck_assert(p[15] == 1.0f && p[16] == -1.5f && p[17] == 3.0f);
    /* Without our metadata: units in data order, known buffers, no counter. */
    ck_assert_msg(fl_st_layout(path, &have, &err) == FL_OK, "%s", err.msg);
    fl_layout_free(want);
    want = layout_of("unit bn\nbn.running_mean 3 buffer\nunit fc1\nfc1.bias 3\nfc1.weight 3x4\n");
    fl_layout_diff(have, want, diff, sizeof(diff));
    ck_assert_str_eq(diff, "no difference");
    fl_layout_free(want);
    fl_layout_free(have);
}

/* A file of `header` with its length in front and `n_data` zero bytes behind. */
static void write_raw(const char *header, size_t n_data)
{
    static const uint8_t zeros[256];
    struct fl_buf buf;
    uint8_t prefix[8] = {0};
    uint64_t len = strlen(header);
    size_t i;

    for (i = 0; i < 8; i++) {
        prefix[i] = (uint8_t)(len >> (8 * i));
    }
    fl_buf_init(&buf, 1 << 20);
    ck_assert_int_eq(fl_buf_add(&buf, prefix, 8), FL_OK);
    ck_assert_int_eq(fl_buf_add(&buf, header, strlen(header)), FL_OK);
    ck_assert_int_eq(fl_buf_add(&buf, zeros, n_data), FL_OK);
    ck_assert_int_eq(fl_fs_replace(path, buf.data, buf.len, false, NULL), FL_OK);
    fl_buf_done(&buf);
}

#define W(dtype, shape, offsets) \
    "{\"a.w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const struct {
    const char *header;
    size_t n_data;
    const char *words;
} bad_files[] = {
    {"", 0, "claims 0 bytes"},
    {"{}", 0, "no tensors"},
    {"{}", 4, "4 bytes follow the last tensor"},
    {"[]", 0, "not a JSON object"},
    {"{\"a.w\":", 0, "not JSON"},
    {"{\"a.w\":1}", 0, "tensor 'a.w': not an object"},
    {"{\"__metadata__\":[]}", 0, "'__metadata__' is not an object"},
    {"{\"a.w\":{}}", 0, "'dtype' is missing"},
    {W("7", "[1]", "[0,4]"), 4, "'dtype' is missing or not a string"},
    {W("\"C64\"", "[1]", "[0,4]"), 4, "'dtype' is 'C64', expected F32, F16, BF16 or F64"},
    {W("\"F32\"", "1", "[0,4]"), 4, "'shape' is not a list"},
    {W("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "'shape' is not a list of at most 8"},
    {W("\"F32\"", "[-1]", "[0,4]"), 4, "integers above 0"},
    {W("\"F32\"", "[1.0]", "[0,4]"), 4, "integers above 0"},
    {W("\"F32\"", "[0]", "[0,0]"), 0, "integers above 0"},
    {W("\"F32\"", "[4294967296,4294967296]", "[0,4]"), 4, "more than 2^"},
    {W("\"F32\"", "[1]", "[0]"), 4, "pair of rising numbers"},
    {W("\"F32\"", "[1]", "[4,0]"), 4, "pair of rising numbers"},
    {W("\"F32\"", "[1]", "[-4,0]"), 4, "pair of rising numbers"},
    {W("\"F32\"", "[1]", "[0,8]"), 8, "span 8 bytes, the shape needs 4"},
    {W("\"F32\"", "[2]", "[0,8]"), 4, "end at 8, but the file has 4"},
    {W("\"F32\"", "[1]", "[4,8]"), 8, "begins at byte 4 of the data, expected 0 (there is a gap)"},
    {W("\"F32\"", "[1]", "[0,4]"), 9, "5 bytes follow the last tensor"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
     12, "tensor 'b' begins at byte 4 of the data, expected 8 (tensors overlap)"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
     8, "not JSON: duplicate object key"},
    {"{\"a b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "name"},
    {"{\"n.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}", 8,
     "no tensors"},
    {"{\"__metadata__\":{\"fl.layout\":\"unit a\\na.w 2\\n\"},"
     "\"a.w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
     4, "metadata 'fl.layout': tensor 'a.w' is 1, expected 2"},
    {"{\"__metadata__\":{\"fl.layout\":\"unit\"},"
     "\"a.w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
     4, "metadata 'fl.layout': layout text, line 1"},
};

TEST_EACH(a_malformed_file_is_refused_with_the_reason, ARRAY_LEN(bad_files))
{
    struct fl_layout *layout = NULL;
    struct fl_err err = {0};

    write_raw(bad_files[_i].header, bad_files[_i].n_data);
    ck_assert_int_eq(fl_st_layout(path, &layout, &err), FL_EFORMAT);
    ck_assert_ptr_null(layout);
    ck_assert_msg(strstr(err.msg, path) != NULL, "'%s' does not name the file", err.msg);
    ck_assert_msg(strstr(err.msg, bad_files[_i].words) != NULL, "'%s' does not say '%s'", err.msg,
                  bad_files[_i].words);
    ck_assert_int_eq(fl_st_layout(path, &layout, NULL), FL_EFORMAT);
}

TEST(a_lying_length_or_a_short_file_is_refused)
{
    static const uint8_t huge[9] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{'};
    struct fl_layout *layout = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_fs_replace(path, huge, 9, false, NULL), FL_OK);
    ck_assert_int_eq(fl_st_layout(path, &layout, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "claims 18446744073709551615 bytes"));
    ck_assert_int_eq(fl_fs_replace(path, huge, 7, false, NULL), FL_OK);
    ck_assert_int_eq(fl_st_layout(path, &layout, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "too few"));
    ck_assert_int_eq(fl_fs_replace(path, "", 0, false, NULL), FL_OK);
    ck_assert_int_eq(fl_st_layout(path, &layout, &err), FL_EFORMAT);
    ck_assert_int_eq(fl_st_layout("/nonexistent/x", &layout, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "/nonexistent/x"));
    ck_assert_int_eq(fl_st_layout(dir, &layout, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "not a regular file"));
}

TEST(every_cut_of_a_good_file_is_refused)
{
    struct fl_layout *layout = layout_of(model_text);
    struct fl_layout *read = NULL;
    float params[19];
    struct fl_buf file;
    size_t len;

    save_model(layout, params);
    ck_assert_int_eq(fl_fs_read(path, 1 << 20, &file, NULL), FL_OK);
    for (len = 0; len < file.len; len++) {
        ck_assert_int_eq(fl_fs_replace(path, file.data, len, false, NULL), FL_OK);
        ck_assert_int_eq(fl_st_layout(path, &read, NULL), FL_EFORMAT);
        ck_assert_int_eq(fl_st_load(path, layout, params, NULL), FL_EFORMAT);
    }
    fl_buf_done(&file);
    fl_layout_free(layout);
}

/* Where a flip hides the checksum itself, the file says that it has none. */
TEST(every_flipped_bit_of_a_saved_file_is_found)
{
    struct fl_layout *layout = layout_of(model_text);
    float params[19];
    struct fl_buf file;
    size_t bit;

    save_model(layout, params);
    ck_assert_int_eq(fl_fs_read(path, 1 << 20, &file, NULL), FL_OK);
    for (bit = 0; bit < file.len * 8; bit++) {
        char value[64];
        struct fl_st_field field = {.key = "round", .out = value, .size = sizeof(value)};
        bool checked = true;
        int rv;

        file.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        ck_assert_int_eq(fl_fs_replace(path, file.data, file.len, false, NULL), FL_OK);
        rv = fl_st_load_fields(path, layout, params, &field, 1, &checked, NULL);
        ck_assert_msg(rv == FL_EFORMAT || (rv == FL_ESHAPE && bit / 8 < 64) ||
                          (rv == FL_OK && !checked && bit / 8 < 64),
                      "bit %zu: %d", bit, rv);
        file.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    fl_buf_done(&file);
    fl_layout_free(layout);
}

TEST(metadata_comes_with_the_tensors_and_says_whether_they_were_checked)
{
    struct fl_layout *layout = layout_of(model_text);
    float params[19];
    char round[64];
    char none[8] = "x";
    struct fl_st_field fields[] = {{.key = "round", .out = round, .size = sizeof(round)},
                                   {.key = "nothing", .out = none, .size = sizeof(none)}};
    struct fl_buf header;
    bool checked = false;

    save_model(layout, params);
    ck_assert_int_eq(fl_st_load_fields(path, layout, params, fields, 2, &checked, NULL), FL_OK);
    ck_assert(checked && fields[0].found && !fields[1].found);
    ck_assert_str_eq(round, metas[0].value);
    ck_assert_str_eq(none, "");
    fields[0].size = 2;
    ck_assert_int_eq(fl_st_load_fields(path, layout, params, fields, 2, &checked, NULL),
                     FL_EFORMAT);
    /* What is exported carries none, and loads as files of other programs do. */
    ck_assert_int_eq(fl_st_header(layout, metas, 2, &header), FL_OK);
    ck_assert_int_eq(fl_buf_add(&header, params, sizeof(params)), FL_OK);
    ck_assert_int_eq(fl_fs_replace(path, header.data, header.len, false, NULL), FL_OK);
    ck_assert_int_eq(fl_st_load_fields(path, layout, params, NULL, 0, &checked, NULL), FL_OK);
    ck_assert(!checked);
    fl_buf_done(&header);
    fl_layout_free(layout);
}

TEST(a_header_of_brackets_is_refused_before_it_is_parsed)
{
    struct fl_layout *layout = NULL;
    struct fl_err err = {0};
    size_t n = 900000;
    char *header = malloc(n + 1);
    size_t i;

    ck_assert_ptr_nonnull(header);
    for (i = 0; i < n; i++) {
        header[i] = "[],"[i % 3];
    }
    header[0] = '{';
    header[n] = '\0';
    write_raw(header, 0);
    ck_assert_int_eq(fl_st_layout(path, &layout, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "describes more than"));
    free(header);
}

static const struct {
    const char *layout;
    const char *words;
} misfits[] = {
    {"unit fc1\nfc1.weight 3x5\nfc1.bias 3\nunit bn\nbn.running_mean 3 buffer\nbn.scale scalar\n",
     "tensor 'fc1.weight' is 3x4, expected 3x5"},
    {"unit fc1\nfc1.weight 3x4\nfc1.bias 3\nfc1.more 1\nunit bn\nbn.running_mean 3 buffer\n"
     "bn.scale scalar\n",
     "tensor 'fc1.more' is missing"},
    {"unit fc1\nfc1.weight 3x4\nfc1.bias 3\nunit bn\nbn.running_mean 3 buffer\n",
     "tensor 'bn.scale' is not part of the model"},
};

TEST_EACH(another_shape_is_named_when_loading, ARRAY_LEN(misfits))
{
    struct fl_layout *layout = layout_of(model_text);
    struct fl_layout *other = layout_of(misfits[_i].layout);
    struct fl_err err = {0};
    float params[32];

    save_model(layout, params);
    ck_assert_int_eq(fl_st_load(path, other, params, &err), FL_ESHAPE);
    ck_assert_msg(strstr(err.msg, misfits[_i].words) != NULL, "'%s' does not say '%s'", err.msg,
                  misfits[_i].words);
    fl_layout_free(layout);
    fl_layout_free(other);
}

TEST(a_folder_that_is_not_there_fails_and_leaves_nothing)
{
    struct fl_layout *layout = layout_of(model_text);
    float params[19] = {0};
    struct fl_err err = {0};

    ck_assert_int_eq(fl_st_save("/nonexistent/m", layout, params, NULL, 0, false, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "/nonexistent/m"));
    /* The target is a folder: the temporary file is taken away again. */
    ck_assert_int_ne(fl_st_save(dir, layout, params, NULL, 0, false, &err), FL_OK);
    (void)snprintf(path, sizeof(path), "%s.tmp", dir);
    ck_assert(!fl_fs_exists(path));
    fl_layout_free(layout);
}
