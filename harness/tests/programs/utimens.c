/* All calls that set times. */
#include "subject.h"

int main(int argc, char **argv) {
    put("a", "a");
    struct utimbuf old = {1, 2};
    struct timeval both[2] = {{3, 0}, {4, 0}};
    struct timespec fine[2] = {{5, 0}, {6, 0}};
    OK(utime("a", &old));
    OK(utimes("a", both));
    OK(utimensat(AT_FDCWD, "a", fine, 0));
    int fd = OK(open("a", O_RDONLY));
    OK(futimens(fd, fine));
    OK(futimes(fd, both));
    return 0;
}
