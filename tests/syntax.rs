//! The product's modules as parsed: which paths each names, which types it declares, what it
//! re-exports. Items under `#[cfg(test)]` are left out, also test modules in files of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// The crates of `crates` but `core`, whose modules are at the root of the tree.
const OUR_CRATES: [&str; 8] = [
    "api",
    "ask",
    "client",
    "contract",
    "dashboard",
    "planner",
    "sandbox",
    "sheets",
];

/// A module's path below the crate's root: `["history", "store"]`.
pub type Module = Vec<String>;

/// The segments of a path: `["crate", "history", "store"]`.
pub type Segments = Vec<String>;

/// What a file of the product says outside its tests.
#[derive(Default)]
pub struct Syntax {
    /// Its path below `src`.
    pub path: PathBuf,
    /// All paths, also those of imports and in the tokens of macros. The last segment of an import
    /// with another name is the name in its own module.
    pub paths: BTreeSet<Segments>,
    /// What it re-exports: the name, and the path behind it.
    pub reexports: BTreeMap<String, Segments>,
    pub types: Vec<String>,
    /// Modules of its own files that are tests.
    test_modules: Vec<String>,
}

/// The module of a file below `src`.
pub fn module_of(path: &Path) -> Module {
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

/// All files of the product except those of test modules.
pub fn product() -> Vec<Syntax> {
    let parsed: Vec<_> = crate::architecture::sources()
        .into_iter()
        .map(|(path, text)| Syntax::of(&text).at(path))
        .collect();
    let tests: Vec<Module> = parsed
        .iter()
        .flat_map(|file| {
            file.test_modules.iter().map(|name| {
                let mut module = module_of(&file.path);
                module.push(name.clone());
                module
            })
        })
        .collect();
    let is_product = |file: &Syntax| {
        let module = module_of(&file.path);
        !tests.iter().any(|test| module.starts_with(test))
    };
    parsed.into_iter().filter(is_product).collect()
}

impl Syntax {
    pub fn of(text: &str) -> Self {
        let mut syntax = Self::default();
        syntax.visit_file(&syn::parse_file(text).unwrap());
        syntax
    }

    /// The syntax of the file at `path`. Paths of our other crates become those of modules of one tree.
    fn at(mut self, path: PathBuf) -> Self {
        let own = path.iter().next().unwrap().to_str().unwrap();
        let own = OUR_CRATES.contains(&own).then_some(own);
        let of_tree = |mut segments: Segments| {
            if segments[0] == "farescan_core" {
                "crate".clone_into(&mut segments[0]);
            } else if let Some(other) = segments[0].strip_prefix("farescan_") {
                segments.splice(..1, ["crate".to_owned(), other.to_owned()]);
            } else if let (Some(own), "crate") = (own, segments[0].as_str()) {
                segments.insert(1, own.to_owned());
            }
            segments
        };
        self.paths = self.paths.into_iter().map(of_tree).collect();
        let reexports = self.reexports.into_iter();
        self.reexports = reexports
            .map(|(name, path)| (name, of_tree(path)))
            .collect();
        self.path = path;
        self
    }

    /// The top-level modules of the crate that the file names. `$crate` of a macro is that of the
    /// macro's own crate.
    pub fn top_modules(&self) -> BTreeSet<String> {
        let depth = module_of(&self.path).len();
        let top = |path: &Segments| {
            let supers = path.iter().take_while(|part| *part == "super").count();
            let begin = match path[0].as_str() {
                "crate" => 1,
                "super" if supers == depth => supers,
                _ => return None,
            };
            path.get(begin).cloned()
        };
        self.paths.iter().filter_map(top).collect()
    }

    fn add_use(&mut self, prefix: &[String], tree: &UseTree, is_public: bool) {
        let mut path = prefix.to_vec();
        let (segment, name) = match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                return self.add_use(&path, &part.tree, is_public);
            }
            UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.add_use(prefix, tree, is_public));
            }
            UseTree::Name(leaf) => (leaf.ident.to_string(), leaf.ident.to_string()),
            UseTree::Rename(leaf) => (leaf.ident.to_string(), leaf.rename.to_string()),
            UseTree::Glob(_) => ("*".to_owned(), "*".to_owned()),
        };
        // `use a::{self}` imports `a`.
        let name = if segment == "self" && name == "self" {
            path.last().cloned().unwrap_or(name)
        } else {
            name
        };
        if segment != "self" || path.is_empty() {
            path.push(segment);
        }
        if is_public {
            self.reexports.insert(name, path);
        } else {
            self.paths.insert(path);
        }
    }

    /// Finds paths and declarations in the tokens of a macro or an attribute.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let is = |at: usize, c: char| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == c);
        let is_separator = |at: usize| is(at, ':') && is(at + 1, ':');
        let mut at = 0;
        while at < tokens.len() {
            let begin = at;
            at += 1;
            match &tokens[begin] {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                        self.visit_lit_str(&text);
                    }
                }
                TokenTree::Ident(word) if begin == 0 || !is(begin - 1, '$') => {
                    if let Some(TokenTree::Ident(name)) = tokens.get(at)
                        && ["struct", "enum", "union", "trait"].contains(&word.to_string().as_str())
                    {
                        self.types.push(name.to_string());
                    }
                    let mut path = vec![word.to_string()];
                    while is_separator(at) {
                        match tokens.get(at + 2) {
                            Some(TokenTree::Ident(segment)) => path.push(segment.to_string()),
                            Some(TokenTree::Group(list)) => {
                                let tree =
                                    syn::parse2::<UseTree>(TokenTree::from(list.clone()).into());
                                if let Ok(tree) = tree {
                                    self.add_use(&path, &tree, false);
                                    at += 3;
                                }
                                break;
                            }
                            _ => break,
                        }
                        at += 3;
                    }
                    self.add_path(path);
                }
                _ => {}
            }
        }
    }

    fn add_path(&mut self, path: Segments) {
        if path.len() > 1 {
            self.paths.insert(path);
        }
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|argument| argument.is_ident("test"))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Syntax {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            if let Item::Mod(module) = item {
                self.test_modules.push(module.ident.to_string());
            }
            return;
        }
        match item {
            Item::Struct(item) => self.types.push(item.ident.to_string()),
            Item::Enum(item) => self.types.push(item.ident.to_string()),
            Item::Union(item) => self.types.push(item.ident.to_string()),
            Item::Trait(item) => self.types.push(item.ident.to_string()),
            Item::Type(item) => self.types.push(item.ident.to_string()),
            Item::Use(item) => {
                let is_public = !matches!(item.vis, syn::Visibility::Inherited);
                self.add_use(&[], &item.tree, is_public);
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter();
        self.add_path(segments.map(|part| part.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.add_tokens(call.tokens.clone());
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.add_tokens(list.tokens.clone());
    }

    /// `#[serde(with = "crate::…")]` names a path as text.
    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        if text.value().starts_with("crate::")
            && let Ok(path) = text.parse::<syn::Path>()
        {
            let segments = path.segments.iter();
            self.add_path(segments.map(|part| part.ident.to_string()).collect());
        }
    }
}

#[test]
fn imports_paths_and_types_are_read_without_tests() {
    let text = r#"
        #[cfg(test)]
        mod tests;

        use crate::{a::{b, c as d}, e::{self}};
        pub use self::f::{g, h as i};
        // use crate::comment;
        #[serde(with = "crate::j")]
        struct One(crate::k::L);
        fn two() { three!(crate::m::n(), $crate::o, x + super::p::q) }
        four! { pub struct Five; use crate::{r::{s, t}, u}; }
        #[cfg(test)]
        fn six() { crate::v::w() }
        #[cfg(test)]
        use crate::x;
    "#;
    let syntax = Syntax::of(text);
    let paths: Vec<_> = syntax.paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(
        paths,
        [
            "crate::a::b",
            "crate::a::c",
            "crate::e",
            "crate::j",
            "crate::k::L",
            "crate::m::n",
            "crate::r::s",
            "crate::r::t",
            "crate::u",
            "super::p::q",
        ]
    );
    let reexports: Vec<_> = syntax
        .reexports
        .iter()
        .map(|(name, path)| format!("{name}: {}", path.join("::")))
        .collect();
    assert_eq!(reexports, ["g: self::f::g", "i: self::f::h"]);
    assert_eq!(syntax.types, ["One", "Five"]);
    assert_eq!(syntax.test_modules, ["tests"]);
}
