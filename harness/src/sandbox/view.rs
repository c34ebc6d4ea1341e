//! The view of a sandbox: namespaces in which its folders are at their places and everything else is read-only.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::sys::statvfs::{FsFlags, statvfs};

use super::layout::{Layout, Overlay};
use super::{Capabilities, Way};
use crate::sys::{mount as attributes, namespace};

/// Namespaces that are there as long as this is.
#[derive(Debug)]
pub(super) struct View {
    pub(super) user: Option<File>,
    pub(super) mount: File,
    pub(super) network: Option<File>,
    /// Counts of sockets of the network namespace.
    counts: Mutex<Vec<File>>,
}

/// A step of making a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Step {
    User = 1,
    Identity,
    Mount,
    Network,
    Loopback,
    Overlay,
    Open,
    Seal,
    Bind,
    Unseal,
}

impl Step {
    const ALL: [Step; 10] = [
        Step::User,
        Step::Identity,
        Step::Mount,
        Step::Network,
        Step::Loopback,
        Step::Overlay,
        Step::Open,
        Step::Seal,
        Step::Bind,
        Step::Unseal,
    ];

    fn words(self) -> &'static str {
        match self {
            Step::User => "make a user namespace",
            Step::Identity => "map the user into the user namespace",
            Step::Mount => "make a mount namespace",
            Step::Network => "make a network namespace",
            Step::Loopback => "bring up the loopback device",
            Step::Overlay => "lay the work folder over the large one (overlayfs)",
            Step::Open => "open the folders to be mounted",
            Step::Seal => "make the file system read-only",
            Step::Bind => "mount a folder at its place",
            Step::Unseal => "make a private folder writable",
        }
    }
}

/// A view could not be made.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) step: Option<Step>,
    pub(super) what: String,
    pub(super) path: Option<PathBuf>,
    pub(super) source: io::Error,
}

/// A folder that is mounted at another place.
struct Bind {
    source: CString,
    target: CString,
    writable: bool,
}

/// How the file system is made read-only.
enum Sealing {
    /// All at once.
    Recursive,
    /// One mount after another, each with the flags that it has: for kernels before 5.12.
    Each {
        mounts: Vec<(CString, MsFlags)>,
        /// Flags of the mount that holds the sandbox's folders.
        private: MsFlags,
    },
}

/// Who the subject is in a user namespace: who the lab is outside.
pub(super) struct Identity {
    uid_map: Vec<u8>,
    gid_map: Vec<u8>,
}

impl Identity {
    pub(super) fn of_lab() -> Identity {
        let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
        Identity {
            uid_map: format!("{uid} {uid} 1").into_bytes(),
            gid_map: format!("{gid} {gid} 1").into_bytes(),
        }
    }

    /// For a process that has just made its user namespace. Only system calls.
    pub(super) fn keep(&self) -> Result<(), Errno> {
        // Without this the kernel lets nobody but root map a group.
        put(c"/proc/self/setgroups", b"deny")?;
        put(c"/proc/self/uid_map", &self.uid_map)?;
        put(c"/proc/self/gid_map", &self.gid_map)
    }
}

/// All that the maker of a view needs, prepared before it is forked.
struct Plan {
    /// Only with a user namespace.
    identity: Option<Identity>,
    network: bool,
    overlay: Option<OverlayMount>,
    sealing: Sealing,
    binds: Vec<Bind>,
    /// Room for a descriptor of each source.
    opened: Vec<Option<OwnedFd>>,
}

impl View {
    /// Makes the namespaces, with the folders of the layout at their places.
    pub(super) fn make(
        layout: &Layout,
        used: &Capabilities,
        network: bool,
    ) -> Result<View, Failed> {
        let fail =
            |what: &str, source| Failed { step: None, what: what.into(), path: None, source };
        let mut plan =
            Plan::new(layout, used, network).map_err(|source| fail("plan the mounts", source))?;
        let maker = match namespace::make(|| plan.carry_out()) {
            Err(error) => return Err(fail("fork", error)),
            Ok(Err((number, errno))) => {
                let step = Step::ALL.into_iter().find(|step| *step as u8 == number);
                let what = step.map_or("make the namespaces", Step::words).into();
                return Err(Failed { step, what, path: None, source: errno.into() });
            }
            Ok(Ok(maker)) => maker,
        };
        let open =
            |file: &str| maker.open(file).map_err(|source| fail("hold the namespaces", source));
        let counts = if network {
            // The second is not there where the machine does without IPv6.
            let later = maker.open("net/sockstat6").ok();
            [open("net/sockstat")?].into_iter().chain(later).collect()
        } else {
            Vec::new()
        };
        Ok(View {
            user: plan.identity.is_some().then(|| open("ns/user")).transpose()?,
            mount: open("ns/mnt")?,
            network: network.then(|| open("ns/net")).transpose()?,
            counts: Mutex::new(counts),
        })
    }

    /// Whether there are sockets in its own network, also those whose program has ended and that only wait for
    /// their time to be over. What cannot be read counts as yes.
    pub(super) fn has_sockets(&self) -> bool {
        let mut counts = self.counts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        counts.iter_mut().any(|file| {
            let mut text = String::new();
            file.rewind().and_then(|()| file.read_to_string(&mut text)).is_err()
                || some_in_use(&text)
        })
    }
}

/// Whether any protocol's line of a `sockstat` has a count of sockets that is not 0.
fn some_in_use(text: &str) -> bool {
    // `sockets: used` is counted for the whole machine, and `mem` is none of ours.
    text.lines().filter(|line| !line.starts_with("sockets:")).any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.windows(2).any(|pair| matches!(pair[0], "inuse" | "tw" | "orphan") && pair[1] != "0")
    })
}

impl Plan {
    fn new(layout: &Layout, used: &Capabilities, network: bool) -> io::Result<Plan> {
        let mut binds = Vec::new();
        let mut bind = |source: &Path, target: &Path, writable| {
            binds.push(Bind { source: c_path(source)?, target: c_path(target)?, writable });
            io::Result::Ok(())
        };
        for private in &layout.private {
            bind(&private.folder, &private.hides, true)?;
        }
        for (source, target) in &layout.visible {
            bind(source, target, false)?;
        }
        let work = layout.overlay.as_ref().map_or(&layout.work, |overlay| &overlay.merged);
        for part in &layout.parts {
            bind(&work.join(part), &layout.seen.join(part), true)?;
        }
        for (source, target) in &layout.shown {
            bind(source, target, false)?;
        }
        let sealing = if used.recursive_read_only {
            Sealing::Recursive
        } else {
            Sealing::Each {
                mounts: mounts(&fs::read("/proc/self/mountinfo")?),
                private: flags_of(&layout.work)?,
            }
        };
        let overlay = match &layout.overlay {
            Some(overlay) => Some(OverlayMount::new(&layout.work, overlay)?),
            None => None,
        };
        let identity = (used.way == Way::UserNamespace).then(Identity::of_lab);
        let opened = Vec::with_capacity(binds.len());
        Ok(Plan { identity, network, overlay, sealing, binds, opened })
    }

    /// Makes the namespaces for the calling process. Only system calls: it runs in a fork.
    fn carry_out(&mut self) -> Result<(), namespace::Failure> {
        let at = |step: Step| move |errno: Errno| (step as u8, errno);
        if let Some(identity) = &self.identity {
            unshare(CloneFlags::CLONE_NEWUSER).map_err(at(Step::User))?;
            identity.keep().map_err(at(Step::Identity))?;
        }
        if self.network {
            unshare(CloneFlags::CLONE_NEWNET).map_err(at(Step::Network))?;
            namespace::loopback_up().map_err(at(Step::Loopback))?;
        }
        unshare(CloneFlags::CLONE_NEWNS).map_err(at(Step::Mount))?;
        if let Some(overlay) = &self.overlay {
            overlay.mount().map_err(at(Step::Overlay))?;
        }
        // Before anything hides them, and in the new namespace, since mounts of another one cannot be bound.
        for bind in &self.binds {
            let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
            self.opened.push(match open(bind.source.as_c_str(), flags, Mode::empty()) {
                // What was to stay visible went away meanwhile: so it does for the programs.
                Err(Errno::ENOENT) if !bind.writable => None,
                opened => Some(opened.map_err(at(Step::Open))?),
            });
        }
        self.sealing.seal().map_err(at(Step::Seal))?;
        for (bind, source) in self.binds.iter().zip(&self.opened) {
            let Some(source) = source else { continue };
            // By the descriptor, since the path may lead elsewhere by now.
            let mut buffer = [0; FD_PATH_BYTES];
            let source = fd_path(source.as_raw_fd(), &mut buffer).ok_or(Errno::EBADF);
            let source = source.map_err(at(Step::Bind))?;
            let flags =
                if bind.writable { MsFlags::MS_BIND } else { MsFlags::MS_BIND | MsFlags::MS_REC };
            remount(Some(source), &bind.target, flags).map_err(at(Step::Bind))?;
            if bind.writable {
                self.sealing.unseal(&bind.target).map_err(at(Step::Unseal))?;
            }
        }
        Ok(())
    }
}

/// An overlay to be mounted.
struct OverlayMount {
    merged: CString,
    options: CString,
}

impl OverlayMount {
    fn new(upper: &Path, overlay: &Overlay) -> io::Result<OverlayMount> {
        // Attributes of users, which everybody may set; with these the upper layer holds whole files, and folders of the
        // lower one are not renamed. One device number for all files, as in any other folder.
        let mut options = b"userxattr,xino=on".to_vec();
        for (name, path) in [
            ("lowerdir", overlay.lower.as_path()),
            ("upperdir", upper),
            ("workdir", &overlay.kernel),
        ] {
            options.extend(format!(",{name}=").bytes());
            for byte in path.as_os_str().as_bytes() {
                if b"\\,:".contains(byte) {
                    options.push(b'\\');
                }
                options.push(*byte);
            }
        }
        Ok(OverlayMount { merged: c_path(&overlay.merged)?, options: CString::new(options)? })
    }

    /// Only a system call.
    fn mount(&self) -> Result<(), Errno> {
        let kind = Some(c"overlay");
        let options = Some(self.options.as_c_str());
        mount(kind, self.merged.as_c_str(), kind, MsFlags::empty(), options)
    }
}

/// `/proc/self/fd/` and as many digits as a number has.
const FD_PATH_BYTES: usize = 32;

/// The path of a descriptor, without allocating: it is made in a fork.
fn fd_path(fd: i32, buffer: &mut [u8; FD_PATH_BYTES]) -> Option<&CStr> {
    const FOLDER: &[u8] = b"/proc/self/fd/";
    buffer[..FOLDER.len()].copy_from_slice(FOLDER);
    let digits = fd.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = fd;
    for place in (FOLDER.len()..FOLDER.len() + digits).rev() {
        buffer[place] = b'0' + u8::try_from(rest % 10).ok()?;
        rest /= 10;
    }
    buffer[FOLDER.len() + digits] = 0;
    CStr::from_bytes_until_nul(buffer).ok()
}

impl Sealing {
    fn seal(&self) -> Result<(), Errno> {
        let Sealing::Each { mounts, .. } = self else {
            return attributes::seal(c"/");
        };
        remount(None, c"/", MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
        for (point, flags) in mounts {
            match remount(
                None,
                point,
                *flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY,
            ) {
                // Hidden below another mount, or gone: then nobody reaches it.
                Ok(()) | Err(Errno::EINVAL | Errno::ENOENT | Errno::ENOTDIR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    fn unseal(&self, target: &CStr) -> Result<(), Errno> {
        match self {
            Sealing::Recursive => attributes::unseal(target),
            Sealing::Each { private, .. } => {
                remount(None, target, *private | MsFlags::MS_REMOUNT | MsFlags::MS_BIND)
            }
        }
    }
}

fn remount(source: Option<&CStr>, target: &CStr, flags: MsFlags) -> Result<(), Errno> {
    mount(source, target, None::<&CStr>, flags, None::<&CStr>)
}

fn put(path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    let file = open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    match nix::unistd::write(&file, bytes)? {
        written if written == bytes.len() => Ok(()),
        _ => Err(Errno::EIO),
    }
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Mount points and their flags, from the text of a `mountinfo`.
fn mounts(text: &[u8]) -> Vec<(CString, MsFlags)> {
    let mut found = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let mut fields = line.split(|&byte| byte == b' ').skip(4);
        let (Some(point), Some(options)) = (fields.next(), fields.next()) else {
            continue;
        };
        let Ok(point) = CString::new(unescaped(point)) else {
            continue;
        };
        let flags = options
            .split(|&byte| byte == b',')
            .map(flag)
            .fold(MsFlags::empty(), |all, one| all | one);
        found.push((point, flags));
    }
    found
}

/// Whether another file system is mounted below a folder. An overlay would not show what is in it.
pub fn holds_mounts(folder: &Path) -> bool {
    let Ok(text) = fs::read("/proc/self/mountinfo") else {
        return true;
    };
    let points = mounts(&text).into_iter().map(|(point, _)| point);
    points.into_iter().any(|point| {
        let point = Path::new(std::ffi::OsStr::from_bytes(point.as_bytes()));
        point != folder && point.starts_with(folder)
    })
}

fn flag(option: &[u8]) -> MsFlags {
    match option {
        b"nosuid" => MsFlags::MS_NOSUID,
        b"nodev" => MsFlags::MS_NODEV,
        b"noexec" => MsFlags::MS_NOEXEC,
        b"noatime" => MsFlags::MS_NOATIME,
        b"nodiratime" => MsFlags::MS_NODIRATIME,
        b"relatime" => MsFlags::MS_RELATIME,
        _ => MsFlags::empty(),
    }
}

/// Blanks, tabs, line feeds and backslashes are octal in a `mountinfo`.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

/// The flags of the mount that holds a path, without the read-only one.
fn flags_of(path: &Path) -> io::Result<MsFlags> {
    let found = statvfs(path)?.flags();
    let pairs = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    Ok(pairs.into_iter().filter(|(flag, _)| found.contains(*flag)).map(|(_, flag)| flag).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_and_flags_are_read() {
        let text = b"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
            23 22 0:5 / /a\\040b\\134c ro,nosuid,nodev,noexec,noatime,nodiratime shared:1 - tmpfs none rw\n\nbroken\n";
        let found = mounts(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], (c"/".into(), MsFlags::MS_RELATIME));
        assert_eq!(found[1].0.as_c_str(), c"/a b\\c");
        let all = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        assert_eq!(found[1].1, all | MsFlags::MS_NOATIME | MsFlags::MS_NODIRATIME);
    }

    #[test]
    fn sockets_are_counted_by_protocol_alone() {
        assert!(!some_in_use(
            "sockets: used 104\nTCP: inuse 0 orphan 0 tw 0 alloc 31 mem 4\nUDP: inuse 0 mem 2\n"
        ));
        assert!(some_in_use("sockets: used 0\nTCP: inuse 0 orphan 0 tw 1 alloc 31 mem 4\n"));
        assert!(some_in_use("TCP6: inuse 2\n"));
        assert!(some_in_use("TCP: inuse 0 orphan 0 tw 0\nUDP: inuse 1 mem 2\n"));
    }
}
