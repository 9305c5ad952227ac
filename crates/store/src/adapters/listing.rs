//! The macro behind the list of stores.

/// Makes `ADAPTERS` and `open` of lines `"scheme": type, "what it is";`, with the scheme
/// followed by `if "feature"` where a feature of the crate builds it in, and by `at` and the usual
/// port where the store without it would be servers.
macro_rules! adapters {
    (
        embedded {
            $($scheme:literal $(if $feature:literal $(at $port:literal)?)?: $store:ty, $what:literal;)*
        }
        networked { $($net_scheme:literal: $family:ty, $net_what:literal;)* }
    ) => {
        /// Every store that kvmeter knows, built in or not.
        pub static ADAPTERS: &[Adapter] = &[
            $(
                #[cfg(all($(feature = $feature)?))]
                Adapter::built_in::<$store>($scheme, $what),
                $(
                    #[cfg(not(feature = $feature))]
                    Adapter::not_built_in($scheme, $what, $feature, &[$($port)?]),
                )?
            )*
            $(Adapter::networked::<$family>($net_scheme, $net_what),)*
        ];

        /// Opens the store that the URL names and hands it to the visitor, whose code is compiled
        /// for each embedded store: the choice is made here, once. A networked store is not
        /// opened but connected to, see [`StoreUrl::remote`].
        ///
        /// A store that lives in a directory must have been claimed with
        /// [`Directory::claim`](crate::Directory::claim) before.
        pub fn open<V: StoreVisitor>(url: &StoreUrl, visitor: V) -> Result<V::Output, StoreError> {
            match url.scheme.as_str() {
                $(
                    #[cfg(all($(feature = $feature)?))]
                    $scheme => Ok(visitor.visit(<$store as Store>::open(url)?)),
                )*
                _ => Err(match url.check() {
                    Err(error) => error,
                    Ok(()) => StoreError::Failed(format!("`{}` cannot be opened", url.scheme)),
                }),
            }
        }
    };
}
