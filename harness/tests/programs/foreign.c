/* Makes two calls of the 32-bit table, which the lab does not decode; ends with 77 where the kernel has none. */
#include "subject.h"

#ifdef __x86_64__
static void none(int number) { _exit(77); }

static int getpid_32(void) {
    int answer;
    __asm__ volatile("int $0x80" : "=a"(answer) : "a"(20) : "r8", "r9", "r10", "r11", "memory");
    return answer;
}
#endif

int main(int argc, char **argv) {
#ifdef __x86_64__
    signal(SIGSEGV, none);
    for (int turn = 0; turn < 2; turn++)
        if (getpid_32() != getpid()) return 77;
    return 0;
#else
    return 77;
#endif
}
