// Looks at files in every way, and changes nothing.
#include "subject.h"
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

int main(void) {
    struct stat st;
    struct statx stx;
    char target[64];
    stat("s", &st);
    lstat("l", &st);
    stat("absent", &st);
    statx(AT_FDCWD, "s", 0, STATX_ALL, &stx);
    access("s", R_OK);
    faccessat(AT_FDCWD, "absent", F_OK, 0);
    readlink("l", target, sizeof target);
    int fd = open("s", O_RDONLY);
    fstat(fd, &st);
    lseek(fd, 0, SEEK_END);
    lseek(fd, 0, SEEK_SET);
    read(fd, target, sizeof target);
    close(fd);
    open("absent", O_RDONLY);
    DIR *dir = opendir("d");
    while (readdir(dir))
        ;
    closedir(dir);
    kill(getpid(), 0);
    stat("/etc/passwd", &st);
    return 0;
}
