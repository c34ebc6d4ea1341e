/* Calls that name their folder by a descriptor. */
#include "subject.h"

int main(int argc, char **argv) {
    OK(mkdir("d", 0755));
    int d = OK(open("d", O_PATH | O_DIRECTORY)), here = OK(open(".", O_RDONLY));
    int fd = OK(openat(d, "a", O_WRONLY | O_CREAT | O_EXCL, 0640));
    OK(write(fd, "a", 1));
    OK(mkdirat(d, "e", 0755));
    OK(symlinkat("a", d, "link"));
    OK(linkat(d, "a", here, "second", 0));
    OK(renameat(d, "a", d, "e/moved"));
    OK(fchmodat(d, "e/moved", 0604, 0));
    OK(unlinkat(here, "second", 0));
    OK(mkdirat(d, "f", 0755));
    OK(unlinkat(d, "f", AT_REMOVEDIR));
    struct { uint64_t flags, mode, resolve; } how = {O_RDWR | O_CREAT, 0600, 0};
    fd = OK(syscall(SYS_openat2, d, "by-openat2", &how, sizeof how));
    OK(write(fd, "x", 1));
    OK(rename("d", "moved"));
    fd = OK(openat(d, "after", O_WRONLY | O_CREAT, 0644));
    OK(write(fd, "still", 5));
    if (openat(d, "after", O_WRONLY | O_CREAT | O_EXCL, 0644) != -1) return 1;
    return 0;
}
