#include "tests/lib/suites.h"

int main(int argc, char **argv)
{
    return suites_run(argc > 0 ? argv[0] : "");
}
