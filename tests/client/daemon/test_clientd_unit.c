/* Which service belongs to a configuration. */

#include <check.h>

#include "client/daemon/service_unit.h"
#include "tests/lib/suites.h"

static const char *unit(const char *config, const char *state_dir)
{
    static char name[64];

    return fl_unit_name(config, state_dir, name, sizeof(name)) ? name : "none";
}

static const char *state(const char *config)
{
    static char dir[128];

    ck_assert_int_eq(fl_unit_state_dir(config, dir, sizeof(dir)), FL_OK);
    return dir;
}

TEST(files_below_etc_fl_have_their_services)
{
    ck_assert_str_eq(unit("/etc/fl/client.yaml", "/var/lib/fl-clientd"), "fl-clientd");
    ck_assert_str_eq(unit("/etc/fl/client-berlin.yaml", "/var/lib/fl-clientd-berlin"),
                     "fl-clientd@berlin");
}

TEST(others_have_none)
{
    ck_assert_str_eq(unit("/etc/fl/client.yaml", "/srv/fl"), "none");
    ck_assert_str_eq(unit("/etc/fl/client.yaml", "/var/lib/fl-clientd-berlin"), "none");
    ck_assert_str_eq(unit("/etc/fl/client-berlin.yaml", "/var/lib/fl-clientd"), "none");
    ck_assert_str_eq(unit("/etc/fl/x/client.yaml", "/var/lib/fl-clientd"), "none");
    ck_assert_str_eq(unit("/etc/fl/other.yaml", "/var/lib/fl-clientd"), "none");
    ck_assert_str_eq(unit("/etc/fl/client-.yaml", "/var/lib/fl-clientd"), "none");
    ck_assert_str_eq(unit("client.yaml", "/var/lib/fl-clientd"), "none");
    ck_assert_str_eq(unit("", ""), "none");
}

TEST(a_first_configuration_has_the_state_folder_of_its_service)
{
    ck_assert_str_eq(state("/etc/fl/client.yaml"), "/var/lib/fl-clientd");
    ck_assert_str_eq(state("/etc/fl/client-a.b.yaml"), "/var/lib/fl-clientd-a.b");
    ck_assert_str_eq(state("mine.yaml"), "/var/lib/fl-clientd");
}
