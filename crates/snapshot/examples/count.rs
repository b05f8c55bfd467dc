#![allow(missing_docs, clippy::all, clippy::pedantic, reason="sketch")]
use nuthatch_snapshot::*;
#[inline(never)] fn lookups(mode: &str, keys: &[&[u8]], snap: &Snapshot, map: &hashbrown::HashMap<Box<[u8]>, Box<[u8]>>) -> Result<usize> {
    let mut sum = 0;
    match mode {
        "find" => for k in keys { sum += snap.find(k)?.unwrap().bytes()[0] as usize; },
        "bytes" => for k in keys { sum += snap.get_bytes(k)?.map_or(0, |b| b[0]) as usize; },
        "string" => for k in keys { sum += snap.get_string(k)?.map_or(0, |b| b.as_bytes()[0]) as usize; },
        "get" => for k in keys { if let Some(Value::String(s)) = snap.get(k)? { sum += s.as_bytes()[0] as usize } },
        "hash" => for k in keys { sum += map[*k][0] as usize },
        "miss" => for k in keys { sum += snap.find(&k[1..])?.is_some() as usize; },
        "hmiss" => for k in keys { sum += map.contains_key(&k[1..]) as usize; },
        _ => {} }
    Ok(sum)
}
fn main() -> Result<()> {
    let n = 200_000; let path = std::env::temp_dir().join("count.nut");
    let mode = std::env::args().nth(1).unwrap();
    let rows: Vec<(String, String)> = (0..n).map(|i| (format!("key_{i}"), format!("val_{i}"))).collect();
    let mut w = WriterOptions::new().threads(1).create(&path)?;
    for (k, v) in &rows { let v = if mode == "bytes" { Value::Bytes(v.as_bytes()) } else { Value::String(v) }; w.insert(k.as_bytes(), v)?; }
    w.finish()?;
    let snap = Snapshot::open(path)?;
    let map: hashbrown::HashMap<Box<[u8]>, Box<[u8]>> = rows.iter().map(|(k, v)| (k.as_bytes().into(), v.as_bytes().into())).collect();
    let keys: Vec<&[u8]> = (0..n).map(|i| rows[i * 123457 % n].0.as_bytes()).collect();
    println!("{}", lookups(&mode, &keys, &snap, &map)?); Ok(())
}
