#include "libfl/net/metered.h"

#ifdef HAVE_SYSTEMD
#include <systemd/sd-bus.h>

#define ANSWER_US 300000
#define SERVICE   "org.freedesktop.NetworkManager"

/* NMMetered of NetworkManager's D-Bus API. */
enum { METERED_YES = 1, METERED_NO = 2, METERED_GUESS_YES = 3, METERED_GUESS_NO = 4 };

static int metered_of(uint32_t value)
{
    return value == METERED_YES || value == METERED_GUESS_YES ? 1
           : value == METERED_NO || value == METERED_GUESS_NO ? 0
                                                              : -1;
}

int fl_net_metered(void)
{
    sd_bus_message *question = NULL;
    sd_bus_message *answer = NULL;
    sd_bus *bus = NULL;
    uint32_t value = 0;
    int found = -1;

    if (sd_bus_open_system(&bus) < 0 ||
        sd_bus_message_new_method_call(bus, &question, SERVICE, "/org/freedesktop/NetworkManager",
                                       "org.freedesktop.DBus.Properties", "Get") < 0 ||
        sd_bus_message_append(question, "ss", SERVICE, "Metered") < 0 ||
        sd_bus_message_set_auto_start(question, 0) < 0)
    {
        goto done;
    }
    if (sd_bus_call(bus, question, ANSWER_US, NULL, &answer) >= 0 &&
        sd_bus_message_read(answer, "v", "u", &value) >= 0)
    {
        found = metered_of(value);
    }
done:
    sd_bus_message_unref(answer);
    sd_bus_message_unref(question);
    sd_bus_close_unref(bus);
    return found;
}
#else
int fl_net_metered(void)
{
    return -1;
}
#endif
