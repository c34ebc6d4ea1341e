//! A module: an executable or library that a process has mapped, as far as unwinding needs it.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use addr2line::gimli::{self, BaseAddresses, DebugFrame, EhFrame, EhFrameHdr, EndianSlice};
use addr2line::gimli::{LittleEndian, ParsedEhFrameHdr, UnwindSection};
use object::elf::{self, FileHeader64};
use object::read::elf::{ElfFile, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object, ObjectSection, ReadCache, ReadRef};

use super::maps::Mapping;
use crate::sys::memory;
use crate::sys::ptrace::Tid;

pub(super) type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// An ELF file of 64 bits.
pub(super) type Elf<'data, R> = ElfFile<'data, FileHeader64<Endianness>, R>;

/// Unwind tables beyond this size are left alone.
const TABLE_BYTES_MAX: u64 = 256 << 20;
/// The kernel's own module is smaller than this.
const VDSO_BYTES_MAX: u64 = 1 << 20;
/// So much of a mapping is held against a file that may be another one.
const COMPARED_BYTES: usize = 64 << 10;
/// The few instructions at which a program begins are no more than this.
const ENTRY_BYTES: u64 = 64;
const PAGE: u64 = 4096;

/// Folders of which the libraries are the system's, and not the program's own.
const SYSTEM_FOLDERS: &[&str] =
    &["/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec"];

/// Where a module's bytes are.
#[derive(Debug)]
pub(super) enum Source {
    File(File),
    Memory(Vec<u8>),
}

/// A part of the file that is mapped.
#[derive(Debug)]
struct Load {
    address: u64,
    offset: u64,
    len: u64,
}

/// A section with its address.
#[derive(Debug, Default)]
struct Section {
    address: u64,
    bytes: Vec<u8>,
}

/// An executable or library.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) path: PathBuf,
    pub(super) source: Source,
    pub(super) build_id: Option<String>,
    /// It is the program itself, or a library that is none of the system's.
    pub(super) is_own: bool,
    loads: Vec<Load>,
    eh_frame: Option<Section>,
    eh_frame_hdr: Option<Section>,
    debug_frame: Option<Section>,
    text: u64,
    got: u64,
    /// The first instruction of a program.
    entry: u64,
    /// Functions by their addresses, for tables without an index: first address, end, place of the entry.
    eh_frame_index: Vec<(u64, u64, usize)>,
    debug_frame_index: Vec<(u64, u64, usize)>,
}

impl Module {
    /// Looks into what is mapped; `None` where that is no ELF file of 64 bits that can be read.
    pub(super) fn open(tid: Tid, mapping: &Mapping) -> Option<Module> {
        let executable = std::fs::read_link(format!("/proc/{tid}/exe")).unwrap_or_default();
        // The kernel tells both of a file that is gone as ` (deleted)`.
        let is_executable = mapping.is_the_file(&executable);
        let path = mapping.path();
        let is_system = SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder));
        let is_own = is_executable || (mapping.is_file() && !is_system);
        let source = match mapping.is_file() {
            true => Source::File(file(tid, mapping, is_executable)?),
            false if mapping.is_vdso() => {
                let len = (mapping.end - mapping.start).min(VDSO_BYTES_MAX) as usize;
                Source::Memory(memory::read(tid, mapping.start, len))
            }
            false => return None,
        };
        let mut module = Module {
            path,
            source: Source::Memory(Vec::new()),
            build_id: None,
            is_own,
            loads: Vec::new(),
            eh_frame: None,
            eh_frame_hdr: None,
            debug_frame: None,
            text: 0,
            got: 0,
            entry: 0,
            eh_frame_index: Vec::new(),
            debug_frame_index: Vec::new(),
        };
        match &source {
            Source::File(file) => module.read(&ReadCache::new(file))?,
            Source::Memory(bytes) => module.read(bytes.as_slice())?,
        }
        module.source = source;
        module.eh_frame_index = match module.header() {
            Some(_) => Vec::new(),
            None => {
                module.eh_frame().map(|table| index(&table, &module.bases())).unwrap_or_default()
            }
        };
        module.debug_frame_index =
            module.debug_frame().map(|table| index(&table, &module.bases())).unwrap_or_default();
        Some(module)
    }

    fn read<'data, R: ReadRef<'data>>(&mut self, data: R) -> Option<()> {
        let elf = Elf::parse(data).ok()?;
        let endian = elf.endian();
        let header = elf.elf_header();
        let is_ours = header.e_machine(endian) == OWN_MACHINE && endian == Endianness::Little;
        if !is_ours {
            return None;
        }
        let loads = elf.elf_program_headers().iter();
        let loads = loads.filter(|load| load.p_type(endian) == elf::PT_LOAD);
        self.loads = loads
            .map(|load| Load {
                address: load.p_vaddr(endian),
                offset: load.p_offset(endian),
                len: load.p_filesz(endian),
            })
            .collect();
        self.build_id = elf.build_id().ok().flatten().map(hexadecimal);
        let section = |name: &str| {
            let section = elf.section_by_name(name)?;
            let bytes = super::symbols::section_bytes(&section, TABLE_BYTES_MAX)?;
            Some(Section { address: section.address(), bytes: bytes.into_owned() })
        };
        let address = |name: &str| elf.section_by_name(name).map_or(0, |section| section.address());
        self.eh_frame = section(".eh_frame");
        self.eh_frame_hdr = section(".eh_frame_hdr");
        self.debug_frame = section(".debug_frame");
        self.text = address(".text");
        self.got = address(".got");
        self.entry = elf.entry();
        Some(())
    }

    /// What is to be taken from an address in the mapping to get the module's own.
    pub(super) fn bias(&self, mapping: &Mapping) -> Option<u64> {
        let of_page = |load: &&Load| {
            let first = load.offset / PAGE * PAGE;
            (first..load.offset.saturating_add(load.len)).contains(&mapping.offset)
        };
        // A page in which one part ends and the next begins belongs to both: the later one is what is executed there.
        let load = self.loads.iter().rfind(of_page)?;
        let address = load.address.wrapping_sub(load.offset).wrapping_add(mapping.offset);
        Some(mapping.start.wrapping_sub(address))
    }

    /// Where a program begins, which nobody calls.
    pub(super) fn is_entry(&self, address: u64) -> bool {
        self.entry != 0 && (self.entry..self.entry.saturating_add(ENTRY_BYTES)).contains(&address)
    }

    pub(super) fn bases(&self) -> BaseAddresses {
        let address = |section: &Option<Section>| section.as_ref().map_or(0, |it| it.address);
        BaseAddresses::default()
            .set_eh_frame(address(&self.eh_frame))
            .set_eh_frame_hdr(address(&self.eh_frame_hdr))
            .set_text(self.text)
            .set_got(self.got)
    }

    pub(super) fn eh_frame(&self) -> Option<EhFrame<Slice<'_>>> {
        let section = self.eh_frame.as_ref()?;
        let mut table = EhFrame::new(&section.bytes, LittleEndian);
        table.set_vendor(VENDOR);
        Some(table)
    }

    pub(super) fn debug_frame(&self) -> Option<DebugFrame<Slice<'_>>> {
        let section = self.debug_frame.as_ref()?;
        let mut table = DebugFrame::new(&section.bytes, LittleEndian);
        table.set_vendor(VENDOR);
        Some(table)
    }

    /// The sorted table that leads into `.eh_frame`.
    pub(super) fn header(&self) -> Option<ParsedEhFrameHdr<Slice<'_>>> {
        let section = self.eh_frame_hdr.as_ref()?;
        self.eh_frame.as_ref()?;
        let header = EhFrameHdr::new(&section.bytes, LittleEndian).parse(&self.bases(), 8).ok()?;
        header.table().is_some().then_some(header)
    }

    /// The place of the entry for an address in `.eh_frame`, which has no sorted table.
    pub(super) fn in_eh_frame(&self, address: u64) -> Option<usize> {
        entry(&self.eh_frame_index, address)
    }

    /// The place of the entry for an address in `.debug_frame`.
    pub(super) fn in_debug_frame(&self, address: u64) -> Option<usize> {
        entry(&self.debug_frame_index, address)
    }
}

fn entry(index: &[(u64, u64, usize)], address: u64) -> Option<usize> {
    let after = index.partition_point(|(first, _, _)| *first <= address);
    let (_, end, place) = index.get(after.checked_sub(1)?)?;
    (address < *end).then_some(*place)
}

/// The entries of a table, sorted by address.
fn index<'a, S>(table: &S, bases: &BaseAddresses) -> Vec<(u64, u64, usize)>
where
    S: UnwindSection<Slice<'a>>,
    S::Offset: gimli::UnwindOffset<usize>,
{
    let mut entries = table.entries(bases);
    let mut found = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let Ok(fde) = partial.parse(S::cie_from_offset) else { continue };
        // What a linker threw away stays with the address 0.
        if fde.initial_address() != 0 {
            found.push((fde.initial_address(), fde.end_address(), fde.offset()));
        }
    }
    found.sort_unstable();
    found
}

impl Mapping {
    /// The link of `/proc/PID/exe` leads to this file.
    fn is_the_file(&self, link: &Path) -> bool {
        let without =
            |path: &Path| path.to_string_lossy().trim_end_matches(" (deleted)").to_owned();
        self.is_file() && without(link) == without(&self.path())
    }
}

/// The file that is mapped, as the process sees it or saw it.
fn file(tid: Tid, mapping: &Mapping, is_executable: bool) -> Option<File> {
    let of_process = format!("/proc/{tid}");
    let mapped = format!("{of_process}/map_files/{:x}-{:x}", mapping.start, mapping.end);
    let path = mapping.path();
    let below_root = format!("{of_process}/root");
    let by_path = Path::new(&below_root).join(path.strip_prefix("/").unwrap_or(&path));
    let executable = is_executable.then(|| format!("{of_process}/exe").into());
    let exact = executable.into_iter().chain([PathBuf::from(mapped)]).find_map(|link| {
        let file = File::open(link).ok()?;
        file.metadata().ok()?.is_file().then_some(file)
    });
    if exact.is_some() {
        return exact;
    }
    // By its path it may be another one by now. Some file systems have other inodes for mappings than for names.
    // A device or a pipe of this name must not be opened: that may have effects, or wait.
    let is_file = std::fs::metadata(&by_path).ok()?.is_file();
    let file = is_file.then(|| File::open(&by_path).ok()).flatten()?;
    let is_same = file.metadata().ok()?.ino() == mapping.key.inode;
    (is_same || holds_what_is_mapped(&file, tid, mapping)).then_some(file)
}

/// What the memory holds stands in this file.
fn holds_what_is_mapped(file: &File, tid: Tid, mapping: &Mapping) -> bool {
    let len = ((mapping.end - mapping.start) as usize).min(COMPARED_BYTES);
    let mut bytes = vec![0; len];
    let mut read = 0;
    while let Ok(count @ 1..) = file.read_at(&mut bytes[read..], mapping.offset + read as u64) {
        read += count;
    }
    read > 0 && memory::read(tid, mapping.start, read) == bytes[..read]
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(target_arch = "x86_64")]
const OWN_MACHINE: elf::Machine = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const OWN_MACHINE: elf::Machine = elf::EM_AARCH64;
#[cfg(target_arch = "x86_64")]
const VENDOR: gimli::Vendor = gimli::Vendor::Default;
#[cfg(target_arch = "aarch64")]
const VENDOR: gimli::Vendor = gimli::Vendor::AArch64;
