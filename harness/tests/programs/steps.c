/* Does what its arguments say, one after another, on the files of the current folder:
 *   flock:L   takes the lock and waits for it        try:L    takes it, or ends with 75
 *   lock:w0-9 takes a lock on these bytes of `k`, or ends with 75: w an exclusive one, r a shared one; u lets go;
 *             a tries for a shared one and prints whether another is in the way; q asks for that
 *   excl:L    makes the file, sleeps and tries again mkdir:L  makes the folder, and tries again
 *   must:L    makes the folder, or ends with 75      rm:L     removes the file or the folder
 *   count     adds one to the number in `s`, by a temporary file of its own
 *   syncs     which is synced from then on
 *   shared    the same, by a temporary file that others use too
 *   inplace   the same, in the file itself           say:W    prints the word
 *   looks:N   looks at `s` so often
 *   label:W   sets an attribute of `s`, or ends with 9 where the disk has none; labels prints it
 *   put:W     puts the word in `s`, by a temporary file of its own
 *   pid       prints the process id, and that of the parent
 *   owns:L    makes a link to its process id; one whose owner does not live is removed, and it tries again
 *   mine:L    the same, but a link to its own process id is its own
 *   orphan    makes a process whose parent ends at once, and prints who that one's parent is then
 *   term      signals itself with SIGTERM            trap     the same, with a handler that prints
 *   fault     touches what is not there              abort    ends itself by abort()
 *   leave     makes a process that adds lines to `s` for ever */
#include "subject.h"
#include <sched.h>

static int syncs;

static void count(const char *temporary) {
    char text[32] = "";
    int from = OK(open("s", O_RDONLY));
    OK(read(from, text, sizeof text - 1));
    close(from);
    int to = OK(open(temporary ? temporary : "s", O_WRONLY | O_CREAT | O_TRUNC, 0644));
    int len = snprintf(text, sizeof text, "%d\n", atoi(text) + 1);
    OK(write(to, text, len));
    if (syncs)
        OK(fsync(to));
    close(to);
    if (temporary && rename(temporary, "s") != 0)
        exit(9);
}

static void replace(const char *word) {
    char temporary[32];
    snprintf(temporary, sizeof temporary, "t.%d", getpid());
    int to = OK(open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0644));
    OK(write(to, word, strlen(word)));
    close(to);
    if (rename(temporary, "s") != 0)
        exit(9);
}

static void lock(const char *what) {
    static int file = -1;
    int first = 0, last = 0;
    sscanf(what + 1, "%d-%d", &first, &last);
    if (file < 0)
        file = OK(open("k", O_RDWR));
    struct flock bytes = {.l_whence = SEEK_SET, .l_start = first, .l_len = last - first + 1};
    bytes.l_type = *what == 'w' ? F_WRLCK : *what == 'u' ? F_UNLCK : F_RDLCK;
    if (*what == 'q') {
        OK(fcntl(file, F_GETLK, &bytes));
        puts(bytes.l_type == F_UNLCK ? "free" : "locked");
    } else if (fcntl(file, F_SETLK, &bytes) != 0) {
        if (*what != 'a')
            exit(75);
        puts("locked");
    }
}

static void own(const char *lock, int may_be_mine) {
    char me[32];
    snprintf(me, sizeof me, "%d", getpid());
    while (symlink(me, lock) != 0) {
        char owner[32] = "";
        if (readlink(lock, owner, sizeof owner - 1) < 0)
            continue;
        if (may_be_mine && strcmp(owner, me) == 0)
            return;
        if (kill(atoi(owner), 0) != 0)
            unlink(lock);
    }
}

static void caught(int signal) {
    (void)signal;
    OK(write(1, "caught\n", 7));
}

static void orphan(void) {
    int told[2];
    char text[32] = "";
    OK(pipe(told));
    if (OK(fork()) == 0) {
        int parent = getpid();
        if (OK(fork()) == 0) {
            while (getppid() == parent)
                sched_yield();
            OK(write(told[1], text, snprintf(text, sizeof text, "%d", getppid())));
        }
        _exit(0);
    }
    close(told[1]);
    OK(read(told[0], text, sizeof text - 1));
    puts(text);
}

static void step(const char *word) {
    const char *of = strchr(word, ':');
    of = of ? of + 1 : "";
    if (strncmp(word, "flock:", 6) == 0) {
        OK(flock(OK(open(of, O_WRONLY | O_CREAT, 0644)), LOCK_EX));
    } else if (strncmp(word, "try:", 4) == 0) {
        if (flock(OK(open(of, O_WRONLY | O_CREAT, 0644)), LOCK_EX | LOCK_NB) != 0)
            exit(75);
    } else if (strncmp(word, "lock:", 5) == 0) {
        lock(of);
    } else if (strncmp(word, "excl:", 5) == 0) {
        while (open(of, O_WRONLY | O_CREAT | O_EXCL, 0644) < 0)
            sleep(60);
    } else if (strncmp(word, "mkdir:", 6) == 0) {
        while (mkdir(of, 0755) != 0)
            ;
    } else if (strncmp(word, "must:", 5) == 0) {
        if (mkdir(of, 0755) != 0)
            exit(75);
    } else if (strncmp(word, "rm:", 3) == 0) {
        OK(remove(of));
    } else if (strncmp(word, "looks:", 6) == 0) {
        struct stat found;
        for (int left = atoi(of); left > 0; left--)
            OK(stat("s", &found));
    } else if (strncmp(word, "label:", 6) == 0) {
        if (setxattr("s", "user.label", of, strlen(of), 0) != 0)
            exit(9);
    } else if (strcmp(word, "labels") == 0) {
        char label[32] = "";
        puts(getxattr("s", "user.label", label, sizeof label - 1) < 0 ? "none" : label);
    } else if (strncmp(word, "say:", 4) == 0) {
        puts(of);
    } else if (strncmp(word, "put:", 4) == 0) {
        replace(of);
    } else if (strncmp(word, "owns:", 5) == 0) {
        own(of, 0);
    } else if (strncmp(word, "mine:", 5) == 0) {
        own(of, 1);
    } else if (strcmp(word, "pid") == 0) {
        printf("%d %d\n", getpid(), getppid());
    } else if (strcmp(word, "orphan") == 0) {
        orphan();
    } else if (strcmp(word, "term") == 0) {
        OK(kill(getpid(), SIGTERM));
    } else if (strcmp(word, "trap") == 0) {
        signal(SIGTERM, caught);
        OK(kill(getpid(), SIGTERM));
    } else if (strcmp(word, "fault") == 0) {
        *(volatile int *)8 = 1;
    } else if (strcmp(word, "abort") == 0) {
        abort();
    } else if (strcmp(word, "leave") == 0) {
        if (OK(fork()) == 0)
            for (;;)
                close(OK(open("s", O_WRONLY | O_APPEND)));
    } else if (strcmp(word, "syncs") == 0) {
        syncs = 1;
    } else if (strcmp(word, "count") == 0) {
        char temporary[32];
        snprintf(temporary, sizeof temporary, "t.%d", getpid());
        count(temporary);
    } else if (strcmp(word, "shared") == 0) {
        count("t");
    } else if (strcmp(word, "inplace") == 0) {
        count(NULL);
    } else {
        exit(2);
    }
}

int main(int argc, char **argv) {
    for (int at = 1; at < argc; at++)
        step(argv[at]);
    return 0;
}
