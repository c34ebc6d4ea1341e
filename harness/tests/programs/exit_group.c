/* A thread writes without end while the main thread ends the process. */
#include "subject.h"

static void *endless(void *unused) {
    for (;;) put("w", "worker");
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    pthread_create(&thread, NULL, endless, NULL);
    while (access("w", F_OK) != 0) {}
    for (int i = 0; i < 20; i++) put("m", "main");
    exit(0);
    return 0;
}
