/* run.json: input to repeat the run, and the machine that it ran on; writing of JSON files in the
   folder. One thread, under the lock of the folder. */

#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/json/json.h"
#include "tools/fl_sim/results/results_impl.h"
#include "tools/fl_sim/results/version.h"

#define FORMAT   1
#define FILE_MAX ((size_t)256 << 20)

int fl_results_write_error(struct fl_err *err, int code, const char *path)
{
    if (code == FL_ENOSPC) {
        return fl_err_set(err, code,
                          "disk full: cannot write '%s': %s; finished trials are kept, free some "
                          "space and run it "
                          "again",
                          path, fl_strerror(code));
    }
    return fl_err_set(err, code, "cannot write '%s': %s", path, fl_strerror(code));
}

int fl_results_write_json(const char *path, const json_t *json, size_t max, struct fl_err *err)
{
    struct fl_buf text;
    int rv;

    fl_buf_init(&text, max);
    rv = fl_json_add(&text, json);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_replace(path, text.data, text.len, /* sync= */ true, NULL);
done:
    fl_buf_done(&text);
    if (rv != FL_OK) {
        return fl_results_write_error(err, rv, path);
    }
    return FL_OK;
}

static json_t *run_json_text(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *run_json_texts(const char *const *list, size_t n)
{
    json_t *array = json_array();
    size_t i;

    for (i = 0; i < n; i++) {
        (void)json_array_append_new(array, json_string(list[i]));
    }
    return array;
}

/* "2026-11-22T15:04:05Z" */
static json_t *run_json_time(void)
{
    time_t t = time(NULL);
    struct tm tm;
    char text[32] = "";

    if (gmtime_r(&t, &tm) != NULL) {
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    return json_string(text);
}

/* Parses the line "model name : …" of /proc/cpuinfo. */
static json_t *run_json_cpu_model(void)
{
    static const char *const key = "model name";
    FILE *f = fopen("/proc/cpuinfo", "re");
    json_t *model = NULL;
    char line[256];

    while (f != NULL && model == NULL && fgets(line, sizeof(line), f) != NULL) {
        char *value = strchr(line, ':');

        if (value != NULL && strncmp(line, key, strlen(key)) == 0) {
            value += strspn(value, ": \t");
            value[strcspn(value, "\n")] = '\0';
            model = json_string(fl_str_clean(value));
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return model != NULL ? model : json_null();
}

static json_t *run_json_machine(const struct fl_run_info *info)
{
    json_t *object = json_object();
    struct utsname name;
    bool known = uname(&name) == 0;

    (void)json_object_set_new(object, "cpu", run_json_cpu_model());
    (void)json_object_set_new(object, "cores", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    (void)json_object_set_new(object, "kernel", known ? json_string(name.release) : json_null());
    (void)json_object_set_new(object, "architecture",
                              known ? json_string(name.machine) : json_null());
    (void)json_object_set_new(object, "kernels", run_json_text(info->kernels));
    (void)json_object_set_new(object, "blas_kernel", run_json_text(info->blas_kernel));
    return object;
}

static json_t *run_json_points(const struct fl_run_info *info)
{
    json_t *array = json_array();
    size_t i;

    for (i = 0; i < info->n_points; i++) {
        json_t *point = json_object();

        (void)json_object_set_new(point, "point", json_string(info->points[i].slug));
        (void)json_object_set_new(point, "label", run_json_text(info->points[i].label));
        (void)json_array_append_new(array, point);
    }
    return array;
}

int fl_run_json_make(const struct fl_run_info *info, const json_t *old, json_t **ret,
                     struct fl_err *err)
{
    json_t *root = json_object();
    json_t *runs = json_deep_copy(json_object_get(old, "runs"));
    json_t *trials = json_deep_copy(json_object_get(old, "trials"));
    json_t *run = json_object();
    json_t *experiment = json_object();
    json_t *seeds = json_array();
    json_t *partitions = json_object();
    size_t i;

    runs = json_is_array(runs) ? runs : json_array();
    trials = json_is_object(trials) ? trials : json_object();
    (void)json_object_set_new(run, "date", run_json_time());
    (void)json_object_set_new(run, "command", run_json_texts(info->command, info->n_command));
    (void)json_object_set_new(run, "version", json_string(PACKAGE_VERSION));
    (void)json_object_set_new(run, "git", run_json_text(FL_GIT_DESCRIBE));
    (void)json_object_set_new(run, "machine", run_json_machine(info));
    (void)json_array_append_new(runs, run);
    (void)json_object_set_new(experiment, "name", json_string(info->name));
    (void)json_object_set_new(experiment, "fingerprint", json_string(info->fingerprint));
    (void)json_object_set_new(experiment, "file", run_json_text(info->file));
    (void)json_object_set_new(experiment, "text", run_json_text(info->text));
    (void)json_object_set_new(experiment, "set", run_json_texts(info->sets, info->n_sets));
    for (i = 0; i < info->n_seeds; i++) {
        (void)json_array_append_new(seeds, fl_json_whole(info->seeds[i]));
    }
    for (i = 0; i < info->n_partitions; i++) {
        (void)json_object_set_new(partitions, info->partitions[i].data,
                                  json_string(info->partitions[i].hash));
    }
    (void)json_object_set_new(root, "format", json_integer(FORMAT));
    (void)json_object_set_new(root, "experiment", experiment);
    (void)json_object_set_new(root, "points", run_json_points(info));
    (void)json_object_set_new(root, "seeds", seeds);
    (void)json_object_set_new(root, "partitions", partitions);
    (void)json_object_set_new(root, "runs", runs);
    (void)json_object_set_new(root, "trials", trials);
    if (json_object_size(root) != 7 || json_array_size(runs) == 0) {
        json_decref(root);
        return fl_err_set(err, FL_ENOMEM, "out of memory for run.json");
    }
    *ret = root;
    return FL_OK;
}

static int run_json_path(const char *dir, char out[FL_RESULTS_PATH], struct fl_err *err)
{
    return fl_fs_join(out, FL_RESULTS_PATH, dir, "run.json") == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

int fl_run_json_read(const char *dir, json_t **ret, struct fl_err *err)
{
    char path[FL_RESULTS_PATH];
    struct fl_buf text;
    json_error_t why;
    json_t *root;
    int rv = run_json_path(dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_read(path, FILE_MAX, &text, err);
    if (rv != FL_OK) {
        return rv;
    }
    root = json_loadb((const char *)text.data, text.len, 0, &why);
    fl_buf_done(&text);
    if (root == NULL) {
        return fl_err_set(err, FL_EFORMAT, "%s:%d: %s", path, why.line, why.text);
    }
    if (json_integer_value(json_object_get(root, "format")) != FORMAT) {
        json_decref(root);
        return fl_err_set(err, FL_EFORMAT,
                          "%s: not results of this version of fl-sim (expected format %d)", path,
                          FORMAT);
    }
    *ret = root;
    return FL_OK;
}

int fl_run_json_write(const char *dir, const json_t *run, struct fl_err *err)
{
    char path[FL_RESULTS_PATH];
    int rv = run_json_path(dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_results_write_json(path, run, FILE_MAX, err);
}
