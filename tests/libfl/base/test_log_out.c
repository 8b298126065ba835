/* Lines as the journal and machines read them. */

#include <check.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libfl/base/log_out.h"
#include "tests/lib/suites.h"

static int ends[2]; /* of a pipe */

static void setup(void)
{
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    (void)unsetenv("JOURNAL_STREAM");
}

static void tear_down(void)
{
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static const char *written(void)
{
    static char text[8192];
    ssize_t n = read(ends[0], text, sizeof(text) - 1);

    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    return text;
}

/* As systemd says it. */
static void be_journal(int fd)
{
    struct stat st;
    char text[64];

    ck_assert_int_eq(fstat(fd, &st), 0);
    (void)snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino);
    ck_assert_int_eq(setenv("JOURNAL_STREAM", text, 1), 0);
}

TEST_CASE("lines", setup, tear_down);

TEST_EACH(the_journal_gets_priorities_and_no_times, 5)
{
    static const char *const want[] = {"<3>net: x a=1\n", "<4>net: x a=1\n", "<5>net: x a=1\n",
                                       "<6>net: x a=1\n", "<7>net: x a=1\n"};
    struct fl_log_out out;

    be_journal(ends[1]);
    fl_log_out_init(&out, ends[1]);
    fl_log_out_sink(&out, (enum fl_log_level)_i, "net", "x a=1");
    ck_assert_str_eq(written(), want[_i]);
}

TEST(what_is_said_before_there_is_a_log_is_an_error_for_the_journal)
{
    struct fl_log_out out;

    fl_log_out_init(&out, ends[1]);
    fl_log_out_complain(&out, "fl-serverd", "a.yaml:3: no");
    ck_assert_str_eq(written(), "fl-serverd: a.yaml:3: no\n");
    be_journal(ends[1]);
    fl_log_out_init(&out, ends[1]);
    fl_log_out_complain(&out, "fl-serverd", "a.yaml:3: no");
    ck_assert_str_eq(written(), "<3>fl-serverd: a.yaml:3: no\n");
}

TEST(a_stream_that_went_elsewhere_is_not_the_journals)
{
    struct fl_log_out out;

    be_journal(STDIN_FILENO); /* inherited by a program whose output was redirected */
    fl_log_out_init(&out, ends[1]);
    fl_log_out_sink(&out, FL_LOG_NOTICE, "net", "x");
    ck_assert_ptr_nonnull(strstr(written(), "Z notice  net: x\n"));
}

static json_t *parsed(const char *text)
{
    char line[4096];
    size_t n = fl_log_json(line, sizeof(line), "T", FL_LOG_NOTICE, "net", text, NULL);
    json_t *object = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);

    ck_assert_msg(object != NULL, "no JSON: %.*s", (int)n, line);
    return object;
}

TEST(fields_of_a_line_become_members)
{
    json_t *o =
        parsed("round 3 committed: clients=7 accuracy=0.9780 name='a b\"c' id=007 part=-1.5");

    ck_assert_str_eq(json_string_value(json_object_get(o, "time")), "T");
    ck_assert_str_eq(json_string_value(json_object_get(o, "level")), "notice");
    ck_assert_str_eq(json_string_value(json_object_get(o, "component")), "net");
    ck_assert_str_eq(json_string_value(json_object_get(o, "message")), "round 3 committed");
    ck_assert_int_eq(json_integer_value(json_object_get(o, "clients")), 7);
    ck_assert(json_real_value(json_object_get(o, "accuracy")) == 0.978);
    ck_assert_str_eq(json_string_value(json_object_get(o, "name")), "a b\"c");
    ck_assert_str_eq(json_string_value(json_object_get(o, "id")), "007"); /* no number of JSON */
    ck_assert(json_real_value(json_object_get(o, "part")) == -1.5);
    ck_assert_uint_eq(json_object_size(o), 9);
    json_decref(o);
}

static double number_of(const char *value)
{
    char text[128];
    json_t *o;
    double number;

    (void)snprintf(text, sizeof(text), "x a=%s b=1", value);
    o = parsed(text);
    ck_assert_msg(json_is_number(json_object_get(o, "a")), "'%s' is text", value);
    number = json_number_value(json_object_get(o, "a"));
    json_decref(o);
    return number;
}

TEST(every_figure_that_printf_writes_is_a_number)
{
    ck_assert(number_of("1e-05") == 1e-05);
    ck_assert(number_of("-1.5E+20") == -1.5e20);
    ck_assert(number_of("2.302585092994046") == 2.302585092994046);
    ck_assert(number_of("-0.30000000000000004") == -0.30000000000000004);
    ck_assert(number_of("1.7976931348623157e+308") == 1.7976931348623157e308);
    ck_assert(number_of("4.9406564584124654e-324") == 4.9406564584124654e-324);
    ck_assert(number_of("999999999999999") == 999999999999999.0);
    ck_assert(number_of("-999999999999999") == -999999999999999.0);
}

TEST(what_no_double_holds_is_text)
{
    static const char *const texts[] = {"007", "-007",  "1000000000000000", "1e+999", "1e",
                                        "1e+", "12e45", "1.e+05",           "nan",    "inf",
                                        "0x1", "1e-05s"};
    size_t i;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char text[128];
        json_t *o;

        (void)snprintf(text, sizeof(text), "x a=%s b=1", texts[i]);
        o = parsed(text);
        ck_assert_str_eq(json_string_value(json_object_get(o, "a")), texts[i]);
        json_decref(o);
    }
}

TEST(fields_in_the_middle_of_a_text_stay_there)
{
    json_t *o = parsed("refused: wants a=1 and more b=2");

    ck_assert_str_eq(json_string_value(json_object_get(o, "message")),
                     "refused: wants a=1 and more");
    ck_assert_int_eq(json_integer_value(json_object_get(o, "b")), 2);
    json_decref(o);
    o = parsed("x message=no level=9");
    ck_assert_str_eq(json_string_value(json_object_get(o, "message")), "x");
    ck_assert_str_eq(json_string_value(json_object_get(o, "field_message")), "no");
    ck_assert_int_eq(json_integer_value(json_object_get(o, "field_level")), 9);
    json_decref(o);
}

TEST(whatever_is_in_a_line_it_is_one_object)
{
    static const char *const texts[] = {
        "",        " ",     "=",     "a=",   "a='",   "a=''", "a='x",     "\"\\\"",
        "k=\"\\",  "a=1e9", "a=--1", "a=1.", "a=0x1", "a=.5", "q='it' x", "\xc3\xa4=\xe2\x82\xac",
        "a=1 b==2"};
    size_t i;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_decref(parsed(texts[i]));
    }
}

TEST(a_line_that_is_too_long_is_cut_and_still_an_object)
{
    char text[2048];
    char line[512];
    size_t n;
    size_t i;
    json_t *o;

    (void)memset(text, '"', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (i = 256; i <= sizeof(line); i++) {
        n = fl_log_json(line, i, "2026", FL_LOG_ERROR, "net", text, NULL);
        ck_assert_uint_le(n, i);
        o = json_loadb(line, n, 0, NULL);
        ck_assert_ptr_nonnull(json_object_get(o, "message"));
        json_decref(o);
    }
    (void)memset(text, 'a', 100);
    text[100] = '\0';
    for (i = 0; i < 40; i++) {
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), " k%zu=12345", i);
    }
    for (i = 256; i <= sizeof(line); i++) {
        n = fl_log_json(line, i, "2026", FL_LOG_ERROR, "net", text, NULL);
        o = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);
        ck_assert_ptr_nonnull(json_object_get(o, "k0"));
        json_decref(o);
    }
}

TEST(the_format_of_a_running_log_can_change)
{
    struct fl_log_out out;
    json_t *o;

    fl_log_out_init(&out, ends[1]);
    atomic_store(&out.format, (int)FL_LOG_JSON);
    fl_log_out_sink(&out, FL_LOG_WARNING, "net", "x a=1");
    o = json_loads(written(), 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(o, "level")), "warning");
    json_decref(o);
    be_journal(ends[1]);
    fl_log_out_init(&out, ends[1]);
    atomic_store(&out.format, (int)FL_LOG_JSON);
    fl_log_out_sink(&out, FL_LOG_WARNING, "net", "x a=1");
    ck_assert_int_eq(strncmp(written(), "<4>{\"time\":\"", 12), 0);
}

/* --- notes --- */

static struct fl_log log_of(struct fl_log_out *out)
{
    return (struct fl_log){
        .level = FL_LOG_INFO, .sink = fl_log_out_sink, .note = fl_log_out_note, .ctx = out};
}

TEST(a_note_becomes_members_which_replace_words_of_the_same_name)
{
    struct fl_log_out out;
    struct fl_log log = log_of(&out);
    json_t *o;

    fl_log_out_init(&out, ends[1]);
    atomic_store(&out.format, (int)FL_LOG_JSON);
    fl_log_noted(&log, FL_LOG_NOTICE, "server", NULL,
                 FL_LOG_NOTE(PAUSED, FL_LOG_WHOLE("round", 3), FL_LOG_WORD("client", "a'\"b")),
                 "x round=%d bytes=%d", 3, 12);
    o = json_loads(written(), JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(o);
    ck_assert_str_eq(json_string_value(json_object_get(o, "event")), "paused");
    ck_assert_int_eq(json_integer_value(json_object_get(o, "round")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(o, "bytes")), 12);
    ck_assert_str_eq(json_string_value(json_object_get(o, "client")), "a'\"b");
    ck_assert_str_eq(json_string_value(json_object_get(o, "message")), "x");
    json_decref(o);
}

TEST(text_does_not_repeat_what_a_note_says)
{
    struct fl_log_out out;
    struct fl_log log = log_of(&out);

    fl_log_out_init(&out, ends[1]);
    fl_log_noted(&log, FL_LOG_NOTICE, "server", NULL, FL_LOG_NOTE(PAUSED, FL_LOG_WHOLE("round", 3)),
                 "round 3 waits");
    ck_assert_ptr_nonnull(strstr(written(), "Z notice  server: round 3 waits\n"));
}

TEST(a_sink_without_notes_gets_the_text)
{
    struct fl_log_out out;
    struct fl_log log = {.level = FL_LOG_INFO, .sink = fl_log_out_sink, .ctx = &out};

    fl_log_out_init(&out, ends[1]);
    fl_log_noted(&log, FL_LOG_DEBUG, "server", NULL, FL_LOG_NOTE(PAUSED, FL_LOG_WHOLE("round", 3)),
                 "too much detail");
    fl_log_noted(&log, FL_LOG_INFO, "server", NULL, FL_LOG_NOTE(PAUSED, FL_LOG_WHOLE("round", 3)),
                 "plain");
    ck_assert_ptr_nonnull(strstr(written(), "Z info    server: plain\n"));
}

/* A socket in the place of the journal's; `*ret` receives its entries. */
static void journal_begin(struct fl_log_out *out, int *ret)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[64];

    (void)snprintf(path, sizeof(path), "/tmp/fl-journal-%d", (int)getpid());
    (void)memcpy(address.sun_path, path, sizeof(path));
    (void)unlink(path);
    *ret = socket(AF_UNIX, SOCK_DGRAM, 0);
    ck_assert_int_eq(bind(*ret, (const struct sockaddr *)&address, sizeof(address)), 0);
    be_journal(ends[1]);
    fl_log_out_init(out, ends[1]);
    fl_log_out_fields(out, path);
    ck_assert_int_ge(out->socket.fd, 0);
}

static void journal_end(const struct fl_log_out *out, int fd)
{
    (void)unlink(out->socket.address.sun_path);
    (void)close(fd);
    (void)close(out->socket.fd);
}

static const char *journal_entry(int fd)
{
    static char text[16384];
    ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    return text;
}

TEST(the_journal_gets_fields_and_the_id_of_the_event)
{
    struct fl_log_out out;
    struct fl_log log = log_of(&out);
    const char *entry;
    int fd;

    journal_begin(&out, &fd);
    fl_log_noted(&log, FL_LOG_WARNING, "server", NULL,
                 FL_LOG_NOTE(CLIENT_QUARANTINED, FL_LOG_WHOLE("round", 3),
                             FL_LOG_WORD("client", "a\nMESSAGE_ID=1")),
                 "gone round=9 name='x y'");
    entry = journal_entry(fd);
    ck_assert_ptr_nonnull(strstr(entry, "MESSAGE=server: gone round=9 name='x y'\nPRIORITY=4\n"));
    ck_assert_ptr_nonnull(strstr(entry, "\nFL_COMPONENT=server\n"));
    ck_assert_ptr_nonnull(strstr(entry, "\nMESSAGE_ID=2325396bda044865b9d0f755efa4ae18\n"));
    ck_assert_ptr_nonnull(strstr(entry, "\nFL_EVENT=client_quarantined\n"));
    ck_assert_ptr_nonnull(strstr(entry, "\nFL_ROUND=3\n"));
    ck_assert_ptr_null(strstr(entry, "FL_ROUND=9"));
    ck_assert_ptr_nonnull(strstr(entry, "\nFL_NAME=x y\n"));
    ck_assert_ptr_nonnull(strstr(entry, "\nFL_CLIENT=a?MESSAGE_ID=1\n"));
    journal_end(&out, fd);
}

TEST(lines_without_a_note_go_there_too_and_json_stays_in_the_stream)
{
    struct fl_log_out out;
    int fd;

    journal_begin(&out, &fd);
    fl_log_out_sink(&out, FL_LOG_NOTICE, "net", "x a=1");
    ck_assert_ptr_nonnull(strstr(journal_entry(fd), "\nFL_A=1\n"));
    atomic_store(&out.format, (int)FL_LOG_JSON);
    fl_log_out_sink(&out, FL_LOG_NOTICE, "net", "x a=1");
    ck_assert_int_eq(strncmp(written(), "<5>{\"time\":\"", 12), 0);
    journal_end(&out, fd);
}

TEST(without_the_socket_of_the_journal_lines_go_to_the_stream_until_it_is_back)
{
    struct fl_log_out out;
    int fd;

    journal_begin(&out, &fd);
    (void)unlink(out.socket.address.sun_path);
    fl_log_out_sink(&out, FL_LOG_NOTICE, "net", "x a=1");
    ck_assert_str_eq(written(), "<5>net: x a=1\n");
    (void)close(fd);
    fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    ck_assert_int_eq(
        bind(fd, (const struct sockaddr *)&out.socket.address, sizeof(out.socket.address)), 0);
    fl_log_out_sink(&out, FL_LOG_NOTICE, "net", "y");
    ck_assert_ptr_nonnull(strstr(journal_entry(fd), "MESSAGE=net: y\n"));
    journal_end(&out, fd);
}
