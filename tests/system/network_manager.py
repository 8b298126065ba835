"""A NetworkManager of a test on the system bus that DBUS_SYSTEM_BUS_ADDRESS names.

    network_manager.py FILE

Its property Metered is the number in FILE, read again for each question; "hang": it does not answer.
"""

import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME = "org.freedesktop.NetworkManager"


class Manager(dbus.service.Object):
    def __init__(self, bus: dbus.Bus, path: str) -> None:
        super().__init__(bus, "/org/freedesktop/NetworkManager")
        self.path = path
        self.waiting: list = []

    @dbus.service.method(
        dbus.PROPERTIES_IFACE, in_signature="ss", out_signature="v", async_callbacks=("answer", "fail")
    )
    def Get(self, interface: str, name: str, answer, fail) -> None:
        with open(self.path, encoding="utf-8") as f:
            value = f.read().strip()
        if value == "hang":
            self.waiting.append(answer)
        elif (interface, name) != (NAME, "Metered"):
            fail(dbus.DBusException("no such property"))
        else:
            answer(dbus.UInt32(int(value), variant_level=1))


def main() -> None:
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    bus = dbus.SystemBus()
    name = dbus.service.BusName(NAME, bus)
    manager = Manager(bus, sys.argv[1])
    print("ready", name.get_name(), manager.path, flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main()
