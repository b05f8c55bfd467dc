#![allow(missing_docs, clippy::all, clippy::pedantic, reason="sketch")]
use nuthatch_snapshot::*;
use std::time::Instant;
use hashbrown::HashMap;
fn main() -> Result<()> {
    let n: usize = std::env::args().nth(1).map_or(1_000_000, |s| s.parse().unwrap());
    let rounds: usize = std::env::args().nth(2).map_or(5, |s| s.parse().unwrap());
    let huge = std::env::args().nth(3).is_some();
    let path = "/work/sketch.nut";
    let rows: Vec<(String, String)> = (0..n).map(|i| (format!("key_{i}"), format!("val_{i}"))).collect();
    for threads in [2, 1, 2] {
        let t = Instant::now();
        let mut w = WriterOptions::new().threads(threads).memory(8<<30).create(path)?;
        for (k, v) in &rows { w.insert(k.as_bytes(), Value::String(v))?; }
        let t1 = t.elapsed();
        let s = w.finish()?;
        let e = t.elapsed();
        println!("build {threads} thr: insert {:.1} total {:.1} ns/entry  overhead {:.2}", t1.as_nanos() as f64 / n as f64, e.as_nanos() as f64 / n as f64, (s.file_len - s.key_bytes - s.value_bytes) as f64 / n as f64);
    }
    let mut order: Vec<usize> = (0..n).collect();
    let mut x = 88172645463325252u64;
    for i in (1..n).rev() { x ^= x << 13; x ^= x >> 7; x ^= x << 17; order.swap(i, (x % (i as u64 + 1)) as usize); }
    let take = n.min(4_000_000);
    let mk = |p: &str| { let mut text = Vec::new(); let mut ends = vec![0usize]; for &i in order.iter().take(take) { text.extend_from_slice(format!("{p}_{i}").as_bytes()); ends.push(text.len()); } (text, ends) };
    let (ht, he) = mk("key"); let (mt, me) = mk("kex");
    let hits: Vec<&[u8]> = he.windows(2).map(|w| &ht[w[0]..w[1]]).collect();
    let misses: Vec<&[u8]> = me.windows(2).map(|w| &mt[w[0]..w[1]]).collect();
    let mut map: HashMap<Box<[u8]>, Box<[u8]>> = HashMap::with_capacity(n);
    for (k, v) in &rows { map.insert(k.as_bytes().into(), v.as_bytes().into()); }
    drop(rows);
    let snap = OpenOptions::new().residency(if huge {Residency::HugePages} else {Residency::Populated}).open(path)?;
    let ns = |t: Instant| t.elapsed().as_nanos() as f64 / take as f64;
    if std::env::var("WARM").is_ok() {
      for _ in 0..rounds { let mut sum = 0usize;
        macro_rules! run { ($keys:expr, $k:ident => $body:expr) => {{ let mut total = 0u128; for ks in $keys.chunks(512) { let mut w = 0usize; for k in ks { w += k[0] as usize + k[k.len()-1] as usize; } std::hint::black_box(w); let t = Instant::now(); for $k in ks { sum += $body; } total += t.elapsed().as_nanos(); } total as f64 / take as f64 }} }
        let a = run!(hits, k => map[*k][0] as usize);
        let b = run!(hits, k => snap.find(k)?.map_or(0, |s| s.bytes()[0] as usize));
        let b2 = run!(hits, k => snap.get_string(k)?.map_or(0, |s| s.as_bytes()[0] as usize));
        let c = run!(misses, k => map.contains_key(*k) as usize);
        let d = run!(misses, k => snap.find(k)?.is_some() as usize);
        let mut out = [None; 64]; let mut total = 0u128;
        for ks in hits.chunks(512) { let mut w = 0usize; for k in ks { w += k[0] as usize + k[k.len()-1] as usize; } std::hint::black_box(w); let t = Instant::now(); for ks in ks.chunks(64) { snap.get_many(ks, &mut out)?; for o in &out[..ks.len()] { if let Some(Value::String(s)) = o { sum += s.as_bytes()[0] as usize; } } } total += t.elapsed().as_nanos(); }
        let e = total as f64 / take as f64;
        println!("WARM hash {a:.1} find {b:.1} ({:.2}) get_string {b2:.1} ({:.2}) hmiss {c:.1} miss {d:.1} ({:.2}) many {e:.1} ({:.3}) {sum}", b/a, b2/a, d/b, e/a);
      } return Ok(()); }
    let mut r: Vec<[f64; 6]> = vec![];
    for _ in 0..rounds {
        let mut sum = 0usize;
        let t = Instant::now(); for k in &hits { let v = &map[*k]; sum += v[0] as usize; } let a = ns(t);
        let t = Instant::now(); for k in &hits { if let Some(s) = snap.get_string(k)? { sum += s.as_bytes()[0] as usize; } } let b = ns(t);
        let t = Instant::now(); for k in &misses { sum += map.contains_key(*k) as usize; } let c = ns(t);
        let t = Instant::now(); for k in &misses { sum += snap.get_string(k)?.is_some() as usize; } let d = ns(t);
        let mut out = [None; 64];
        let t = Instant::now(); for ks in hits.chunks(64) { snap.get_many(ks, &mut out)?; for o in &out[..ks.len()] { if let Some(Value::String(s)) = o { sum += s.as_bytes()[0] as usize; } } } let e = ns(t);
        let mut out = [None; 64];
        let t = Instant::now(); for ks in hits.chunks(64) { snap.find_many(ks, &mut out)?; for o in &out[..ks.len()] { if let Some(s) = o { sum += s.bytes()[0] as usize; } } } let f = ns(t);
        let t = Instant::now(); for k in &hits { if let Some(s) = snap.find(k)? { sum += s.bytes()[0] as usize; } } let g = ns(t);
        println!("  find {g:.1}");
        r.push([a, b, c, d, e, f]); std::hint::black_box(sum);
    }
    let med = |i: usize| { let mut v: Vec<f64> = r.iter().map(|x| x[i]).collect(); v.sort_by(f64::total_cmp); v[v.len() / 2] };
    println!("hash hit {:.1} nut hit {:.1} ({:.2})  hash miss {:.1} nut miss {:.1} (miss/hit {:.2})  many {:.1} ({:.3}) find_many {:.1}", med(0), med(1), med(1)/med(0), med(2), med(3), med(3)/med(1), med(4), med(4)/med(0), med(5));
    Ok(())
}
