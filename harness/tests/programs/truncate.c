/* truncate and ftruncate, shorter and longer. */
#include "subject.h"

int main(int argc, char **argv) {
    put("a", "0123456789");
    OK(truncate("a", 4));
    int fd = OK(open("a", O_RDWR));
    OK(ftruncate(fd, 20));
    OK(pwrite(fd, "x", 1, 15));
    OK(ftruncate(fd, 18));
    OK(symlink("a", "l"));
    OK(truncate("l", 17));
    return 0;
}
