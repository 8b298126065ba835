/* A configuration as the settings that a state folder remembers (core/settings.h). */

#include <stdio.h>

#include "libfl/wire/messages.h"
#include "server/daemon/conf.h"

/* "784; dense 200; relu; dense 10", or nothing for a model from a file. */
static int add_network(const struct fl_server_conf *conf, struct fl_settings *s)
{
    struct fl_buf text;
    size_t i;
    int rv = FL_OK;

    fl_buf_init(&text, FL_WIRE_MAX_CONTROL);
    for (i = 0; rv == FL_OK && i < conf->net.n_input; i++) {
        rv = fl_buf_printf(&text, "%s%zu", i > 0 ? "x" : "", conf->net.input[i]);
    }
    for (i = 0; rv == FL_OK && i < conf->net.n_layers; i++) {
        rv = fl_buf_printf(&text, "; %s", conf->net.layers[i]);
    }
    rv = rv == FL_OK ? fl_buf_add(&text, "", 1) : rv;
    if (rv == FL_OK) {
        rv = fl_settings_add(s, FL_SETTING_UPDATE, "model", (const char *)text.data);
    }
    fl_buf_done(&text);
    return rv;
}

static int add_named(struct fl_settings *s, enum fl_setting_kind kind, const char *prefix,
                     const struct fl_options *options, const char *const *names)
{
    char name[2 * FL_NAME_MAX];
    char value[4096]; /* a path */
    int rv = FL_OK;

    for (; rv == FL_OK && *names != NULL; names++) {
        (void)snprintf(name, sizeof(name), "%s%s", prefix, *names);
        rv = fl_settings_add(s, kind, name, fl_options_text(options, *names, value, sizeof(value)));
    }
    return rv;
}

static int add_training(const struct fl_server_conf *conf, struct fl_settings *s)
{
    static const char *const rates[] = {"learning_rate", "learning_rate_decay", "momentum", NULL};
    enum fl_setting_kind kind =
        fl_strategy_scales_updates(conf->strategy) ? FL_SETTING_UPDATE : FL_SETTING_FIGURE;
    int rv = add_named(s, kind, "training.", conf->training, rates);

    return rv == FL_OK
               ? fl_settings_add_options(s, FL_SETTING_FIGURE, "training", conf->training, rates)
               : rv;
}

int fl_server_conf_settings(const struct fl_server_conf *conf, struct fl_settings *ret)
{
    /* Where things lie, how they are watched and what limits they have changes no figure. */
    static const char *const main_names[] = {"seed", "rounds", NULL};
    static const char *const model_names[] = {"file", NULL};
    struct fl_settings s = {.n = 0};
    int rv = fl_settings_add_strategy(&s, conf->strategy);

    rv = rv == FL_OK ? add_network(conf, &s) : rv;
    rv = rv == FL_OK ? add_named(&s, FL_SETTING_FIGURE, "model.", conf->model, model_names) : rv;
    rv = rv == FL_OK ? add_training(conf, &s) : rv;
    if (rv == FL_OK) {
        rv = add_named(&s, FL_SETTING_FIGURE, "", conf->main, main_names);
    }
    if (rv == FL_OK) {
        rv = fl_settings_add_options(&s, FL_SETTING_FIGURE, "round", conf->round, NULL);
    }
    if (rv == FL_OK) {
        rv = fl_settings_add_options(&s, FL_SETTING_FIGURE, "evaluation", conf->evaluation, NULL);
    }
    if (rv != FL_OK) {
        fl_settings_done(&s);
        return rv;
    }
    *ret = s;
    return FL_OK;
}
