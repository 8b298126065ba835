/*
 * Formats log lines as text, for the journal or as JSON, and writes them to a descriptor with one
 * write(2) each. Any thread. Does not filter by level or rate (log.c).
 */

#include "libfl/base/log_out.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "libfl/base/log_words.h"
#include "libfl/base/str.h"

#define LINE_MAX_BYTES 4096
#define TIME_SIZE      32

const char *const fl_log_formats[] = {[FL_LOG_TEXT] = "text", [FL_LOG_JSON] = "json", NULL};
/* syslog(3) priorities of the levels. */
static const int priorities[] = {3, 4, 5, 6, 7};

bool fl_log_is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char ours[64];
    struct stat st;

    if (stream == NULL || fstat(fd, &st) != 0) {
        return false;
    }
    (void)snprintf(ours, sizeof(ours), "%llu:%llu", (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino);
    return strcmp(stream, ours) == 0;
}

void fl_log_out_init(struct fl_log_out *out, int fd)
{
    out->fd = fd;
    out->journal = fl_log_is_journal(fd);
    atomic_init(&out->socket.fd, -1);
    atomic_init(&out->format, FL_LOG_TEXT);
}

void fl_log_out_fields(struct fl_log_out *out, const char *path)
{
    if (out != NULL && out->journal && atomic_load(&out->socket.fd) < 0) {
        fl_log_journal_open(&out->socket, path);
    }
}

static void write_line(const struct fl_log_out *out, char *line, size_t n, size_t size)
{
    n = n < size ? n : size - 1;
    line[n - 1] = '\n';
    if (write(out->fd, line, n) < 0) {
        return; /* The error cannot be reported anywhere. */
    }
}

static const char *now_text(char out[TIME_SIZE])
{
    struct timeval tv;
    struct tm tm;
    size_t n;

    (void)gettimeofday(&tv, NULL);
    (void)gmtime_r(&tv.tv_sec, &tm);
    n = strftime(out, TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(out + n, TIME_SIZE - n, ".%03ldZ", (long)tv.tv_usec / 1000);
    return out;
}

void fl_log_out_note(void *ctx, enum fl_log_level level, const char *component, const char *text,
                     const struct fl_log_note *note)
{
    struct fl_log_out *out = ctx;
    bool json = atomic_load(&out->format) == FL_LOG_JSON;
    char line[LINE_MAX_BYTES];
    char when[TIME_SIZE];
    size_t n = 0;

    if (!json && atomic_load(&out->socket.fd) >= 0 &&
        fl_log_journal_send(&out->socket, priorities[level], component, text, note))
    {
        return;
    }
    if (out->journal) {
        n = (size_t)snprintf(line, sizeof(line), "<%d>", priorities[level]);
    }
    if (json) {
        n += fl_log_json(line + n, sizeof(line) - n - 1, now_text(when), level, component, text,
                         note);
        n++;
    } else if (out->journal) {
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%s: %s\n", component, text);
    } else {
        n = (size_t)snprintf(line, sizeof(line), "%s %-7s %s: %s\n", now_text(when),
                             fl_log_names[level], component, text);
    }
    write_line(out, line, n, sizeof(line));
}

void fl_log_out_sink(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    fl_log_out_note(ctx, level, component, text, NULL);
}

void fl_log_out_complain(const struct fl_log_out *out, const char *program, const char *text)
{
    char line[LINE_MAX_BYTES];
    size_t n = (size_t)snprintf(line, sizeof(line), "%s%s: %s\n", out->journal ? "<3>" : "",
                                program, text);

    write_line(out, line, n, sizeof(line));
}

/* --- JSON --- */

/* The output so far; an addition is complete or absent, except a long text, which is truncated. */
struct json {
    char *out;
    size_t n, size;
};

static bool json_put(struct json *j, const char *data, size_t n)
{
    if (j->n + n > j->size) {
        return false;
    }
    (void)memcpy(j->out + j->n, data, n);
    j->n += n;
    return true;
}

/* Append the escaped text, up to the first character that would leave less than `spare` bytes. */
static void put_text(struct json *j, const char *text, size_t len, size_t spare)
{
    size_t i = 0;

    while (i < len) {
        size_t n = fl_str_utf8((const uint8_t *)text + i, len - i);
        bool special = text[i] == '"' || text[i] == '\\';

        n = n > 0 ? n : 1;
        if (j->n + n + (special ? 1 : 0) + spare > j->size) {
            return;
        }
        if (special) {
            (void)json_put(j, "\\", 1);
        }
        (void)json_put(j, text + i, n);
        i += n;
    }
}

/* "key":"text", with its comma unless it is the first. */
static bool put_member(struct json *j, const char *key, size_t key_len, const char *value,
                       size_t len, bool number)
{
    size_t before = j->n;
    bool ok = json_put(j, j->n > 1 ? ",\"" : "\"", j->n > 1 ? 2 : 1) && json_put(j, key, key_len) &&
              json_put(j, number ? "\":" : "\":\"", number ? 2 : 3);
    size_t begin = j->n;

    if (ok && number) {
        ok = json_put(j, value, len);
    } else if (ok) {
        put_text(j, value, len, 2);
        ok = (j->n > begin || len == 0) && json_put(j, "\"", 1);
    }
    ok = ok && j->n < j->size; /* Room for the closing brace. */
    j->n = ok ? j->n : before;
    return ok;
}

#define DIGITS "0123456789"

/* Length of "e-05" at `s`, 0: none. printf() always writes the sign; without one, 12e45 is as
   likely the beginning of a digest in hexadecimal. */
static size_t exponent_at(const char *s)
{
    size_t n = (s[0] == 'e' || s[0] == 'E') && (s[1] == '+' || s[1] == '-') ? 2 : 0;
    size_t digits = n > 0 ? strspn(s + n, DIGITS) : 0;

    return digits > 0 ? n + digits : 0;
}

/* Is it a JSON number that a double holds: finite, and every digit of a whole one? */
static bool is_number(const char *s, size_t len)
{
    size_t sign = len > 0 && s[0] == '-' ? 1 : 0;
    size_t whole = strspn(s + sign, DIGITS);
    size_t end = sign + whole;

    if (whole == 0 || (whole > 1 && s[sign] == '0')) {
        return false;
    }
    if (s[end] == '.') {
        size_t part = strspn(s + end + 1, DIGITS);

        if (part == 0) {
            return false;
        }
        end += 1 + part;
    }
    end += exponent_at(s + end);
    return end == len && (end > sign + whole ? isfinite(strtod(s, NULL)) : whole <= DBL_DIG);
}

/* Names of the fixed members are not available for fields. */
static bool is_taken(const char *key, size_t len)
{
    static const char *const taken[] = {"time", "level", "component", "message", "event"};
    size_t i;

    for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (strlen(taken[i]) == len && strncmp(key, taken[i], len) == 0) {
            return true;
        }
    }
    return false;
}

static void json_put_note(struct json *j, const struct fl_log_note *note)
{
    const char *event = fl_log_events[note->event].name;
    char number[24];
    size_t i;

    if (event != NULL) {
        (void)put_member(j, "event", 5, event, strlen(event), false);
    }
    for (i = 0; i < note->n; i++) {
        const struct fl_log_field *f = &note->fields[i];
        const char *value = f->text;

        if (value == NULL) {
            (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)f->whole);
            value = number;
        }
        (void)put_member(j, f->name, strlen(f->name), value, strlen(value), f->text == NULL);
    }
}

size_t fl_log_json(char *out, size_t size, const char *time, enum fl_log_level level,
                   const char *component, const char *text, const struct fl_log_note *note)
{
    struct json j = {.out = out, .size = size};
    const char *end = fl_log_words(text);
    const char *at = end;
    struct fl_log_word w;

    while (end > text && end[-1] == ' ') {
        end--;
    }
    if (*at != '\0' && end > text && end[-1] == ':') {
        end--; /* What it announces follows as members. */
    }
    (void)json_put(&j, "{", 1);
    (void)put_member(&j, "time", 4, time, strlen(time), false);
    (void)put_member(&j, "level", 5, fl_log_names[level], strlen(fl_log_names[level]), false);
    (void)put_member(&j, "component", 9, component, strlen(component), false);
    (void)put_member(&j, "message", 7, text, (size_t)(end - text), false);
    if (note != NULL) {
        json_put_note(&j, note);
    }
    while (fl_log_words_next(&at, &w)) {
        bool number = !w.quoted && is_number(w.value, w.value_len);
        char key[64];

        if (fl_log_note_has(note, w.key, w.key_len)) {
            continue;
        }
        (void)snprintf(key, sizeof(key), "%s%.*s", is_taken(w.key, w.key_len) ? "field_" : "",
                       (int)w.key_len, w.key);
        if (!put_member(&j, key, strlen(key), w.value, w.value_len, number)) {
            break;
        }
    }
    (void)json_put(&j, "}", 1);
    return j.n;
}
