/* argv[1] positioned writes of 100 bytes each. */
#include "subject.h"

int main(int argc, char **argv) {
    int fd = OK(open("file", O_WRONLY | O_CREAT, 0644));
    char text[100] = {0};
    for (long i = 0; i < atol(argv[1]); i++) OK(pwrite(fd, text, sizeof text, 100 * i));
    return 0;
}
