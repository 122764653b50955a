//! RocksDB's C functions, found in a library at run time. All of the crate's `unsafe` is in this
//! file; what leaves it is safe to use.
//!
//! A library stays loaded until the process ends, and there is one per process: the C++ symbols of
//! two would be mixed up, and they abort.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::hint::black_box;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};

use crate::EngineError;

/// Objects of the library, known by their addresses alone.
macro_rules! objects {
    ($($name:ident)*) => {
        $(#[repr(C)] pub struct $name { _private: [u8; 0] })*
    };
}

mod raw {
    objects! {
        Db Family Options BlockOptions Cache HyperClockOptions ReadOptions WriteOptions
        FlushOptions WaitOptions Iterator Slice LiveFiles
    }
}

/// The functions' table: their names without `rocksdb_`, their types as `c.h` declares them, and
/// which versions have the optional ones.
macro_rules! functions {
    (
        needed { $($name:ident: $type:ty;)* }
        optional { $($optional:ident: $optional_type:ty, $versions:literal;)* }
    ) => {
        #[allow(non_snake_case, reason = "the library's own names")]
        struct Functions {
            $($name: $type,)*
            $($optional: Option<$optional_type>,)*
        }

        impl Functions {
            fn find(library: &Loaded, path: &Path) -> Result<Self, EngineError> {
                Ok(Self {
                    $($name: {
                        let name = concat!("rocksdb_", stringify!($name));
                        // SAFETY: `c.h` declares a function of this name with this type in every
                        // version since 6.29.5, and a library that exports all of the table's names
                        // is RocksDB. It is never unloaded.
                        match unsafe { library.get::<$type>(name) } {
                            Ok(function) => *function,
                            Err(_) => return Err(EngineError::new(format!(
                                "{} is not a RocksDB that can be used: it lacks the C function \
                                {name}, which 6.29.5 and newer have; give a shared library that \
                                was built with RocksDB's C interface",
                                path.display()
                            ))),
                        }
                    },)*
                    $($optional: {
                        let name = concat!("rocksdb_", stringify!($optional));
                        // SAFETY: as above, for the versions that have it.
                        unsafe { library.get::<$optional_type>(name) }
                            .ok()
                            .map(|function| *function)
                    },)*
                })
            }
        }

        /// The optional functions and the versions that have them.
        const OPTIONAL: &[(&str, &str)] =
            &[$((concat!("rocksdb_", stringify!($optional)), $versions),)*];
    };
}

type Error = *mut *mut c_char;
type Bytes = *const c_char;

functions! {
    needed {
        free: unsafe extern "C" fn(*mut c_void);
        options_create: unsafe extern "C" fn() -> *mut raw::Options;
        options_destroy: unsafe extern "C" fn(*mut raw::Options);
        options_set_create_if_missing: unsafe extern "C" fn(*mut raw::Options, c_uchar);
        get_options_from_string: unsafe extern "C" fn(
            *const raw::Options, Bytes, *mut raw::Options, Error,
        );
        block_based_options_create: unsafe extern "C" fn() -> *mut raw::BlockOptions;
        block_based_options_destroy: unsafe extern "C" fn(*mut raw::BlockOptions);
        block_based_options_set_block_cache: unsafe extern "C" fn(
            *mut raw::BlockOptions, *mut raw::Cache,
        );
        options_set_block_based_table_factory: unsafe extern "C" fn(
            *mut raw::Options, *mut raw::BlockOptions,
        );
        cache_destroy: unsafe extern "C" fn(*mut raw::Cache);
        open_column_families: unsafe extern "C" fn(
            *const raw::Options, Bytes, c_int, *const Bytes, *const *const raw::Options,
            *mut *mut raw::Family, Error,
        ) -> *mut raw::Db;
        column_family_handle_destroy: unsafe extern "C" fn(*mut raw::Family);
        close: unsafe extern "C" fn(*mut raw::Db);
        put: unsafe extern "C" fn(
            *mut raw::Db, *const raw::WriteOptions, Bytes, usize, Bytes, usize, Error,
        );
        get_pinned: unsafe extern "C" fn(
            *mut raw::Db, *const raw::ReadOptions, Bytes, usize, Error,
        ) -> *mut raw::Slice;
        pinnableslice_value: unsafe extern "C" fn(*const raw::Slice, *mut usize) -> Bytes;
        pinnableslice_destroy: unsafe extern "C" fn(*mut raw::Slice);
        multi_get: unsafe extern "C" fn(
            *mut raw::Db, *const raw::ReadOptions, usize, *const Bytes, *const usize,
            *mut *mut c_char, *mut usize, *mut *mut c_char,
        );
        create_iterator: unsafe extern "C" fn(
            *mut raw::Db, *const raw::ReadOptions,
        ) -> *mut raw::Iterator;
        iter_destroy: unsafe extern "C" fn(*mut raw::Iterator);
        iter_valid: unsafe extern "C" fn(*const raw::Iterator) -> c_uchar;
        iter_seek_to_first: unsafe extern "C" fn(*mut raw::Iterator);
        iter_seek: unsafe extern "C" fn(*mut raw::Iterator, Bytes, usize);
        iter_next: unsafe extern "C" fn(*mut raw::Iterator);
        iter_prev: unsafe extern "C" fn(*mut raw::Iterator);
        iter_key: unsafe extern "C" fn(*const raw::Iterator, *mut usize) -> Bytes;
        iter_value: unsafe extern "C" fn(*const raw::Iterator, *mut usize) -> Bytes;
        iter_get_error: unsafe extern "C" fn(*const raw::Iterator, Error);
        readoptions_create: unsafe extern "C" fn() -> *mut raw::ReadOptions;
        readoptions_destroy: unsafe extern "C" fn(*mut raw::ReadOptions);
        readoptions_set_verify_checksums: unsafe extern "C" fn(*mut raw::ReadOptions, c_uchar);
        readoptions_set_fill_cache: unsafe extern "C" fn(*mut raw::ReadOptions, c_uchar);
        writeoptions_create: unsafe extern "C" fn() -> *mut raw::WriteOptions;
        writeoptions_destroy: unsafe extern "C" fn(*mut raw::WriteOptions);
        writeoptions_set_sync: unsafe extern "C" fn(*mut raw::WriteOptions, c_uchar);
        writeoptions_disable_WAL: unsafe extern "C" fn(*mut raw::WriteOptions, c_int);
        flushoptions_create: unsafe extern "C" fn() -> *mut raw::FlushOptions;
        flushoptions_destroy: unsafe extern "C" fn(*mut raw::FlushOptions);
        flush: unsafe extern "C" fn(*mut raw::Db, *const raw::FlushOptions, Error);
        property_value: unsafe extern "C" fn(*mut raw::Db, Bytes) -> *mut c_char;
        property_int: unsafe extern "C" fn(*mut raw::Db, Bytes, *mut u64) -> c_int;
        livefiles: unsafe extern "C" fn(*mut raw::Db) -> *const raw::LiveFiles;
        livefiles_count: unsafe extern "C" fn(*const raw::LiveFiles) -> c_int;
        livefiles_level: unsafe extern "C" fn(*const raw::LiveFiles, c_int) -> c_int;
        livefiles_size: unsafe extern "C" fn(*const raw::LiveFiles, c_int) -> usize;
        livefiles_destroy: unsafe extern "C" fn(*const raw::LiveFiles);
        set_perf_level: unsafe extern "C" fn(c_int);
        set_options: unsafe extern "C" fn(*mut raw::Db, c_int, *const Bytes, *const Bytes, Error);
    }
    optional {
        batched_multi_get_cf: unsafe extern "C" fn(
            *mut raw::Db, *const raw::ReadOptions, *mut raw::Family, usize, *const Bytes,
            *const usize, *mut *mut raw::Slice,
            *mut *mut c_char, bool,
        ), "7.8.3 and newer have it, 6.29.5 has not";
        hyper_clock_cache_options_create: unsafe extern "C" fn(
            usize, usize,
        ) -> *mut raw::HyperClockOptions,
            "8.9.1 and newer have it, 8.0.0 has not";
        hyper_clock_cache_options_destroy: unsafe extern "C" fn(*mut raw::HyperClockOptions),
            "8.9.1 and newer have it, 8.0.0 has not";
        hyper_clock_cache_options_set_num_shard_bits: unsafe extern "C" fn(
            *mut raw::HyperClockOptions, c_int,
        ),
            "8.9.1 and newer have it, 8.0.0 has not";
        cache_create_hyper_clock_opts: unsafe extern "C" fn(
            *const raw::HyperClockOptions,
        ) -> *mut raw::Cache,
            "8.9.1 and newer have it, 8.0.0 has not";
        wait_for_compact_options_create: unsafe extern "C" fn() -> *mut raw::WaitOptions, "8.9.1 \
            and newer have it, 8.0.0 has not";
        wait_for_compact_options_destroy: unsafe extern "C" fn(*mut raw::WaitOptions), "8.9.1 and \
            newer have it, 8.0.0 has not";
        wait_for_compact_options_set_timeout: unsafe extern "C" fn(*mut raw::WaitOptions, u64),
            "8.9.1 and newer have it, 8.0.0 has not";
        wait_for_compact: unsafe extern "C" fn(*mut raw::Db, *mut raw::WaitOptions, Error), "8.9.1 \
            and newer have it, 8.0.0 has not";
    }
}

/// The library of this process, or the one that could not be used: a second is refused.
static THE_ONE: Mutex<Option<(PathBuf, Option<&'static Library>)>> = Mutex::new(None);

/// A library's text that a call failed with: `IO error: No space left on device: ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status(pub String);

pub(super) struct Library {
    functions: Functions,
}

impl Library {
    /// Loads a library, or returns it when it is loaded already. `companions` is a folder with
    /// libraries that it needs and the machine may lack.
    pub(super) fn load(
        path: &Path,
        companions: Option<&Path>,
    ) -> Result<&'static Self, EngineError> {
        let path = path.canonicalize().map_err(|error| {
            EngineError::new(format!("read the library {}: {error}", path.display()))
        })?;
        let mut one = THE_ONE.lock().unwrap_or_else(PoisonError::into_inner);
        match &*one {
            Some((loaded, Some(library))) if *loaded == path => return Ok(library),
            Some((loaded, _)) => {
                return Err(EngineError::new(format!(
                    "load {}: this process has loaded {} already, and two versions of RocksDB \
                    disturb each other; use one process for each",
                    path.display(),
                    loaded.display()
                )));
            }
            None => {}
        }
        let loaded = open_with_companions(&path, companions)?;
        *one = Some((path.clone(), None));
        let functions = Functions::find(&loaded, &path);
        // Unloading would run C++ destructors under threads that are still there.
        std::mem::forget(loaded);
        let library: &'static Self = Box::leak(Box::new(Self {
            functions: functions?,
        }));
        *one = Some((path, Some(library)));
        Ok(library)
    }

    fn missing(&self, name: &str) -> EngineError {
        let versions = OPTIONAL
            .iter()
            .find(|(known, _)| *known == name)
            .map_or("", |(_, versions)| versions);
        EngineError::new(format!(
            "this RocksDB lacks the C function {name}: {versions}; take a newer build, or leave \
            out what needs it"
        ))
    }

    /// Takes over the text that a call left.
    fn status(&self, error: *mut c_char) -> Result<(), Status> {
        match self.text(error) {
            None => Ok(()),
            Some(text) => Err(Status(text)),
        }
    }

    /// Takes over a text that the library allocated.
    fn text(&self, text: *mut c_char) -> Option<String> {
        if text.is_null() {
            return None;
        }
        // SAFETY: not null, and the C interface says that it ends with a zero byte and is ours to
        // free with `rocksdb_free`.
        unsafe {
            let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.functions.free)(text.cast());
            Some(owned)
        }
    }
}

/// Loads a library. What the loader says it lacks is taken from the folder, if it is there, and
/// loaded first: the loader then finds it by its name.
fn open_with_companions(path: &Path, companions: Option<&Path>) -> Result<Loaded, EngineError> {
    let mut brought = Vec::new();
    loop {
        let error = match open(path) {
            Ok(loaded) => return Ok(loaded),
            // The loader's own words are the source of the error.
            Err(error) => std::error::Error::source(&error)
                .map_or_else(|| error.to_string(), ToString::to_string),
        };
        let companion = companions
            .zip(missing_library(&error))
            .map(|(folder, name)| folder.join(name));
        match companion.filter(|file| file.is_file() && !brought.contains(file)) {
            Some(file) => {
                std::mem::forget(open_with_companions(&file, companions)?);
                brought.push(file);
            }
            None => {
                let path = path.display();
                return Err(EngineError::new(format!(
                    "load {path}: {error}; try `ldd {path}`, and install what is missing"
                )));
            }
        }
    }
}

/// `libsnappy.so.1` of `libsnappy.so.1: cannot open shared object file: No such file or directory`.
fn missing_library(error: &str) -> Option<&str> {
    let (name, rest) = error.split_once(": ")?;
    (rest.starts_with("cannot open shared object file") && !name.contains('/')).then_some(name)
}

fn open(path: &Path) -> Result<Loaded, libloading::Error> {
    // SAFETY: loading runs the library's initialisers. The caller chose the file as a build of
    // RocksDB, whose initialisers need nothing of this process; a trial and a probe are processes
    // of their own, should one abort.
    unsafe { Loaded::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
}

fn c_text(text: &str) -> Result<CString, Status> {
    CString::new(text).map_err(|_| Status(format!("a text with a zero byte: {text:?}")))
}

/// An object of the library that is destroyed with its owner.
macro_rules! owned {
    ($(#[$meta:meta])* $name:ident, $raw:ty, $destroy:ident) => {
        $(#[$meta])*
        pub(super) struct $name {
            library: &'static Library,
            raw: NonNull<$raw>,
        }

        // SAFETY: these objects hold plain values and belong to no thread.
        unsafe impl Send for $name {}
        // SAFETY: what takes `&self` only reads them.
        unsafe impl Sync for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: made by the library, destroyed once.
                unsafe { (self.library.functions.$destroy)(self.raw.as_ptr()) }
            }
        }
    };
}

owned!(
    /// Options to open a database with.
    Options,
    raw::Options,
    options_destroy
);
owned!(ReadOptions, raw::ReadOptions, readoptions_destroy);
owned!(WriteOptions, raw::WriteOptions, writeoptions_destroy);
owned!(Cache, raw::Cache, cache_destroy);

/// What the library allocates it never answers with null: its `new` throws instead.
fn not_null<T>(raw: *mut T) -> NonNull<T> {
    NonNull::new(raw).expect("RocksDB makes every object it is asked for")
}

impl Options {
    /// The library's defaults; a database that is not there is made.
    pub(super) fn new(library: &'static Library) -> Self {
        // SAFETY: takes nothing.
        let raw = not_null(unsafe { (library.functions.options_create)() });
        // SAFETY: just made.
        unsafe { (library.functions.options_set_create_if_missing)(raw.as_ptr(), 1) };
        Self { library, raw }
    }

    /// Sets what an option string says, and leaves the rest as it is.
    pub(super) fn apply(&mut self, text: &str) -> Result<(), Status> {
        let text = c_text(text)?;
        let mut error = ptr::null_mut();
        // SAFETY: the text ends with a zero byte. The library reads the base completely before it
        // writes the result, so they may be one.
        unsafe {
            let raw = self.raw.as_ptr();
            (self.library.functions.get_options_from_string)(raw, text.as_ptr(), raw, &mut error);
        }
        self.library.status(error)
    }

    /// Block-based tables whose blocks are kept in this cache. Forgets what was set for tables
    /// before.
    pub(super) fn set_block_cache(&mut self, cache: &Cache) {
        let functions = &self.library.functions;
        // SAFETY: all three are the library's; it copies what it needs, and counts its references
        // to the cache.
        unsafe {
            let blocks = (functions.block_based_options_create)();
            (functions.block_based_options_set_block_cache)(blocks, cache.raw.as_ptr());
            (functions.options_set_block_based_table_factory)(self.raw.as_ptr(), blocks);
            (functions.block_based_options_destroy)(blocks);
        }
    }
}

impl Cache {
    /// A hyper clock cache for entries of about `entry_bytes`; 0 chooses the kind that adapts
    /// itself.
    pub(super) fn hyper_clock(
        library: &'static Library,
        capacity_bytes: usize,
        entry_bytes: usize,
        shard_bits: Option<c_int>,
    ) -> Result<Self, EngineError> {
        let functions = &library.functions;
        let (Some(create_options), Some(destroy_options), Some(set_bits), Some(create)) = (
            functions.hyper_clock_cache_options_create,
            functions.hyper_clock_cache_options_destroy,
            functions.hyper_clock_cache_options_set_num_shard_bits,
            functions.cache_create_hyper_clock_opts,
        ) else {
            return Err(library.missing("rocksdb_cache_create_hyper_clock_opts"));
        };
        // SAFETY: the options are made, used and destroyed here; the cache copies them.
        let raw = unsafe {
            let options = create_options(capacity_bytes, entry_bytes);
            if let Some(bits) = shard_bits {
                set_bits(options, bits);
            }
            let raw = create(options);
            destroy_options(options);
            raw
        };
        Ok(Self {
            library,
            raw: not_null(raw),
        })
    }
}

impl ReadOptions {
    /// Reads that keep blocks in the cache or do not.
    pub(super) fn new(
        library: &'static Library,
        verifies_checksums: bool,
        fills_cache: bool,
    ) -> Self {
        // SAFETY: takes nothing; then sets values of what was just made.
        let raw = unsafe {
            let raw = (library.functions.readoptions_create)();
            (library.functions.readoptions_set_verify_checksums)(
                raw,
                c_uchar::from(verifies_checksums),
            );
            (library.functions.readoptions_set_fill_cache)(raw, c_uchar::from(fills_cache));
            raw
        };
        Self {
            library,
            raw: not_null(raw),
        }
    }
}

impl WriteOptions {
    /// Writes with or without the log, waiting for the disk or not.
    pub(super) fn new(library: &'static Library, has_wal: bool, syncs: bool) -> Self {
        // SAFETY: takes nothing; then sets values of what was just made.
        let raw = unsafe {
            let raw = (library.functions.writeoptions_create)();
            (library.functions.writeoptions_disable_WAL)(raw, c_int::from(!has_wal));
            (library.functions.writeoptions_set_sync)(raw, c_uchar::from(syncs));
            raw
        };
        Self {
            library,
            raw: not_null(raw),
        }
    }
}

/// An open database with its default column family. Closed when dropped.
pub(super) struct Database {
    library: &'static Library,
    raw: NonNull<raw::Db>,
    family: NonNull<raw::Family>,
}

// SAFETY: RocksDB documents its database as usable from any threads at a time without a lock of
// theirs.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: iterators and values borrow the database, so none is left; the handle goes before
        // its database.
        unsafe {
            (self.library.functions.column_family_handle_destroy)(self.family.as_ptr());
            (self.library.functions.close)(self.raw.as_ptr());
        }
    }
}

impl Database {
    /// Opens or makes the database in a folder.
    pub(super) fn open(
        library: &'static Library,
        dir: &Path,
        options: &Options,
    ) -> Result<Self, Status> {
        let dir = CString::new(dir.as_os_str().as_bytes())
            .map_err(|_| Status("the folder's name has a zero byte".to_owned()))?;
        let names = [c"default".as_ptr()];
        let family_options = [options.raw.as_ptr().cast_const()];
        let (mut family, mut error) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: one name, one set of options and room for one handle, as the count says; texts
        // end with zero bytes; the options are copied.
        let raw = unsafe {
            (library.functions.open_column_families)(
                options.raw.as_ptr(),
                dir.as_ptr(),
                1,
                names.as_ptr(),
                family_options.as_ptr(),
                &mut family,
                &mut error,
            )
        };
        library.status(error)?;
        Ok(Self {
            library,
            raw: not_null(raw),
            family: not_null(family),
        })
    }

    /// The library's counters of the calling thread stay still, as in every thread of db_bench:
    /// nobody reads them here, and counting takes some percent of a get.
    pub(super) fn count_nothing_in_this_thread(&self) {
        const DISABLE: c_int = 1;
        // SAFETY: takes a number of RocksDB's PerfLevel, and sets a variable of the thread.
        unsafe { (self.library.functions.set_perf_level)(DISABLE) };
    }

    /// The library it was opened with.
    pub(super) fn library(&self) -> &'static Library {
        self.library
    }

    pub(super) fn put(
        &self,
        options: &WriteOptions,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Status> {
        let mut error = ptr::null_mut();
        // SAFETY: pointers with their lengths, read during the call alone.
        unsafe {
            (self.library.functions.put)(
                self.raw.as_ptr(),
                options.raw.as_ptr(),
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &mut error,
            );
        }
        self.library.status(error)
    }

    /// The length of a key's value, without a copy of it.
    pub(super) fn value_bytes(
        &self,
        options: &ReadOptions,
        key: &[u8],
    ) -> Result<Option<usize>, Status> {
        let mut error = ptr::null_mut();
        // SAFETY: pointer with its length, read during the call alone.
        let slice = unsafe {
            (self.library.functions.get_pinned)(
                self.raw.as_ptr(),
                options.raw.as_ptr(),
                key.as_ptr().cast(),
                key.len(),
                &mut error,
            )
        };
        self.library.status(error)?;
        Ok(self.take_slice(slice))
    }

    /// The length of a pinned value, which is given back.
    fn take_slice(&self, slice: *mut raw::Slice) -> Option<usize> {
        let slice = NonNull::new(slice)?;
        let mut bytes = 0;
        // SAFETY: made by the library, not null, given back once.
        unsafe {
            black_box((self.library.functions.pinnableslice_value)(
                slice.as_ptr(),
                &mut bytes,
            ));
            (self.library.functions.pinnableslice_destroy)(slice.as_ptr());
        }
        Some(bytes)
    }

    /// Looks up keys of `key_bytes` bytes each and hands the length of every value that is there to
    /// `found`. A failure of one key is that of all.
    pub(super) fn get_many(
        &self,
        options: &ReadOptions,
        keys: &[u8],
        key_bytes: usize,
        room: &mut ManyKeys,
        mut found: impl FnMut(usize),
    ) -> Result<(), Status> {
        let count = room.fill(keys, key_bytes);
        let functions = &self.library.functions;
        let mut outcome = Ok(());
        match functions.batched_multi_get_cf {
            Some(batched_multi_get_cf) => {
                // SAFETY: every list has `count` entries; keys are read during the call alone.
                unsafe {
                    batched_multi_get_cf(
                        self.raw.as_ptr(),
                        options.raw.as_ptr(),
                        self.family.as_ptr(),
                        count,
                        room.keys.as_ptr(),
                        room.key_bytes.as_ptr(),
                        room.slices.as_mut_ptr(),
                        room.errors.as_mut_ptr(),
                        false,
                    );
                }
                for index in 0..count {
                    outcome = outcome.and(self.library.status(room.errors[index]));
                    if let Some(bytes) = self.take_slice(room.slices[index]) {
                        found(bytes);
                    }
                }
            }
            None => {
                // SAFETY: as above; values and errors are the caller's to free.
                unsafe {
                    (functions.multi_get)(
                        self.raw.as_ptr(),
                        options.raw.as_ptr(),
                        count,
                        room.keys.as_ptr(),
                        room.key_bytes.as_ptr(),
                        room.values.as_mut_ptr(),
                        room.value_bytes.as_mut_ptr(),
                        room.errors.as_mut_ptr(),
                    );
                }
                for index in 0..count {
                    outcome = outcome.and(self.library.status(room.errors[index]));
                    if !room.values[index].is_null() {
                        found(room.value_bytes[index]);
                        // SAFETY: the call allocated it and left it to us.
                        unsafe { (functions.free)(room.values[index].cast()) };
                    }
                }
            }
        }
        outcome
    }

    /// An iterator, at no key yet.
    pub(super) fn iterator<'a>(&'a self, options: &'a ReadOptions) -> Cursor<'a> {
        // SAFETY: the iterator borrows both, which the library may keep reading.
        let raw = unsafe {
            (self.library.functions.create_iterator)(self.raw.as_ptr(), options.raw.as_ptr())
        };
        Cursor {
            library: self.library,
            raw: not_null(raw),
            lives: PhantomData,
        }
    }

    /// Writes the memtable and waits for it.
    pub(super) fn flush(&self) -> Result<(), Status> {
        let functions = &self.library.functions;
        let mut error = ptr::null_mut();
        // SAFETY: made, used and destroyed here.
        unsafe {
            let options = (functions.flushoptions_create)();
            (functions.flush)(self.raw.as_ptr(), options, &mut error);
            (functions.flushoptions_destroy)(options);
        }
        self.library.status(error)
    }

    /// A property's text, where this version has the property.
    pub(super) fn property(&self, name: &str) -> Option<String> {
        let name = c_text(name).ok()?;
        // SAFETY: the name ends with a zero byte.
        let text =
            unsafe { (self.library.functions.property_value)(self.raw.as_ptr(), name.as_ptr()) };
        self.library.text(text)
    }

    /// A property's number, where this version has the property.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let name = c_text(name).ok()?;
        let mut number = 0;
        // SAFETY: the name ends with a zero byte, and there is room for the number.
        let status = unsafe {
            (self.library.functions.property_int)(self.raw.as_ptr(), name.as_ptr(), &mut number)
        };
        (status == 0).then_some(number)
    }

    /// Level and bytes of each table file.
    pub(super) fn table_files(&self) -> Vec<(u32, u64)> {
        let functions = &self.library.functions;
        // SAFETY: made, used within its count and destroyed here.
        unsafe {
            let files = (functions.livefiles)(self.raw.as_ptr());
            let of = |index| {
                let level = (functions.livefiles_level)(files, index);
                (
                    u32::try_from(level).unwrap_or(0),
                    (functions.livefiles_size)(files, index) as u64,
                )
            };
            let found = (0..(functions.livefiles_count)(files)).map(of).collect();
            (functions.livefiles_destroy)(files);
            found
        }
    }

    /// Changes an option of the running database.
    pub(super) fn set_option(&self, name: &str, value: &str) -> Result<(), Status> {
        let (name, value) = (c_text(name)?, c_text(value)?);
        let mut error = ptr::null_mut();
        // SAFETY: one name and one value, as the count says, both ending with a zero byte.
        unsafe {
            (self.library.functions.set_options)(
                self.raw.as_ptr(),
                1,
                [name.as_ptr()].as_ptr(),
                [value.as_ptr()].as_ptr(),
                &mut error,
            );
        }
        self.library.status(error)
    }

    /// Waits until no flush and no compaction is running or due, at most this long. `None` where
    /// the library has no such function.
    pub(super) fn wait_for_compaction(&self, at_most: Duration) -> Option<Result<(), Status>> {
        let functions = &self.library.functions;
        let create = functions.wait_for_compact_options_create?;
        let destroy = functions.wait_for_compact_options_destroy?;
        let set_timeout = functions.wait_for_compact_options_set_timeout?;
        let wait = functions.wait_for_compact?;
        // 0 would be for ever.
        let timeout_us = u64::try_from(at_most.as_micros())
            .unwrap_or(u64::MAX)
            .max(1);
        let mut error = ptr::null_mut();
        // SAFETY: made, used and destroyed here.
        unsafe {
            let options = create();
            set_timeout(options, timeout_us);
            wait(self.raw.as_ptr(), options, &mut error);
            destroy(options);
        }
        Some(self.library.status(error))
    }
}

/// The lists that a look-up of many keys needs, kept between look-ups.
#[derive(Default)]
pub(super) struct ManyKeys {
    keys: Vec<Bytes>,
    key_bytes: Vec<usize>,
    slices: Vec<*mut raw::Slice>,
    values: Vec<*mut c_char>,
    value_bytes: Vec<usize>,
    errors: Vec<*mut c_char>,
}

// SAFETY: its pointers mean something during one look-up alone.
unsafe impl Send for ManyKeys {}

impl ManyKeys {
    /// Points to each key and clears the room for as many answers; says how many keys there are.
    fn fill(&mut self, keys: &[u8], key_bytes: usize) -> usize {
        let parts = keys.chunks_exact(key_bytes.max(1));
        let count = parts.len();
        self.keys.clear();
        self.keys.extend(parts.map(|key| key.as_ptr().cast()));
        for list in [&mut self.key_bytes, &mut self.value_bytes] {
            list.clear();
        }
        self.key_bytes.resize(count, key_bytes);
        self.value_bytes.resize(count, 0);
        self.slices.clear();
        self.slices.resize(count, ptr::null_mut());
        for list in [&mut self.values, &mut self.errors] {
            list.clear();
            list.resize(count, ptr::null_mut());
        }
        count
    }
}

/// An iterator over a database.
pub(super) struct Cursor<'a> {
    library: &'static Library,
    raw: NonNull<raw::Iterator>,
    lives: PhantomData<&'a Database>,
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: made by the library, destroyed once.
        unsafe { (self.library.functions.iter_destroy)(self.raw.as_ptr()) }
    }
}

impl Cursor<'_> {
    pub(super) fn seek_to_first(&mut self) {
        // SAFETY: a live iterator.
        unsafe { (self.library.functions.iter_seek_to_first)(self.raw.as_ptr()) }
    }

    /// Goes to the key, or the next one that is there.
    pub(super) fn seek(&mut self, key: &[u8]) {
        // SAFETY: a live iterator; pointer with its length, read during the call alone.
        unsafe {
            (self.library.functions.iter_seek)(self.raw.as_ptr(), key.as_ptr().cast(), key.len())
        }
    }

    /// Goes to the next key. Only from a key.
    pub(super) fn next(&mut self) {
        if self.is_at_key() {
            // SAFETY: a live iterator at a key, as the library demands.
            unsafe { (self.library.functions.iter_next)(self.raw.as_ptr()) }
        }
    }

    /// Goes to the key before. Only from a key.
    pub(super) fn previous(&mut self) {
        if self.is_at_key() {
            // SAFETY: a live iterator at a key, as the library demands.
            unsafe { (self.library.functions.iter_prev)(self.raw.as_ptr()) }
        }
    }

    /// Whether it is at a key.
    fn is_at_key(&self) -> bool {
        // SAFETY: a live iterator.
        unsafe { (self.library.functions.iter_valid)(self.raw.as_ptr()) != 0 }
    }

    /// Key and value where it is; nothing when it has left the database or failed.
    pub(super) fn row(&self) -> Option<(&[u8], &[u8])> {
        if !self.is_at_key() {
            return None;
        }
        let functions = &self.library.functions;
        let (mut key_bytes, mut value_bytes) = (0, 0);
        // SAFETY: at a key. Both stay where they are until the iterator moves, which needs it
        // mutably, so not while they are borrowed.
        unsafe {
            let key = (functions.iter_key)(self.raw.as_ptr(), &mut key_bytes);
            let value = (functions.iter_value)(self.raw.as_ptr(), &mut value_bytes);
            Some((bytes(key, key_bytes), bytes(value, value_bytes)))
        }
    }

    /// What stopped it, if it was not the end.
    pub(super) fn status(&self) -> Result<(), Status> {
        let mut error = ptr::null_mut();
        // SAFETY: a live iterator.
        unsafe { (self.library.functions.iter_get_error)(self.raw.as_ptr(), &mut error) };
        self.library.status(error)
    }
}

/// The bytes at a place of the library's; of nothing no bytes.
///
/// # Safety
/// There are `count` bytes at `start`, and they stay for `'a`.
unsafe fn bytes<'a>(start: Bytes, count: usize) -> &'a [u8] {
    if start.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start.cast(), count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loader_lacks_is_named_in_its_error() {
        for (error, missing) in [
            (
                "libsnappy.so.1: cannot open shared object file: No such file or directory",
                Some("libsnappy.so.1"),
            ),
            (
                "/x/librocksdb.so: cannot open shared object file: No such file or directory",
                None,
            ),
            ("/x/librocksdb.so: undefined symbol: foo", None),
            ("nothing", None),
        ] {
            assert_eq!(missing_library(error), missing);
        }
    }

    #[test]
    fn the_c_library_is_no_rocksdb() {
        let path = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
        if !path.exists() {
            return plimsoll_testkit::skip(
                "engine::the_c_library_is_no_rocksdb",
                "no C library of x86-64",
            );
        }
        let error = Library::load(path, None).err().unwrap().message;
        assert!(
            error.contains(
                "is not a RocksDB that can be used: it lacks the C function rocksdb_free"
            ),
            "{error}"
        );
    }
}
