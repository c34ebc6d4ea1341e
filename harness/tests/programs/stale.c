/* A number that stands for another file, or for the same one elsewhere, after several writes to it: argv[1] says how. */
#include "subject.h"
#include <sched.h>

#define FD 7

static int at(int number, const char *path, int flags) {
    int fd = OK(open(path, O_RDWR | O_CREAT | flags, 0644));
    if (fd == number) return fd;
    OK(dup3(fd, number, flags & O_CLOEXEC));
    OK(close(fd));
    return number;
}

/* Several writes by one number, so that the lab knows it. */
static void writes(const char *text) {
    for (int i = 0; i < 4; i++) OK(write(FD, text, strlen(text)));
}

static void dup_over(void) {
    int other = at(8, "b", 0);
    OK(dup2(other, FD));
}

static void closed(void) {
    OK(close(FD));
    at(FD, "b", 0);
}

static void range(void) {
    OK(syscall(SYS_close_range, FD, 20, 0));
    at(FD, "b", 0);
}

static void child(void) {
    if (OK(fork()) == 0) {
        writes("child ");
        closed();
        writes("child of its own ");
        exit(0);
    }
    OK(wait(NULL));
}

static void *other(void *unused) {
    closed();
    writes("thread ");
    return unused;
}

static void *apart(void *unused) {
    OK(unshare(CLONE_FILES));
    return other(unused);
}

static void thread(void *(*what)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, what, NULL);
    pthread_join(thread, NULL);
}

static int sharing(void *unused) {
    closed();
    return 0;
}

/* A process with the same table of descriptors. */
static void shared(void) {
    static char stack[65536] __attribute__((aligned(16)));
    int pid = OK(clone(sharing, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL));
    OK(waitpid(pid, NULL, 0));
}

/* The kernel gives a descriptor that comes by a socket the lowest free number. */
static void received(void) {
    int pair[2], sent = at(20, "b", 0);
    for (int i = 3; i < FD; i++) dup2(0, i);
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    OK(dup2(pair[0], 21));
    OK(dup2(pair[1], 22));
    char byte = 'b', room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &sent, sizeof sent);
    OK(sendmsg(21, &message, 0));
    OK(close(FD));
    OK(recvmsg(22, &message, 0));
    memcpy(&sent, CMSG_DATA(head), sizeof sent);
    if (sent != FD) exit(98);
}

static void append(void) {
    OK(fcntl(FD, F_SETFL, O_APPEND));
    OK(pwrite(FD, "appended ", 9, 0));
    OK(lseek(FD, 2, SEEK_SET));
    writes("appended ");
    OK(fcntl(FD, F_SETFL, 0));
    OK(pwrite(FD, "at 0 ", 5, 0));
    OK(lseek(FD, 3, SEEK_SET));
}

/* By another number, and by a process that shares the position. */
static void moved(void) {
    int second = OK(dup(FD));
    OK(lseek(second, 100, SEEK_SET));
    writes("at 100 ");
    if (OK(fork()) == 0) {
        OK(lseek(second, 200, SEEK_SET));
        exit(0);
    }
    OK(wait(NULL));
    writes("at 200 ");
    char room[7];
    OK(lseek(second, 0, SEEK_SET));
    OK(read(second, room, sizeof room));
}

static void renamed(void) {
    OK(rename("a", "c"));
    writes("in c ");
    OK(unlink("c"));
    writes("nowhere ");
    closed();
}

/* Who waits for the lock of an open file must get it when that is closed. */
static void locked(void) {
    int ready[2];
    OK(pipe(ready));
    if (OK(fork()) == 0) {
        OK(close(FD));
        at(FD, "a", 0);
        char byte;
        OK(read(ready[0], &byte, 1));
        OK(flock(FD, LOCK_EX));
        writes("locked ");
        exit(0);
    }
    OK(flock(FD, LOCK_EX));
    writes("first ");
    OK(write(ready[1], "r", 1));
    OK(close(FD));
    OK(wait(NULL));
    at(FD, "b", 0);
}

/* Nobody may have a program open for writing when it is executed. */
static void program(char *self) {
    char bytes[4096];
    int from = OK(open(self, O_RDONLY));
    OK(close(FD));
    OK(dup2(OK(open("program", O_WRONLY | O_CREAT | O_CLOEXEC, 0755)), FD));
    OK(close(from + 1));
    for (ssize_t got; (got = OK(read(from, bytes, sizeof bytes))) > 0;) OK(write(FD, bytes, got));
    OK(close(FD));
    if (OK(fork()) == 0) OK(execl("./program", "program", "after", NULL));
    int status;
    OK(wait(&status));
    if (status) exit(97);
    at(FD, "b", 0);
}

int main(int argc, char **argv) {
    const char *way = argv[1];
    int cloexec = strcmp(way, "exec") ? 0 : O_CLOEXEC;
    if (strcmp(way, "after")) {
        at(FD, "a", cloexec);
        writes("a ");
        OK(pwrite(FD, "A", 1, 0));
    } else {
        at(FD, "b", 0);
    }
    if (!strcmp(way, "dup")) dup_over();
    if (!strcmp(way, "close")) closed();
    if (!strcmp(way, "range")) range();
    if (!strcmp(way, "fork")) child();
    if (!strcmp(way, "exec")) OK(execl(argv[0], argv[0], "after", NULL));
    if (!strcmp(way, "thread")) thread(other);
    if (!strcmp(way, "apart")) thread(apart);
    if (!strcmp(way, "shared")) shared();
    if (!strcmp(way, "received")) received();
    if (!strcmp(way, "append")) append();
    if (!strcmp(way, "moved")) moved();
    if (!strcmp(way, "renamed")) renamed();
    if (!strcmp(way, "locked")) locked();
    if (!strcmp(way, "program")) program(argv[0]);
    writes("end ");
    OK(pwrite(FD, "E", 1, 1));
    return 0;
}
