#include "tools/fl_sim/local_files.h"

#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/writer.h"
#include "libfl/conf/edit.h"
#include "libfl/data/npy_part.h"

#define LOCAL_TEXT ((size_t)16 << 20)

void fl_local_admin(const struct fl_local_conf *conf, char out[FL_LOCAL_PATH])
{
    (void)snprintf(out, FL_LOCAL_PATH, "%s/admin", conf->sockets);
}

void fl_local_listen(const struct fl_local_conf *conf, char out[FL_LOCAL_PATH])
{
    (void)snprintf(out, FL_LOCAL_PATH, "%s/server", conf->sockets);
}

/* --- what cannot be --- */

int fl_local_check(const struct fl_local_conf *conf, struct fl_err *err)
{
    const struct fl_experiment_point *p = conf->setting->point;
    const struct fl_server_round *round = p->server->round;
    size_t n = fl_sim_data_clients(conf->setting->data);

    if (conf->clients > n) {
        return fl_conf_error(p->data, err,
                             "the data has %zu clients, fewer than the %zu of --local", n,
                             conf->clients);
    }
    if (p->attackers.node != NULL) {
        return fl_conf_error(p->attackers.node, err,
                             "no fl-clientd attacks: expected no 'attackers' with --local");
    }
    if (round->start_clients > (int64_t)conf->clients) {
        return fl_conf_error(fl_conf_field(p->server->file, &round->start_clients), err,
                             "the first round would wait for %lld clients, and --local starts %zu: "
                             "add --set server.round.start_clients=%zu",
                             (long long)round->start_clients, conf->clients, conf->clients);
    }
    if (round->min_clients > (int64_t)conf->clients) {
        return fl_conf_error(fl_conf_field(p->server->file, &round->min_clients), err,
                             "each round would wait for %lld clients, and --local starts %zu: add "
                             "--set server.round.min_clients=%zu",
                             (long long)round->min_clients, conf->clients, conf->clients);
    }
    return FL_OK;
}

/* --- data --- */

static int local_write_part(const char *folder, const char *name, const struct fl_dataset *ds,
                            struct fl_err *err)
{
    return ds != NULL && ds->n > 0 ? fl_npy_part_write(folder, name, ds, err) : FL_OK;
}

static int local_write_data(const char *folder, const struct fl_dataset *train,
                            const struct fl_dataset *test, struct fl_err *err)
{
    int rv = fl_fs_mkdirs(folder, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_npy_part_norm(folder, train != NULL ? train : test, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = local_write_part(folder, "train", train, err);
    if (rv != FL_OK) {
        return rv;
    }
    return local_write_part(folder, "test", test, err);
}

static int local_client_data(const struct fl_local_conf *conf, size_t k, const char *folder,
                             struct fl_err *err)
{
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    /* data.validation of the client's own file divides what is in the folder. */
    int rv = fl_sim_data_client(conf->setting->data, k, /* validation= */ 0, FL_AUGMENT_NONE,
                                &train, &test, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = local_write_data(folder, train, test, err);
    fl_dataset_free(train);
    fl_dataset_free(test);
    return rv;
}

/*
 * The folder of a client, or that of the server without a number; it is written unless the data is
 * in folders already. "": a program knows its data itself, or the server has none.
 */
static int local_data(const struct fl_local_conf *conf, const size_t *k, char out[FL_LOCAL_PATH],
                      struct fl_err *err)
{
    const struct setting *s = conf->setting;
    const char *name = k != NULL ? fl_sim_data_name(s->data, *k) : NULL;
    char folder[FL_LOCAL_PATH];
    bool whole = false;
    /* Samples that are in no folder are written like those of a data set. */
    bool found =
        fl_sim_data_conf_folder(s->data_conf, name, folder, sizeof(folder), &whole, NULL) == FL_OK;

    if (found && whole && folder[0] != '\0') {
        return fl_fs_absolute(folder, out, FL_LOCAL_PATH, err);
    }
    if (fl_sim_data_conf_of_program(s->data_conf)) {
        out[0] = '\0';
        return FL_OK;
    }
    if (k == NULL && fl_sim_data_server(s->data) == NULL) {
        out[0] = '\0';
        return FL_OK;
    }
    if ((size_t)snprintf(out, FL_LOCAL_PATH, "%s/data/%s", conf->dir,
                         name != NULL ? name : "server") >= FL_LOCAL_PATH)
    {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", conf->dir);
    }
    return k != NULL ? local_client_data(conf, *k, out, err)
                     : local_write_data(out, NULL, fl_sim_data_server(s->data), err);
}

/* --- YAML --- */

/* Sets SECTION.KEY to a text, quoted. */
static int local_set_text(struct fl_conf_doc *doc, const char *key, const char *text, bool list,
                          struct fl_err *err)
{
    struct fl_writer w;
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, LOCAL_TEXT);
    w = (struct fl_writer){.out = &buf};
    fl_writer_printf(&w, "%s=%s\"", key, list ? "[" : "");
    for (; *text != '\0'; text++) {
        fl_writer_printf(&w, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    fl_writer_printf(&w, "\"%s", list ? "]" : "");
    fl_writer_add(&w, "", 1);
    rv = w.code;
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_conf_assign(doc, "--local", (const char *)buf.data, err);
done:
    fl_buf_done(&buf);
    return rv;
}

static int local_set_number(struct fl_conf_doc *doc, const char *key, size_t number,
                            struct fl_err *err)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "%s=%zu", key, number);
    return fl_conf_assign(doc, "--local", text, err);
}

static int local_save(const struct fl_local_conf *conf, const struct fl_conf_doc *doc,
                      const char *section, const char *name, struct fl_err *err)
{
    char path[FL_LOCAL_PATH];
    struct fl_buf buf;
    int rv;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s.yaml", conf->dir, name) >= sizeof(path)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", conf->dir);
    }
    fl_buf_init(&buf, LOCAL_TEXT);
    rv = fl_conf_write(fl_conf_get(fl_conf_root(doc), section), &buf);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_replace(path, buf.data, buf.len, /* sync= */ false, err);
done:
    fl_buf_done(&buf);
    return rv;
}

/* The text for a key: a path of a folder or socket, or a name. */
struct local_text {
    const char *key, *text;
    bool list;
};

static int local_set_texts(struct fl_conf_doc *doc, const struct local_text *texts, size_t n,
                           struct fl_err *err)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (texts[i].text != NULL && texts[i].text[0] != '\0') {
            int rv = local_set_text(doc, texts[i].key, texts[i].text, texts[i].list, err);

            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

static int local_write_server(const struct fl_local_conf *conf, struct fl_conf_doc *doc,
                              struct fl_err *err)
{
    const struct fl_experiment_point *p = conf->setting->point;
    const struct fl_conf_node *program =
        fl_conf_get(fl_conf_get(fl_conf_get(fl_conf_root(doc), "client"), "command"), "program");
    char state[FL_LOCAL_PATH];
    char socket[FL_LOCAL_PATH];
    char listen[FL_LOCAL_PATH + sizeof("unix:")];
    char admin[FL_LOCAL_PATH];
    char data[FL_LOCAL_PATH] = "";
    const struct local_text texts[] = {
        {"server.federation", p->server->main->federation[0] == '\0' ? conf->name : NULL, false},
        {"server.state_dir", state, false},
        {"server.listen", listen, true},
        {"server.admin_socket", admin, false},
        {"server.evaluation.data", data, false}};
    int rv = local_data(conf, NULL, data, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(state, sizeof(state), "%s/server.state", conf->dir);
    fl_local_listen(conf, socket);
    (void)snprintf(listen, sizeof(listen), "unix:%s", socket);
    fl_local_admin(conf, admin);
    rv = fl_conf_assign(doc, "--local", "server.insecure=yes", err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = local_set_texts(doc, texts, sizeof(texts) / sizeof(texts[0]), err);
    if (rv != FL_OK) {
        return rv;
    }
    /* As in a simulation: a first round with the first client alone is not intended. */
    if (p->server->round->start_clients <= 1) {
        rv = local_set_number(doc, "server.round.start_clients", conf->clients, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (conf->setting->program.program.argv != NULL && program != NULL) {
        rv = fl_conf_put(doc, "server.evaluation.command", program, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return local_save(conf, doc, "server", "server", err);
}

static int local_write_client(const struct fl_local_conf *conf, struct fl_conf_doc *doc, size_t k,
                              struct fl_err *err)
{
    const char *name = fl_sim_data_name(conf->setting->data, k);
    char state[FL_LOCAL_PATH];
    char data[FL_LOCAL_PATH] = "";
    char listen[FL_LOCAL_PATH];
    char server[FL_LOCAL_PATH + sizeof("unix:")];
    const struct local_text texts[] = {{"client.name", name, false},
                                       {"client.server", server, false},
                                       {"client.state_dir", state, false},
                                       {"client.data.path", data, false}};
    int rv = local_data(conf, &k, data, err);

    if (rv != FL_OK) {
        return rv;
    }
    if ((size_t)snprintf(state, sizeof(state), "%s/%s.state", conf->dir, name) >= sizeof(state)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", conf->dir);
    }
    fl_local_listen(conf, listen);
    (void)snprintf(server, sizeof(server), "unix:%s", listen);
    rv = fl_conf_assign(doc, "--local", "client.insecure=yes", err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_conf_assign(doc, "--local", "client.exit_when_done=yes", err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = local_set_texts(doc, texts, sizeof(texts) / sizeof(texts[0]), err);
    if (rv != FL_OK) {
        return rv;
    }
    return local_save(conf, doc, "client", name, err);
}

int fl_local_write(const struct fl_local_conf *conf, struct fl_err *err)
{
    struct fl_conf_doc *doc = NULL;
    size_t k;
    int rv = fl_conf_copy(conf->setting->point->doc, &doc);

    if (rv != FL_OK) {
        return rv;
    }
    rv = local_write_server(conf, doc, err);
    if (rv != FL_OK) {
        goto done;
    }
    for (k = 0; k < conf->clients; k++) {
        rv = local_write_client(conf, doc, k, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
done:
    fl_conf_free(doc);
    return rv;
}
