//! What the URL of an etcd says: how to reach it, and under which keys the data lies.

use bytes::Bytes;
use model::Address;
use std::time::Duration;

use super::call_failure::CallFailure;
use super::connection::{Connection, Token};
use super::messages::AuthenticateRequest;
use crate::remote::{Access as CommonAccess, options};
use crate::wire::Secret;
use crate::{OptionInfo, StoreError, StoreOptions, StoreUrl, TlsFiles};

pub(super) const OPTIONS: &[OptionInfo] = &options::<2, 12>([
    OptionInfo::new("prefix", "kvmeter/", "all keys lie below it, and only those are ever deleted"),
    OptionInfo::new("reads", "linearizable", "or `serializable`: of one member, perhaps old"),
]);

const READS: &[(&str, bool)] = &[("linearizable", false), ("serializable", true)];
const DEFAULT_PREFIX: &str = "kvmeter/";

/// The URL, read.
#[derive(Debug)]
pub(super) struct Access {
    /// Before each key of a record.
    pub(super) data: Bytes,
    /// The key under which the dataset's name lies.
    pub(super) marker: Bytes,
    pub(super) serializable: bool,
    pub(super) timeout: Duration,
    pub(super) tls: Option<TlsFiles>,
    pub(super) login: Option<(String, Secret)>,
    /// The options in force; no secret is among them.
    pub(super) options: Vec<(String, String)>,
}

impl Access {
    pub(super) fn read(url: &StoreUrl) -> Result<Access, StoreError> {
        let given = StoreOptions::new(url, OPTIONS)?;
        let prefix = given.text("prefix").unwrap_or(DEFAULT_PREFIX);
        let serializable = given.choice("reads", READS)?.unwrap_or(false);
        let CommonAccess { tls, user, password, timeout, options: common } =
            CommonAccess::read(&given)?;
        let login = match (user, password) {
            (Some(user), Some(password)) => Some((user, password)),
            (None, Some(_)) => {
                let words = "etcd has no login without a user; add `user`";
                return Err(StoreError::Request(words.to_owned()));
            }
            _ => None,
        };
        let reads = if serializable { "serializable" } else { "linearizable" };
        let own = [("prefix", prefix), ("reads", reads)];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Access {
            data: Bytes::from(format!("{prefix}data/")),
            marker: Bytes::from(format!("{prefix}dataset")),
            serializable,
            timeout,
            tls,
            login,
            options: own.into_iter().chain(common).collect(),
        })
    }

    /// The whole key of a record.
    #[inline]
    pub(super) fn key(&self, key: &[u8]) -> Bytes {
        let mut whole = Vec::with_capacity(self.data.len() + key.len());
        whole.extend_from_slice(&self.data);
        whole.extend_from_slice(key);
        Bytes::from(whole)
    }

    /// The first key behind those of all records.
    pub(super) fn data_end(&self) -> Bytes {
        let mut end = self.data.to_vec();
        // The last byte is a slash, which has a successor.
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        Bytes::from(end)
    }

    /// Logs in where the URL has a login.
    pub(super) async fn log_in(
        &self,
        address: &Address,
        connection: &mut Connection,
    ) -> Result<Option<Token>, StoreError> {
        let Some((user, password)) = &self.login else { return Ok(None) };
        let request =
            AuthenticateRequest { name: user.clone(), password: password.expose().to_owned() };
        let answer = connection.call(request, None).await;
        let answer = answer.map_err(|status| match CallFailure::of(address, &status) {
            CallFailure::Final(error) => error,
            CallFailure::Retryable { words, .. } => StoreError::Failed(words),
            CallFailure::TokenExpired => StoreError::Failed(format!("{address}: no login")),
        })?;
        let mut token: Token = answer
            .token
            .parse()
            .map_err(|_| StoreError::Failed(format!("{address}: its token cannot be sent")))?;
        token.set_sensitive(true);
        Ok(Some(token))
    }
}
