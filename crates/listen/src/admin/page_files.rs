//! The files of the live page, which are part of the program.

/// A file of the page.
#[derive(Debug)]
pub(super) struct PageFile {
    path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: &'static str,
}

macro_rules! script {
    ($name:literal) => {
        PageFile {
            path: concat!("/page/", $name),
            content_type: "text/javascript; charset=utf-8",
            text: include_str!(concat!("page/", $name)),
        }
    };
}

static FILES: &[PageFile] = &[
    PageFile {
        path: "/",
        content_type: "text/html; charset=utf-8",
        text: include_str!("page/index.html"),
    },
    PageFile {
        path: "/page/style.css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("page/style.css"),
    },
    PageFile {
        path: "/page/icon.svg",
        content_type: "image/svg+xml",
        text: include_str!("page/icon.svg"),
    },
    script!("charts.js"),
    script!("cluster.js"),
    script!("dom.js"),
    script!("format.js"),
    script!("main.js"),
    script!("metrics.js"),
    script!("rates.js"),
    script!("sections.js"),
    script!("servers.js"),
    script!("tables.js"),
];

/// Returns the file of a path of HTTP.
pub(super) fn find(path: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_and_its_scripts_name_files_that_exist() {
        for file in FILES {
            let names = file.text.split(['"', '\'']).filter_map(|text| {
                if let Some(name) = text.strip_prefix("./") {
                    return name.strip_suffix(".js").map(|name| format!("/page/{name}.js"));
                }
                text.starts_with("/page/").then(|| text.to_owned())
            });
            for name in names {
                assert!(find(&name).is_some(), "{} names {name}", file.path);
            }
            assert!(!file.text.contains("https://"), "{} names another host", file.path);
        }
    }
}
