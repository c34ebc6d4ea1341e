/* Makes, moves, exchanges and removes folders with files in them; the files stay open and are written on. */
#include "subject.h"

int main(int argc, char **argv) {
    OK(mkdir("one", 0750));
    OK(mkdir("one/deep", 0700));
    put("one/deep/file", "in a folder that moves");
    int fd = OK(open("one/deep/file", O_WRONLY | O_APPEND));
    OK(rename("one", "two"));
    OK(write(fd, ", and was written after", 23));
    OK(mkdir("three", 0755));
    put("three/other", "the other");
    OK(renameat2(AT_FDCWD, "two", AT_FDCWD, "three", RENAME_EXCHANGE));
    OK(write(fd, ", and again", 11));
    OK(unlink("two/other"));
    OK(rmdir("two"));
    put("three/deep/last", "last");
    if (rmdir("three") != -1) return 1;
    return 0;
}
