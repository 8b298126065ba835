#ifndef FL_NET_METERED_H
#define FL_NET_METERED_H

/*
 * Is the network of this host metered, as NetworkManager says on the system bus? 1: yes, or it
 * guesses so; 0: no; -1: unknown: no NetworkManager, no bus, or built without libsystemd. Any
 * thread; waits for the answer, 300 ms at most. Starts nothing.
 */
int fl_net_metered(void);

#endif
