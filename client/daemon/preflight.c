#include "client/daemon/preflight.h"

#include "client/daemon/exit_codes.h"
#include "client/train/trainer.h"
#include "libfl/base/fs.h"

/* The message of `err` behind the key's file and line; keeps the code. */
static int at_key(const struct fl_client_conf *conf, const char *section, const char *key, int rv,
                  struct fl_err *err)
{
    struct fl_err inner = *err;

    if (rv == FL_ENOMEM) {
        return rv;
    }
    (void)fl_conf_error(fl_client_conf_node(conf, section, key), err, "%s",
                        fl_err_text(&inner, rv));
    err->code = rv;
    return rv;
}

int fl_client_preflight_places(const struct fl_client_conf *conf, int *ret_exit, struct fl_err *err)
{
    int rv;

    *ret_exit = FL_EXIT_STATE;
    rv = fl_fs_check_folder(fl_options_str(conf->main, "state_dir"), err);
    if (rv != FL_OK) {
        return at_key(conf, NULL, "state_dir", rv, err);
    }
    if (!fl_client_conf_command(conf)) {
        return FL_OK;
    }
    *ret_exit = FL_EXIT_DATA;
    rv = fl_trainer_command_find(fl_options_item(conf->command, "program", 0), err);
    return rv == FL_OK ? FL_OK : at_key(conf, "command", "program", rv, err);
}

/* The part to evaluate on; NULL when there is none. */
static int open_test(const struct fl_client_conf *conf, struct fl_dataset *train,
                     struct fl_dataset **ret, struct fl_err *err)
{
    double share = fl_options_float(conf->data, "validation");
    int rv = fl_dataset_open(fl_options_str(conf->data, "path"), "test", ret, err);

    if (rv != FL_ENOENT) {
        return rv;
    }
    *ret = NULL;
    return share > 0.0 ? fl_dataset_split(train, share, 1, ret, err) : FL_OK;
}

int fl_client_open_data(const struct fl_client_conf *conf, struct fl_dataset **ret_train,
                        struct fl_dataset **ret_test, struct fl_err *err)
{
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    const char *key = "path";
    int rv = fl_dataset_open(fl_options_str(conf->data, "path"), "train", &train, err);

    if (rv == FL_OK) {
        rv = open_test(conf, train, &test, err);
    }
    if (rv == FL_OK) {
        key = "augment";
        rv = fl_dataset_set_augment(train, fl_client_conf_augment(conf), err);
    }
    if (rv != FL_OK) {
        fl_dataset_free(train);
        fl_dataset_free(test);
        return at_key(conf, "data", key, rv, err);
    }
    *ret_train = train;
    *ret_test = test;
    return FL_OK;
}

int fl_client_preflight(const struct fl_client_conf *conf, int *ret_exit, struct fl_err *err)
{
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    int rv = fl_client_preflight_places(conf, ret_exit, err);

    if (rv != FL_OK || fl_client_conf_command(conf)) {
        return rv;
    }
    *ret_exit = FL_EXIT_DATA;
    rv = fl_client_open_data(conf, &train, &test, err);
    fl_dataset_free(train);
    fl_dataset_free(test);
    return rv;
}
