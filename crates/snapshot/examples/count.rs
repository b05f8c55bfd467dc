#![allow(missing_docs, clippy::all, clippy::pedantic, reason="sketch")]
use nuthatch_snapshot::*;
fn main() -> Result<()> {
    let n = 200_000; let path = "/work/count.nut";
    let mode = std::env::args().nth(1).unwrap();
    let rows: Vec<(String, String)> = (0..n).map(|i| (format!("key_{i}"), format!("val_{i}"))).collect();
    if mode == "build" { let mut w = WriterOptions::new().threads(1).create(path)?;
        for (k, v) in &rows { w.insert(k.as_bytes(), Value::String(v))?; }
        w.finish()?; return Ok(()); }
    let snap = Snapshot::open(path)?;
    let map: hashbrown::HashMap<Box<[u8]>, Box<[u8]>> = if mode.starts_with("h") || mode == "none" { rows.iter().map(|(k, v)| (k.as_bytes().into(), v.as_bytes().into())).collect() } else { Default::default() };
    let mut sum = 0;
    for r in 0..10 { let mut i = 7usize; for _ in 0..n { i = (i + 1234577) % n; let k = rows[i].0.as_bytes();
      sum += match &*mode { "find" => snap.find(k)?.unwrap().bytes()[0] as usize, "hash" => map[k][0] as usize, "hmiss" => map.contains_key(&k[1..]) as usize, "miss" => { snap.find(&k[1..])?.is_some() as usize }, "get" => match snap.get(k)? { Some(Value::String(s)) => s.len(), _ => 0 }, _ => k.len() }; } if r==0 {} }
    println!("{sum}"); Ok(())
}
