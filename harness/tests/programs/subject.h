/* What all subjects need: every call must succeed, or the run ends with its line. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#define OK(call)                                                                                  \
    ({                                                                                            \
        __typeof__(call) answer_ = (call);                                                        \
        if ((long)answer_ == -1) {                                                                \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(errno));       \
            exit(99);                                                                             \
        }                                                                                         \
        answer_;                                                                                  \
    })

/* A file with this text. */
static inline void put(const char *path, const char *text) {
    int fd = OK(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644));
    OK(write(fd, text, strlen(text)));
    OK(close(fd));
}
