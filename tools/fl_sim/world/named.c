/*
 * Named network and device models. Each figure has its source, and our own assumptions are marked
 * as such; docs/simulation.md#named-worlds repeats the table. They describe links only: the speed
 * of training is set by `train:`, as no published figure fits every model.
 */
#include "tools/fl_sim/world/world.h"

static const struct fl_world_name worlds[] = {
    {"ideal", "no limits: transfers and trainings take no time", "a definition", "{}"},
    {"lan", "machines on one switch: 1 Gbit/s each way, 0.1 ms",
     "rate: 1000BASE-T, IEEE 802.3ab-1999; latency and the server's 10 Gbit/s: assumptions",
     "{uplink: 1Gbit/s, downlink: 1Gbit/s, latency: 100us,\n"
     " server: {uplink: 10Gbit/s, downlink: 10Gbit/s}}"},
    {"broadband", "homes on fixed lines: median 69.4 Mbit/s down, 18.4 Mbit/s up, 5 ms",
     "rates: Ofcom, UK home broadband performance, measured March 2023: medians 69.4 and 18.4 "
     "Mbit/s, 12 % of lines below 30 Mbit/s down, which makes sigma 0.71; latency: half of 10 ms, "
     "median of fixed lines, Ookla Speedtest Global Index, November 2022; sigma of uplinks as of "
     "downlinks, sigma of latencies and the server's 1 Gbit/s: assumptions",
     "{uplink: {lognormal: {median: 18.4Mbit/s, sigma: 0.71}},\n"
     " downlink: {lognormal: {median: 69.4Mbit/s, sigma: 0.71}},\n"
     " latency: {lognormal: {median: 5ms, sigma: 0.5}},\n"
     " server: {uplink: 1Gbit/s, downlink: 1Gbit/s}}"},
    {"lte", "phones on 4G: median 13 Mbit/s down, 6 Mbit/s up, 14 ms",
     "rates: medians of Huang et al., A close examination of performance and power characteristics "
     "of 4G LTE networks, MobiSys 2012; latency: half of 28 ms, median of mobile networks, Ookla "
     "Speedtest Global Index, November 2022; all sigmas and the server's 1 Gbit/s: assumptions",
     "{uplink: {lognormal: {median: 6Mbit/s, sigma: 0.7}},\n"
     " downlink: {lognormal: {median: 13Mbit/s, sigma: 0.7}},\n"
     " latency: {lognormal: {median: 14ms, sigma: 0.5}},\n"
     " server: {uplink: 1Gbit/s, downlink: 1Gbit/s}}"},
    {"lte-m", "machines on LTE-M (Cat-M1, half duplex): 300 kbit/s down, 375 kbit/s up",
     "rates: peak of 3GPP Release 13 Cat-M1, half duplex, with scheduling delays; latency of 10 to "
     "15 ms as commonly given for it; the server's 1 Gbit/s: an assumption. Peak rates: coverage "
     "extension with its repetitions is slower",
     "{uplink: 375kbit/s, downlink: 300kbit/s, latency: {uniform: [10ms, 15ms]},\n"
     " server: {uplink: 1Gbit/s, downlink: 1Gbit/s}}"},
    {"narrowband", "machines on NB-IoT (Cat-NB1): 26 kbit/s down, 62 kbit/s up, 1.6 to 10 s",
     "rates: peak of 3GPP Release 13 Cat-NB1 with scheduling, uplink multi-tone; latency of 1.6 to "
     "10 s as commonly given for it; the server's 1 Gbit/s: an assumption. Peak rates: coverage "
     "extension with its repetitions is slower",
     "{uplink: 62kbit/s, downlink: 26kbit/s, latency: {uniform: [1.6s, 10s]},\n"
     " server: {uplink: 1Gbit/s, downlink: 1Gbit/s}}"},
};

const struct fl_world_name *fl_world_named(size_t i)
{
    return i < sizeof(worlds) / sizeof(worlds[0]) ? &worlds[i] : NULL;
}
