#include "client/daemon/preflight.h"

#include "client/daemon/credentials.h"
#include "client/daemon/exit_codes.h"
#include "client/daemon/invitation.h"
#include "client/train/trainer.h"
#include "client/train/validation.h"
#include "libfl/base/fs.h"
#include "libfl/num/gemm.h"

int fl_client_preflight_places(const struct fl_client_conf *conf, int *ret_exit, struct fl_err *err)
{
    int rv;

    *ret_exit = FL_EXIT_STATE;
    rv = fl_fs_check_folder(conf->main->state_dir, err);
    if (rv != FL_OK) {
        return fl_conf_blame(conf->file, &conf->main->state_dir, rv, err);
    }
    if (conf->main->trainer != FL_TRAINER_COMMAND) {
        *ret_exit = FL_EXIT_CONFIG;
        rv = fl_gemm_init(err);
        return rv == FL_OK ? FL_OK : fl_err_wrap(err, rv, "trainer 'builtin'");
    }
    *ret_exit = FL_EXIT_DATA;
    rv = fl_trainer_command_find(conf->command->program.list[0], err);
    return rv == FL_OK ? FL_OK : fl_conf_blame(conf->file, &conf->command->program, rv, err);
}

/* The part to evaluate on; NULL when there is none. */
static int open_test(const struct fl_client_conf *conf, struct fl_dataset *train,
                     struct fl_dataset **ret, struct fl_err *err)
{
    int rv = fl_dataset_open(conf->data->path, "test", ret, err);

    if (rv == FL_ENOENT) {
        *ret = NULL;
        rv = FL_OK;
    }
    return rv == FL_OK ? fl_train_keep_back(train, conf->data->validation, ret, err) : rv;
}

int fl_client_open_data(const struct fl_client_conf *conf, struct fl_dataset **ret_train,
                        struct fl_dataset **ret_test, struct fl_err *err)
{
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    const void *field = &conf->data->path;
    int rv = fl_dataset_open(conf->data->path, "train", &train, err);

    if (rv == FL_OK) {
        rv = open_test(conf, train, &test, err);
    }
    if (rv == FL_OK) {
        field = &conf->data->augment;
        rv = fl_dataset_set_augment(train, conf->data->augment, err);
    }
    if (rv != FL_OK) {
        fl_dataset_free(train);
        fl_dataset_free(test);
        return fl_conf_blame(conf->file, field, rv, err);
    }
    *ret_train = train;
    *ret_test = test;
    return FL_OK;
}

/* An invitation that was put there gets one at the start. */
static int check_credentials(const struct fl_client_conf *conf, int *ret_exit, struct fl_err *err)
{
    char path[4096];
    int rv = conf->main->insecure ? FL_OK : fl_credentials_check(conf, ret_exit, err);

    return rv == FL_ENOENT && fl_invitation_credential(path, sizeof(path)) != NULL ? FL_OK : rv;
}

int fl_client_preflight(const struct fl_client_conf *conf, int *ret_exit, struct fl_err *err)
{
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    int rv = fl_client_preflight_places(conf, ret_exit, err);

    rv = rv == FL_OK ? check_credentials(conf, ret_exit, err) : rv;
    if (rv != FL_OK || conf->main->trainer == FL_TRAINER_COMMAND) {
        return rv;
    }
    *ret_exit = FL_EXIT_DATA;
    rv = fl_client_open_data(conf, &train, &test, err);
    fl_dataset_free(train);
    fl_dataset_free(test);
    return rv;
}
