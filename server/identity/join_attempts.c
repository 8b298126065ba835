/*
 * Rate limit of refused joins, by address. Pure; the caller's thread. Decides only what is logged
 * and when a wrong token is refused without a lookup.
 */

#include "server/identity/join_attempts_impl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "server/identity/audit.h"

void fl__address(const char *peer, char out[FL__ADDRESS_TEXT])
{
    struct in6_addr six;
    char text[FL__ADDRESS_TEXT];
    const char *end = strrchr(peer, ':');
    const char *begin = peer;
    size_t len = strlen(peer);

    if (peer[0] == '[' && strchr(peer, ']') != NULL) {
        begin = peer + 1;
        len = (size_t)(strchr(peer, ']') - begin);
    } else if (end != NULL && strchr(peer, ':') == end) {
        len = (size_t)(end - peer); /* IPv4 or a name, and a port */
    }
    (void)snprintf(text, sizeof(text), "%.*s", (int)(len < sizeof(text) ? len : sizeof(text) - 1),
                   begin);
    if (strchr(text, '%') != NULL) {
        *strchr(text, '%') = '\0'; /* the interface of a link-local address */
    }
    if (inet_pton(AF_INET6, text, &six) == 1) {
        if (IN6_IS_ADDR_V4MAPPED(&six)) {
            (void)inet_ntop(AF_INET, &six.s6_addr[12], out, FL__ADDRESS_TEXT);
            return;
        }
        (void)memset(&six.s6_addr[8], 0, 8);
        (void)inet_ntop(AF_INET6, &six, text, sizeof(text));
        (void)snprintf(out, FL__ADDRESS_TEXT, "%.50s/64", text);
        return;
    }
    (void)memcpy(out, fl_str_clean(text), FL__ADDRESS_TEXT);
    if (out[0] == '\0') {
        (void)memcpy(out, "?", 2);
    }
}

/*
 * The entry of the peer's address; a new one replaces a free entry or the least recently used one.
 */
static struct fl__join_attempt *attempts_find(struct fl__join_attempts *attempts, const char *peer,
                                              int64_t now_ms)
{
    struct fl__join_attempt *oldest = &attempts->list[0];
    char address[FL__ADDRESS_TEXT] = "";
    size_t i;

    fl__address(peer, address);
    for (i = 0; i < FL__JOIN_ATTEMPTS; i++) {
        struct fl__join_attempt *t = &attempts->list[i];

        if (strcmp(t->address, address) == 0) {
            t->heard_ms = now_ms;
            return t;
        }
        if (oldest->address[0] != '\0' && (t->address[0] == '\0' || t->heard_ms < oldest->heard_ms))
        {
            oldest = t;
        }
    }
    if (oldest->unlogged > 0) {
        attempts->unlogged += oldest->unlogged;
        attempts->unlogged_addresses++;
    }
    *oldest = (struct fl__join_attempt){
        .heard_ms = now_ms, .full_ms = now_ms, .logged_ms = now_ms - FL__JOIN_ATTEMPTS_HOUR};
    (void)memcpy(oldest->address, address, sizeof(address));
    return oldest;
}

bool fl__join_attempts_wrong(struct fl__join_attempts *attempts, const char *peer, int64_t now_ms,
                             int64_t *ret_wait_ms)
{
    struct fl__join_attempt *t = attempts_find(attempts, peer, now_ms);

    /* After the clock was set back no peer waits longer than a full burst takes. */
    if (t->full_ms < now_ms ||
        t->full_ms > now_ms + FL__JOIN_ATTEMPTS_BURST * FL__JOIN_ATTEMPTS_ONE_MS) {
        t->full_ms = t->full_ms < now_ms
                         ? now_ms
                         : now_ms + FL__JOIN_ATTEMPTS_BURST * FL__JOIN_ATTEMPTS_ONE_MS;
    }
    *ret_wait_ms = t->full_ms - now_ms - (FL__JOIN_ATTEMPTS_BURST - 1) * FL__JOIN_ATTEMPTS_ONE_MS;
    if (*ret_wait_ms > 0) {
        return false;
    }
    t->full_ms += FL__JOIN_ATTEMPTS_ONE_MS;
    return true;
}

bool fl__join_attempts_log(struct fl__join_attempts *attempts, const char *peer, int64_t now_ms,
                           uint32_t *ret_before)
{
    struct fl__join_attempt *t = attempts_find(attempts, peer, now_ms);

    if (now_ms - attempts->hour_ms >= FL__JOIN_ATTEMPTS_HOUR || now_ms < attempts->hour_ms) {
        attempts->hour_ms = now_ms;
        attempts->lines = 0;
    }
    if ((now_ms - t->logged_ms < FL__JOIN_ATTEMPTS_HOUR && now_ms >= t->logged_ms) ||
        attempts->lines >= FL_AUDIT_REFUSALS)
    {
        t->unlogged += t->unlogged < UINT32_MAX;
        return false;
    }
    attempts->lines++;
    *ret_before = t->unlogged;
    t->unlogged = 0;
    t->logged_ms = now_ms;
    return true;
}

bool fl__join_attempts_unlogged(struct fl__join_attempts *attempts, int64_t now_ms, bool all,
                                char address[FL__ADDRESS_TEXT], uint32_t *ret_n)
{
    size_t i;

    if (attempts->lines >= FL_AUDIT_REFUSALS && !all) {
        return false; /* the hour has not passed yet */
    }
    for (i = 0; i < FL__JOIN_ATTEMPTS; i++) {
        struct fl__join_attempt *t = &attempts->list[i];

        if (t->unlogged == 0 || (!all && now_ms - t->logged_ms < FL__JOIN_ATTEMPTS_HOUR)) {
            continue;
        }
        if (attempts->lines >= FL_AUDIT_REFUSALS) {
            attempts->unlogged += t->unlogged; /* one entry sums up the rest */
            attempts->unlogged_addresses++;
            t->unlogged = 0;
            continue;
        }
        (void)memcpy(address, t->address, FL__ADDRESS_TEXT);
        *ret_n = t->unlogged;
        t->unlogged = 0;
        t->logged_ms = now_ms;
        attempts->lines++;
        return true;
    }
    if (attempts->unlogged == 0) {
        return false;
    }
    address[0] = '\0';
    *ret_n = attempts->unlogged;
    attempts->unlogged = 0;
    attempts->unlogged_addresses = 0;
    return true;
}
