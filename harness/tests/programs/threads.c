/* Four threads write to their own files and append to one that they share, at the same time. */
#include "subject.h"

static int shared;

static void *work(void *number) {
    char name[16], text[64];
    for (int turn = 0; turn < 25; turn++) {
        sprintf(name, "own%ld", (long)number);
        sprintf(text, "thread %ld, turn %d\n", (long)number, turn);
        put(name, text);
        OK(write(shared, text, strlen(text)));
        OK(rename(name, "last"));
    }
    return NULL;
}

int main(int argc, char **argv) {
    shared = OK(open("shared", O_WRONLY | O_CREAT | O_APPEND, 0644));
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
