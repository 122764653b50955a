//! What a program file tells without being run: how it is linked, who compiled it, with which options.

use std::fs;
use std::path::Path;

use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection};

/// The part of a binary that tools leave their marks in, and its constant texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Texts that compilers and linkers left: `GCC: (Debian 12.2.0-14) 12.2.0`.
    pub compilers: Vec<String>,
    /// Constant texts that name a compiler or its options.
    pub texts: Vec<String>,
}

/// Whether a file is a program that a loader has to start, as opposed to a library, a script or a static program.
pub(crate) fn is_dynamic_program(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else { return false };
    let Ok(file) = ElfFile64::<Endianness>::parse(&*bytes) else { return false };
    file.elf_program_headers().iter().any(|header| header.p_type(file.endian()) == PT_INTERP)
}

/// Reads the marks of a program; none where it is no ELF file.
pub(crate) fn marks(path: &Path) -> Marks {
    let Ok(bytes) = fs::read(path) else { return Marks::default() };
    let Ok(file) = object::read::elf::ElfFile::<FileHeader64<Endianness>>::parse(&*bytes) else { return Marks::default() };
    let section = |name: &str| file.section_by_name(name).and_then(|section| section.data().ok()).unwrap_or_default();
    Marks {
        compilers: texts(section(".comment")).map(str::to_owned).collect(),
        texts: texts(section(".rodata"))
            .filter(|text| text.contains("compiled by ") || (text.starts_with('-') && text.contains("-Wmissing-prototypes")))
            .map(str::to_owned)
            .collect(),
    }
}

/// Texts between zero bytes.
fn texts(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes.split(|byte| *byte == 0).filter(|text| !text.is_empty()).filter_map(|text| std::str::from_utf8(text).ok())
}
