//! Reading tenant conditions out of SQL text. Pure.
//!
//! A condition is an equality that holds for every row: it follows `where`, `on` or `and`, one side
//! is a `tenant_id`, and no `or`, `not` or `when` weakens it. Other uses of the word are recognised
//! by the words beside them: a column of a list, of an insert, of a key in `on conflict`, the
//! target of a `set`. A form that this reader does not know (a row comparison, `using`, `in`, `<>`)
//! is reported, so that nobody writes one that is never checked.

/// One tenant condition of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its text in the statement.
    pub text: String,
    /// The two sides: a column with its qualifier, a parameter, a variable.
    pub sides: [String; 2],
}

/// A word, a number, or a sign of its own.
#[derive(Debug, Clone, Copy)]
pub struct Token<'a> {
    pub text: &'a str,
    at: usize,
}

impl Token<'_> {
    pub fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    fn is_tenant(&self) -> bool {
        self.text.rsplit('.').next() == Some("tenant_id")
    }

    pub fn is_word(&self) -> bool {
        self.text
            .starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'))
    }
}

/// Comments, texts in quotes and quoted names are left out. A name with its qualifier is one word.
pub fn tokens(sql: &str) -> Vec<Token<'_>> {
    let bytes = sql.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    let to = |from: usize, end: &dyn Fn(&u8) -> bool| {
        bytes[from..]
            .iter()
            .position(end)
            .map_or(bytes.len(), |length| from + length)
    };
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let end = match bytes[at] {
            b'-' if bytes.get(at + 1) == Some(&b'-') => to(at, &|byte| *byte == b'\n'),
            quote @ (b'\'' | b'"') => to(at + 1, &|byte| *byte == quote) + 1,
            byte if is_word(&byte) => {
                let end = to(at, &|byte| !is_word(byte));
                tokens.push(Token {
                    text: &sql[at..end],
                    at,
                });
                end
            }
            byte if byte.is_ascii_graphic() => {
                tokens.push(Token {
                    text: &sql[at..=at],
                    at,
                });
                at + 1
            }
            _ => at + 1,
        };
        at = end;
    }
    tokens
}

/// The index of the token that closes the bracket at `open`.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" => depth += 1,
            ")" if depth == 1 => return index,
            ")" => depth -= 1,
            _ => {}
        }
    }
    tokens.len() - 1
}

/// What may stand before a condition; after a comma or `set` an equality sets a column.
const BEFORE: [&str; 7] = ["where", "on", "and", "or", "not", "when", "("];

/// The tenant conditions of a statement, in their order.
pub fn conditions(sql: &str) -> Vec<Condition> {
    found(sql).0
}

/// Uses of `tenant_id` in a form that this reader does not know.
pub fn unread(sql: &str) -> Vec<String> {
    found(sql).1
}

fn found(sql: &str) -> (Vec<Condition>, Vec<String>) {
    let tokens = tokens(sql);
    let (mut conditions, mut unread) = (Vec::new(), Vec::new());
    let mut read = vec![false; tokens.len()];
    for at in 1..tokens.len().saturating_sub(1) {
        let (left, right) = (tokens[at - 1], tokens[at + 1]);
        // `(record.part).tenant_id` on the right: the part of a row.
        let is_part = right.is("(")
            && tokens
                .get(closing(&tokens, at + 1) + 1)
                .is_some_and(|part| part.is(".tenant_id"));
        let is_equality = tokens[at].is("=")
            && left.is_word()
            && (right.is_word() || is_part)
            && (left.is_tenant() || right.is_tenant());
        if !is_equality || at < 2 || !BEFORE.iter().any(|word| tokens[at - 2].is(word)) {
            continue;
        }
        let (mut last, mut other) = (at + 1, right.text.to_owned());
        if right.is("any") {
            last = closing(&tokens, at + 2);
            sql[tokens[at + 2].at + 1..tokens[last].at]
                .trim()
                .clone_into(&mut other);
        }
        if is_part {
            last = closing(&tokens, at + 1) + 1;
            sql[right.at..tokens[last].at + tokens[last].text.len()].clone_into(&mut other);
        }
        // A cast: `$1::uuid`.
        while tokens.get(last + 1).is_some_and(|token| token.is(":"))
            && tokens.get(last + 2).is_some_and(|token| token.is(":"))
        {
            last += 3;
        }
        read[at - 1..=last].fill(true);
        if !is_required(&tokens, at - 1) {
            continue;
        }
        let range = left.at..tokens[last].at + tokens[last].text.len();
        conditions.push(Condition {
            text: sql[range].to_owned(),
            sides: [left.text.to_owned(), other],
        });
    }
    for (at, token) in tokens
        .iter()
        .enumerate()
        .filter(|(at, token)| token.is_tenant() && !read[*at])
    {
        let next = tokens.get(at + 1).map_or("", |next| next.text);
        let sets = next == "=" && at > 0 && (tokens[at - 1].is("set") || tokens[at - 1].is(","));
        let compared = ["=", "<", ">", "!", "is", "in", "not", "between"]
            .iter()
            .any(|word| next.eq_ignore_ascii_case(word));
        if compared && !sets || is_row_compared(&tokens, at) {
            let from = tokens[at.saturating_sub(4)].at;
            let to = tokens[(at + 6).min(tokens.len() - 1)].at;
            unread.push(format!("…{}… at `{}`", &sql[from..to], token.text));
        }
    }
    (conditions, unread)
}

/// Whether every row must satisfy the term that begins at `at`: between it and the `where` or `on` of
/// its clause there are only `and` and brackets, and no `or` stands beside it.
fn is_required(tokens: &[Token<'_>], at: usize) -> bool {
    let any = |token: &Token<'_>, words: &[&str]| words.iter().any(|word| token.is(word));
    if any(&tokens[at - 1], &["not", "when", "or"]) || has_or_after(tokens, at) {
        return false;
    }
    let mut depth = 0_usize;
    for before in (0..at).rev() {
        match tokens[before].text {
            ")" => depth += 1,
            "(" if depth > 0 => depth -= 1,
            _ if ends_case(tokens, before) => depth += 1,
            _ if depth > 0 && tokens[before].is("case") => depth -= 1,
            // The term stands in brackets, which are a term themselves unless a function, `filter`
            // or `not` stands before them.
            "(" => {
                return before > 0
                    && any(&tokens[before - 1], &["where", "on", "and", "("])
                    && is_required(tokens, before);
            }
            _ if depth > 0 => {}
            // `filter (where …)` selects rows of an aggregate only.
            _ if any(&tokens[before], &["where", "on"]) => {
                return before < 2 || !tokens[before - 2].is("filter");
            }
            _ if any(&tokens[before], &["or", "when", "case", "if", "select"]) => return false,
            _ => {}
        }
    }
    false
}

/// Whether the token is the `end` of a `case`, and not of a block of a function.
fn ends_case(tokens: &[Token<'_>], at: usize) -> bool {
    let is_of_block =
        |next: &Token<'_>| ["if", "loop", ";", "case"].iter().any(|word| next.is(word));
    tokens[at].is("end") && !tokens.get(at + 1).is_some_and(is_of_block)
}

/// Whether an `or` follows the term at `at` in the same brackets and the same clause.
fn has_or_after(tokens: &[Token<'_>], at: usize) -> bool {
    const ENDS: &str =
        "where on join left inner cross group order limit for union returning set from having ; ,";
    let mut depth = 0_usize;
    for token in &tokens[at..] {
        match token.text {
            "(" => depth += 1,
            ")" if depth == 0 => return false,
            ")" => depth -= 1,
            _ if token.is("case") => depth += 1,
            _ if depth > 0 && token.is("end") => depth -= 1,
            _ if depth > 0 => {}
            _ if token.is("or") => return true,
            _ if ENDS.split(' ').any(|end| token.is(end)) => return false,
            _ => {}
        }
    }
    false
}

/// `(tenant_id, …) = …`, `(…, tenant_id) in …`, `using (tenant_id, …)`; but `(tenant_id, …) > …` is a place in an order, not a condition.
fn is_row_compared(tokens: &[Token<'_>], at: usize) -> bool {
    let mut depth = 0_i32;
    for open in (0..at).rev() {
        match tokens[open].text {
            ")" => depth += 1,
            "(" if depth == 0 => {
                let after = tokens
                    .get(closing(tokens, open) + 1)
                    .map_or("", |token| token.text);
                let is_list = open == 0
                    || !tokens[open - 1].is_word()
                    || BEFORE.iter().any(|word| tokens[open - 1].is(word));
                let is_row = is_list
                    && ["=", "in"]
                        .iter()
                        .any(|sign| after.eq_ignore_ascii_case(sign));
                return is_row || open > 0 && tokens[open - 1].is("using");
            }
            "(" => depth -= 1,
            _ => {}
        }
    }
    false
}

#[test]
fn conditions_are_read_in_their_order() {
    let sql = "select s.tenant_id, x from scans s -- and i.tenant_id = s.tenant_id\n \
               join items i on i.tenant_id = s.tenant_id and i.id = s.id where s.tenant_id = $1 and note = 'where tenant_id = 1' \
               and note = $2";
    let found = conditions(sql);
    let texts: Vec<_> = found.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(texts, ["i.tenant_id = s.tenant_id", "s.tenant_id = $1"]);
    assert_eq!(unread(sql), Vec::<String>::new());
}

#[test]
fn what_is_no_condition_is_left_alone() {
    for sql in [
        "insert into scans (tenant_id, scan_id) values ($1, $2) on conflict (tenant_id, scan_id) do nothing",
        "update scans set tenant_id = $2, a = b where scan_id = $1",
        "update scans set a = b, tenant_id = $2 where scan_id = $1",
        "select tenant_id, count(*) from scans group by tenant_id order by tenant_id",
        "create function f() returns table (tenant_id uuid, a text)",
    ] {
        assert_eq!((conditions(sql), unread(sql)), (vec![], vec![]), "{sql}");
    }
    assert_eq!(
        conditions("select from a where a.tenant_id = any ($1::uuid[]) and true")[0].text,
        "a.tenant_id = any ($1::uuid[])"
    );
}

#[test]
fn a_condition_that_rows_may_miss_does_not_count() {
    for sql in [
        "select from a where a.tenant_id = $1 or a.public",
        "select from a where a.public or a.tenant_id = $1",
        "select from a where a.id = $2 and (a.tenant_id = $1 or $1 is null)",
        "select from a where not a.tenant_id = $1",
        "select from a where not (a.id = $2 and a.tenant_id = $1)",
        "select from a where case when a.tenant_id = $1 then a.b else a.c end",
        "select count(*) filter (where a.tenant_id = $1) from a where a.id = $2",
        "select from a where coalesce(a.b and a.tenant_id = $1, true)",
        "select from a where a.tenant_id = $1 and case when a.b then a.c end or a.d",
        "select case when a.b and a.tenant_id = $1 then 1 end from a where a.id = $2",
    ] {
        assert_eq!((conditions(sql), unread(sql)), (vec![], vec![]), "{sql}");
    }
    for sql in [
        "select from a where (a.tenant_id = $1 and a.id = $2) and (a.b or a.c)",
        "select from a where (a.b or a.c) and a.tenant_id = $1 order by a.b",
        "select from b join a on a.tenant_id = $1 where b.c or b.d",
        "select from a where a.tenant_id = $1 and case when a.b then a.c else a.d or a.e end",
        "select from a where case when a.b then a.c or a.d end and a.tenant_id = $1",
    ] {
        assert_eq!(conditions(sql).len(), 1, "{sql}");
    }
}

#[test]
fn an_unknown_form_is_reported() {
    for sql in [
        "select from a where (tenant_id, id) in (select 1, 2)",
        "select from a join b using (tenant_id, id)",
        "select from a where a.tenant_id <> $1",
        "select from a where a.tenant_id in ($1)",
        "select from a where a.tenant_id is not distinct from $1",
        "select from a, b where (a.tenant_id, a.id) = (b.tenant_id, b.id)",
    ] {
        assert!(!unread(sql).is_empty(), "{sql}");
    }
}
