#include "client/daemon/clientd_preflight.h"

#include "client/daemon/availability.h"
#include "client/daemon/clientd_exit.h"
#include "client/daemon/credentials.h"
#include "client/daemon/invitation_file.h"
#include "client/train/trainer.h"
#include "client/train/validation.h"
#include "libfl/base/fs.h"
#include "libfl/num/gemm.h"

/*
 * Records an error together with the exit code of a start that fails with it. With `all` the next
 * check follows.
 */
static int preflight_keep_finding(struct fl_findings *all, int exit_code, int *ret_exit, int rv,
                                  struct fl_err *err)
{
    if (rv != FL_OK && (all == NULL || all->n == 0)) {
        *ret_exit = exit_code;
    }
    return fl_findings_keep(all, rv, err);
}

/* The file with the credentials of the proxy is readable, and the environment names a usable one.
 */
static int preflight_check_proxy(const struct fl_client_conf *conf, struct fl_err *err)
{
    const struct fl_proxy_rule proxy = fl_clientd_proxy(conf);
    int rv = fl_proxy_check(&proxy, err);

    return rv == FL_OK || proxy.proxy[0] == '\0'
               ? rv
               : fl_conf_blame(conf->file, &conf->main->proxy, rv, err);
}

int fl_client_preflight_places(const struct fl_client_conf *conf, struct fl_findings *all,
                               int *ret_exit, struct fl_err *err)
{
    bool builtin = conf->main->trainer != FL_TRAINER_COMMAND;
    int rv = fl_fs_check_folder(conf->main->state_dir, err);

    if (rv != FL_OK) {
        rv = fl_conf_blame(conf->file, &conf->main->state_dir, rv, err);
    }
    rv = preflight_keep_finding(all, FL_EXIT_STATE, ret_exit, rv, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = preflight_keep_finding(all, FL_EXIT_CONFIG, ret_exit, preflight_check_proxy(conf, err),
                                err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = preflight_keep_finding(all, FL_EXIT_CONFIG, ret_exit, fl_availability_check(conf, err),
                                err);
    if (rv != FL_OK) {
        return rv;
    }
    if (builtin) {
        rv = fl_gemm_init(err);
        if (rv != FL_OK) {
            rv = fl_err_wrap(err, rv, "trainer 'builtin'");
        }
    } else {
        rv = fl_trainer_command_find(conf->command->program.list, err);
        if (rv != FL_OK) {
            rv = fl_conf_blame(conf->file, &conf->command->program, rv, err);
        }
    }
    return preflight_keep_finding(all, builtin ? FL_EXIT_CONFIG : FL_EXIT_DATA, ret_exit, rv, err);
}

/* The data to evaluate on; NULL when there is none. */
static int open_test(const struct fl_client_conf *conf, struct fl_dataset *train,
                     struct fl_dataset **ret, struct fl_err *err)
{
    int rv = fl_dataset_open(conf->data->path, "test", ret, err);

    if (rv == FL_ENOENT) {
        *ret = NULL;
        rv = FL_OK;
    }
    if (rv != FL_OK) {
        return rv;
    }
    return fl_train_keep_back(train, conf->data->validation, ret, err);
}

int fl_client_open_data(const struct fl_client_conf *conf, struct fl_dataset **ret_train,
                        struct fl_dataset **ret_test, struct fl_err *err)
{
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    const void *field = &conf->data->path;
    int rv = fl_dataset_open(conf->data->path, "train", &train, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = open_test(conf, train, &test, err);
    if (rv != FL_OK) {
        goto done;
    }
    field = &conf->data->augment;
    rv = fl_dataset_set_augment(train, conf->data->augment, err);
done:
    if (rv != FL_OK) {
        fl_dataset_free(train);
        fl_dataset_free(test);
        return fl_conf_blame(conf->file, field, rv, err);
    }
    *ret_train = train;
    *ret_test = test;
    return FL_OK;
}

/* A missing certificate is no error with an invitation: the start uses it to get one. */
static int check_credentials(const struct fl_client_conf *conf, int *ret_exit, struct fl_err *err)
{
    char path[4096];
    int rv = conf->main->insecure ? FL_OK : fl_credentials_check(conf, ret_exit, err);

    return rv == FL_ENOENT && fl_invitation_credential(path, sizeof(path)) != NULL ? FL_OK : rv;
}

int fl_client_preflight(const struct fl_client_conf *conf, struct fl_findings *all, int *ret_exit,
                        struct fl_err *err)
{
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    int exit_code = FL_EXIT_STATE;
    int rv = fl_client_preflight_places(conf, all, ret_exit, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = check_credentials(conf, &exit_code, err);
    rv = preflight_keep_finding(all, exit_code, ret_exit, rv, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (conf->main->trainer != FL_TRAINER_COMMAND) {
        rv = fl_client_open_data(conf, &train, &test, err);
        rv = preflight_keep_finding(all, FL_EXIT_DATA, ret_exit, rv, err);
        fl_dataset_free(train);
        fl_dataset_free(test);
    }
    if (rv != FL_OK) {
        return rv;
    }
    return fl_findings_first(all, err);
}
