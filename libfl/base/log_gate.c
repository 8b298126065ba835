#include "libfl/base/log_gate.h"

#include <stdio.h>
#include <string.h>

/* Entries probed before a peer uses the shared one. */
#define PROBES 8

/* FNV-1a: peers may choose colliding names, but then they only share an entry. */
static size_t gate_hash(const char *peer, const char *reason)
{
    uint32_t h = 2166136261u;
    uintptr_t bits = (uintptr_t)reason;

    for (; *peer != '\0'; peer++) {
        h = (h ^ (unsigned char)*peer) * 16777619u;
    }
    for (; bits != 0; bits >>= 8) {
        h = (h ^ (uint32_t)(bits & 0xff)) * 16777619u;
    }
    return h;
}

static bool span_has_ended(uint64_t since_ms, uint64_t now_ms)
{
    return now_ms >= since_ms + FL_LOG_GATE_SPAN_MS;
}

static struct fl_log_gate_place *gate_place(struct fl_log_gate *gate, uint64_t now_ms,
                                            const char *host, const char *reason)
{
    struct fl_log_gate_place *found = NULL;
    size_t at = gate_hash(host, reason);
    size_t i;

    for (i = 0; i < PROBES; i++) {
        struct fl_log_gate_place *p = &gate->places[(at + i) % FL_LOG_GATE_PLACES];

        if (p->reason == reason && strcmp(p->peer, host) == 0) {
            return p;
        }
        if (found == NULL && p->left_out == 0 &&
            (p->peer[0] == '\0' || span_has_ended(p->since_ms, now_ms)))
        {
            found = p;
        }
    }
    if (found == NULL) {
        found = &gate->places[FL_LOG_GATE_PLACES];
        (void)snprintf(found->peer, sizeof(found->peer), "other peers");
        return found;
    }
    *found = (struct fl_log_gate_place){.reason = reason, .since_ms = now_ms};
    (void)snprintf(found->peer, sizeof(found->peer), "%s", host);
    return found;
}

bool fl_log_gate_pass(struct fl_log_gate *gate, uint64_t now_ms, const char *peer,
                      const char *reason, const char *text)
{
    struct fl_log_gate_place *p;
    char host[64];
    const char *colon = strrchr(peer, ':');
    size_t len =
        colon != NULL && colon[1] != '\0' && strspn(colon + 1, "0123456789") == strlen(colon + 1)
            ? (size_t)(colon - peer)
            : strlen(peer);

    /* The port is ignored: a peer that reconnects is the same one. */
    len = len < 63 ? len : 63;
    (void)memcpy(host, peer, len);
    host[len] = '\0';
    p = gate_place(gate, now_ms, host, reason);
    if (span_has_ended(p->since_ms, now_ms) && p->left_out == 0) {
        p->since_ms = now_ms;
        p->lines = 0;
    }
    if (span_has_ended(gate->since_ms, now_ms)) {
        gate->since_ms = now_ms;
        gate->lines = 0;
    }
    if (p->lines < FL_LOG_GATE_LINES && gate->lines < FL_LOG_GATE_ALL && p->left_out == 0) {
        p->lines++;
        gate->lines++;
        return true;
    }
    gate->left_out++;
    if (p->left_out++ == 0) {
        uint64_t due = p->since_ms + FL_LOG_GATE_SPAN_MS;

        (void)snprintf(p->sample, sizeof(p->sample), "%s", text);
        gate->due_ms = gate->due_ms == 0 || due < gate->due_ms ? due : gate->due_ms;
    }
    return false;
}

bool fl_log_gate_due(struct fl_log_gate *gate, uint64_t now_ms, struct fl_log_gate_place *ret)
{
    uint64_t next = 0;
    size_t i;

    if (gate->due_ms == 0 || now_ms < gate->due_ms) {
        return false;
    }
    for (i = 0; i <= FL_LOG_GATE_PLACES; i++) {
        struct fl_log_gate_place *p = &gate->places[i];
        uint64_t due = p->since_ms + FL_LOG_GATE_SPAN_MS;

        if (p->left_out == 0) {
            continue;
        }
        if (now_ms >= due) {
            *ret = *p;
            p->left_out = 0;
            p->lines = 0;
            p->since_ms = now_ms;
            return true;
        }
        next = next == 0 || due < next ? due : next;
    }
    gate->due_ms = next;
    return false;
}
