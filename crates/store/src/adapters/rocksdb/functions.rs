//! The functions of RocksDB's C interface (`rocksdb/c.h`) that the adapter calls, by their own
//! names: found in a shared library, or linked in.

use std::ffi::{c_char, c_int, c_uchar, c_void};

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )*};
}

opaque! {
    /// `rocksdb_t`
    Db;
    /// `rocksdb_column_family_handle_t`
    ColumnFamily;
    /// `rocksdb_options_t`
    Options;
    /// `rocksdb_block_based_table_options_t`
    TableOptions;
    /// `rocksdb_cache_t`
    Cache;
    /// `rocksdb_readoptions_t`
    ReadOptions;
    /// `rocksdb_writeoptions_t`
    WriteOptions;
    /// `rocksdb_flushoptions_t`
    FlushOptions;
    /// `rocksdb_iterator_t`
    Iterator;
    /// `rocksdb_pinnableslice_t`
    PinnableSlice;
}

/// An error text of a function, to be freed with `rocksdb_free`.
type ErrorPtr = *mut *mut c_char;
type Text = *const c_char;

/// `rocksdb_batched_multi_get_cf`
pub type BatchedMultiGet = unsafe extern "C" fn(
    *mut Db,
    *const ReadOptions,
    *mut ColumnFamily,
    usize,
    *const Text,
    *const usize,
    *mut *mut PinnableSlice,
    *mut *mut c_char,
    bool,
);

/// Defines [`Functions`] and its two constructors from lines as in the header.
macro_rules! functions {
    (
        required { $($name:ident: fn($($arg:ty),*) $(-> $answer:ty)?;)* }
        optional { $($opt:ident: fn($($opt_arg:ty),*) $(-> $opt_answer:ty)?;)* }
    ) => {
        /// The functions of one library.
        #[allow(non_snake_case)]
        #[derive(Clone, Copy)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $answer)?,)*
            $(pub $opt: Option<unsafe extern "C" fn($($opt_arg),*) $(-> $opt_answer)?>,)*
        }

        impl Functions {
            /// The functions of a library, by the symbols that `find` returns.
            ///
            /// # Errors
            /// The name of the first required function that the library lacks.
            ///
            /// # Safety
            /// A symbol that `find` answers for a name is the function of that name in RocksDB's
            /// C interface, and stays loaded for as long as the process runs.
            #[allow(unsafe_code)]
            pub unsafe fn from_symbols(
                find: impl Fn(&'static str) -> Option<*mut c_void>,
            ) -> Result<Functions, &'static str> {
                Ok(Functions {
                    $($name: {
                        let symbol = find(stringify!($name)).ok_or(stringify!($name))?;
                        // SAFETY: the caller answers for it that this is that function; a
                        // function's address is as wide as a pointer on every Unix.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($arg),*) $(-> $answer)?,
                            >(symbol)
                        }
                    },)*
                    $($opt: find(stringify!($opt)).map(|symbol| {
                        // SAFETY: as above.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($opt_arg),*) $(-> $opt_answer)?,
                            >(symbol)
                        }
                    }),)*
                })
            }

            /// The linked functions.
            #[cfg(feature = "rocksdb-bundled")]
            pub fn linked() -> Functions {
                use librocksdb_sys as _;

                #[allow(unsafe_code)]
                // SAFETY: declared as in the `rocksdb/c.h` of the version that is linked.
                unsafe extern "C" {
                    $(fn $name($(_: $arg),*) $(-> $answer)?;)*
                    $(fn $opt($(_: $opt_arg),*) $(-> $opt_answer)?;)*
                }
                Functions { $($name,)* $($opt: Some($opt),)* }
            }
        }
    };
}

functions! {
    required {
        rocksdb_open_column_families: fn(
            *const Options, Text, c_int, *const Text, *const *const Options, *mut *mut ColumnFamily,
            ErrorPtr
        ) -> *mut Db;
        rocksdb_column_family_handle_destroy: fn(*mut ColumnFamily);
        rocksdb_close: fn(*mut Db);
        rocksdb_put: fn(*mut Db, *const WriteOptions, Text, usize, Text, usize, ErrorPtr);
        rocksdb_delete: fn(*mut Db, *const WriteOptions, Text, usize, ErrorPtr);
        rocksdb_get_pinned: fn(*mut Db, *const ReadOptions, Text, usize, ErrorPtr) -> *mut PinnableSlice;
        rocksdb_pinnableslice_value: fn(*const PinnableSlice, *mut usize) -> Text;
        rocksdb_pinnableslice_destroy: fn(*mut PinnableSlice);
        rocksdb_create_iterator: fn(*mut Db, *const ReadOptions) -> *mut Iterator;
        rocksdb_iter_seek: fn(*mut Iterator, Text, usize);
        rocksdb_iter_next: fn(*mut Iterator);
        rocksdb_iter_valid: fn(*const Iterator) -> c_uchar;
        rocksdb_iter_key: fn(*const Iterator, *mut usize) -> Text;
        rocksdb_iter_value: fn(*const Iterator, *mut usize) -> Text;
        rocksdb_iter_get_error: fn(*const Iterator, ErrorPtr);
        rocksdb_iter_destroy: fn(*mut Iterator);
        rocksdb_flush: fn(*mut Db, *const FlushOptions, ErrorPtr);
        rocksdb_set_options: fn(*mut Db, c_int, *const Text, *const Text, ErrorPtr);
        rocksdb_property_int: fn(*mut Db, Text, *mut u64) -> c_int;
        rocksdb_property_value: fn(*mut Db, Text) -> *mut c_char;
        rocksdb_options_create: fn() -> *mut Options;
        rocksdb_options_destroy: fn(*mut Options);
        rocksdb_options_set_create_if_missing: fn(*mut Options, c_uchar);
        rocksdb_options_set_block_based_table_factory: fn(*mut Options, *mut TableOptions);
        rocksdb_options_enable_statistics: fn(*mut Options);
        rocksdb_options_statistics_get_string: fn(*mut Options) -> *mut c_char;
        rocksdb_get_options_from_string: fn(*const Options, Text, *mut Options, ErrorPtr);
        rocksdb_block_based_options_create: fn() -> *mut TableOptions;
        rocksdb_block_based_options_destroy: fn(*mut TableOptions);
        rocksdb_block_based_options_set_block_cache: fn(*mut TableOptions, *mut Cache);
        rocksdb_cache_create_lru: fn(usize) -> *mut Cache;
        rocksdb_cache_destroy: fn(*mut Cache);
        rocksdb_readoptions_create: fn() -> *mut ReadOptions;
        rocksdb_readoptions_destroy: fn(*mut ReadOptions);
        rocksdb_writeoptions_create: fn() -> *mut WriteOptions;
        rocksdb_writeoptions_destroy: fn(*mut WriteOptions);
        rocksdb_writeoptions_disable_WAL: fn(*mut WriteOptions, c_int);
        rocksdb_writeoptions_set_sync: fn(*mut WriteOptions, c_uchar);
        rocksdb_flushoptions_create: fn() -> *mut FlushOptions;
        rocksdb_flushoptions_destroy: fn(*mut FlushOptions);
        rocksdb_flushoptions_set_wait: fn(*mut FlushOptions, c_uchar);
        rocksdb_free: fn(*mut c_void);
    }
    optional {
        // Not before 7.0.
        rocksdb_batched_multi_get_cf: fn(
            *mut Db, *const ReadOptions, *mut ColumnFamily, usize, *const Text, *const usize,
            *mut *mut PinnableSlice, *mut *mut c_char, bool
        );
        // Not in 7.8.
        rocksdb_iter_refresh: fn(*const Iterator, ErrorPtr);
        rocksdb_cache_create_hyper_clock: fn(usize, usize) -> *mut Cache;
        rocksdb_options_set_statistics_level: fn(*mut Options, c_int);
    }
}
