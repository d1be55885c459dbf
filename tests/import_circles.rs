//! No file of a folder imports, through others of the folder, itself. Each circle that stays has its
//! reason here.

use std::collections::{BTreeMap, BTreeSet};

use crate::syntax::{Module, Segments, module_of, product};

/// The circles that stay, as `folder: members`, and why.
const KNOWN: &[(&str, &str)] = &[(
    "dashboard: failure form layout session",
    "without a session there is a page that says so, and a page shows who is signed in",
)];

struct Imports {
    /// The modules and the paths that each names.
    modules: BTreeMap<Module, BTreeSet<Segments>>,
    /// What a module re-exports: the name, and the path behind it.
    reexports: BTreeMap<Module, BTreeMap<String, Segments>>,
}

impl Imports {
    fn read() -> Self {
        let (mut modules, mut reexports) = (BTreeMap::new(), BTreeMap::new());
        for file in product() {
            let module = module_of(&file.path);
            reexports.insert(module.clone(), file.reexports);
            modules.insert(module, file.paths);
        }
        Self { modules, reexports }
    }

    /// The module that defines what `path` names inside `module`; `None`: of another crate.
    fn target(&self, module: &Module, path: &[String]) -> Option<Module> {
        let mut segments: Vec<&str> = path.iter().map(String::as_str).collect();
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
            let is_last = index + 1 == segments.len();
            return match behind {
                Some(path) if is_last => self.target(&at, path).or(Some(at)),
                _ => Some(at),
            };
        }
        Some(at)
    }

    /// The modules that each module uses.
    fn used(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        self.modules
            .iter()
            .map(|(module, paths)| {
                let used = paths
                    .iter()
                    .filter_map(|path| self.target(module, path))
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

/// Fails for a new circle, and for one of [`KNOWN`] that is gone.
#[test]
fn files_of_a_folder_import_each_other_in_one_direction() {
    let known: BTreeSet<_> = KNOWN
        .iter()
        .map(|(circle, _)| (*circle).to_owned())
        .collect();
    assert_eq!(circles(), known);
}
