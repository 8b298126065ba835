/*
 * fl-clientd --export-model: writes a personal model (FedMCSA, FedAMP, Ditto, local training), or
 * the norms or the head that stay on this client put into a global model. Runs in the foreground,
 * beside a running daemon. Algorithms with one model for all clients keep none here; flctl export
 * writes that model.
 */
#include "client/daemon/export_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "client/daemon/clientd_exit.h"
#include "client/store/client_state_read.h"
#include "client/work/local_model.h"
#include "client/work/worker.h"
#include "libfl/model/safetensors.h"

static const struct fl_client_state_request requests[] = {{FL_KEEP_PERSONAL, false},
                                                          {FL_KEEP_LOCAL, true}};

/* Puts the local tensors of this client into the global model of file `base`. */
static int export_add_local_tensors(struct fl_client_state_found *found, const char *base,
                                    struct fl_err *err)
{
    float *model;
    int rv;

    if (base == NULL) {
        return fl_err_set(err, FL_EINVAL,
                          "this client keeps only its local tensors, not a whole model: give the "
                          "global model that they belong to (from flctl export) with --model FILE");
    }
    model = malloc((fl_layout_count(found->layout) + 1) * sizeof(*model));
    rv = model != NULL ? fl_st_load(base, found->layout, model, err) : FL_ENOMEM;
    if (rv != FL_OK) {
        free(model);
        return rv;
    }
    fl_local_put(found->layout, found->data, model);
    free(found->data);
    found->data = model;
    return FL_OK;
}

static int export_save(const struct fl_client_conf *conf, const struct fl_client_state_found *found,
                       const char *file, struct fl_err *err)
{
    char round[24];
    const struct fl_st_meta meta[] = {
        {"federation", found->federation}, {"round", round}, {"client", conf->main->name}};
    size_t n = conf->main->name[0] != '\0' ? 3 : 2;

    (void)snprintf(round, sizeof(round), "%" PRIu64, found->key.round);
    return fl_st_save(file, found->layout, found->data, meta, n, /* sync= */ true, err);
}

/* Only a regular file may be replaced: the rename would also replace a device or a folder. */
static int export_check_file(const char *file, struct fl_err *err)
{
    struct stat st;

    return stat(file, &st) == 0 && !S_ISREG(st.st_mode)
               ? fl_err_set(err, FL_EINVAL, "'%s' is not a regular file, choose another one", file)
               : FL_OK;
}

static int export_find_model(const char *state_dir, struct fl_client_state_found *found,
                             struct fl_err *err)
{
    int rv = fl_client_state_read(state_dir, requests, sizeof(requests) / sizeof(requests[0]),
                                  found, err);

    if (rv == FL_ENOENT) {
        return fl_err_set(err, rv,
                          "no personal model in '%s': this client has not trained one yet, or the "
                          "algorithm has one model for all clients (export it with flctl export)",
                          state_dir);
    }
    return rv;
}

static void export_print(const struct fl_client_state_found *found, const char *file)
{
    (void)printf("%s of round %" PRIu64 " in '%s', %zu parameters, written to %s\n",
                 requests[found->request].local ? "the given model with the local tensors"
                                                : "the personal model",
                 found->key.round, found->federation, fl_layout_count(found->layout), file);
    if (found->pending) {
        (void)printf("the server has not yet confirmed that it aggregated this round\n");
    }
}

int fl_export_model(const struct fl_client_conf *conf, const char *file, const char *base)
{
    struct fl_client_state_found found = {.request = 0};
    struct fl_err err = {0};
    int exit_code = FL_EXIT_FAILURE;
    int rv = export_check_file(file, &err);

    if (rv != FL_OK) {
        goto done;
    }
    exit_code = FL_EXIT_STATE;
    rv = export_find_model(conf->main->state_dir, &found, &err);
    if (rv != FL_OK) {
        goto done;
    }
    if (requests[found.request].local) {
        exit_code = FL_EXIT_DATA;
        rv = export_add_local_tensors(&found, base, &err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    exit_code = FL_EXIT_FAILURE;
    rv = export_save(conf, &found, file, &err);
    if (rv != FL_OK) {
        goto done;
    }
    exit_code = FL_EXIT_OK;
    export_print(&found, file);
done:
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-clientd: %s\n", fl_err_text(&err, rv));
    }
    fl_client_state_found_done(&found);
    return exit_code;
}
