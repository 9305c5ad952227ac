//! A store in some twenty lines: `cargo run -p spill --example hello`.

use spill::{Batch, Options, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = std::env::temp_dir().join("spill-hello");
    let store = Store::open(&home, Options::default())?;
    let (birds, days) = (store.table("birds")?, store.table("days")?);
    birds.put(b"heron", b"grey")?;
    birds.put(b"kingfisher", b"blue")?;

    // All of it or nothing, whatever happens.
    let mut batch = Batch::new();
    batch.put(&birds, b"robin", b"red");
    batch.put(&days, b"2026-05-01", b"robin");
    store.write(&batch)?;
    store.sync()?;

    let before = store.snapshot();
    birds.delete(b"heron")?;
    assert_eq!(before.get(&birds, b"heron")?, Some(b"grey".to_vec()));
    for pair in birds.range(..).pairs() {
        let (bird, colour) = pair?;
        println!("{} is {}", String::from_utf8(bird)?, String::from_utf8(colour)?);
    }
    println!("in {}, which can be opened again or removed", home.display());
    Ok(())
}
