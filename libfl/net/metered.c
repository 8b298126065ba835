#include "libfl/net/metered.h"

#ifdef HAVE_SYSTEMD
#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "libfl/base/clock.h"

#define ANSWER_MS 300
#define SERVICE   "org.freedesktop.NetworkManager"

/* NMMetered of NetworkManager's D-Bus API. */
enum { METERED_YES = 1, METERED_NO = 2, METERED_GUESS_YES = 3, METERED_GUESS_NO = 4 };

static int metered_of(uint32_t value)
{
    return value == METERED_YES || value == METERED_GUESS_YES ? 1
           : value == METERED_NO || value == METERED_GUESS_NO ? 0
                                                              : -1;
}

/* A call that is answered, or failed. */
struct metered_call {
    bool done;
    int found;
};

static int metered_answered(sd_bus_message *answer, void *userdata, sd_bus_error *error)
{
    struct metered_call *call = userdata;
    uint32_t value = 0;

    (void)error;
    call->done = true;
    if (sd_bus_message_read(answer, "v", "u", &value) >= 0) { /* An error has no such contents. */
        call->found = metered_of(value);
    }
    return 1;
}

/* sd_bus_call() would wait much longer for a bus that accepts connections and says nothing. */
static void metered_wait(sd_bus *bus, struct metered_call *call)
{
    uint64_t by_ms = fl_clock_ms() + ANSWER_MS;

    while (!call->done) {
        uint64_t now_ms = fl_clock_ms();
        int rv = sd_bus_process(bus, NULL);

        if (rv < 0 || now_ms >= by_ms) {
            return;
        }
        if (rv == 0 && sd_bus_wait(bus, (by_ms - now_ms) * 1000) < 0) {
            return;
        }
    }
}

int fl_net_metered(void)
{
    struct metered_call call = {.found = -1};
    sd_bus_message *question = NULL;
    sd_bus *bus = NULL;

    if (sd_bus_open_system(&bus) < 0 ||
        sd_bus_message_new_method_call(bus, &question, SERVICE, "/org/freedesktop/NetworkManager",
                                       "org.freedesktop.DBus.Properties", "Get") < 0 ||
        sd_bus_message_append(question, "ss", SERVICE, "Metered") < 0 ||
        sd_bus_message_set_auto_start(question, 0) < 0 ||
        sd_bus_call_async(bus, NULL, question, metered_answered, &call, UINT64_MAX) < 0)
    {
        goto done;
    }
    metered_wait(bus, &call);
done:
    sd_bus_message_unref(question);
    sd_bus_close_unref(bus);
    return call.found;
}
#else
int fl_net_metered(void)
{
    return -1;
}
#endif
