#ifndef FL_CLIENTD_DEVICE_FACTS_H
#define FL_CLIENTD_DEVICE_FACTS_H

/*
 * Facts about this device for the rules of `when` (client/core/device_policy.h): clock, load,
 * memory, disk, power supply, and NetworkManager's opinion of the network. Threading: none; a few
 * small reads, and up to 300 ms for NetworkManager if `when` asks for it.
 */

#include "client/core/device_policy.h"

struct fl_device {
    const char *root;      /* "": the files of the system; else the folder of others, for tests */
    const char *state_dir; /* free_disk is that of its file system */
    const struct fl_when *when; /* what nobody asks for is not read */
};

void fl_device_facts(const struct fl_device *device, struct fl_when_facts *ret);
/*
 * FL_ECONF with a text: a rule asks for more memory or disk than the device has, so it would never
 * hold.
 */
FL_MUST_CHECK int fl_device_check(const struct fl_device *device, struct fl_err *err);

#endif
