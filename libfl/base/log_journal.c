#include "libfl/base/log_journal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "libfl/base/log_words.h"
#include "libfl/base/str.h"

#define ENTRY_MAX 8192

void fl_log_journal_open(struct fl_log_journal *journal, const char *path)
{
    struct sockaddr_un *address = &journal->address;

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (fl_str_copy(address->sun_path, sizeof(address->sun_path), path) == FL_OK) {
        atomic_store(&journal->fd, socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    }
}

/* The entry so far; a field that does not fit is left out. */
struct journal_entry {
    char data[ENTRY_MAX];
    size_t n;
};

/* PREFIX + name in upper case = value, without line ends: these would begin another field. */
static void journal_put(struct journal_entry *e, const char *prefix, const char *name,
                        size_t name_len, const char *value, size_t len)
{
    size_t n = e->n + strlen(prefix) + name_len + 1 + len + 1;
    size_t i;

    if (n > sizeof(e->data)) {
        return;
    }
    for (; *prefix != '\0'; prefix++) {
        e->data[e->n++] = *prefix;
    }
    for (i = 0; i < name_len; i++) {
        bool lower = name[i] >= 'a' && name[i] <= 'z';

        e->data[e->n++] = lower ? (char)(name[i] - 'a' + 'A') : name[i];
    }
    e->data[e->n++] = '=';
    for (i = 0; i < len; i++) {
        e->data[e->n++] = value[i];
        if (value[i] == '\n') {
            e->data[e->n - 1] = '?';
        }
    }
    e->data[e->n++] = '\n';
}

static void journal_put_text(struct journal_entry *e, const char *name, const char *value)
{
    journal_put(e, "", name, strlen(name), value, strlen(value));
}

static void journal_put_note(struct journal_entry *e, const struct fl_log_note *note)
{
    const struct fl_log_event_row *row = &fl_log_events[note->event];
    char number[24];
    size_t i;

    if (row->name != NULL) {
        journal_put_text(e, "MESSAGE_ID", row->message_id);
        journal_put_text(e, "FL_EVENT", row->name);
    }
    for (i = 0; i < note->n; i++) {
        const struct fl_log_field *f = &note->fields[i];
        const char *value = f->text;

        if (value == NULL) {
            (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)f->whole);
            value = number;
        }
        journal_put(e, "FL_", f->name, strlen(f->name), value, strlen(value));
    }
}

bool fl_log_journal_send(const struct fl_log_journal *journal, int priority, const char *component,
                         const char *text, const struct fl_log_note *note)
{
    struct journal_entry e = {.n = 0};
    const char *at = fl_log_words(text);
    struct fl_log_word w;
    char line[ENTRY_MAX / 2];
    char number[2] = {(char)('0' + priority), '\0'};

    (void)snprintf(line, sizeof(line), "%s: %s", component, text);
    journal_put_text(&e, "MESSAGE", line);
    journal_put_text(&e, "PRIORITY", number);
    journal_put_text(&e, "SYSLOG_IDENTIFIER", program_invocation_short_name);
    journal_put_text(&e, "FL_COMPONENT", component);
    if (note != NULL) {
        journal_put_note(&e, note);
    }
    while (fl_log_words_next(&at, &w)) {
        if (!fl_log_note_has(note, w.key, w.key_len)) {
            journal_put(&e, "FL_", w.key, w.key_len, w.value, w.value_len);
        }
    }
    return sendto(atomic_load(&journal->fd), e.data, e.n, MSG_NOSIGNAL,
                  (const struct sockaddr *)&journal->address,
                  sizeof(journal->address)) == (ssize_t)e.n;
}
