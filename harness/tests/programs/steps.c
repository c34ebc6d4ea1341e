/* Does what its arguments say, one after another, on the files of the current folder:
 *   flock:L   takes the lock and waits for it        try:L    takes it, or ends with 75
 *   excl:L    makes the file, sleeps and tries again mkdir:L  makes the folder, and tries again
 *   must:L    makes the folder, or ends with 75      rm:L     removes the file or the folder
 *   count     adds one to the number in `s`, by a temporary file of its own
 *   shared    the same, by a temporary file that others use too
 *   inplace   the same, in the file itself           say:W    prints the word */
#include "subject.h"

static void count(const char *temporary) {
    char text[32] = "";
    int from = OK(open("s", O_RDONLY));
    OK(read(from, text, sizeof text - 1));
    close(from);
    int to = OK(open(temporary ? temporary : "s", O_WRONLY | O_CREAT | O_TRUNC, 0644));
    int len = snprintf(text, sizeof text, "%d\n", atoi(text) + 1);
    OK(write(to, text, len));
    close(to);
    if (temporary && rename(temporary, "s") != 0)
        exit(9);
}

static void step(const char *word) {
    const char *of = strchr(word, ':');
    of = of ? of + 1 : "";
    if (strncmp(word, "flock:", 6) == 0) {
        OK(flock(OK(open(of, O_WRONLY | O_CREAT, 0644)), LOCK_EX));
    } else if (strncmp(word, "try:", 4) == 0) {
        if (flock(OK(open(of, O_WRONLY | O_CREAT, 0644)), LOCK_EX | LOCK_NB) != 0)
            exit(75);
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
    } else if (strncmp(word, "say:", 4) == 0) {
        puts(of);
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
