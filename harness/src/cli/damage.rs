//! `crashlab damage NAME FILE`: a damaged copy of a file.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Code, DamageArgs, Output, output};
use crate::fault::damage::{self, DamageError};

/// A damaged copy could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The damage does not exist or does not apply to this file.
    #[error("{}: {source}", path.display())]
    Damage {
        /// The file.
        path: PathBuf,
        /// Why.
        source: DamageError,
    },
    /// The copy would replace something.
    #[error("{} exists already and is not overwritten; name another file with -o", path.display())]
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// The kernel said no.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried (`read`, `write`).
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Makes the copy and prints where it is.
pub(super) fn run(args: &DamageArgs, out: &mut Output<'_>) -> Code {
    match copy(&args.name, &args.file, args.output.as_deref()) {
        Ok(path) => {
            out.line(&path.display().to_string());
            Code::Held
        }
        Err(error) => {
            output::complain(&error.to_string());
            Code::Wrong
        }
    }
}

/// Writes a damaged copy of `file` to `output`, or beside it as `FILE.NAME` (with `-` for a `/` in the name), and
/// gives the path. Never writes to a file that exists, `file` itself included.
///
/// # Errors
///
/// [`CopyError`]; then there is no new file.
pub fn copy(name: &str, file: &Path, output: Option<&Path>) -> Result<PathBuf, CopyError> {
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |source| CopyError::Io { what, path, source }
    };
    let bytes = fs::read(file).map_err(failed("read", file))?;
    let damaged = damage::apply(name, &bytes)
        .map_err(|source| CopyError::Damage { path: file.to_owned(), source })?;
    let target = output.map_or_else(|| beside(file, name), Path::to_owned);
    let mut copy = match fs::File::create_new(&target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(CopyError::Exists { path: target });
        }
        other => other.map_err(failed("write", &target))?,
    };
    if let Err(error) = copy.write_all(&damaged) {
        // It is ours, and half of it would be another damage than the one that was asked for.
        let _ = fs::remove_file(&target);
        return Err(failed("write", &target)(error));
    }
    Ok(target)
}

fn beside(file: &Path, name: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".");
    path.push(name.replace('/', "-"));
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with_state() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.json");
        fs::write(&file, "{\"queue\":[]}").unwrap();
        (folder, file)
    }

    #[test]
    fn the_copy_is_damaged_and_the_file_is_not() {
        let (folder, file) = folder_with_state();
        let copied = copy("missing-queue", &file, None).unwrap();
        assert_eq!(copied, folder.path().join("state.json.missing-queue"));
        assert_eq!(fs::read_to_string(&copied).unwrap(), "{}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "{\"queue\":[]}");
        let cut = copy("truncated/3", &file, None).unwrap();
        assert_eq!(cut, folder.path().join("state.json.truncated-3"));
        let elsewhere = folder.path().join("other");
        assert_eq!(copy("empty", &file, Some(&elsewhere)).unwrap(), elsewhere);
        assert_eq!(fs::read(&elsewhere).unwrap(), b"");
    }

    #[test]
    fn nothing_is_overwritten() {
        let (folder, file) = folder_with_state();
        copy("empty", &file, None).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("dangling", &link).unwrap();
        for output in [None, Some(file.as_path()), Some(link.as_path())] {
            let error = copy("empty", &file, output).unwrap_err();
            assert!(matches!(error, CopyError::Exists { .. }), "{error}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "{\"queue\":[]}");
        assert!(!folder.path().join("dangling").exists());
    }

    #[test]
    fn what_cannot_be_damaged_leaves_nothing() {
        let (folder, file) = folder_with_state();
        let said = copy("answers-is-a-list", &file, None).unwrap_err().to_string();
        let expected =
            "the damage `answers-is-a-list` does not apply: the object has no field `answers`";
        assert_eq!(said, format!("{}: {expected}", file.display()));
        assert!(
            copy("truncate", &file, None)
                .unwrap_err()
                .to_string()
                .contains("did you mean `truncated`?")
        );
        let missing = folder.path().join("missing");
        assert!(copy("empty", &missing, None).unwrap_err().to_string().starts_with("cannot read "));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
