//! Removes what subjects leave, whatever its modes are and however deep it lies.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::sys::flags;

/// Empties a folder, except for what is at `kept` (and the folders on the way to it): folders there are emptied themselves.
/// Nothing is followed out of the folder.
pub(super) fn empty(folder: &Path, kept: &[PathBuf]) -> io::Result<()> {
    open(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_folder = entry.file_type()?.is_dir();
        match (kept.iter().any(|kept| kept.starts_with(&path)), is_folder) {
            (true, true) => empty(&path, kept)?,
            (true, false) => {}
            (false, true) => remove(&path)?,
            (false, false) => insist(&path, || fs::remove_file(&path))?,
        }
    }
    Ok(())
}

/// Removes a folder and all below it.
///
/// A folder inside is first moved up beside the others, so that neither the length of a path nor the depth of this
/// function depends on what a subject made.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    let mut moved: u64 = 0;
    let mut queue = vec![folder.to_owned()];
    while let Some(inner) = queue.pop() {
        open(&inner)?;
        for entry in fs::read_dir(&inner)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                let path = entry.path();
                insist(&path, || fs::remove_file(&path))?;
            } else if inner == folder {
                queue.push(entry.path());
            } else {
                queue.push(move_up(&entry.path(), folder, &mut moved)?);
            }
        }
        if inner != folder {
            insist(&inner, || fs::remove_dir(&inner))?;
        }
    }
    insist(folder, || fs::remove_dir(folder))
}

/// Moves a folder to a name that nothing has in `top`.
fn move_up(path: &Path, top: &Path, moved: &mut u64) -> io::Result<PathBuf> {
    // Who is not root needs the right to write into it, since its `..` changes.
    open(path)?;
    loop {
        *moved += 1;
        let to = top.join(format!("removed-{moved}"));
        if fs::symlink_metadata(&to).is_ok() {
            continue;
        }
        insist(path, || fs::rename(path, &to))?;
        return Ok(to);
    }
}

/// Makes a folder one that its owner may empty.
fn open(folder: &Path) -> io::Result<()> {
    let mode = fs::symlink_metadata(folder)?.permissions().mode();
    if mode & 0o700 == 0o700 {
        return Ok(());
    }
    insist(folder, || fs::set_permissions(folder, fs::Permissions::from_mode(mode | 0o700)))
}

/// Does it again without the flags that forbid it, where it was forbidden.
fn insist(path: &Path, act: impl Fn() -> io::Result<()>) -> io::Result<()> {
    match act() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // What they say does not matter: the second try tells.
            let _ = flags::clear(path);
            let _ = path.parent().map(flags::clear);
            act().map_err(|_| error)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As deep as no path reaches and no stack of a small thread.
    #[test]
    fn what_is_deeper_than_a_path_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let top = home.path().join("top");
        // From below: each folder is moved into a new one, so that no path gets long.
        fs::create_dir(&top).unwrap();
        fs::write(top.join("file"), "").unwrap();
        for _ in 0..5000 {
            let outer = home.path().join("outer");
            fs::create_dir(&outer).unwrap();
            fs::rename(&top, outer.join("inner")).unwrap();
            fs::rename(&outer, &top).unwrap();
        }
        fs::create_dir(top.join("removed-1")).unwrap();
        std::thread::scope(|scope| {
            let small = std::thread::Builder::new().stack_size(128 << 10);
            small.spawn_scoped(scope, || remove(&top).unwrap()).unwrap();
        });
        assert!(!top.exists());
    }

    #[test]
    fn modes_do_not_stop_it() {
        let home = tempfile::tempdir().unwrap();
        let top = home.path().join("top");
        fs::create_dir_all(top.join("closed/inner/innermost")).unwrap();
        fs::write(top.join("closed/inner/file"), "").unwrap();
        for path in ["closed/inner/innermost", "closed/inner/file", "closed/inner", "closed", ""] {
            fs::set_permissions(top.join(path), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("other/deep")).unwrap();
        fs::create_dir_all(home.path().join("top/inner")).unwrap();
        for link in ["top/link", "top/inner/link"] {
            std::os::unix::fs::symlink(home.path().join("other"), home.path().join(link)).unwrap();
        }
        remove(&home.path().join("top")).unwrap();
        assert!(!home.path().join("top").exists());
        assert!(home.path().join("other/deep").exists());
    }

    #[test]
    fn what_was_made_immutable_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let top = home.path().join("top");
        fs::create_dir_all(top.join("outer/inner/innermost")).unwrap();
        fs::write(top.join("outer/file"), "").unwrap();
        let made = ["outer/file", "outer/inner", "outer"].map(|path| {
            let chattr =
                std::process::Command::new("chattr").arg("+i").arg(top.join(path)).output();
            chattr.is_ok_and(|output| output.status.success())
        });
        if made != [true; 3] {
            eprintln!("not tried: files cannot be made immutable here");
        }
        remove(&top).unwrap();
        assert!(!top.exists());
    }
}
