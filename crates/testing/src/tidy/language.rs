//! Plain technical English, as far as it can be measured: names of limits, the first words of doc
//! comments, and words that do not name an actor.

use super::mask::mask;
use super::{File, Finding};

/// Verbs with which the doc comment of a function may begin. Add a verb that says what a function
/// does; nouns, and verbs that have a more precise synonym here, do not belong into the list.
const VERBS: &str = "\
    Aborts Accepts Acknowledges Acquires Adds Adopts Advances Allocates Allows Appends Applies \
    Asserts Assigns Attaches Batches Begins Benchmarks Binds Builds Calls Cancels Changes Charges \
    Checks Chooses Claims Clamps Clears Closes Commits Compacts Compares Compiles Completes \
    Compresses Computes Connects Consumes Continues Converts Copies Corrects Counts Creates \
    Damages Decodes Decompresses Decrements Decrypts Deletes Delivers Descends Describes Detaches \
    Discards Divides Does Doubles Downloads Drains Draws Drops Dumps Emits Empties Enables \
    Encodes Ends Enlarges Enters Escapes Evaluates Evicts Examines Exchanges Executes Expects \
    Explores Exports Extends Extracts Fails Fetches Fills Finds Finishes Flips Flushes Follows \
    Forgets Formats Frees Generates Groups Grows Handles Has Hashes Ignores Implements Imports \
    Increments Initializes Inserts Inspects Installs Invokes Issues Iterates Joins Keeps Kills \
    Leaks Leaves Lends Lets Limits Listens Lists Loads Locks Logs Looks Lowers Makes Maps Marks \
    Matches Measures Merges Migrates Mounts Moves Normalizes Notes Notifies Opens Overrides \
    Overwrites Parses Passes Performs Pickles Pins Places Plans Points Polls Pops Prefetches \
    Prepares Prints Processes Publishes Pushes Puts Queues Quotes Raises Reads Rebuilds Receives \
    Reclaims Records Recovers Refuses Registers Rejects Releases Reloads Removes Renames Reopens \
    Repairs Repeats Replaces Replies Reports Requests Requires Reserves Resets Resolves Responds \
    Restarts Restores Resumes Retires Returns Reverses Rewrites Rounds Runs Scans Schedules Seals \
    Selects Sends Serves Sets Shares Shows Shuts Signals Simulates Skips Sleeps Sorts Spills \
    Splits Starts Stops Stores Strips Submits Subscribes Subtracts Switches Syncs Takes Trains \
    Tries Trims Truncates Trusts Turns Undoes Unescapes Unlocks Unpins Updates Uploads Uses \
    Validates Verifies Visits Waits Wakes Walks Warns Watches Withdraws Works Wraps Writes Yields";

/// Words that hide who does something, or that have a standard term.
const BANNED_WORDS: &[&str] = &["whoever", "whomever", "nobody", "somebody"];

/// Finds constants whose names contain `MOST` or `LEAST`.
pub fn limit_names(file: &File) -> Vec<Finding> {
    let code = mask(&file.text);
    let findings = (1..).zip(code.lines()).filter_map(|(number, line)| {
        let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        words.find(|word| matches!(*word, "const" | "static"))?;
        let name = words.next()?;
        let is_limit = name.split('_').any(|part| matches!(part, "MOST" | "LEAST"));
        is_limit.then(|| Finding::new(file, number, "MAX or MIN in the name of a limit", name))
    });
    findings.collect()
}

/// Finds functions outside of tests whose doc comment does not begin with a verb in the third
/// person. A doc comment may also begin with code, such as the syntax of a command.
pub fn function_docs(file: &File) -> Vec<Finding> {
    let lines: Vec<&str> = file.text.lines().map(str::trim_start).collect();
    let mut findings = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let begins = line.starts_with("/// ") && (at == 0 || !lines[at - 1].starts_with("///"));
        let rest = lines[at..].iter().skip_while(|line| line.starts_with("///"));
        if !begins || !is_plain_function(rest.copied()) {
            continue;
        }
        let first = line[4..].split([' ', ',', '.', ':']).next().unwrap_or_default();
        let is_verb = VERBS.split_whitespace().any(|verb| verb == first);
        if !is_verb && !first.starts_with('`') {
            let expected =
                "a verb such as \"Returns\" at the beginning of a function's doc comment";
            findings.push(Finding::new(file, at + 1, expected, format!("{first:?}")));
        }
    }
    findings
}

/// Returns whether these lines begin with a function, after its attributes, that is not a test.
fn is_plain_function<'t>(lines: impl Iterator<Item = &'t str>) -> bool {
    for line in lines {
        if line.starts_with("#[") {
            if line.contains("test]") {
                return false;
            }
            continue;
        }
        let mut words = line.split_whitespace().skip_while(|word| {
            word.starts_with("pub") || matches!(*word, "const" | "async" | "unsafe" | "default")
        });
        return words.next() == Some("fn");
    }
    false
}

/// Returns the comment on a line of a file; the whole line for Python and for pages.
fn comment<'l>(file: &File, line: &'l str) -> &'l str {
    let is_inside = line.trim_start().starts_with(['*', '/']);
    match file.ending() {
        "java" | "c" | "h" if is_inside => line,
        "rs" | "proto" | "java" | "c" | "h" => line.split_once("//").map_or("", |(_, text)| text),
        _ => line,
    }
}

/// Finds banned words in comments and documentation.
pub fn banned_words(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let text = comment(file, line);
        let words = text.split(|letter: char| !letter.is_alphabetic() && letter != '\'');
        for word in words.filter(|word| BANNED_WORDS.contains(&word.to_lowercase().as_str())) {
            findings.push(Finding::new(file, number, "a word that names the actor", word));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&File) -> Vec<Finding>, text: &str) -> Vec<usize> {
        rule(&File::text("a.rs", text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn limits_are_called_max_or_min() {
        let text = "const KEYS_MOST: u32 = 1;\nconst LEAST: u8 = 2;\nstatic MOSTLY: u8 = 3;\n\
            const MAX_LEN: u8 = 4; // MOST\n";
        assert_eq!(lines(limit_names, text), [1, 2]);
    }

    #[test]
    fn docs_of_functions_begin_with_a_verb() {
        let text = "/// The length.\nfn len() {}\n\n/// Returns it.\n#[inline]\nfn it() {}\n\
            /// A test.\n#[test]\nfn tests_it() {}\n/// `GET key`\nasync fn get() {}\n\
            /// Whether so.\n/// More.\n#[must_use]\npub const unsafe fn so() {}\n\
            /// A type.\nstruct T;\n";
        assert_eq!(lines(function_docs, text), [1, 12]);
    }

    #[test]
    fn comments_name_the_actor() {
        let word = BANNED_WORDS[0];
        let text = format!("// Not by {word}.\nlet {word} = 1; // a client\nfn a() {{}}\n");
        assert_eq!(lines(banned_words, &text), [1]);
        let page = File::text("a.md", &format!("{} reads.\n", word.to_uppercase()));
        assert_eq!(banned_words(&page).len(), 1);
        let java =
            format!("/** Not by {word}.\n * Nor {word}. */\nvar a = \"{word}\"; // {word}\n");
        assert_eq!(banned_words(&File::text("a.java", &java)).len(), 3);
    }
}
