/* Writes through shared mappings, with writes by calls between, a private mapping, and one made writable later. */
#include "subject.h"

int main(int argc, char **argv) {
    int fd = OK(open("a", O_RDWR | O_CREAT, 0644));
    OK(ftruncate(fd, 3 * 4096));
    char *map = OK(mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    memcpy(map + 10, "through memory", 14);
    put("other", "a call between");
    memcpy(map + 8000, "over the border of two pages, since 8192 lies in its middle .......................... ........"
           ".................................................................................................", 193);
    OK(pwrite(fd, "by a call", 9, 10));
    map[12] = '!';
    OK(msync(map, 4096, MS_SYNC));
    OK(close(fd));
    map[4096] = 'x'; /* no descriptor is left */
    OK(munmap(map, 3 * 4096));
    put("b", "private and later");
    fd = OK(open("b", O_RDWR));
    char *private = OK(mmap(NULL, 17, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
    private[0] = 'X';
    char *later = OK(mmap(NULL, 17, PROT_READ, MAP_SHARED, fd, 0));
    OK(mprotect(later, 17, PROT_READ | PROT_WRITE));
    later[1] = 'Y';
    if (OK(fork()) == 0) {
        later[2] = 'Z';
        _exit(0);
    }
    wait(NULL);
    later[3] = '3';
    return 0;
}
