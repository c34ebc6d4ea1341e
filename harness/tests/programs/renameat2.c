/* The flags of renameat2, and renames that do nothing. */
#include "subject.h"

int main(int argc, char **argv) {
    put("a", "a");
    put("b", "b");
    OK(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE));
    OK(renameat2(AT_FDCWD, "b", AT_FDCWD, "c", RENAME_NOREPLACE));
    if (renameat2(AT_FDCWD, "a", AT_FDCWD, "c", RENAME_NOREPLACE) != -1 || errno != EEXIST) return 1;
    OK(link("a", "second"));
    OK(rename("a", "second")); /* two names of one file: both stay */
    OK(rename("a", "a"));
    put("white", "w");
    if (renameat2(AT_FDCWD, "white", AT_FDCWD, "moved", RENAME_WHITEOUT) != 0) put("no-whiteout", "");
    return 0;
}
