use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use model::Address;
use model::suggest::hint;
use model::tilde::unexpanded;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::adapters::{ADAPTERS, Adapter, DataLocation};
use crate::{
    Directory, LongestValue, MachineResource, Remote, StoreDescription, StoreError, StoreOptions,
    foreign_url,
};

/// Which store, where, and how it is set: `scheme:PATH?option=value&option=value`,
/// `scheme://HOST:PORT,HOST:PORT?option=value` for servers, or `null`.
///
/// There is no escaping: a path holds no `?`, a value no `&`. It is displayed, parsed and
/// serialised as that text. Reading it checks the scheme and the names of the options;
/// [`StoreUrl::check`] checks their values too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreUrl {
    pub scheme: String,
    /// The store's directory; empty for one that has none.
    pub path: PathBuf,
    /// Where the servers of a networked store listen; empty for an embedded one.
    pub servers: Vec<Address>,
    pub options: Vec<(String, String)>,
}

impl StoreUrl {
    /// The adapter that the scheme names, built in or not.
    pub fn adapter(&self) -> Result<&'static Adapter, StoreError> {
        ADAPTERS.iter().find(|adapter| adapter.scheme == self.scheme).ok_or_else(|| {
            let hint = hint(&self.scheme, ADAPTERS.iter().map(|adapter| adapter.scheme));
            StoreError::Request(format!("there is no store `{}`; {hint}", self.scheme))
        })
    }

    /// Reads every option as the adapter would, with the files that options name, and opens
    /// nothing. A store that was not built in is refused, with what to do about it.
    pub fn check(&self) -> Result<(), StoreError> {
        self.adapter()?.check(self)
    }

    /// The networked store that this is, read with the files and environment variables that its
    /// options name and not yet connected to; None for an embedded one.
    pub fn remote(&self) -> Result<Option<Remote>, StoreError> {
        self.adapter()?.remote(self)
    }

    /// The option that holds a plug-in's library, which stands before the others in a URL.
    pub const LIBRARY: &str = "library";

    /// The option that holds the directory where the URL's location is a library.
    const PATH: &str = "path";

    /// What is known of the store before it is opened. A plug-in is loaded for it.
    pub fn describe(&self) -> Result<StoreDescription, StoreError> {
        self.adapter()?.describe(self)
    }

    /// Whether its load is many requests at once on connections that threads share.
    pub fn multiplexes(&self) -> bool {
        self.adapter().is_ok_and(Adapter::multiplexes)
    }

    /// Whether it has a directory, as far as the URL says.
    pub fn has_directory(&self) -> bool {
        !self.path.as_os_str().is_empty()
    }

    /// The options that name resources of the machine on which this is read.
    pub fn local(&self) -> Result<Vec<(&str, MachineResource, &str)>, StoreError> {
        let known = self.adapter()?.options;
        let named = self.options.iter().filter_map(|(name, value)| {
            let option = known.iter().find(|option| option.name == name)?;
            Some((name.as_str(), option.names?, value.as_str()))
        });
        Ok(named.collect())
    }

    /// The longest value that the store takes with these options, where that is known before it
    /// is opened.
    pub fn longest_value(&self) -> Result<Option<LongestValue>, StoreError> {
        self.adapter()?.longest_value(self)
    }

    /// The folder of the store's own files, next to kvmeter's marker.
    pub fn data_path(&self) -> PathBuf {
        self.path.join(Directory::DATA)
    }

    /// The same store and options in another directory.
    pub fn at(&self, path: &Path) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }
}

impl FromStr for StoreUrl {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        foreign_url::refuse_secrets(text)?;
        let read = foreign_url::normalised(text).and_then(|ours| Self::read(&ours));
        read.map_err(|error| foreign_url::redacted(text, error))
    }
}

impl StoreUrl {
    fn read(text: &str) -> Result<Self, StoreError> {
        let (location, options) = match text.split_once('?') {
            Some((location, options)) => (location, Some(options)),
            None => (text, None),
        };
        let (scheme, location) = location.split_once(':').unwrap_or((location, ""));
        let mut url = Self {
            scheme: scheme.to_owned(),
            path: PathBuf::new(),
            servers: Vec::new(),
            options: Vec::new(),
        };
        let adapter = url.adapter()?;
        let wrong = |why: String| StoreError::Request(format!("`{text}`: {why}"));
        match (adapter.location, location) {
            (DataLocation::Nowhere, "") => {}
            (DataLocation::Nowhere, _) => {
                return Err(wrong(format!("`{scheme}` stores nothing and takes no path")));
            }
            (DataLocation::Directory, "") => {
                return Err(wrong(format!("the path is missing; write `{scheme}:PATH`")));
            }
            (DataLocation::Directory, path)
                if path.starts_with("//") && !path.starts_with("///") =>
            {
                let path = &path[1..];
                return Err(wrong(format!("one slash begins a path; write `{scheme}:{path}`")));
            }
            (DataLocation::Directory, path) => match unexpanded(path) {
                Some(why) => return Err(StoreError::Request(why)),
                None => url.path = path.into(),
            },
            (DataLocation::Library, "") => {
                return Err(wrong(format!("the library is missing; write `{scheme}:LIB.so`")));
            }
            (DataLocation::Library, library) => match unexpanded(library) {
                Some(why) => return Err(wrong(why)),
                None => url.options.push((Self::LIBRARY.to_owned(), library.to_owned())),
            },
            (DataLocation::Servers { default_port }, location) => {
                let servers = location.strip_prefix("//").filter(|servers| !servers.is_empty());
                let Some(servers) = servers else {
                    return Err(wrong(format!(
                        "the server is missing; write `{scheme}://HOST:PORT` or \
                         `{scheme}:///PATH/OF/SOCKET`"
                    )));
                };
                for server in servers.split(',') {
                    let address = Address::parse(server, default_port)
                        .map_err(|error| wrong(error.to_string()))?;
                    if url.servers.contains(&address) {
                        return Err(wrong(format!("`{address}` is given twice")));
                    }
                    url.servers.push(address);
                }
            }
        }
        for option in options.into_iter().flat_map(|options| options.split('&')) {
            let Some((name, value)) = option.split_once('=') else {
                return Err(wrong(format!("`{option}` is not `option=value`")));
            };
            if name.is_empty() || value.is_empty() {
                return Err(wrong(format!("`{option}` lacks its name or its value")));
            }
            if let Some(why) = unexpanded(value) {
                return Err(StoreError::Request(format!("`{name}` of `{scheme}`: {why}")));
            }
            match (adapter.location, name) {
                (DataLocation::Library, Self::PATH) => url.path = value.into(),
                _ => url.options.push((name.to_owned(), value.to_owned())),
            }
        }
        // A plug-in's options are known when it is loaded, see [`StoreUrl::check`].
        if adapter.is_built_in() && adapter.location != DataLocation::Library {
            StoreOptions::new(&url, adapter.options)?;
        }
        Ok(url)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        let path = self.path.display().to_string();
        let mut options: Vec<(&str, &str)> =
            self.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        if self.adapter().is_ok_and(|adapter| adapter.location == DataLocation::Library) {
            if let Some(at) = options.iter().position(|(name, _)| *name == Self::LIBRARY) {
                write!(f, ":{}", options.remove(at).1)?;
            }
            if self.has_directory() {
                options.insert(0, (Self::PATH, &path));
            }
        } else if self.has_directory() {
            write!(f, ":{path}")?;
        }
        for (at, server) in self.servers.iter().enumerate() {
            write!(f, "{}{server}", if at == 0 { "://" } else { "," })?;
        }
        for (at, (name, value)) in options.into_iter().enumerate() {
            write!(f, "{}{name}={value}", if at == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StoreUrl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<StoreUrl>().unwrap_err().to_string()
    }

    #[test]
    fn null_takes_no_path() {
        let url: StoreUrl = "null".parse().unwrap();
        assert_eq!((url.scheme.as_str(), url.path.as_os_str().len()), ("null", 0));
        assert_eq!(url.to_string(), "null");
        assert!(refused("null:/tmp/x").contains("takes no path"));
        assert!(refused("null?cache=1").contains("takes no options"));
    }

    #[test]
    fn a_plug_in_stands_where_others_have_their_path() {
        let url: StoreUrl = "plugin:./lib.so?cache=1&path=/d".parse().unwrap();
        assert_eq!((url.path.as_path(), url.has_directory()), (Path::new("/d"), true));
        assert_eq!(url.to_string(), "plugin:./lib.so?path=/d&cache=1");
        assert_eq!(url.to_string().parse::<StoreUrl>().unwrap(), url);
        assert_eq!("plugin:x".parse::<StoreUrl>().unwrap().to_string(), "plugin:x");
        assert!(refused("plugin").contains("write `plugin:LIB.so`"));
        assert!(refused("plugin:~/x.so").contains("$HOME/x.so"));
    }

    #[test]
    fn errors_suggest_a_correction() {
        assert_eq!(
            refused("rokcsdb:/tmp/x"),
            "there is no store `rokcsdb`; did you mean `rocksdb`?"
        );
        assert!(refused("/tmp/x").contains("known: null, spill, rocksdb"), "{}", refused("/tmp/x"));
        assert!(refused("lmdb").contains("write `lmdb:PATH`"));
        assert!(refused("lmdb:").contains("write `lmdb:PATH`"));
        assert!(refused("fjall:?cache=1MiB").contains("write `fjall:PATH`"));
        assert!(refused("fjall://data/x").contains("write `fjall:/data/x`"));
        assert!(refused("lmdb:~/db").contains("write `$HOME/db`"));
        assert!(refused("fjall:x?").contains("`` is not `option=value`"));
        assert!(refused("fjall:x?cache").contains("`cache` is not `option=value`"));
        assert!(refused("fjall:x?cache=").contains("lacks its name or its value"));
    }

    #[test]
    fn options_are_checked_when_parsed() {
        assert!(refused("rocksdb:x?cahce=1GiB").contains("did you mean `cache`?"));
        let url: StoreUrl = "rocksdb:x?cache=much".parse().unwrap();
        assert!(url.check().unwrap_err().to_string().contains("a size in bytes"));
        let url: StoreUrl = "rocksdb:x/y?cache=1GiB&wal=off".parse().unwrap();
        assert_eq!(url.path, Path::new("x/y"));
        assert_eq!(url.data_path(), Path::new("x/y/data"));
        assert_eq!(url.options[1], ("wal".to_owned(), "off".to_owned()));
    }

    #[test]
    fn servers_are_addresses() {
        let url: StoreUrl = "memcached://a,[::1]:1,/run/mc.sock?protocol=text".parse().unwrap();
        assert_eq!(url.to_string(), "memcached://a:11211,[::1]:1,/run/mc.sock?protocol=text");
        assert_eq!(url.servers.len(), 3);
        let url: StoreUrl = "redis://a".parse().unwrap();
        assert_eq!(url.to_string(), "redis://a:6379");
        assert!(refused("memcached").contains("write `memcached://HOST:PORT`"));
        assert!(refused("memcached:a:1").contains("write `memcached://HOST:PORT`"));
        assert!(refused("memcached://a:x").contains("a port is a number"));
        assert!(refused("memcached://a,a").contains("given twice"));
        assert!(refused("memcached://a?protocl=text").contains("did you mean `protocol`?"));
    }

    #[test]
    fn files_hold_the_text() {
        let url: StoreUrl = serde_json::from_str("\"lmdb:/a b/c\"").unwrap();
        assert_eq!(serde_json::to_string(&url).unwrap(), "\"lmdb:/a b/c\"");
        assert!(serde_json::from_str::<StoreUrl>("\"lmdv:/a\"").is_err());
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(path in "[a-zA-Z0-9_./ :=&-]{1,30}") {
            prop_assume!(!path.starts_with("//"));
            let text = format!("lmdb:{path}");
            let url: StoreUrl = text.parse().unwrap();
            prop_assert_eq!(url.to_string().parse::<StoreUrl>().unwrap(), url.clone());
            prop_assert_eq!(url.to_string(), text);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<StoreUrl>();
        }
    }
}
