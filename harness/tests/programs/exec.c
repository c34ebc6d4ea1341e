/* Executes itself with a descriptor that stays and one that closes, from a second thread too. */
#include "subject.h"

static char kept_text[16], closed_text[16];

static void *other(void *unused) {
    execl("/proc/self/exe", "exec", kept_text, closed_text, NULL);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc > 2) {
        OK(write(atoi(argv[1]), "kept over exec", 14));
        put("last", argv[2]);
        return fcntl(atoi(argv[2]), F_GETFD) != -1;
    }
    int kept = OK(open("kept", O_WRONLY | O_CREAT, 0644));
    int closed = OK(open("closed", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    OK(write(closed, "closed by exec", 14));
    sprintf(kept_text, "%d", kept);
    sprintf(closed_text, "%d", closed);
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    pause();
    return 0;
}
