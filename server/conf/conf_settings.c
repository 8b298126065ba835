/* The settings of a configuration that a state folder stores (server/core/settings.h). */

#include "libfl/base/writer.h"
#include "libfl/model/digest.h"
#include "libfl/wire/messages.h"
#include "server/conf/server_conf_impl.h"

/* "784; dense 200; relu; dense 10"; empty for a model from a file. */
static int add_network(const struct fl_server_conf *conf, struct fl_settings *s)
{
    struct fl_buf text;
    struct fl_writer w = {.out = &text};
    size_t i;

    fl_buf_init(&text, FL_WIRE_MAX_CONTROL);
    for (i = 0; i < conf->net.n_input; i++) {
        fl_writer_printf(&w, "%s%zu", i > 0 ? "x" : "", conf->net.input[i]);
    }
    for (i = 0; i < conf->net.n_layers; i++) {
        fl_writer_printf(&w, "; %s", conf->net.layers[i]);
    }
    return fl_settings_add_text(s, FL_SETTING_UPDATE, "model", &text, w.code);
}

/* The batch-norms and further tensors that stay; a head is part of the setting of its component. */
static int add_norm(const struct fl_server_conf *conf, struct fl_settings *s)
{
    const struct fl_opt_texts *local = &conf->model->local;
    struct fl_buf text;
    struct fl_writer w = {.out = &text};
    size_t i;

    if (conf->model->norm != FL_NORM_LOCAL) {
        return FL_OK;
    }
    fl_buf_init(&text, FL_WIRE_MAX_CONTROL);
    fl_writer_printf(&w, "local");
    for (i = 0; i < local->n; i++) {
        fl_writer_printf(&w, " %s", local->list[i]);
    }
    return fl_settings_add_text(s, FL_SETTING_UPDATE, "model.norm", &text, w.code);
}

/* Without local tensors there is nothing to store. Client state of local tensors restarts when
   they are other tensors. */
static int add_local(const struct fl_server_conf *conf, struct fl_settings *s)
{
    char digest[2 * FL_DIGEST_SIZE + 1];
    int rv;

    if (fl_layout_local(conf->layout) == 0) {
        return FL_OK;
    }
    rv = add_norm(conf, s);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_settings_add(s, FL_SETTING_KEPT, "kept.local",
                           fl_hex(digest, fl_layout_digest(conf->layout), FL_DIGEST_SIZE));
}

int fl_server_conf_settings(const struct fl_server_conf *conf, struct fl_settings *ret)
{
    struct fl_settings s = {.n = 0};
    bool scaled = fl_strategy_scales_updates(conf->strategy);
    size_t i;
    int rv = fl_settings_add_strategy(&s, conf->strategy);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = add_network(conf, &s);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = add_local(conf, &s);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; fl__server_sections[i].name != NULL; i++) {
        const struct fl_conf_section *section = &fl__server_sections[i];
        const struct fl_opt_spec *spec = section->specs;

        /* The rows of a section, by the flags of section and row. */
        for (; spec->name != NULL; spec++) {
            unsigned flags = section->flags | spec->flags;
            bool update = scaled && (flags & (unsigned)FL_SERVER_RATE) != 0;

            if (!update && (flags & (unsigned)FL_SERVER_FIGURE) == 0) {
                continue;
            }
            rv = fl_settings_add_option(&s, update ? FL_SETTING_UPDATE : FL_SETTING_FIGURE,
                                        section->name, fl_conf_file_options(conf->file, i), spec);
            if (rv != FL_OK) {
                goto fail;
            }
        }
    }
    *ret = s;
    return FL_OK;
fail:
    fl_settings_done(&s);
    return rv;
}
