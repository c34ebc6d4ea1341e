/* Prints to both outputs, and says whether the first is a terminal; copies its input. */
#include "subject.h"

int main(int argc, char **argv) {
    printf("%s\n", isatty(1) ? "terminal" : "pipe");
    fflush(stdout);
    fprintf(stderr, "to stderr\n");
    char buffer[100];
    ssize_t count = OK(read(0, buffer, sizeof buffer));
    OK(write(1, buffer, count));
    if (open("/dev/tty", O_RDWR) != -1) return 1; /* there is no controlling terminal */
    return 0;
}
