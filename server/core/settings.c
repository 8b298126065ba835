/*
 * Settings of a federation as named texts (settings.h): builds the list, digests it and compares
 * two lists. Pure functions, callable on any thread; reading and storing lists is up to the caller.
 */
#include "server/core/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "libfl/base/writer.h"
#include "libfl/model/digest.h"

/* Limit of all texts of one start together. */
#define TEXT_MAX ((size_t)4 << 20)
/* Size of one option value, lists included. */
#define VALUE_MAX 4096

int fl_settings_add(struct fl_settings *s, enum fl_setting_kind kind, const char *name,
                    const char *value)
{
    struct fl_setting made = {.kind = kind};

    int rv = fl_grow(&s->list, &s->cap, s->n, sizeof(*s->list));

    if (rv != FL_OK) {
        return rv;
    }
    made.name = fl_str_dup(name);
    made.value = fl_str_dup(value);
    if (made.name == NULL || made.value == NULL) {
        free(made.name);
        free(made.value);
        return FL_ENOMEM;
    }
    s->list[s->n++] = made;
    return FL_OK;
}

int fl_settings_add_text(struct fl_settings *s, enum fl_setting_kind kind, const char *name,
                         struct fl_buf *buf, int rv)
{
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_buf_add(buf, "", 1);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_settings_add(s, kind, name, (const char *)buf->data);
done:
    fl_buf_done(buf);
    return rv;
}

int fl_settings_add_strategy(struct fl_settings *s, const struct fl_strategy *strategy)
{
    char name[FL_NAME_MAX];
    struct fl_buf buf;
    int component;
    int rv = fl_settings_add(s, FL_SETTING_FIGURE, "algorithm", strategy->algorithm);

    if (rv != FL_OK) {
        return rv;
    }
    for (component = 0; component < FL_COMPONENT_COUNT; component++) {
        enum fl_component one = (enum fl_component)component;

        (void)snprintf(name, sizeof(name), "strategy.%s", fl_component_name(one));
        fl_buf_init(&buf, TEXT_MAX);
        rv = fl_strategy_component_text(strategy, one, &buf);
        rv = fl_settings_add_text(
            s, fl_strategy_component_is_update(one) ? FL_SETTING_UPDATE : FL_SETTING_FIGURE, name,
            &buf, rv);
        if (rv != FL_OK) {
            return rv;
        }
    }
    fl_buf_init(&buf, TEXT_MAX);
    rv = fl_settings_add_text(s, FL_SETTING_KEPT, "kept", &buf,
                              fl_strategy_kept_text(strategy, &buf));
    if (rv != FL_OK) {
        return rv;
    }
    fl_buf_init(&buf, TEXT_MAX);
    rv = fl_settings_add_text(s, FL_SETTING_SUMMARY, "summary", &buf,
                              fl_strategy_summary_text(strategy, &buf));
    if (rv != FL_OK) {
        return rv;
    }
    return fl_settings_add(s, FL_SETTING_SCORE, "scores", strategy->selection->policy.name);
}

int fl_settings_add_option(struct fl_settings *s, enum fl_setting_kind kind, const char *prefix,
                           const struct fl_options *options, const struct fl_opt_spec *spec)
{
    char name[2 * FL_NAME_MAX];
    char value[VALUE_MAX];

    (void)snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", spec->name);
    return fl_settings_add(s, kind, name, fl_options_show(options, spec, value, sizeof(value)));
}

void fl_settings_done(struct fl_settings *s)
{
    size_t i;

    for (i = 0; i < s->n; i++) {
        free(s->list[i].name);
        free(s->list[i].value);
    }
    free(s->list);
    *s = (struct fl_settings){0};
}

static const struct fl_setting *settings_find_row(const struct fl_settings *s, const char *name)
{
    size_t i;

    for (i = 0; i < s->n; i++) {
        if (strcmp(s->list[i].name, name) == 0) {
            return &s->list[i];
        }
    }
    return NULL;
}

const char *fl_settings_find(const struct fl_settings *s, const char *name)
{
    const struct fl_setting *found = settings_find_row(s, name);

    return found != NULL ? found->value : NULL;
}

int fl_settings_meaning(const struct fl_settings *s, const uint8_t layout[FL_DIGEST_SIZE],
                        uint8_t out[FL_DIGEST_SIZE])
{
    struct fl_buf buf;
    struct fl_writer w = {.out = &buf};
    size_t i;
    int rv;

    fl_buf_init(&buf, TEXT_MAX);
    fl_writer_add(&w, layout, FL_DIGEST_SIZE);
    for (i = 0; i < s->n; i++) {
        const struct fl_setting *e = &s->list[i];

        if (e->kind == FL_SETTING_UPDATE) {
            /* Terminators included, so that no two lists give the same bytes. */
            fl_writer_add(&w, e->name, strlen(e->name) + 1);
            fl_writer_add(&w, e->value, strlen(e->value) + 1);
        }
    }
    rv = w.code;
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_sha256(buf.data, buf.len, out);
done:
    fl_buf_done(&buf);
    return rv;
}

/* --- comparing --- */

static void settings_add_difference(struct fl_settings_verdict *v, enum fl_setting_kind kind,
                                    const char *name, const char *before, const char *after)
{
    v->rewrite = true;
    switch (kind) {
    case FL_SETTING_KEPT:
        v->kept = true;
        return;
    case FL_SETTING_SUMMARY:
        v->summary = true;
        return;
    case FL_SETTING_SCORE:
        v->score = true;
        return;
    case FL_SETTING_UPDATE:
        v->update = true;
        break;
    case FL_SETTING_FIGURE:
        /* An option that only one of the two program versions has is no change. */
        if (before == NULL || after == NULL) {
            return;
        }
        break;
    }
    before = before != NULL ? before : "";
    after = after != NULL ? after : "";
    v->list[v->n++] =
        (struct fl_settings_difference){name, before, after, kind == FL_SETTING_UPDATE};
}

int fl_settings_compare(const struct fl_settings *before, const struct fl_settings *after,
                        struct fl_settings_verdict *ret)
{
    struct fl_settings_verdict v = {.list = NULL};
    size_t i;

    v.list = calloc(before->n + after->n + 1, sizeof(*v.list));
    if (v.list == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < after->n; i++) {
        const struct fl_setting *now = &after->list[i];
        const struct fl_setting *was = settings_find_row(before, now->name);

        if (was == NULL) {
            settings_add_difference(&v, now->kind, now->name, NULL, now->value);
        } else if (strcmp(was->value, now->value) != 0) {
            /* A learning rate is a mere figure unless the solver divides by it. */
            settings_add_difference(&v, was->kind > now->kind ? was->kind : now->kind, now->name,
                                    was->value, now->value);
        }
    }
    for (i = 0; i < before->n; i++) {
        const struct fl_setting *was = &before->list[i];

        if (settings_find_row(after, was->name) == NULL) {
            settings_add_difference(&v, was->kind, was->name, was->value, NULL);
        }
    }
    *ret = v;
    return FL_OK;
}

void fl_settings_verdict_done(struct fl_settings_verdict *verdict)
{
    free(verdict->list);
    *verdict = (struct fl_settings_verdict){0};
}
