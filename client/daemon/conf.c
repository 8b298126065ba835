#include "client/daemon/conf.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/base/str.h"
#include "libfl/net/address.h"
#include "libfl/net/conn.h"
#include "libfl/wire/messages.h"

static const char *const log_levels[] = {"error", "warning", "notice", "info", "debug", NULL};
static const char *const trainers[] = {"builtin", "command", NULL};
static const char *const augments[] = {
    [FL_AUGMENT_NONE] = "none", [FL_AUGMENT_FLIP_CROP] = "flip_crop", NULL};

static const struct fl_opt_spec main_specs[] = {
    {.name = "server",
     .type = FL_OPT_STRING,
     .flags = FL_OPT_REQUIRED,
     .help = "Address of fl-serverd: host:port, [v6]:port or unix:/path"},
    {.name = "name",
     .type = FL_OPT_STRING,
     .flags = FL_OPT_REQUIRED,
     .help = "Name of this client, unique in the federation: 1 to 127 of A-Z a-z 0-9 . _ -"},
    {.name = "state_dir",
     .type = FL_OPT_STRING,
     .flags = FL_OPT_REQUIRED,
     .help = "Folder for a finished and unsent result, and for what is kept between rounds; made "
             "when missing"},
    {.name = "insecure",
     .type = FL_OPT_BOOL,
     .def = "no",
     .help = "Plaintext; needed as long as this version has no TLS, and only for loopback"},
    {.name = "insecure_remote",
     .type = FL_OPT_BOOL,
     .def = "no",
     .help = "Plaintext to other hosts too: anybody on the way can read and change updates"},
    {.name = "trainer",
     .type = FL_OPT_ENUM,
     .def = "builtin",
     .choices = trainers,
     .help = "Who trains: the built-in engine or a program of yours"},
    {.name = "labels",
     .type = FL_OPT_MAP,
     .help = "Free names and values that flctl clients shows; at most 64, 2048 bytes in all"},
    {.name = "log_level",
     .type = FL_OPT_ENUM,
     .def = "info",
     .choices = log_levels,
     .help = "Lines above this level are not written"},
    {.name = "exit_when_done",
     .type = FL_OPT_BOOL,
     .def = "no",
     .help = "End with exit code 0 when all rounds are done. Otherwise the client stays, and takes "
             "part again when the server is started with more rounds, within seconds: nobody has "
             "to go to every machine for it"},
    {.name = "offers",
     .type = FL_OPT_BOOL,
     .def = "no",
     .help = "Take part in algorithms whose clients tell something of their data itself: means of "
             "a few samples each, with fedmix and naivemix, which the server gives to all clients. "
             "Without a yes the client leaves such a federation, and says so"},
    {.name = "seed",
     .type = FL_OPT_INT,
     .def = "0",
     .min = 0,
     .max = 9e15,
     .help = "Of the jitter of reconnects; 0 derives it from the name"},
    FL_OPT_END};

static const struct fl_opt_spec data_specs[] = {
    {.name = "path",
     .type = FL_OPT_STRING,
     .help = "Folder with the training part (IDX, CIFAR, NPY or CSV), and a test part if any"},
    {.name = "validation",
     .type = FL_OPT_FLOAT,
     .def = "0",
     .min = 0,
     .max = 0.9,
     .help = "Share of the training part kept for evaluation when there is no test part"},
    {.name = "augment",
     .type = FL_OPT_ENUM,
     .def = "none",
     .choices = augments,
     .help = "Of training pictures; flip_crop: mirrored or not, shifted by up to 4 pixels"},
    FL_OPT_END};

static const struct fl_opt_spec command_specs[] = {
    {.name = "program",
     .type = FL_OPT_STRING_LIST,
     .help = "Program and arguments; {task} stands for the path of the task file"},
    {.name = "time_limit",
     .type = FL_OPT_DURATION,
     .def = "1h",
     .min = 100,
     .max = 6.048e8,
     .help = "The program is ended after it"},
    {.name = "first_limit",
     .type = FL_OPT_DURATION,
     .min = 100,
     .max = 6.048e8,
     .help = "And after this while no run for this federation was good yet, as there is none to "
             "be compared with; not set: 10m, or time_limit when that is set or patience is 0"},
    {.name = "patience",
     .type = FL_OPT_FLOAT,
     .def = "10",
     .min = 0,
     .max = 1e6,
     .help = "And after this many times its longest run for this federation so far; 0: never"},
    {.name = "patience_least",
     .type = FL_OPT_DURATION,
     .def = "2m",
     .min = 0,
     .max = 6.048e8,
     .help = "But not before"},
    {.name = "memory_limit",
     .type = FL_OPT_BYTES,
     .def = "0",
     .min = 0,
     .max = 1.1e12,
     .help = "Address space of the program; 0: no limit"},
    {.name = "samples",
     .type = FL_OPT_INT,
     .def = "1",
     .min = 1,
     .max = 1e12,
     .help = "Training samples to announce before the program ever ran"},
    FL_OPT_END};

static const struct fl_opt_spec reconnect_specs[] = {
    {.name = "first",
     .type = FL_OPT_DURATION,
     .def = "1s",
     .min = 10,
     .max = 3.6e6,
     .help = "First wait after a lost connection; doubled each time, with 20 % jitter"},
    {.name = "longest",
     .type = FL_OPT_DURATION,
     .def = "1m",
     .min = 10,
     .max = 8.64e7,
     .help = "The waits grow to this"},
    {.name = "after_refusal",
     .type = FL_OPT_DURATION,
     .def = "15m",
     .min = 0,
     .max = 8.64e7,
     .help = "Wait after the server refused this client for good; 0s: exit with code 7"},
    {.name = "when_done",
     .type = FL_OPT_DURATION,
     .def = "1m",
     .min = 10,
     .max = 8.64e7,
     .help = "All rounds are done, and the server ends the session of a client that stays: the "
             "waits grow to this. A minute is soon enough for an operator who adds rounds, and "
             "a thousand clients that ask every minute cost a server nothing"},
    {.name = "connect_timeout",
     .type = FL_OPT_DURATION,
     .def = "10s",
     .min = 100,
     .max = 600000,
     .help = "A connection that does not stand by then counts as failed"},
    FL_OPT_END};

static const char *const other_keys[] = {"data", "command", "reconnect", NULL};

const struct fl_conf_node *fl_client_conf_node(const struct fl_client_conf *conf,
                                               const char *section, const char *key)
{
    const struct fl_conf_node *root = fl_conf_root(conf->doc);
    const struct fl_conf_node *map = section != NULL ? fl_conf_get(root, section) : root;
    const struct fl_conf_node *node = fl_conf_get(map, key);

    return node != NULL ? node : map != NULL ? map : root;
}

static int load_section(struct fl_client_conf *conf, const char *name,
                        const struct fl_opt_spec *specs, struct fl_options **options,
                        struct fl_err *err)
{
    int rv = fl_options_create(specs, options);

    return rv != FL_OK ? rv
                       : fl_conf_apply(conf->doc, fl_conf_get(fl_conf_root(conf->doc), name), name,
                                       NULL, *options, err);
}

enum fl_data_augment fl_client_conf_augment(const struct fl_client_conf *conf)
{
    const char *word = fl_options_str(conf->data, "augment");

    return strcmp(word, augments[FL_AUGMENT_FLIP_CROP]) == 0 ? FL_AUGMENT_FLIP_CROP
                                                             : FL_AUGMENT_NONE;
}

bool fl_client_conf_command(const struct fl_client_conf *conf)
{
    return strcmp(fl_options_str(conf->main, "trainer"), "command") == 0;
}

/* What a Hello and the server have room for: nothing is left out that the operator wrote. */
static int check_labels(const struct fl_client_conf *conf, struct fl_err *err)
{
    const struct fl_conf_node *node = fl_client_conf_node(conf, NULL, "labels");
    size_t n = fl_options_count(conf->main, "labels");
    size_t bytes = 0;
    size_t i;

    if (n > FL_WIRE_MAX_PAIRS) {
        return fl_conf_error(node, err, "expected at most %d labels, found %zu", FL_WIRE_MAX_PAIRS,
                             n);
    }
    for (i = 0; i < n; i++) {
        size_t key = strlen(fl_options_key(conf->main, "labels", i));
        size_t value = strlen(fl_options_item(conf->main, "labels", i));
        size_t longest = key > value ? key : value;

        if (longest > FL_WIRE_MAX_TEXT) {
            return fl_conf_error(node, err, "expected at most %d bytes of a label, found %zu",
                                 FL_WIRE_MAX_TEXT, longest);
        }
        bytes += key + value + 2;
    }
    if (bytes > FL_WIRE_LABELS_BYTES) {
        return fl_conf_error(node, err,
                             "expected at most %d bytes of labels, each key and value counted with "
                             "one byte more, found %zu",
                             FL_WIRE_LABELS_BYTES, bytes);
    }
    return FL_OK;
}

static int check(const struct fl_client_conf *conf, struct fl_err *err)
{
    const char *name = fl_options_str(conf->main, "name");
    const char *server = fl_options_str(conf->main, "server");
    bool command = fl_client_conf_command(conf);
    struct fl_address parsed;
    struct fl_err inner = {0};
    int rv;

    if (!fl_name_valid(name)) {
        return fl_conf_error(fl_client_conf_node(conf, NULL, "name"), err,
                             "expected 1 to %d characters of A-Z a-z 0-9 . _ -, found '%s'",
                             FL_NAME_MAX - 1, name);
    }
    if (!fl_options_bool(conf->main, "insecure")) {
        return fl_conf_error(fl_client_conf_node(conf, NULL, "insecure"), err,
                             "this version has no TLS yet: set 'insecure: yes' for plaintext to "
                             "loopback addresses");
    }
    rv = fl_address_parse(server, &parsed, &inner);
    if (rv != FL_OK) {
        return fl_conf_error(fl_client_conf_node(conf, NULL, "server"), err, "%s",
                             fl_err_text(&inner, rv));
    }
    if (!fl_address_is_loopback(server) && !fl_options_bool(conf->main, "insecure_remote")) {
        return fl_conf_error(fl_client_conf_node(conf, NULL, "server"), err,
                             "'%s' is not a loopback address; plaintext there needs "
                             "'insecure_remote: yes' too",
                             server);
    }
    if (command && fl_options_count(conf->command, "program") == 0) {
        return fl_conf_error(fl_client_conf_node(conf, "command", "program"), err,
                             "trainer 'command' needs command.program");
    }
    if (command && fl_client_conf_augment(conf) != FL_AUGMENT_NONE) {
        return fl_conf_error(fl_client_conf_node(conf, "data", "augment"), err,
                             "data.augment is for the built-in trainer; your program augments by "
                             "itself");
    }
    if (!command && !fl_options_is_set(conf->data, "path")) {
        return fl_conf_error(fl_client_conf_node(conf, "data", "path"), err,
                             "trainer 'builtin' needs data.path");
    }
    return check_labels(conf, err);
}

int fl_client_conf_load(const char *path, struct fl_client_conf **ret, struct fl_err *err)
{
    struct fl_client_conf *conf = calloc(1, sizeof(*conf));
    int rv;

    if (conf == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_conf_load(path, &conf->doc, err);
    if (rv == FL_OK) {
        rv = fl_options_create(main_specs, &conf->main);
    }
    if (rv == FL_OK) {
        rv = fl_conf_apply(conf->doc, fl_conf_root(conf->doc), "", other_keys, conf->main, err);
    }
    if (rv == FL_OK) {
        rv = load_section(conf, "data", data_specs, &conf->data, err);
    }
    if (rv == FL_OK) {
        rv = load_section(conf, "command", command_specs, &conf->command, err);
    }
    if (rv == FL_OK) {
        rv = load_section(conf, "reconnect", reconnect_specs, &conf->reconnect, err);
    }
    if (rv == FL_OK) {
        rv = check(conf, err);
    }
    if (rv != FL_OK) {
        fl_client_conf_free(conf);
        return rv;
    }
    *ret = conf;
    return FL_OK;
}

void fl_client_conf_free(struct fl_client_conf *conf)
{
    if (conf == NULL) {
        return;
    }
    fl_options_free(conf->main);
    fl_options_free(conf->data);
    fl_options_free(conf->command);
    fl_options_free(conf->reconnect);
    fl_conf_free(conf->doc);
    free(conf);
}

int fl_client_conf_reference(struct fl_buf *out)
{
    int rv = fl_buf_printf(out, "| key | type | default | range | meaning |\n"
                                "| --- | --- | --- | --- | --- |\n");

    if (rv == FL_OK) {
        rv = fl_conf_reference(main_specs, "", out);
    }
    if (rv == FL_OK) {
        rv = fl_conf_reference(data_specs, "data", out);
    }
    if (rv == FL_OK) {
        rv = fl_conf_reference(command_specs, "command", out);
    }
    if (rv == FL_OK) {
        rv = fl_conf_reference(reconnect_specs, "reconnect", out);
    }
    return rv;
}
