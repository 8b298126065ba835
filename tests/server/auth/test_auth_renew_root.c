/*
 * A new root that `fl-serverd --init --renew-root` makes while the server looks at its files, right
 * after it has read them.
 */
#include <check.h>
#include <string.h>

#include "tests/lib/auth_rig.h"
#include "tests/lib/suites.h"

static struct auth_rig rig;
static bool renews; /* a root is made right after the next reading */

int __real_fl_authority_refresh(struct fl_authority *authority, int64_t now_ms, bool *ret_changed,
                                struct fl_err *err);
int __wrap_fl_authority_refresh(struct fl_authority *authority, int64_t now_ms, bool *ret_changed,
                                struct fl_err *err);

int __wrap_fl_authority_refresh(struct fl_authority *authority, int64_t now_ms, bool *ret_changed,
                                struct fl_err *err)
{
    int rv = __real_fl_authority_refresh(authority, now_ms, ret_changed, err);

    if (renews) {
        renews = false;
        ck_assert_int_eq(fl_auth_init(&rig.setup, /* renew_root= */ true, NULL), FL_OK);
    }
    return rv;
}

static void setup(void)
{
    struct fl_err err = {0};

    auth_rig_folder(&rig);
    auth_rig_conf(&rig, "identity: {hosts: [localhost]}");
    ck_assert_msg(fl_auth_init(&rig.setup, /* renew_root= */ false, &err) == FL_OK, "%s", err.msg);
    auth_rig_open(&rig, NULL);
}

static void teardown(void)
{
    auth_rig_done(&rig);
}

static const char reloaded[] = "certificates reloaded for new connections";

TEST_CASE("renew", setup, teardown);

TEST(a_root_made_right_after_the_files_were_read_is_loaded_at_the_next_look)
{
    renews = true;
    auth_rig_look(&rig, true);
    ck_assert(!renews);
    ck_assert_ptr_null(strstr(rig.lines, reloaded));
    auth_rig_look(&rig, false);
    ck_assert_msg(strstr(rig.lines, reloaded) != NULL, "%s", rig.lines);
    auth_rig_look(&rig, false);
    ck_assert_str_eq(rig.lines, "");
}

/* A start creates the server's certificate, which the first look reads again. */
TEST(files_that_the_server_wrote_itself_are_not_reloaded)
{
    auth_rig_look(&rig, false);
    ck_assert_str_eq(rig.lines, "");
    auth_rig_look(&rig, false);
    ck_assert_str_eq(rig.lines, "");
}
