#include "libfl/figures/robust_clients.h"

#include <stdio.h>
#include <string.h>

bool fl_robust_clients_add(char text[FL_ROBUST_CLIENTS_TEXT], const char *name, double used,
                           double score)
{
    char one[FL_NAME_MAX + 64];
    size_t len = strlen(text);
    int n = snprintf(one, sizeof(one), "%s%s %.3g %.3g", len > 0 ? ", " : "", name, used, score);

    if (n < 0 || (size_t)n >= sizeof(one) || len + (size_t)n >= FL_ROBUST_CLIENTS_TEXT) {
        return false;
    }
    (void)memcpy(text + len, one, (size_t)n + 1);
    return true;
}

/* Take the text up to `end`, or to the end of the text, into `out`. */
static bool robust_word(const char **text, char end, char *out, size_t size)
{
    const char *stop = strchr(*text, end);
    size_t n = stop != NULL ? (size_t)(stop - *text) : strlen(*text);

    if (n == 0 || n >= size) {
        return false;
    }
    (void)memcpy(out, *text, n);
    out[n] = '\0';
    *text += n + (stop != NULL);
    return true;
}

bool fl_robust_clients_next(const char **text, struct fl_robust_client *ret)
{
    struct fl_robust_client client;
    const char *at = *text;
    char used[32];
    char score[32];

    if (!robust_word(&at, ' ', client.name, sizeof(client.name)) || !fl_name_valid(client.name) ||
        !robust_word(&at, ' ', used, sizeof(used)) ||
        fl_str_to_double(used, &client.used) != FL_OK ||
        !robust_word(&at, ',', score, sizeof(score)) ||
        fl_str_to_double(score, &client.score) != FL_OK)
    {
        return false;
    }
    *text = *at == ' ' ? at + 1 : at;
    *ret = client;
    return true;
}
