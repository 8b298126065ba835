/*
 * keep_summary STATE_DIR: keeps what is on standard input as the data summary that the client of
 * this state folder has sent.
 */
#include <stdio.h>

#include "client/store/own_summary.h"

int main(int argc, char **argv)
{
    static unsigned char body[65536];
    struct fl_err err = {0};
    size_t n = fread(body, 1, sizeof(body), stdin);

    if (argc != 2 || fl_summary_save(argv[1], 0, body, n, &err) != FL_OK) {
        (void)fprintf(stderr, "keep_summary: %s\n", err.msg);
        return 1;
    }
    return 0;
}
