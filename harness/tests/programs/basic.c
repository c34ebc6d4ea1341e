/* Creates, rewrites with and without O_TRUNC, writes at a position, replaces by rename, removes. */
#include "subject.h"

int main(int argc, char **argv) {
    put("a", "first");
    put("a", "second, which truncates the first");
    int fd = OK(open("a", O_RDWR));
    OK(lseek(fd, 7, SEEK_SET));
    OK(write(fd, "WHICH", 5));
    OK(pwrite(fd, "!", 1, 100)); /* leaves a hole */
    OK(write(fd, "", 0));
    OK(fsync(fd));
    OK(fdatasync(fd));
    OK(close(fd));
    put("empty", "");
    put("empty", ""); /* truncates what is empty already */
    put("b.tmp", "new");
    OK(rename("b.tmp", "b"));
    put("c", "old");
    OK(rename("b", "c"));
    put("gone", "x");
    OK(unlink("gone"));
    fd = OK(creat("made", 0600));
    OK(write(fd, "deleted while open", 18));
    OK(unlink("made"));
    OK(write(fd, ", and written after", 19));
    OK(close(fd));
    int dir = OK(open(".", O_RDONLY | O_DIRECTORY));
    OK(fsync(dir));
    OK(syncfs(dir));
    sync();
    if (open("missing/file", O_WRONLY | O_CREAT, 0644) != -1 || unlink("missing") != -1) return 1;
    return 0;
}
