//! A view as lines of text.

use super::cluster::ClusterNode;
use super::disk::Disk;
use super::line::{Line, Style};
use super::quantity::{bytes, count, number, percent, rate, span, time};
use super::sample::Compressed;
use super::view::{PERCENTILES, View};

/// The characters for the kinds of memory.
const MEMORY_SIGNS: [(&str, char); 5] =
    [("items", '#'), ("large", 'L'), ("index", 'i'), ("connections", 'c'), ("other", 'o')];

/// Maximum dictionaries that are shown.
const MAX_DICTIONARIES: usize = 5;

/// Maximum length of the bar of memory, in characters.
const MAX_BAR_LEN: usize = 60;

/// Returns the lines of a view for a width in columns.
pub(crate) fn lines(view: &View, address: &str, width: usize) -> Vec<Line> {
    let mut lines = head(view, address);
    lines.extend(memory(view, width));
    let parts = [view.disk.map(Disk::line), view.cluster.map(ClusterNode::line)];
    lines.extend(parts.into_iter().flatten().map(|(text, is_problem)| Line {
        text,
        style: if is_problem { Style::Alarm } else { Style::Plain },
    }));
    lines.extend(compression(view));
    lines.extend(traffic(view));
    lines.push(plain(String::new()));
    lines.extend(commands(view));
    lines
}

fn plain(text: String) -> Line {
    Line { text, style: Style::Plain }
}

/// Returns a text from a server without control characters.
fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

fn head(view: &View, address: &str) -> Vec<Line> {
    let version = printable(&view.now.version);
    let (up, over) = (span(view.now.uptime_s), time(Some(view.interval_s)));
    let over = if view.is_since_start {
        "rates since its start".to_owned()
    } else {
        format!("over {over}")
    };
    let title = format!("nuthatch {version} at {address}, up {up}, {over}");
    let misses = view.misses.iter();
    let misses = misses.map(|(cause, n)| format!("{} {}", printable(cause), rate(*n)));
    let misses = misses.collect::<Vec<_>>().join(", ");
    let ratio = view.hit_ratio().map_or("-".to_owned(), percent);
    let (requests, errors, slow) = (rate(view.requests), rate(view.errors), rate(view.slow));
    let (hits, items) = (rate(view.hits), count(view.now.items));
    let (stored, removed) = (rate(view.stored), rate(view.removed));
    let (expired, evicted) = (rate(view.expired), rate(view.evicted));
    vec![
        Line { text: title, style: Style::Title },
        plain(format!("requests  {requests}, errors {errors}, slow {slow}")),
        plain(format!("hits      {ratio}, {hits}; misses: {misses}")),
        plain(format!(
            "items     {items}; stored {stored}, removed {removed}, expired {expired}, \
             evicted {evicted}"
        )),
    ]
}

fn memory(view: &View, width: usize) -> [Line; 2] {
    let (used, limit) = (view.memory(), view.now.memory_limit);
    let part = if limit > 0.0 { used / limit } else { 0.0 };
    let figures = format!("{} of {}, {}", bytes(used), bytes(limit), percent(part));
    // Between the name at the left and the numbers.
    let room = width.saturating_sub(10 + 3 + figures.len());
    let bar = bar(view, room.min(MAX_BAR_LEN));
    let kinds = view.now.memory.iter();
    let kinds = kinds.map(|(kind, n)| format!("{} {} {}", sign(kind), printable(kind), bytes(*n)));
    let kinds = kinds.collect::<Vec<_>>().join("  ");
    [plain(format!("memory    [{bar}] {figures}")), plain(format!("          {kinds}"))]
}

fn sign(kind: &str) -> char {
    MEMORY_SIGNS.iter().find(|sign| sign.0 == kind).map_or('?', |sign| sign.1)
}

/// Returns a bar of the memory budget, with a character for each kind of memory.
fn bar(view: &View, len: usize) -> String {
    let limit = view.now.memory_limit.max(view.memory()).max(1.0);
    let mut bar = String::new();
    let mut end = 0.0;
    for (kind, bytes) in &view.now.memory {
        end += bytes;
        #[expect(clippy::cast_sign_loss, reason = "no kind of memory is below zero")]
        let end = (end / limit * len as f64).round().max(0.0) as usize;
        bar.extend(std::iter::repeat_n(sign(kind), end.min(len).saturating_sub(bar.len())));
    }
    bar.extend(std::iter::repeat_n('.', len - bar.len()));
    bar
}

/// Returns how many times shorter compression has made values since the server started, with each
/// dictionary; those with the most bytes come first. There is no line if none was compressed.
fn compression(view: &View) -> Option<Line> {
    let mut all: Vec<_> = view.now.compressed.iter().collect();
    if all.is_empty() {
        return None;
    }
    let ratio = |one: Compressed| format!("{:.2}x", one.raw / one.stored);
    let sum = all.iter().fold(Compressed::default(), |sum, (_, one)| Compressed {
        raw: sum.raw + one.raw,
        stored: sum.stored + one.stored,
    });
    all.sort_by(|(_, one), (_, other)| other.raw.total_cmp(&one.raw));
    let by_dictionary = all.iter().take(MAX_DICTIONARIES).map(|(id, one)| match id.as_str() {
        "0" => format!("none {}", ratio(**one)),
        id => format!("{} {}", printable(id), ratio(**one)),
    });
    let by_dictionary = by_dictionary.collect::<Vec<_>>().join(", ");
    let ratio = ratio(sum);
    Some(plain(format!("values    {ratio} shorter; by dictionary: {by_dictionary}")))
}

fn traffic(view: &View) -> [Line; 3] {
    let now = &view.now;
    let (open, most) = (count(now.connections), count(now.connections_limit));
    let (accepted, refused) = (rate(view.accepted), rate(view.refused));
    let clients = format!("clients   {open} of {most}; accepted {accepted}, refused {refused}");
    let (received, sent) = (bytes(view.received), bytes(view.sent));
    let stuck = rate(view.output_limits);
    let network = format!(
        "network   in {received}/s, out {sent}/s; clients paused at the output limit {stuck}"
    );
    let lag = PERCENTILES
        .map(|(name, part)| format!("{name} {}", time(view.event_loop_lag.quantile(part))));
    let busy = view.busy.iter().map(|(_, part)| percent(*part)).collect::<Vec<_>>().join(", ");
    let (cpu, resident) = (percent(view.cpu), bytes(now.resident));
    let lag = lag.join(", ");
    let refusing = view.refused > 0.0;
    [
        Line { text: clients, style: if refusing { Style::Alarm } else { Style::Plain } },
        plain(network),
        plain(format!("threads   busy {busy}; lag {lag}; process {cpu} cpu, {resident}")),
    ]
}

fn commands(view: &View) -> Vec<Line> {
    let row = |name: &str, cells: [&str; 6]| {
        let [rate, errors, calls, p50, p99, p999] = cells;
        format!("{name:<20}{rate:>12}{errors:>12}{calls:>16}{p50:>10}{p99:>10}{p999:>10}")
    };
    let heads =
        ["calls/s", "errors/s", "calls", PERCENTILES[0].0, PERCENTILES[1].0, PERCENTILES[2].0];
    let mut lines = vec![Line { text: row("command", heads), style: Style::Head }];
    for command in &view.commands {
        let [p50, p99, p999] = PERCENTILES.map(|(_, part)| time(command.times.quantile(part)));
        let figures = [number(command.rate), number(command.errors), count(command.calls)];
        let [rate, errors, calls] = figures.each_ref();
        let name = printable(&command.name);
        lines.push(plain(row(&name, [rate, errors, calls, &p50, &p99, &p999])));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::sample;
    use super::*;

    fn text(view: &View, width: usize) -> String {
        let lines = lines(view, "127.0.0.1:9464", width);
        lines.iter().map(|line| line.text.trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn a_view_has_all_lines() {
        let view = View::new(sample(200, 30_000), Some(&sample(190, 10_000)));
        let expected = "\
nuthatch 1.2.3 at 127.0.0.1:9464, up 3 min 20 s, over 10 s
requests  2,000/s, errors 1,000/s, slow 0/s
hits      50.0 %, 1,000/s; misses: absent 1,000/s
items     0; stored 0/s, removed 0/s, expired 0/s, evicted 0/s
memory    [############iiiiii...............................] 1.5 MiB of 4.0 MiB, 37.5 %
          # items 1.0 MiB  i index 512.0 KiB
clients   3 of 0; accepted 0/s, refused 0/s
network   in 2.0 KiB/s, out 0 B/s; clients paused at the output limit 0/s
threads   busy 100.0 %; lag p50 500 µs, p99 990 µs, p99.9 999 µs; process 0.0 % cpu, 0 B

command                  calls/s    errors/s           calls       p50       p99     p99.9
get                        2,000       1,000          30,000    1.0 µs    1.0 µs    1.0 µs
set                            0           0               7         -         -         -
";
        assert_eq!(text(&view, 88), expected);
    }

    #[test]
    fn compression_is_shown_if_values_were_compressed() {
        let text = "nuthatch_uptime_seconds 1\n\
                    nuthatch_compression_raw_bytes_total{dictionary=\"0\"} 100\n\
                    nuthatch_compression_stored_bytes_total{dictionary=\"0\"} 80\n\
                    nuthatch_compression_raw_bytes_total{dictionary=\"7\"} 300\n\
                    nuthatch_compression_stored_bytes_total{dictionary=\"7\"} 75\n\
                    nuthatch_compression_raw_bytes_total{dictionary=\"8\"} 0\n\
                    nuthatch_compression_stored_bytes_total{dictionary=\"8\"} 0\n";
        let sample = super::super::sample::Sample::parse(text).expect("a sample");
        let lines = lines(&View::new(sample, None), "x", 80);
        let line = lines.iter().find(|line| line.text.starts_with("values")).expect("a line");
        assert_eq!(line.text, "values    2.58x shorter; by dictionary: 7 4.00x, none 1.25x");
    }

    #[test]
    fn the_bar_fits_any_width() {
        let view = View::new(sample(200, 30_000), None);
        for width in 0..200 {
            let text = text(&view, width);
            let bar = text.lines().find(|line| line.starts_with("memory")).expect("a bar");
            assert!(bar.len() <= width.max(40), "{width}: {bar}");
        }
    }

    #[test]
    fn control_characters_of_a_server_are_not_printed() {
        let text = "nuthatch_uptime_seconds 1\nnuthatch_commands_total{command=\"\u{1b}[2J\"} 1\n";
        let sample = super::super::sample::Sample::parse(text).expect("a sample");
        let lines = lines(&View::new(sample, None), "x", 80);
        assert!(lines.iter().all(|line| !line.text.contains('\u{1b}')), "{lines:?}");
    }
}
