/* Reads watched files in several ways. */
#include "subject.h"

int main(int argc, char **argv) {
    int fd = OK(open("given", O_RDONLY));
    char byte;
    OK(read(fd, &byte, 1));
    OK(pread(fd, &byte, 1, 2));
    OK(mmap(NULL, 4, PROT_READ, MAP_PRIVATE, fd, 0));
    put("other", "x");
    open("missing", O_RDONLY);
    return 0;
}
