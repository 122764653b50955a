//! What a program file tells without being run: how it is linked, who compiled it, with which
//! options.

use std::fs;
use std::path::Path;

use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{
    Architecture, Endianness, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable,
    RelocationTarget,
};

/// The part of a binary that tools leave their marks in, and its constant texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Texts that compilers and linkers left: `GCC: (Debian 12.2.0-14) 12.2.0`.
    pub compilers: Vec<String>,
    /// Constant texts that name a compiler or its options.
    pub texts: Vec<String>,
}

/// Whether a file is a program that a loader has to start, as opposed to a library, a script or a
/// static program.
pub(crate) fn is_dynamic_program(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    let Ok(file) = ElfFile64::<Endianness>::parse(&*bytes) else {
        return false;
    };
    file.elf_program_headers()
        .iter()
        .any(|header| header.p_type(file.endian()) == PT_INTERP)
}

/// Reads the marks of a program; none where it is no ELF file.
pub(crate) fn marks(path: &Path) -> Marks {
    let Ok(bytes) = fs::read(path) else {
        return Marks::default();
    };
    let Ok(file) = object::read::elf::ElfFile::<FileHeader64<Endianness>>::parse(&*bytes) else {
        return Marks::default();
    };
    let section = |name: &str| {
        file.section_by_name(name)
            .and_then(|section| section.data().ok())
            .unwrap_or_default()
    };
    Marks {
        compilers: texts(section(".comment")).map(str::to_owned).collect(),
        texts: texts(section(".rodata"))
            .filter(|text| {
                text.contains("compiled by ")
                    || (text.starts_with('-') && text.contains("-Wmissing-prototypes"))
            })
            .map(str::to_owned)
            .collect(),
    }
}

/// The options that compilers recorded in a program (`-frecord-gcc-switches`), each combination
/// once; none if they recorded nothing.
pub(crate) fn switches(path: &Path) -> Vec<String> {
    let Ok(bytes) = fs::read(path) else {
        return Vec::new();
    };
    let Ok(file) = ElfFile64::<Endianness>::parse(&*bytes) else {
        return Vec::new();
    };
    let section = file.section_by_name(".GCC.command.line");
    let data = section.and_then(|section| section.data().ok().map(<[u8]>::to_vec));
    texts(&data.unwrap_or_default())
        .map(str::to_owned)
        .collect()
}

/// How often the code of an x86-64 library calls the function of the C library that a failed
/// assertion ends in. `None` if this is unknown.
pub(crate) fn assertions(path: &Path) -> Option<usize> {
    let bytes = fs::read(path).ok()?;
    let file = ElfFile64::<Endianness>::parse(&*bytes).ok()?;
    if file.architecture() != Architecture::X86_64 {
        return None;
    }
    let symbols = file.dynamic_symbol_table()?;
    let is_assertion = |target: RelocationTarget| match target {
        RelocationTarget::Symbol(index) => symbols
            .symbol_by_index(index)
            .is_ok_and(|symbol| symbol.name() == Ok("__assert_fail")),
        _ => false,
    };
    // The slot that the loader writes the function's address to.
    let slot = file
        .dynamic_relocations()?
        .find(|(_, relocation)| is_assertion(relocation.target()))
        .map(|(slot, _)| slot);
    let Some(slot) = slot else { return Some(0) };
    // The code that jumps through that slot: `jmp [rip+n]`, in entries of 16 bytes.
    let mut stubs = Vec::new();
    for name in [".plt", ".plt.sec", ".plt.got"] {
        let Some(section) = file.section_by_name(name) else {
            continue;
        };
        let code = section.data().ok()?;
        let jumps = relative_targets(code, section.address(), &[0xff, 0x25])
            .filter(|(_, target)| *target == slot);
        stubs.extend(jumps.map(|(at, _)| at & !0xf));
    }
    let text = file.section_by_name(".text")?;
    Some(
        relative_targets(text.data().ok()?, text.address(), &[0xe8])
            .filter(|(_, target)| stubs.contains(target))
            .count(),
    )
}

/// Instructions that begin with `opcode` and go on with a distance of 4 bytes from their end: where
/// they are, and what they mean.
fn relative_targets<'a>(
    code: &'a [u8],
    address: u64,
    opcode: &'a [u8],
) -> impl Iterator<Item = (u64, u64)> + 'a {
    code.windows(opcode.len() + 4)
        .enumerate()
        .filter(move |(_, window)| window.starts_with(opcode))
        .map(move |(at, window)| {
            let distance =
                i32::from_le_bytes(std::array::from_fn(|byte| window[opcode.len() + byte]));
            let at = address + at as u64;
            (
                at,
                (at + window.len() as u64).wrapping_add_signed(i64::from(distance)),
            )
        })
}

/// Texts between zero bytes.
fn texts(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes
        .split(|byte| *byte == 0)
        .filter(|text| !text.is_empty())
        .filter_map(|text| std::str::from_utf8(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_from_the_end_of_an_instruction() {
        let code = [0x90, 0xe8, 0x02, 0, 0, 0, 0xe8, 0xfa, 0xff, 0xff, 0xff];
        let targets: Vec<(u64, u64)> = relative_targets(&code, 0x100, &[0xe8]).collect();
        assert_eq!(targets, [(0x101, 0x108), (0x106, 0x105)]);
    }

    #[test]
    fn what_is_no_library_has_no_answer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.so");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert_eq!(assertions(&path), None);
    }
}
