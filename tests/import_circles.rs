//! No file of a folder imports, through others of the folder, itself. Each circle that stays has its
//! reason here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex::Regex;

/// The circles that stay, as `folder: members`, and why.
const KNOWN: &[(&str, &str)] = &[
    (
        "history: buckets daily_pack grid latest presenter product query store",
        "`Product` names the row types of the readers, and the readers are generic over `Product`",
    ),
    (
        "web: failure form layout session",
        "without a session there is a page that says so, and a page shows who is signed in",
    ),
];

/// A module's path below the crate's root: `["history", "store"]`.
type Module = Vec<String>;

/// All modules without their test modules and comments.
fn modules() -> BTreeMap<Module, String> {
    let comment = Regex::new(r"//[^\n]*").unwrap();
    crate::architecture::sources()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("tests.rs") && !path.starts_with("tests"))
        .map(|(path, text)| {
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            (module_of(&path), comment.replace_all(code, "").into_owned())
        })
        .collect()
}

fn module_of(path: &Path) -> Module {
    let mut module: Module = path
        .with_extension("")
        .iter()
        .map(|part| part.to_str().unwrap().to_owned())
        .collect();
    if matches!(module.last().unwrap().as_str(), "mod" | "lib" | "main") {
        module.pop();
    }
    module
}

/// The paths of a `use` tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        return vec![tree.split(" as ").next().unwrap().trim().to_owned()];
    };
    let inner = &tree[open + 1..tree.rfind('}').unwrap()];
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[begin..at].trim().is_empty() {
                    found.extend(
                        paths(&inner[begin..at])
                            .into_iter()
                            .map(|path| format!("{}{path}", tree[..open].trim())),
                    );
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

struct Imports {
    modules: BTreeMap<Module, String>,
    /// What a module re-exports: the name, and the path behind it.
    reexports: BTreeMap<Module, BTreeMap<String, String>>,
    use_item: Regex,
    inline_path: Regex,
}

impl Imports {
    fn read() -> Self {
        let use_item = Regex::new(r"(?m)^\s*(pub(?:\([^)]*\))?\s+)?use\s+([\w:{}*,\s]+);").unwrap();
        let modules = modules();
        let mut reexports = BTreeMap::<_, BTreeMap<_, _>>::new();
        for (module, text) in &modules {
            for item in use_item
                .captures_iter(text)
                .filter(|item| item.get(1).is_some())
            {
                for path in paths(&item[2]) {
                    let name = path.rsplit("::").next().unwrap().to_owned();
                    reexports
                        .entry(module.clone())
                        .or_default()
                        .insert(name, path);
                }
            }
        }
        Self {
            modules,
            reexports,
            use_item,
            inline_path: Regex::new(r"\b(?:crate|super|self)(?:::\w+)+").unwrap(),
        }
    }

    /// The module that defines what `path` names inside `module`; `None`: of another crate.
    fn target(&self, module: &Module, path: &str) -> Option<Module> {
        let mut segments: Vec<&str> = path.split("::").map(str::trim).collect();
        let mut at = module.clone();
        match segments[0] {
            "crate" => at.clear(),
            "self" | "super" => {}
            first => {
                let mut child = module.clone();
                child.push(first.to_owned());
                self.modules.get(&child)?;
            }
        }
        while matches!(segments.first(), Some(&("crate" | "self" | "super"))) {
            if segments.remove(0) == "super" {
                at.pop();
            }
        }
        for (index, segment) in segments.iter().enumerate() {
            let mut child = at.clone();
            child.push((*segment).to_owned());
            if self.modules.contains_key(&child) {
                at = child;
                continue;
            }
            let behind = self
                .reexports
                .get(&at)
                .and_then(|names| names.get(*segment));
            let rest = segments[index + 1..].join("::");
            return match behind {
                Some(path) if rest.is_empty() => self.target(&at, path).or(Some(at)),
                _ => Some(at),
            };
        }
        Some(at)
    }

    /// The modules that each module uses.
    fn used(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        self.modules
            .iter()
            .map(|(module, text)| {
                let imported = self
                    .use_item
                    .captures_iter(text)
                    .filter(|item| item.get(1).is_none())
                    .flat_map(|item| paths(&item[2]));
                let body = self.use_item.replace_all(text, "");
                let named = self
                    .inline_path
                    .find_iter(&body)
                    .map(|path| path.as_str().to_owned());
                let used = imported
                    .chain(named)
                    .filter_map(|path| self.target(module, &path))
                    .filter(|used| used != module)
                    .collect();
                (module, used)
            })
            .collect()
    }
}

/// All nodes that `from` leads to.
fn reachable<'g>(graph: &'g BTreeMap<&'g str, BTreeSet<&'g str>>, from: &str) -> BTreeSet<&'g str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<_> = graph[from].iter().copied().collect();
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            open.extend(&graph[node]);
        }
    }
    seen
}

/// The circles between the files and folders of one folder, as `folder: members`.
fn circles() -> BTreeSet<String> {
    let imports = Imports::read();
    let used = imports.used();
    let folders: BTreeSet<&[String]> = imports
        .modules
        .keys()
        .flat_map(|module| (0..module.len()).map(|depth| &module[..depth]))
        .collect();
    let mut circles = BTreeSet::new();
    for folder in folders {
        let child = |module: &'_ Module| -> Option<usize> {
            (module.starts_with(folder) && module.len() > folder.len()).then_some(folder.len())
        };
        let mut graph = BTreeMap::<&str, BTreeSet<&str>>::new();
        for (module, targets) in &used {
            let Some(at) = child(module) else { continue };
            let from = module[at].as_str();
            let to = targets
                .iter()
                .filter_map(|target| Some(target[child(target)?].as_str()))
                .filter(|to| *to != from);
            graph.entry(from).or_default().extend(to);
        }
        for node in graph.keys() {
            let members: Vec<_> = graph
                .keys()
                .filter(|other| {
                    reachable(&graph, node).contains(*other)
                        && reachable(&graph, other).contains(node)
                })
                .copied()
                .collect();
            if members.len() > 1 {
                circles.insert(format!("{}: {}", folder.join("/"), members.join(" ")));
            }
        }
    }
    circles
}

#[test]
fn use_trees_are_read() {
    assert_eq!(
        paths("crate::{a::{b, c as d}, e}"),
        ["crate::a::b", "crate::a::c", "crate::e"]
    );
}

/// Fails for a new circle, and for one of [`KNOWN`] that is gone.
#[test]
fn files_of_a_folder_import_each_other_in_one_direction() {
    let known: BTreeSet<_> = KNOWN
        .iter()
        .map(|(circle, _)| (*circle).to_owned())
        .collect();
    assert_eq!(circles(), known);
}
