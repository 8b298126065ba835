/* The first configuration of a client says what it was told, and never takes the place of one. */

#include <check.h>
#include <string.h>
#include <sys/stat.h>

#include "client/conf/client_conf.h"
#include "client/conf/first_conf.h"
#include "libfl/base/fs.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

static char folder[FOLDER_PATH];
static char path[FOLDER_PATH + 32];
static const char *servers[2];
static struct fl_client_first first;

static void setup(void)
{
    ck_assert(folder_make("first", folder));
    (void)snprintf(path, sizeof(path), "%s/etc/fl/client.yaml", folder);
    servers[0] = "fl.example.org:7800";
    first = (struct fl_client_first){
        .servers = servers, .n_servers = 1, .name = "edge-001", .state_dir = "/var/lib/fl-clientd"};
}

static void teardown(void)
{
    folder_remove(folder);
}

static struct fl_client_conf *written(void)
{
    struct fl_client_conf *conf = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_client_first_write(path, &first, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_client_conf_load(path, NULL, &conf, &err) == FL_OK, "%s", err.msg);
    return conf;
}

TEST_CASE("all", setup, teardown);

TEST(it_is_read_as_it_was_meant)
{
    struct fl_client_conf *conf = written();
    struct stat st;

    ck_assert_str_eq(conf->main->server.list[0], "fl.example.org:7800");
    ck_assert_str_eq(conf->main->name, "edge-001");
    ck_assert_str_eq(conf->main->state_dir, "/var/lib/fl-clientd");
    ck_assert_str_eq(conf->data->path, FL_CLIENT_FIRST_DATA);
    ck_assert(!conf->main->insecure);
    fl_client_conf_free(conf);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0644);
}

TEST(no_character_of_what_was_told_is_lost)
{
    static char site[] = "site", city[] = "Köln \"Süd\": \\ # 1", odd[] = "x: y", z[] = "- 'z'";
    static const struct fl_pair labels[] = {{site, city}, {odd, z}};
    struct fl_client_conf *conf;

    servers[0] = "[2001:db8::1]:7800";
    first.data = "/srv/a \"b\" \\c\t# d";
    first.labels = labels;
    first.n_labels = 2;
    conf = written();
    ck_assert_uint_eq(conf->main->server.n, 1);
    ck_assert_str_eq(conf->main->server.list[0], servers[0]);
    ck_assert_str_eq(conf->data->path, first.data);
    ck_assert_uint_eq(conf->main->labels.n, 2);
    ck_assert_str_eq(conf->main->labels.list[0].value, labels[0].value);
    ck_assert_str_eq(conf->main->labels.list[1].key, labels[1].key);
    ck_assert_str_eq(conf->main->labels.list[1].value, labels[1].value);
    fl_client_conf_free(conf);
}

TEST(a_file_that_is_there_stays_as_it_is)
{
    struct fl_buf found;

    fl_client_conf_free(written());
    ck_assert_int_eq(fl_fs_replace(path, "mine\n", 5, false, NULL), FL_OK);
    ck_assert_int_eq(fl_client_first_write(path, &first, NULL), FL_EEXIST);
    ck_assert_int_eq(fl_fs_read(path, 100, &found, NULL), FL_OK);
    ck_assert_uint_eq(found.len, 5);
    fl_buf_done(&found);
}

TEST(several_addresses_keep_their_order)
{
    struct fl_client_conf *conf;

    servers[1] = "[2001:db8::1]:7801";
    first.n_servers = 2;
    conf = written();
    ck_assert_uint_eq(conf->main->server.n, 2);
    ck_assert_str_eq(conf->main->server.list[0], servers[0]);
    ck_assert_str_eq(conf->main->server.list[1], servers[1]);
    fl_client_conf_free(conf);
}
