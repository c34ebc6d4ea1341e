//! Which folders are watched: what happens below them is written down, and programs see copies of them.

use std::path::{Component, Path, PathBuf};

/// Folders that are watched. Where there are several, paths of logs, trees and state files are relative to the folder
/// that holds them all, of which nothing else is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// What paths are relative to; absolute.
    pub base: PathBuf,
    /// The watched folders, relative to the base; none lies in another. An empty one is the base itself.
    pub parts: Vec<PathBuf>,
    /// Where programs begin, relative to the base: in one of the parts.
    pub current: PathBuf,
}

impl Watched {
    /// One folder, in which programs begin.
    pub fn alone(folder: &Path) -> Watched {
        Watched { base: folder.to_owned(), parts: vec![PathBuf::new()], current: PathBuf::new() }
    }

    /// The folder in which programs begin, and others; all are absolute, without links.
    pub fn of(current: &Path, others: &[PathBuf]) -> Watched {
        let mut folders: Vec<&Path> = vec![current];
        folders.extend(others.iter().map(PathBuf::as_path));
        folders.sort_unstable();
        folders.dedup();
        let all = folders.clone();
        folders.retain(|one| !all.iter().any(|other| one != other && one.starts_with(other)));
        let holds_all = |base: &&Path| folders.iter().all(|folder| folder.starts_with(base));
        let base = current.ancestors().find(holds_all).unwrap_or(Path::new("/"));
        let below = |folder: &Path| folder.strip_prefix(base).unwrap_or(folder).to_owned();
        Watched {
            base: base.to_owned(),
            parts: folders.iter().map(|folder| below(folder)).collect(),
            current: below(current),
        }
    }

    /// The watched folders, absolute.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.parts.iter().map(|part| self.base.join(part))
    }

    /// An absolute path relative to the base, if it is watched.
    pub fn relative<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let below = path.strip_prefix(&self.base).ok()?;
        self.parts.iter().any(|part| below.starts_with(part)).then_some(below)
    }

    /// A path as a person writes it in the folder where programs begin, relative to the base; `None` where it leads
    /// elsewhere, or to a watched folder itself that no other one holds.
    pub fn path_of(&self, path: &Path) -> Option<PathBuf> {
        let mut plain = PathBuf::new();
        for component in self.base.join(&self.current).join(path).components() {
            match component {
                Component::ParentDir => _ = plain.pop(),
                Component::CurDir => {}
                other => plain.push(other),
            }
        }
        let below = self.relative(&plain)?;
        (!below.as_os_str().is_empty()).then(|| below.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(current: &str, others: &[&str]) -> (String, Vec<String>, String) {
        let others: Vec<PathBuf> = others.iter().map(PathBuf::from).collect();
        let Watched { base, parts, current } = Watched::of(Path::new(current), &others);
        let text = |path: &PathBuf| path.display().to_string();
        (text(&base), parts.iter().map(text).collect(), text(&current))
    }

    #[test]
    fn folders_have_one_base() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(of("/srv/app", &[]), ("/srv/app".into(), words(&[""]), String::new()));
        assert_eq!(of("/srv/app", &["/srv/app/data"]).1, words(&[""]));
        let beside = of("/srv/app", &["/srv/data", "/srv/data/more", "/srv/apple"]);
        assert_eq!(beside, ("/srv".into(), words(&["app", "apple", "data"]), "app".into()));
        let far = of("/srv/app", &["/var/lib/app"]);
        assert_eq!(far, ("/".into(), words(&["srv/app", "var/lib/app"]), "srv/app".into()));
        assert_eq!(of("/srv/app", &["/srv"]), ("/srv".into(), words(&[""]), "app".into()));
    }

    #[test]
    fn paths_are_watched_in_the_folders_alone() {
        let watched = Watched::of(Path::new("/srv/app"), &["/srv/data".into()]);
        let path =
            |path: &str| watched.path_of(Path::new(path)).map(|path| path.display().to_string());
        assert_eq!(path("s.json"), Some("app/s.json".into()));
        assert_eq!(path("./x/../s.json"), Some("app/s.json".into()));
        assert_eq!(path("../data/s.json"), Some("data/s.json".into()));
        assert_eq!(path("/srv/data"), Some("data".into()));
        assert_eq!(path("../other/s.json"), None);
        assert_eq!(path("/etc/passwd"), None);
        assert_eq!(Watched::alone(Path::new("/srv/app")).path_of(Path::new(".")), None);
    }
}
