//! Where a path leads that a program looks at before it has looked at what is watched.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use crate::watched::Watched;

const MOST_LINKS: u32 = 40;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// Past all that is watched: what is there is the same in every run.
    Outside,
    /// To this, relative to the watched folder, or past it.
    Watched(PathBuf),
    /// To what is another's in another process, or can be another in another run.
    Own,
}

/// The ways of one thread; what is outside does not change while it is asked for.
#[derive(Debug)]
pub(super) struct Ways<'a> {
    /// Its root, as the lab reaches it.
    root: PathBuf,
    watched: &'a Watched,
    /// Folders outside, by the path that led there.
    known: HashMap<PathBuf, PathBuf>,
}

impl<'a> Ways<'a> {
    pub(super) fn of(tid: i32, watched: &'a Watched) -> Ways<'a> {
        let root = PathBuf::from(format!("/proc/{tid}/root"));
        Ways { root, watched, known: HashMap::new() }
    }

    /// Follows an absolute path, component by component, as the kernel does; a link at its end only where `follow` is set.
    pub(super) fn lead(&mut self, path: &Path, follow: bool) -> Way {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return self
                .walk(PathBuf::from("/"), path, follow)
                .map_or_else(|way| way, |_| Way::Outside);
        };
        let folder = match self.known.get(parent) {
            Some(folder) => Ok(folder.clone()),
            None => self.walk(PathBuf::from("/"), parent, true),
        };
        match folder {
            Ok(folder) => {
                self.known.insert(parent.to_owned(), folder.clone());
                self.walk(folder, Path::new(name), follow).map_or_else(|way| way, |_| Way::Outside)
            }
            // The name is still to come.
            Err(Way::Watched(folder)) => Way::Watched(folder.join(name)),
            Err(way) => way,
        }
    }

    /// The place to which a path leads from another one outside, where it stays outside.
    fn walk(&self, from: PathBuf, path: &Path, follow: bool) -> Result<PathBuf, Way> {
        let mut place = from;
        let mut links = 0;
        let mut left: Vec<PathBuf> = vec![path.to_owned()];
        while let Some(path) = left.pop() {
            let mut components = path.components();
            let Some(first) = components.next() else { continue };
            let rest = components.as_path();
            if !rest.as_os_str().is_empty() {
                left.push(rest.to_owned());
            }
            match first {
                Component::RootDir | Component::Prefix(_) => place = PathBuf::from("/"),
                Component::CurDir => {}
                Component::ParentDir => _ = place.pop(),
                Component::Normal(name) => {
                    let next = place.join(name);
                    if let Some(below) = self.watched.relative(&next) {
                        let below = below.to_owned();
                        let rest = left.into_iter().rev();
                        return Err(Way::Watched(rest.fold(below, |path, rest| path.join(rest))));
                    }
                    let last = left.is_empty();
                    let inside = self.root.join(next.strip_prefix("/").unwrap_or(&next));
                    let Ok(found) = fs::symlink_metadata(&inside) else {
                        // Nothing is there, in any run.
                        return Ok(next);
                    };
                    let kind = found.file_type();
                    if is_own(&next) || last && (kind.is_fifo() || kind.is_socket()) {
                        return Err(Way::Own);
                    }
                    if !kind.is_symlink() || last && !follow {
                        place = next;
                        continue;
                    }
                    links += 1;
                    match fs::read_link(&inside) {
                        Ok(target) if links <= MOST_LINKS => left.push(target),
                        _ => return Ok(next),
                    }
                }
            }
        }
        // The watched folder itself, or one on the way to it, by `..`.
        match self.watched.relative(&place) {
            Some(below) => Err(Way::Watched(below.to_owned())),
            None => Ok(place),
        }
    }
}

/// It tells who asks: in `/proc` what belongs to a process, and everything in `/dev` but what gives all the same.
fn is_own(path: &Path) -> bool {
    let first = |top: &str| path.strip_prefix(top).ok()?.components().next()?.as_os_str().to_str();
    match (first("/proc"), first("/dev")) {
        (Some(name), _) => {
            let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
            is_number || ["self", "thread-self", "mounts", "net", "locks", "uptime"].contains(&name)
        }
        (_, Some(name)) => !["null", "zero", "urandom", "random"].contains(&name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(watched: &Path, path: &Path) -> Way {
        let watched = Watched::alone(watched);
        Ways { root: "/".into(), watched: &watched, known: HashMap::new() }.lead(path, true)
    }

    #[test]
    fn what_leads_into_the_watched_folder_is_told_however_it_leads_there() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let work = home.join("work");
        fs::create_dir(&work).unwrap();
        fs::create_dir(home.join("beside")).unwrap();
        std::os::unix::fs::symlink("../work", home.join("beside/in")).unwrap();
        std::os::unix::fs::symlink(home.join("beside"), work.join("out")).unwrap();
        let watched = |path: &str| Way::Watched(path.into());
        assert_eq!(lead(&work, &work), watched(""));
        assert_eq!(lead(&work, &work.join("s.json")), watched("s.json"));
        assert_eq!(lead(&work, &work.join("not/there")), watched("not/there"));
        assert_eq!(lead(&work, &home.join("beside/in/s.json")), watched("s.json"));
        assert_eq!(lead(&work, &home.join("beside/../work/s")), watched("s"));
        assert_eq!(lead(&work, &home.join("beside/x/../..")), Way::Outside);
        // It leads out again, but only where the link is there.
        assert_eq!(lead(&work, &work.join("out/x")), watched("out/x"));
        assert_eq!(lead(&work, &home), Way::Outside);
        assert_eq!(lead(&work, &home.join("nothing/here")), Way::Outside);
    }

    #[test]
    fn what_tells_who_asks_is_its_own() {
        let work = Path::new("/nowhere/at/all");
        for own in
            ["/proc/self/status", "/proc/1/stat", "/proc/thread-self", "/dev/tty", "/dev/fd/3"]
        {
            assert_eq!(lead(work, Path::new(own)), Way::Own, "{own}");
        }
        for same in
            ["/proc/filesystems", "/proc/sys/vm/overcommit_memory", "/dev/null", "/etc/passwd"]
        {
            assert_eq!(lead(work, Path::new(same)), Way::Outside, "{same}");
        }
    }
}
