#include "server/runtime/labels.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"

/* Copies `text` to `*at`, which then points behind the copy. */
static char *label_put_text(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);

    *at += size;
    return copy;
}

static struct fl_label_set *copy_pairs(const struct fl_pair *pairs, size_t n)
{
    struct fl_label_set *set = malloc(sizeof(*set) + n * sizeof(*pairs) + FL_LABELS_BYTES);
    size_t left = FL_LABELS_BYTES;
    char *at;
    size_t i;

    if (set == NULL) {
        return NULL;
    }
    set->n = 0;
    at = (char *)&set->pairs[n];
    for (i = 0; i < n; i++) {
        size_t bytes = strlen(pairs[i].key) + strlen(pairs[i].value) + 2;

        if (bytes <= left) {
            left -= bytes;
            set->pairs[set->n].key = label_put_text(&at, pairs[i].key);
            set->pairs[set->n++].value = label_put_text(&at, pairs[i].value);
        }
    }
    return set;
}

int fl_labels_set(struct fl_labels *labels, uint32_t client, const struct fl_pair *pairs, size_t n,
                  bool takes_central)
{
    int rv;

    fl_labels_drop(labels, client);
    if (n == 0 && !takes_central) {
        return FL_OK;
    }
    rv = fl_grow_zeroed(&labels->sets, &labels->n, client, sizeof(struct fl_label_set *));
    if (rv != FL_OK) {
        return rv;
    }
    labels->sets[client] = copy_pairs(pairs, n);
    if (labels->sets[client] == NULL) {
        return FL_ENOMEM;
    }
    labels->sets[client]->takes_central = takes_central;
    return FL_OK;
}

bool fl_labels_are(const struct fl_labels *labels, uint32_t client, const struct fl_pair *pairs,
                   size_t n)
{
    const struct fl_label_set *set = fl_labels_find(labels, client);
    size_t i = 0;

    if (set == NULL || set->n != n) {
        return set == NULL && n == 0;
    }
    while (i < n && strcmp(set->pairs[i].key, pairs[i].key) == 0 &&
           strcmp(set->pairs[i].value, pairs[i].value) == 0)
    {
        i++;
    }
    return i == n;
}

int fl_labels_queue(struct fl_labels *labels, uint32_t client)
{
    int rv = fl_grow_zeroed(&labels->queued, &labels->n_queued, client, sizeof(*labels->queued));

    if (rv != FL_OK) {
        return rv;
    }
    labels->queued[client] = true;
    return FL_OK;
}

void fl_labels_unqueue(struct fl_labels *labels, uint32_t client)
{
    if (client < labels->n_queued) {
        labels->queued[client] = false;
    }
}

bool fl_labels_queued(const struct fl_labels *labels, uint32_t client)
{
    return client < labels->n_queued && labels->queued[client];
}

const struct fl_label_set *fl_labels_find(const struct fl_labels *labels, uint32_t client)
{
    return client < labels->n ? labels->sets[client] : NULL;
}

void fl_labels_drop(struct fl_labels *labels, uint32_t client)
{
    if (client < labels->n) {
        free(labels->sets[client]);
        labels->sets[client] = NULL;
    }
}

void fl_labels_done(struct fl_labels *labels)
{
    size_t i;

    for (i = 0; i < labels->n; i++) {
        free(labels->sets[i]);
    }
    free(labels->sets);
    free(labels->queued);
    *labels = (struct fl_labels){0};
}
