//! From addresses of a module to functions and lines: by its debugging information, or else by its symbol table.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use addr2line::gimli::{self, DwarfSections, EndianSlice, LittleEndian};
use addr2line::{Context, FunctionName, demangle_auto};
use object::{
    CompressionFormat, Object, ObjectSection, ObjectSymbol, ReadCache, ReadRef, SymbolKind,
};

use super::module::{Elf, Module, Slice, Source};
use crate::recording::CallSite;

/// Debugging information beyond this size, in bytes, is left alone.
const DEBUG_BYTES_MAX: u64 = 1 << 30;
/// A name beyond this length, in bytes, is cut: templates make them.
const NAME_MAX: usize = 200;

/// A function of the symbol table.
struct Function {
    address: u64,
    /// 0 where the table does not tell.
    len: u64,
    /// As it stands there: there are many, and few are told.
    name: String,
}

/// A site of which nothing but the address is known.
pub(super) fn nowhere(address: u64) -> CallSite {
    CallSite::at("[memory]", address)
}

/// For each of these addresses the function that it lies in, and before it those that are inlined there.
pub(super) fn look_up(module: &Module, addresses: &[u64]) -> Vec<(u64, Vec<CallSite>)> {
    match &module.source {
        Source::File(file) => in_elf(module, &ReadCache::new(file), addresses),
        Source::Memory(bytes) => in_elf(module, bytes.as_slice(), addresses),
    }
}

fn in_elf<'data, R: ReadRef<'data>>(
    module: &Module,
    data: R,
    addresses: &[u64],
) -> Vec<(u64, Vec<CallSite>)> {
    let elf = Elf::parse(data).ok();
    let functions = elf.as_ref().map(functions).unwrap_or_default();
    let sections = elf.as_ref().map(debug_sections).unwrap_or_default();
    let sections = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let context = Context::from_dwarf(sections).ok();
    let site = |address: u64| CallSite {
        build_id: module.build_id.clone(),
        ..CallSite::at(&module.path, address)
    };
    let of = |address: &u64| {
        let mut sites = context.as_ref().map(|context| lines(context, site(*address)));
        let by_symbol = by_symbol(&functions, site(*address));
        let sites = match sites.take() {
            Some(mut sites) if !sites.is_empty() => {
                if let Some(last) = sites.last_mut().filter(|last| last.function.is_none()) {
                    last.function = by_symbol.function;
                }
                sites
            }
            _ => vec![by_symbol],
        };
        (*address, sites)
    };
    addresses.iter().map(of).collect()
}

/// The function of an address by the debugging information, after those that are inlined there.
fn lines(context: &Context<Slice<'_>>, site: CallSite) -> Vec<CallSite> {
    let address = site.address;
    let unit = context.find_dwarf_and_unit(address).skip_all_loads();
    let folder = unit.and_then(|unit| {
        let folder = unit.comp_dir.as_ref()?.to_string_lossy().into_owned();
        Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute())
    });
    let Ok(mut frames) = context.find_frames(address).skip_all_loads() else {
        return Vec::new();
    };
    let mut sites: Vec<CallSite> = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let location = frame.location.as_ref();
        sites.push(CallSite {
            function: frame.function.as_ref().and_then(name),
            file: location.and_then(|location| location.file).map(plain_path),
            line: location.and_then(|location| location.line).filter(|line| *line > 0),
            folder: folder.clone(),
            inlined: true,
            ..site.clone()
        });
    }
    if let Some(last) = sites.last_mut() {
        last.inlined = false;
    }
    sites.retain(|site| site.function.is_some() || site.line.is_some());
    sites
}

fn name(function: &FunctionName<Slice<'_>>) -> Option<String> {
    function.demangle().ok().map(|name| short(&name))
}

fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// The path without the `./` and `/./` that some compilers leave in it.
fn plain_path(path: &str) -> PathBuf {
    Path::new(path).components().collect()
}

fn by_symbol(functions: &[Function], site: CallSite) -> CallSite {
    let after = functions.partition_point(|function| function.address <= site.address);
    let found = after.checked_sub(1).map(|last| &functions[last]);
    let found = found
        .filter(|function| function.len == 0 || site.address - function.address < function.len);
    match found {
        Some(function) => CallSite {
            function: Some(short(&demangle_auto(Cow::Borrowed(&function.name), None))),
            function_offset: Some(site.address - function.address),
            ..site
        },
        None => site,
    }
}

/// The functions by their addresses, one for each address: of several names the plainest.
fn functions<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>) -> Vec<Function> {
    let full: Vec<_> = elf.symbols().collect();
    let symbols = match full.iter().any(|symbol| symbol.kind() == SymbolKind::Text) {
        true => full,
        false => elf.dynamic_symbols().collect(),
    };
    let mut functions: Vec<Function> = symbols
        .iter()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            let (address, len) = (symbol.address(), symbol.size());
            Some(Function { address, len, name: name.to_owned() })
        })
        .collect();
    // `write` rather than `__write` and `__libc_write`, which are the same.
    let underscores = |name: &str| name.len() - name.trim_start_matches('_').len();
    functions.sort_by(|one, other| {
        let rank = |function: &Function| {
            (function.address, underscores(&function.name), function.name.len())
        };
        rank(one).cmp(&rank(other)).then_with(|| one.name.cmp(&other.name))
    });
    functions.dedup_by_key(|function| function.address);
    functions
}

/// The sections of the debugging information; none where together they are too large.
fn debug_sections<'data, R: ReadRef<'data>>(
    elf: &Elf<'data, R>,
) -> DwarfSections<Cow<'data, [u8]>> {
    let sizes = elf
        .sections()
        .filter(|section| section.name_bytes().is_ok_and(|name| name.starts_with(b".debug_")));
    let all = sizes.fold(0, |all: u64, section| all.saturating_add(section.size()));
    let fits = all <= DEBUG_BYTES_MAX;
    let section = |id: gimli::SectionId| -> Result<Cow<'data, [u8]>, gimli::Error> {
        let section = elf.section_by_name(id.name()).filter(|_| fits);
        Ok(section.and_then(|it| section_bytes(&it, DEBUG_BYTES_MAX)).unwrap_or_default())
    };
    DwarfSections::load(section).unwrap_or_default()
}

/// The bytes of a section, unpacked, if they are not too many. What is packed by zstd is left alone.
pub(super) fn section_bytes<'data>(
    section: &impl ObjectSection<'data>,
    most: u64,
) -> Option<Cow<'data, [u8]>> {
    let packed = section.compressed_data().ok()?;
    if packed.uncompressed_size.max(packed.data.len() as u64) > most {
        return None;
    }
    match packed.format {
        CompressionFormat::None => Some(Cow::Borrowed(packed.data)),
        CompressionFormat::Zlib => {
            let len = usize::try_from(packed.uncompressed_size).ok()?;
            let bytes = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed.data, len);
            bytes.ok().map(Cow::Owned)
        }
        _ => None,
    }
}
