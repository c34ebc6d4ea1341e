//! `crashlab damage NAME FILE`: a damaged copy of a file; `--list FILE`: in which ways it can be damaged.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, SFlag, mknod};
use serde_json::{Value, json};

use super::{Code, DamageArgs, Output, output};
use crate::fault::damage::{Damage, DoesNotApply, Family, NameError, Original, Remains, Whole};
use crate::wrap::{COLUMNS, thousands, wrapped};

/// A damaged copy could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// There is no such damage.
    #[error("{0}")]
    Name(#[from] NameError),
    /// The damage does not apply to this file.
    #[error("{}: {source}", path.display())]
    Damage {
        /// The file.
        path: PathBuf,
        /// Why.
        source: DoesNotApply,
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

/// Makes the copy and prints where it is, or lists what can be done to a file.
pub(super) fn run(args: &DamageArgs, out: &mut Output<'_>) -> Code {
    let done = match (&args.list, &args.name, &args.file) {
        (Some(file), ..) => list(file, args.json),
        (None, Some(name), Some(file)) => {
            let copied = copy(name, file, args.output.as_deref());
            copied.map(|path| format!("{}\n", path.display()))
        }
        // The command line's own rules let nobody come here.
        (None, ..) => return Code::Wrong,
    };
    match done {
        Ok(text) => {
            out.print(&text);
            Code::Held
        }
        Err(error) => {
            output::complain(&error.to_string());
            Code::Wrong
        }
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CopyError {
    let path = path.to_owned();
    move |source| CopyError::Io { what, path, source }
}

/// Makes a damaged copy of `file` at `output`, or beside it as `FILE.NAME` (with `-` for a `/` in the name), and gives
/// the path. It can be something else than a file: a folder, a socket. Never replaces what exists, `file` itself included.
///
/// # Errors
///
/// [`CopyError`]; then there is nothing new.
pub fn copy(name: &str, file: &Path, output: Option<&Path>) -> Result<PathBuf, CopyError> {
    let damage: Damage = name.parse()?;
    let bytes = fs::read(file).map_err(failed("read", file))?;
    let remains = damage
        .apply(Original { bytes: &bytes, later: None })
        .map_err(|source| CopyError::Damage { path: file.to_owned(), source })?;
    let target = output.map_or_else(|| beside(file, name), Path::to_owned);
    match make(&remains, &bytes, &target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(CopyError::Exists { path: target })
        }
        Err(error) => Err(failed("write", &target)(error)),
        Ok(()) => Ok(target),
    }
}

/// Each of these calls fails where there is something already, a dangling link included.
fn make(remains: &Remains, original: &[u8], target: &Path) -> io::Result<()> {
    let node =
        |kind| mknod(target, kind, Mode::from_bits_truncate(0o644), 0).map_err(io::Error::from);
    match remains {
        Remains::Bytes(bytes) => new_file(target, bytes, None),
        Remains::Unreadable => new_file(target, original, Some(Permissions::from_mode(0o000))),
        Remains::Folder => fs::create_dir(target),
        Remains::DanglingLink => symlink(Remains::nowhere(target), target),
        Remains::Socket => node(SFlag::S_IFSOCK),
        Remains::Fifo => node(SFlag::S_IFIFO),
    }
}

fn new_file(target: &Path, bytes: &[u8], mode: Option<Permissions>) -> io::Result<()> {
    let mut copy = File::create_new(target)?;
    let written = copy.write_all(bytes);
    let written = written.and_then(|()| mode.map_or(Ok(()), |mode| copy.set_permissions(mode)));
    if written.is_err() {
        // It is ours, and half of it would be another damage than the one that was asked for.
        let _ = fs::remove_file(target);
    }
    written
}

/// A name that is longer is cut: names of files have a limit, JSON pointers have none.
const NAME_LETTERS_MAX: usize = 60;

fn beside(file: &Path, name: &str) -> PathBuf {
    let name: String = name.replace('/', "-").chars().take(NAME_LETTERS_MAX).collect();
    let mut path = file.as_os_str().to_owned();
    path.push(".");
    path.push(name);
    PathBuf::from(path)
}

/// A damage that applies to a file, or a family with its places.
struct Listed {
    name: String,
    what: &'static str,
    places: Option<Places>,
}

/// The places of a family in one file.
struct Places {
    count: usize,
    first: Damage,
    middle: Damage,
    last: Damage,
    are_numbers: bool,
}

/// What applies to a file, a line each.
fn list(file: &Path, as_json: bool) -> Result<String, CopyError> {
    let bytes = fs::read(file).map_err(failed("read", file))?;
    let listed = applicable(&bytes);
    if as_json {
        let values: Vec<Value> = listed.iter().map(Listed::json).collect();
        return Ok(format!("{:#}\n", Value::from(values)));
    }
    Ok(listed.iter().map(Listed::line).collect())
}

fn applicable(bytes: &[u8]) -> Vec<Listed> {
    let file = Original { bytes, later: None };
    let wholes = Whole::ALL.into_iter().filter(|whole| Damage::Whole(*whole).apply(file).is_ok());
    let wholes = wholes.map(|whole| Listed {
        name: whole.name().to_owned(),
        what: whole.what(),
        places: None,
    });
    let families = Family::ALL.into_iter().filter_map(|family| {
        let places = Places::of(family, bytes)?;
        Some(Listed { name: family.to_string(), what: family.what(), places: Some(places) })
    });
    wholes.chain(families).collect()
}

impl Places {
    fn of(family: Family, bytes: &[u8]) -> Option<Places> {
        let count = family.places(bytes).ok()?.count();
        let nth = |position| family.places(bytes).ok()?.nth(position);
        Some(Places {
            count,
            first: nth(0)?,
            middle: nth(count / 2)?,
            last: nth(count - 1)?,
            are_numbers: family.is_numbered(),
        })
    }

    fn described(&self, family: &str) -> String {
        let place = |damage: &Damage| {
            let text = damage.to_string();
            text.strip_prefix(family).unwrap_or_default().to_owned()
        };
        if self.are_numbers {
            let number = |damage| place(damage).trim_start_matches('/').to_owned();
            return format!("{} to {}", number(&self.first), number(&self.last));
        }
        match (self.count, place(&self.middle)) {
            (1, _) => "1 place".to_owned(),
            (count, example) => format!("{} places, as {}", thousands(count), shortened(&example)),
        }
    }
}

/// A pointer can hold a whole sentence.
fn shortened(place: &str) -> String {
    const LETTERS_MAX: usize = 32;
    match place.chars().count() {
        0..=LETTERS_MAX => place.to_owned(),
        _ => format!("{}...", place.chars().take(LETTERS_MAX - 3).collect::<String>()),
    }
}

impl Listed {
    fn line(&self) -> String {
        let text = match &self.places {
            None => self.what.to_owned(),
            Some(places) => {
                let family = self.name.trim_end_matches("/*");
                format!("{}: {}", places.described(family), self.what)
            }
        };
        wrapped(&format!("{:19}", self.name), &text, COLUMNS)
    }

    fn json(&self) -> Value {
        let mut value = json!({"name": self.name, "what": self.what});
        if let Some(places) = &self.places {
            value["places"] = places.count.into();
            value["first"] = places.first.to_string().into();
            value["last"] = places.last.to_string().into();
        }
        value
    }
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
    fn another_thing_can_be_in_the_place_of_a_file() {
        use std::os::unix::fs::FileTypeExt;
        let (folder, file) = folder_with_state();
        let made = |name: &str| {
            let path = copy(name, &file, None).unwrap();
            assert_eq!(path, folder.path().join(format!("state.json.{name}")));
            fs::symlink_metadata(path).unwrap()
        };
        assert!(made("directory").is_dir());
        assert!(made("socket").file_type().is_socket());
        assert!(made("fifo").file_type().is_fifo());
        assert_eq!(made("unreadable").permissions().mode() & 0o7777, 0);
        assert!(made("dangling-link").is_symlink());
        assert!(!folder.path().join("state.json.dangling-link").exists());
    }

    #[test]
    fn nothing_is_overwritten() {
        let (folder, file) = folder_with_state();
        for name in ["directory", "socket", "fifo", "unreadable", "dangling-link"] {
            let error = copy(name, &file, Some(&file)).unwrap_err();
            assert!(matches!(error, CopyError::Exists { .. }), "{name}: {error}");
        }
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
        let long = format!("missing/{}", "x".repeat(300));
        assert!(copy(&long, &file, None).unwrap_err().to_string().contains("no field"));
        let missing = folder.path().join("missing");
        assert!(copy("empty", &missing, None).unwrap_err().to_string().starts_with("cannot read "));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
