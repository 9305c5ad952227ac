use std::io::{self, Write};

use rustls::ClientConnection;

use crate::incoming::Incoming;
use tls::TlsFailure;

/// A TLS connection without its socket: encrypts and decrypts.
#[derive(Debug)]
pub(crate) struct Session(Box<ClientConnection>);

impl Session {
    pub(crate) fn new(mut connection: Box<ClientConnection>) -> Session {
        // `encipher` empties the buffer at once.
        connection.set_buffer_limit(None);
        Session(connection)
    }

    /// Appends `plain`, encrypted, to `cipher`, and empties it.
    pub(crate) fn encipher(&mut self, plain: &mut Vec<u8>, cipher: &mut Vec<u8>) -> io::Result<()> {
        self.0.writer().write_all(plain)?;
        plain.clear();
        while self.0.wants_write() {
            self.0.write_tls(cipher)?;
        }
        Ok(())
    }

    /// Whether TLS has messages of its own to send, such as a key update.
    pub(crate) fn has_words(&self) -> bool {
        self.0.wants_write()
    }

    /// Appends the plain text of `cipher`, and text decrypted before, to `plain`. Returns whether
    /// the peer has closed.
    ///
    /// # Errors
    /// A TLS error in the bytes.
    pub(crate) fn decipher(
        &mut self,
        mut cipher: &[u8],
        plain: &mut Incoming,
    ) -> Result<bool, TlsFailure> {
        let other = |error: io::Error| TlsFailure::Other(error.to_string());
        loop {
            if !cipher.is_empty() && self.0.read_tls(&mut cipher).map_err(other)? == 0 {
                return Ok(true);
            }
            let state = self.0.process_new_packets();
            // Text before the error is valid.
            plain.fill_from(&mut self.0.reader()).map_err(other)?;
            let state = state.map_err(TlsFailure::of)?;
            if state.peer_has_closed() {
                return Ok(true);
            }
            if cipher.is_empty() {
                return Ok(false);
            }
        }
    }
}
