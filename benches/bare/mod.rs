//! The system calls of a save and nothing else: what the stores cannot do without. No encoding, no paths put together, no
//! errors told. In the order in which `strace` shows them for a save.

use std::fs::{self, File, OpenOptions, Permissions};
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// The lock file of a store, which is there since the first session and says whose it is: a sync writes that out as well.
pub(super) fn lock(state: &Path) -> (File, PathBuf) {
    let path = state.with_extension("json.lock");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = file.expect("the lock file");
    writeln!(file, "{}", std::process::id()).expect("a write");
    (file, path)
}

/// As `JsonStore` saves: a synced temp file with the mode of the old file, a look at the lock, the old content compared, the
/// rename, and the folder synced.
pub(super) fn json(state: &Path, (lock, lock_path): &(File, PathBuf), bytes: &[u8], loaded: &[u8]) {
    let parent = state.parent().expect("a folder");
    let folder = File::open(parent).expect("the folder");
    fs::symlink_metadata(state).expect("the old file");
    let temp_path = state.with_extension("json.0.tmp");
    let mut temp = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(&temp_path)
        .expect("the temp file");
    temp.write_all(bytes).expect("a write");
    temp.metadata().expect("a look at it");
    temp.set_permissions(Permissions::from_mode(0o644)).expect("its mode");
    temp.sync_all().expect("a sync");
    lock.metadata().expect("a look at the lock");
    fs::metadata(lock_path).expect("a look at its name");
    fs::symlink_metadata(state).expect("where it leads");
    let mut old = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(state)
        .expect("the old file");
    old.metadata().expect("a look at it");
    let mut found = Vec::new();
    old.read_to_end(&mut found).expect("its bytes");
    drop(old);
    assert_eq!(black_box(&found), loaded, "nobody else writes here");
    mark("checked");
    fs::rename(&temp_path, state).expect("a rename");
    folder.sync_all().expect("a sync of the folder");
    mark("saved");
}

/// As `ReferenceStore` saves: the counter looked at, a temp file, the rename; nothing synced.
pub(super) fn reference(state: &Path, bytes: &[u8]) {
    fs::metadata(state).expect("the old file");
    black_box(fs::read(state).expect("its bytes"));
    mark("checked");
    let temp = state.with_extension("json.0.tmp");
    fs::write(&temp, bytes).expect("the temp file");
    fs::rename(&temp, state).expect("a rename");
    mark("saved");
}

/// A mark is one look-up that fails, unless the lab is there.
fn mark(name: &str) {
    _ = access(Path::new("/crashlab/mark").join(name).as_path(), AccessFlags::F_OK);
}
