use store::wire::{KeyBytes, KeyError, Protocol};

#[test]
fn protocols_report_supported_keys() {
    let (text, meta) = (Protocol::MemcachedText, Protocol::MemcachedMeta);
    assert_eq!(text.takes_key_bytes(), KeyBytes::Printable);
    for protocol in Protocol::ALL {
        assert_eq!(protocol.check_key(b""), Err(KeyError::Empty), "{protocol:?}");
        assert_eq!(protocol.check_key(b"user:42"), Ok(()), "{protocol:?}");
        let longest = vec![b'k'; protocol.longest_key().min(1000)];
        assert_eq!(protocol.check_key(&longest), Ok(()), "{protocol:?}");
        let takes_any = protocol.check_key(&[0, 1, 2]).is_ok();
        assert_eq!(takes_any, protocol.takes_key_bytes() == KeyBytes::Any, "{protocol:?}");
    }
    let refused = text.check_key(b"a b").expect_err("a space");
    assert!(matches!(refused, KeyError::NotPrintable { .. }));
    assert!(refused.to_string().contains("binary"), "{refused}");
    assert!(text.check_key("größe".as_bytes()).is_ok());
    for (protocol, bytes, longest) in [(text, 251, 250), (Protocol::MemcachedBinary, 300, 250)] {
        let refused = protocol.check_key(&vec![b'k'; bytes]);
        assert_eq!(refused, Err(KeyError::TooLong { protocol: protocol.name(), bytes, longest }));
    }
    // In base64 they would be too long for the server.
    assert_eq!(meta.check_key(&[0; 186]), Ok(()));
    assert!(matches!(meta.check_key(&[0; 187]), Err(KeyError::TooLong { longest: 186, .. })));
    assert_eq!(meta.check_key(&[b'k'; 250]), Ok(()));
}
