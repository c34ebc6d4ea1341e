/* Goes down as far as folders named `d` go, appends to the file `file` there, and makes another. */
#include "subject.h"

int main(int argc, char **argv) {
    int fd = OK(open(argv[1], O_WRONLY | O_APPEND));
    while (chdir("d") == 0) continue;
    OK(write(fd, "x", 1));
    int below = OK(open("file", O_RDWR));
    OK(write(below, "new", 3));
    put("other", "x");
    return 0;
}
