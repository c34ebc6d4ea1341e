//! The folders of a sandbox as the lab sees them, and where a subject is to see them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use nix::sys::statvfs::{FsFlags, statvfs};

use super::{DEFAULT_SEEN, SandboxError, SandboxOptions, clean, stale};
use crate::sys::xattr;

/// What a sandbox has a private one of, where the machine has it at all.
pub(super) const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// A file system with less room than this is not taken for work folders, in bytes.
const ROOM: u64 = 256 << 20;

/// A folder of the sandbox that takes the place of one of the machine.
#[derive(Debug)]
pub(super) struct Private {
    /// Where it is.
    pub(super) folder: PathBuf,
    /// What it hides, without links.
    pub(super) hides: PathBuf,
}

/// The folders of a sandbox; dropped, they are removed.
#[derive(Debug)]
pub(super) struct Layout {
    base: Option<tempfile::TempDir>,
    /// Tells other labs that the folders are in use.
    _mark: File,
    pub(super) work: PathBuf,
    pub(super) seen: PathBuf,
    /// Folders below both that are the same; an empty one is all.
    pub(super) parts: Vec<PathBuf>,
    pub(super) private: Vec<Private>,
    /// Folders to be shown read-only, and where.
    pub(super) visible: Vec<(PathBuf, PathBuf)>,
    /// Folders inside the private ones on which something is mounted.
    mount_points: Vec<PathBuf>,
    /// Folders inside the work folder on which real ones are mounted, and where programs see them.
    pub(super) shown: Vec<(PathBuf, PathBuf)>,
    shown_points: Vec<PathBuf>,
    /// Where the work folder lies over a large one: what an overlay needs besides.
    pub(super) overlay: Option<Overlay>,
}

/// The folders of an overlay, whose upper one is the work folder.
#[derive(Debug)]
pub(super) struct Overlay {
    /// The large folder.
    pub(super) lower: PathBuf,
    /// The kernel's own.
    pub(super) kernel: PathBuf,
    /// Where it is mounted, before it is shown at its place.
    pub(super) merged: PathBuf,
}

/// So many entries of a hidden folder itself are kept visible, each by a mount of its own.
const ENTRIES_MAX: usize = 512;

impl Layout {
    /// Makes the folders, those for a view of its own only where there will be one.
    pub(super) fn new(options: &SandboxOptions, with_view: bool) -> Result<Layout, SandboxError> {
        let home = home();
        let (base, mark) =
            stale::make(home).map_err(SandboxError::new(home, "make and lock its folder in"))?;
        let work = base.path().join("work");
        let mut layout = Layout {
            seen: work.clone(),
            work,
            base: Some(base),
            _mark: mark,
            private: Vec::new(),
            visible: Vec::new(),
            mount_points: Vec::new(),
            shown: Vec::new(),
            shown_points: Vec::new(),
            parts: vec![PathBuf::new()],
            overlay: None,
        };
        make_folder(&layout.work, 0o755)?;
        if !with_view && options.parts.len() > 1 {
            return Err(SandboxError::new(&layout.work, "show several folders at their places")(
                io::Error::new(
                    io::ErrorKind::Unsupported,
                    "that takes namespaces, which are not to be had here (`crashlab doctor` says why); \
                     watch one folder that holds the others",
                ),
            ));
        }
        if with_view {
            layout.add_private()?;
            for folder in &options.keep_visible {
                layout.add_visible(folder)?;
            }
            let seen = options.seen_at.as_deref().unwrap_or(Path::new(DEFAULT_SEEN));
            match options.parts.as_slice() {
                [] => layout.seen = layout.add_seen(seen)?,
                parts => {
                    layout.seen = plain_path(seen)?;
                    parts.iter().try_for_each(|part| layout.add_part(part))?;
                    layout.parts = parts.to_vec();
                }
            }
            for folder in &options.shown {
                layout.add_shown(folder)?;
            }
            if let Some(lower) = &options.over {
                layout.add_overlay(lower.folder())?;
            }
        }
        Ok(layout)
    }

    fn base(&self) -> &Path {
        self.work.parent().unwrap_or(&self.work)
    }

    fn add_private(&mut self) -> Result<(), SandboxError> {
        for path in PRIVATE {
            let Ok(hides) = fs::canonicalize(path) else {
                continue;
            };
            if !hides.is_dir() || self.private.iter().any(|other| hides.starts_with(&other.hides)) {
                continue;
            }
            let folder = self.base().join(format!("private-{}", self.private.len()));
            make_folder(&folder, 0o1777)?;
            self.private.push(Private { folder, hides });
        }
        // Programs that were told of a place for temporary files still find it.
        let temporary = fs::canonicalize(std::env::temp_dir()).ok();
        if let Some(folder) = temporary.and_then(|temporary| self.in_private(&temporary)) {
            make_folders(&folder)?;
            self.mount_points.push(folder);
        }
        Ok(())
    }

    /// Where a path that a private folder hides is in that folder.
    fn in_private(&self, path: &Path) -> Option<PathBuf> {
        // A later one can lie in an earlier one.
        self.private.iter().rev().find_map(|private| {
            let below = path.strip_prefix(&private.hides).ok()?;
            (!below.as_os_str().is_empty()).then(|| private.folder.join(below))
        })
    }

    fn add_visible(&mut self, path: &Path) -> Result<(), SandboxError> {
        let real = fs::canonicalize(path).map_err(SandboxError::new(path, "keep it visible"))?;
        if self.private.iter().any(|private| private.hides == real) {
            return self.add_all_in(&real);
        }
        for target in [real.clone(), plain_path(path)?] {
            let Some(mount_point) = self.in_private(&target) else {
                continue;
            };
            if self.visible.iter().any(|(_, other)| target.starts_with(other)) {
                continue;
            }
            make_mount_point(&real, &mount_point)?;
            self.mount_points.push(mount_point);
            self.visible.push((real.clone(), target));
        }
        Ok(())
    }

    /// A scenario that lies in `/tmp` itself: the sandbox's own `/tmp` shows what is in it, but for sandboxes.
    fn add_all_in(&mut self, hidden: &Path) -> Result<(), SandboxError> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(hidden).map_err(SandboxError::new(hidden, "keep it visible"))? {
            let entry = entry.map_err(SandboxError::new(hidden, "keep it visible"))?;
            let kind = entry.file_type().ok();
            let is_plain = kind.is_some_and(|kind| kind.is_file() || kind.is_dir());
            if is_plain && !entry.file_name().as_encoded_bytes().starts_with(b"crashlab-") {
                entries.push(entry.path());
            }
        }
        if entries.len() > ENTRIES_MAX {
            let why = format!("it holds more than {ENTRIES_MAX} entries; use a folder below it");
            let error = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(SandboxError::new(hidden, "keep it visible")(error));
        }
        entries.sort();
        // What goes away meanwhile is not missed.
        entries.iter().filter(|path| path.exists()).try_for_each(|path| self.add_visible(path))
    }

    fn add_seen(&mut self, seen: &Path) -> Result<PathBuf, SandboxError> {
        let refuse = |why: &str| {
            SandboxError::new(seen, "show the work folder there")(io::Error::new(
                io::ErrorKind::InvalidInput,
                why,
            ))
        };
        let seen_plain = plain_path(seen)?;
        if self.visible.iter().any(|(_, target)| target.starts_with(&seen_plain)) {
            return Err(refuse("it would hide a folder that is to stay visible"));
        }
        let below_visible = self.visible.iter().any(|(_, target)| seen_plain.starts_with(target));
        if !below_visible && let Some(mount_point) = self.in_private(&seen_plain) {
            make_folders(&mount_point)?;
            self.mount_points.push(mount_point);
        } else if self.private.iter().any(|private| private.hides.starts_with(&seen_plain)) {
            return Err(refuse("it would hide the private folders for temporary files"));
        } else if fs::symlink_metadata(&seen_plain).is_err() {
            self.add_way_to(&seen_plain)?;
        } else if !seen_plain.is_dir() {
            return Err(refuse("this is no folder"));
        }
        Ok(seen_plain)
    }

    /// A part of the work folder, which must be there for as long as it is mounted.
    fn add_part(&mut self, part: &Path) -> Result<(), SandboxError> {
        self.add_seen(&self.seen.join(part))?;
        let point = self.work.join(part);
        make_folders(&point)?;
        self.shown_points.push(point);
        Ok(())
    }

    /// A place that is not there, as that of a folder of another machine: the nearest folder above it is hidden by one that
    /// shows what is in it, and has the way to the place besides.
    fn add_way_to(&mut self, seen: &Path) -> Result<(), SandboxError> {
        let there = seen.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("/"));
        let real = fs::canonicalize(there).map_err(SandboxError::new(there, "look at it"))?;
        if real.parent().is_none() {
            let why = "there is no such folder, nor one above it but `/`: make one, which may be empty and stays so";
            let error = io::Error::new(io::ErrorKind::NotFound, why);
            return Err(SandboxError::new(seen, "show the work folder there")(error));
        }
        let folder = self.base().join(format!("private-{}", self.private.len()));
        make_folder(&folder, 0o755)?;
        self.private.push(Private { folder: folder.clone(), hides: real.clone() });
        self.add_all_in(&real)?;
        let mount_point = folder.join(seen.strip_prefix(there).unwrap_or(seen));
        make_folders(&mount_point)?;
        self.mount_points.push(mount_point);
        Ok(())
    }

    fn add_shown(&mut self, folder: &Path) -> Result<(), SandboxError> {
        let real = self.seen.join(folder);
        let point = self.work.join(folder);
        make_folders(&point)?;
        self.shown.push((real.clone(), real));
        self.shown_points.push(point);
        Ok(())
    }

    fn add_overlay(&mut self, lower: &Path) -> Result<(), SandboxError> {
        let overlay = Overlay {
            lower: lower.to_owned(),
            kernel: self.base().join("overlay"),
            merged: self.base().join("merged"),
        };
        make_folder(&overlay.kernel, 0o755)?;
        make_folder(&overlay.merged, 0o755)?;
        self.overlay = Some(overlay);
        Ok(())
    }

    /// Empties all folders, but keeps those that are needed.
    pub(super) fn empty(&self) -> Result<(), SandboxError> {
        if let Some(overlay) = &self.overlay {
            // New ones: an overlay of before may take a moment to go.
            for folder in [&self.work, &overlay.kernel] {
                clean::remove(folder).map_err(SandboxError::new(folder, "empty it"))?;
                make_folder(folder, 0o755)?;
            }
        } else {
            clean::empty(&self.work, &self.shown_points)
                .map_err(SandboxError::new(&self.work, "empty it"))?;
            set_mode(&self.work, 0o755)?;
        }
        for private in &self.private {
            clean::empty(&private.folder, &self.mount_points)
                .map_err(SandboxError::new(&private.folder, "empty it"))?;
            set_mode(&private.folder, 0o1777)?;
        }
        Ok(())
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        if let Some(base) = self.base.take() {
            let base = base.keep();
            // There is nobody to tell, and nothing more to try.
            let _ = clean::remove(&base);
        }
    }
}

/// An absolute path without `.`, `..` and NULs, with its existing part's links left as they are.
fn plain_path(path: &Path) -> Result<PathBuf, SandboxError> {
    let refuse = |why: &str| {
        SandboxError::new(path, "use it")(io::Error::new(io::ErrorKind::InvalidInput, why))
    };
    let absolute = std::path::absolute(path).map_err(SandboxError::new(path, "use it"))?;
    if absolute.components().any(|component| component == Component::ParentDir) {
        return Err(refuse("it has `..` in it; give the path without"));
    }
    if absolute.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(refuse("it has a NUL in it"));
    }
    Ok(absolute)
}

fn make_folder(path: &Path, mode: u32) -> Result<(), SandboxError> {
    fs::create_dir(path).map_err(SandboxError::new(path, "make a folder"))?;
    set_mode(path, mode)
}

/// A folder to mount a folder on, or a file to mount a file on.
fn make_mount_point(real: &Path, path: &Path) -> Result<(), SandboxError> {
    if real.is_dir() {
        return make_folders(path);
    }
    make_folders(path.parent().unwrap_or(path))?;
    fs::File::create(path).map(drop).map_err(SandboxError::new(path, "make a file to mount on"))
}

fn make_folders(path: &Path) -> Result<(), SandboxError> {
    fs::create_dir_all(path).map_err(SandboxError::new(path, "make a folder to mount on"))
}

fn set_mode(path: &Path, mode: u32) -> Result<(), SandboxError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(SandboxError::new(path, "set its mode"))
}

/// Where sandboxes have their folders: in memory where that is as good as a disk, else in the folder for temporary
/// files. The choice is made once.
pub(super) fn home() -> &'static Path {
    static HOME: OnceLock<PathBuf> = OnceLock::new();
    HOME.get_or_init(|| {
        let home = match memory_is_good(Path::new("/dev/shm")) {
            Ok(()) => PathBuf::from("/dev/shm"),
            Err(_) => {
                let temporary = std::env::temp_dir();
                fs::canonicalize(&temporary).unwrap_or(temporary)
            }
        };
        stale::sweep(&home);
        home
    })
}

/// Whether subjects find there what they would find on a disk: room, programs that can be executed, and attributes
/// (tmpfs has those of users since Linux 6.6). The reason where they do not.
pub(super) fn memory_is_good(folder: &Path) -> Result<(), String> {
    let found =
        statvfs(folder).map_err(|error| format!("{}: {}", folder.display(), error.desc()))?;
    let room = found.blocks_available() as u64 * found.fragment_size() as u64;
    if room < ROOM {
        return Err(format!("{} has only {} MiB left", folder.display(), room >> 20));
    }
    if found.flags().contains(FsFlags::ST_NOEXEC) {
        return Err(format!("{} is mounted noexec", folder.display()));
    }
    let probe = tempfile::NamedTempFile::new_in(folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    xattr::set(probe.path(), "user.crashlab", b"1")
        .map_err(|error| format!("{} has no user attributes: {error}", folder.display()))
}
