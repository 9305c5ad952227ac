use store::wire::Ring;

fn names(servers: usize) -> Vec<String> {
    (1..=servers).map(|server| format!("10.0.1.{server}:11211")).collect()
}

/// Computed apart from this program, with Python's hashlib and bisect over the published layout.
#[test]
fn ring_agrees_with_other_clients() {
    let ring = Ring::new(&names(8));
    let got: Vec<usize> =
        (0..40).map(|key| ring.server_of(format!("user:{key}").as_bytes())).collect();
    let expected = [
        0, 4, 7, 6, 5, 7, 2, 3, 6, 4, 6, 1, 5, 5, 5, 2, 1, 0, 2, 0, 3, 1, 6, 4, 1, 7, 7, 3, 3, 7,
        0, 5, 5, 6, 5, 1, 7, 5, 5, 6,
    ];
    assert_eq!(got, expected);
    let mut counts = [0; 8];
    (0..10_000).for_each(|key| counts[ring.server_of(format!("user:{key}").as_bytes())] += 1);
    assert_eq!(counts, [1218, 1228, 1218, 1093, 1164, 1217, 1543, 1319]);
    // Its digest lies above the last point.
    assert_eq!(ring.server_of(b"wrap:703"), 4);
}

#[test]
fn few_keys_move_when_a_server_is_added() {
    let (before, after) = (Ring::new(&names(8)), Ring::new(&names(9)));
    let mut moved = 0;
    for key in 0..10_000 {
        let key = format!("user:{key}");
        let (old, new) = (before.server_of(key.as_bytes()), after.server_of(key.as_bytes()));
        assert!(new == old || new == 8, "keys move to the new server only");
        moved += u32::from(new != old);
    }
    assert!((500..2000).contains(&moved), "{moved} of 10,000 moved; a ninth is due");
}

#[test]
fn keys_of_ejected_servers_alone_move() {
    let ring = Ring::new(&names(3));
    let shares: f64 = (0..3).map(|server| ring.share(server)).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    let (mut moved, left) = (0, Ring::new(&[names(3)[0].clone(), names(3)[2].clone()]));
    for key in (0..10_000).map(|key| format!("user:{key}")) {
        let key = key.as_bytes();
        let (before, after) = (ring.server_of(key), ring.server_among(key, &[false, true, false]));
        assert_eq!(after, [0, 2][left.server_of(key)], "as in a ring without it");
        assert!(after == before || before == 1);
        moved += u32::from(after != before);
        assert_eq!(ring.server_among(key, &[true; 3]), before);
    }
    assert!((f64::from(moved) / 1e4 - ring.share(1)).abs() < 0.02, "{moved} {}", ring.share(1));
}

#[test]
fn ring_of_at_most_one_server() {
    assert_eq!(Ring::new(&[]).server_of(b"key"), 0);
    assert_eq!(Ring::new(&names(1)).server_of(b"key"), 0);
}
