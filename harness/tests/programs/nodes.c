/* A named pipe, a socket, a regular file by mknod. */
#include "subject.h"

int main(int argc, char **argv) {
    OK(mkfifo("pipe", 0620));
    OK(mknod("regular", S_IFREG | 0600, 0));
    struct sockaddr_un name = {AF_UNIX, "socket"};
    int fd = OK(socket(AF_UNIX, SOCK_STREAM, 0));
    OK(bind(fd, (struct sockaddr *)&name, sizeof name));
    OK(chmod("socket", 0600));
    int rw = OK(open("pipe", O_RDWR));
    OK(write(rw, "not on disk", 11));
    return 0;
}
