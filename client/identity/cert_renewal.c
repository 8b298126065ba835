#include "client/identity/cert_renewal.h"

#include <string.h>

#include "libfl/base/backoff.h"
#include "libfl/pki/when.h"

/* In thousandths of the validity. */
#define WINDOW_BEGIN 600
#define WINDOW       120

#define PAUSE_FIRST_MS 60000
#define PAUSE_MAX_MS   3600000
#define PAUSE_MIN_MS   1000
/* Attempts that fit into the remaining validity. */
#define TRIES_LEFT 20

/* A deterministic random number of key and serial; `number` selects one of the sequence. */
static uint64_t renewal_draw(const struct fl_identity *who, uint64_t number)
{
    uint8_t bytes[sizeof(who->key) + FL_SERIAL_MAX + sizeof(number)];
    size_t at = sizeof(who->key);

    (void)memcpy(bytes, who->key, at);
    (void)memcpy(bytes + at, who->serial, who->serial_len);
    at += who->serial_len;
    (void)memcpy(bytes + at, &number, sizeof(number));
    return fl_hash64(bytes, at + sizeof(number));
}

int64_t fl_renewing_due_ms(const struct fl_identity *who)
{
    int64_t span = who->not_after - who->not_before;
    uint64_t window;

    if (span <= 0) {
        return who->not_before * 1000;
    }
    window = (uint64_t)span * WINDOW; /* s / 1000 are ms */
    return who->not_before * 1000 + span * WINDOW_BEGIN +
           (int64_t)(window > 0 ? renewal_draw(who, 0) % window : 0);
}

uint64_t fl_renewing_pause_ms(const struct fl_identity *who, unsigned failures, int64_t now_ms)
{
    struct fl_backoff rule = {
        .first_ms = PAUSE_FIRST_MS, .cap_ms = PAUSE_MAX_MS, .factor = 2, .jitter = 20};
    int64_t left = who->not_after * 1000 - now_ms;
    struct fl_rng rng;
    uint64_t pause;

    if (left > 0 && (uint64_t)left / TRIES_LEFT < rule.cap_ms)
    { /* An expired certificate is retried with each connection. */
        rule.cap_ms = (uint64_t)left / TRIES_LEFT;
    }
    fl_rng_seed(&rng, renewal_draw(who, failures));
    pause = fl_backoff_wait(&rule, failures, &rng);
    return pause > PAUSE_MIN_MS ? pause : PAUSE_MIN_MS;
}

/* --- the clock --- */

int fl_renewing_clock(int64_t now, int64_t built, const struct fl_identity *who, struct fl_err *err)
{
    /* The certificate first, so that the message does not depend on the build date. */
    bool by_certificate = who != NULL && who->not_before > now;
    int64_t known = by_certificate ? who->not_before : built;
    char ours[FL_WHEN_TEXT];
    char theirs[FL_WHEN_TEXT];
    char span[FL_WHEN_TEXT];

    if (now >= known) {
        return FL_OK;
    }
    return fl_err_set(err, FL_EAGAIN,
                      "the clock of this host (%s) is wrong: %s %s, %s later; waiting for the time "
                      "service to set it (see timedatectl)",
                      fl_when_text(ours, sizeof(ours), now),
                      by_certificate ? "the certificate of this client is valid from"
                                     : "this program was built at",
                      fl_when_text(theirs, sizeof(theirs), known),
                      fl_span_text(span, sizeof(span), known - now));
}
